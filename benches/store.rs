//! How fast the file of results is: writes samples of real text size, then lists, sums and reads them.
//!
//! `cargo bench --bench store -- 1000000` (samples; default 100,000). It needs about 1.7 GB of disk a million samples.
use std::collections::BTreeMap;
use std::time::Instant;

use earnest::engine::{FinishReason, Sampling, Timings};
use earnest::prompt::Mode;
use earnest::run::store::{Filter, Store};
use earnest::run::{
    FileRecord, Generated, Generation, Host, MANIFEST_FORMAT, Manifest, ModelRecord, RunSettings, SAMPLE_FORMAT,
    Sample, Status,
};
use earnest::suite::Verdict;

fn main() {
    let count = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::create(folder.path()).expect("a new file of results");
    let run = store.begin(&manifest(), count).expect("a new run");
    // Made before the clock starts: a hundred different ones, of which only the item changes.
    let mut templates: Vec<Sample> = (0..100).map(sample).collect();
    println!(
        "{count} samples, {} bytes of text and {} ids each",
        text(0).len(),
        templates[0].completion.as_ref().map_or(0, |c| c.ids.len())
    );

    let mut writer = store.writer(&run).batches_of(10_000);
    let start = Instant::now();
    let cpu = cpu_seconds();
    let mut making = std::time::Duration::ZERO;
    for number in 0..count {
        let clock = Instant::now();
        let template = &mut templates[number % 100];
        template.item = format!("gsm-symbolic/{:04}/{:02}", number / 50, number % 50);
        template.cluster = format!("{:04}", number / 50);
        let sample = template.clone();
        making += clock.elapsed();
        writer.push(number, sample).expect("room on the disk");
    }
    writer.write().expect("room on the disk");
    drop(writer);
    let seconds = (start.elapsed() - making).as_secs_f64();
    let size = std::fs::metadata(store.path()).map_or(0, |file| file.len());
    println!(
        "write      {seconds:8.3} s  {:9.0} rows/s  {:.0} MB  peak memory {} MB  CPU {:.2} s",
        count as f64 / seconds,
        size as f64 / 1e6,
        peak_mb(),
        cpu_seconds() - cpu
    );
    drop(store);

    let before = peak_mb();
    let start = Instant::now();
    let store = Store::open(folder.path()).expect("the file that was written");
    let runs = store.runs().expect("its runs");
    let found = store.aggregate(&runs[0]).expect("its rows");
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "list+sum   {seconds:8.3} s  {:9.0} rows/s  accuracy {:.4}  standard error {:.5}  memory {:+} MB",
        count as f64 / seconds,
        found.accuracy().map_or(f64::NAN, |accuracy| accuracy.value),
        found.standard_error.unwrap_or(f64::NAN),
        peak_mb() - before
    );

    let before = peak_mb();
    let start = Instant::now();
    let mut bytes = 0;
    for sample in store.samples(&runs[0], Filter::default()) {
        bytes += sample.expect("a whole row").completion.map_or(0, |completion| completion.text.len());
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "read all   {seconds:8.3} s  {:9.0} rows/s  {:.0} MB of text  memory {:+} MB",
        count as f64 / seconds,
        bytes as f64 / 1e6,
        peak_mb() - before
    );
}

/// A worked answer of the length that models write to grade-school problems (GSM8K's solutions have 100 to 150 tokens).
fn text(number: usize) -> String {
    let step = |k: usize| {
        format!(
            "Step {k}: she has {} apples and buys {} more, so {} + {} = {}. ",
            number + k,
            3 * k,
            number + k,
            3 * k,
            number + 4 * k
        )
    };
    (1..=7).map(step).collect::<String>() + &format!("The final answer is {}.", number + 28)
}

fn sample(number: usize) -> Sample {
    let correct = number % 3 != 0;
    Sample {
        format: SAMPLE_FORMAT,
        run: "bench".into(),
        suite: "gsm-symbolic".into(),
        item: String::new(),
        sample: 0,
        task: ["main", "p1", "p2"][number % 3].into(),
        cluster: String::new(),
        covariates: BTreeMap::from([("variant".into(), number.into()), ("template".into(), (number / 50).into())]),
        gold: (number + 28).to_string(),
        prompt_sha256: "0123456789abcdef".repeat(4),
        prompt_tokens: 867,
        budget: 512,
        max_tokens: 512,
        completion: Some(Generated {
            text: text(number),
            ids: (0..140).map(|id| id * 331 % 49_152).collect(),
            finish: FinishReason::Eos,
            cached_tokens: 832,
            timings: Timings { queued_s: 0.013, prefill_s: 0.21, decode_s: 2.75 },
        }),
        verdict: Some(Verdict {
            correct,
            extracted: Some((number + 28).to_string()),
            matchers: BTreeMap::from([
                ("boundary".into(), correct),
                ("compat".into(), true),
                ("final".into(), correct),
            ]),
            metrics: BTreeMap::from([("digit_match".into(), 0.75), ("length_error".into(), 0.0)]),
            failure: (!correct).then(|| "wrong".into()),
        }),
        failure: None,
    }
}

fn manifest() -> Manifest {
    let settings = RunSettings {
        suite: "gsm-symbolic".into(),
        suite_version: "1".into(),
        suite_options: serde_json::json!({}),
        limit: None,
        samples: 1,
        model_files: vec![FileRecord { name: "model".into(), size: 1, sha256: "0".repeat(64) }],
        prompt_mode: Mode::Raw,
        generation: Generation {
            sampling: Sampling::GREEDY,
            seed: 1,
            stop_ids: vec![2],
            max_tokens: None,
            thinking: false,
        },
        engine: "bench".into(),
        earnest: env!("CARGO_PKG_VERSION").into(),
    };
    Manifest {
        format: MANIFEST_FORMAT,
        run: "bench".into(),
        status: Status::Running,
        shard: None,
        settings_sha256: settings.sha256(),
        settings,
        model: ModelRecord {
            name: "model".into(),
            path: "model".into(),
            format: "none".into(),
            architecture: "none".into(),
            context: 4096,
            chat_template_sha256: None,
        },
        first_prompt: None,
        engine: None,
        host: Host::probe(),
        started: "2026-01-01T00:00:00Z".into(),
        ended: None,
        sessions: 1,
        generation_s: 0.0,
    }
}

/// The largest resident set of this process so far, in MB; 0 where the system does not say.
fn peak_mb() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok())
        .map_or(0, |kib| kib * 1024 / 1_000_000)
}

/// Processor time of this process so far, in seconds; it tells the work from the waiting on a shared machine.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: utime and stime are the 12th and 13th, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
