//! Speed of training: questions per second of one thread, for benches/results/train-speed.md:
//! `RAYON_NUM_THREADS=1 cargo run --release -p earnest-train --example speed -- SETTINGS.json STEPS`.
use std::sync::atomic::AtomicBool;

use earnest_train::{TrainError, TrainEvent, TrainSettings, Trainer};

/// CPU time of this thread so far, where the system tells it: other load disturbs it less than the time on the wall.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn main() -> Result<(), TrainError> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a training.json");
    let steps = arguments.next().and_then(|steps| steps.parse().ok()).unwrap_or(80);
    let text = std::fs::read_to_string(&path).expect("the settings can be read");
    let settings: TrainSettings = serde_json::from_str(&text).expect("it holds settings");
    let settings = TrainSettings { steps, validate_every: steps, validation: 1, ..settings };
    let (batch, folder) = (settings.batch as f64, std::env::temp_dir().join(format!("speed-{}", std::process::id())));
    let mut trainer = Trainer::open(settings, &folder)?;
    let (mut seconds, mut last, mut before) = (Vec::new(), 0.0, cpu_seconds());
    trainer.run(&AtomicBool::new(false), &mut |event| {
        if let TrainEvent::Step { seconds: took, loss, .. } = event {
            let now = cpu_seconds();
            seconds.push(before.zip(now).map_or(*took, |(before, now)| now - before));
            (last, before) = (*loss, now);
        }
    })?;
    std::fs::remove_dir_all(&folder).ok();
    seconds.sort_by(f64::total_cmp);
    println!(
        "{} parameters: median {:.0}, mean {:.0} questions/s; loss {last:.4}",
        trainer.parameter_count(),
        batch / seconds[seconds.len() / 2],
        batch * seconds.len() as f64 / seconds.iter().sum::<f64>()
    );
    Ok(())
}
