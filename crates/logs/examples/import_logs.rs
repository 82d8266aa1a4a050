//! Imports logs of other evaluation tools as runs and says how fast that was.
//!
//!     cargo run --release -p earnest-logs --example import_logs -- PATH [RESULTS]
use std::time::Instant;

use earnest_logs::LogError;
use earnest_logs::import::{LogImportSettings, import_logs};

fn main() -> Result<(), LogError> {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        return Err(LogError::setting("usage: import_logs PATH [RESULTS]"));
    };
    let results = arguments.next().unwrap_or_else(|| "earnest-results".to_owned());
    let begin = Instant::now();
    let settings = LogImportSettings { paths: vec![path.into()], results: results.into(), ..Default::default() };
    let found = import_logs(&settings, &mut ())?;
    for log in &found.runs {
        println!("{}: {} samples of {} documents", log.run.manifest.run, log.samples, log.items);
    }
    let (samples, seconds) = (found.runs.iter().map(|log| log.samples).sum::<usize>(), begin.elapsed().as_secs_f64());
    println!("{samples} samples in {seconds:.2} s, {:.0} a second", samples as f64 / seconds);
    Ok(())
}
