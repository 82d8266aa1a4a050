//! Compares two stored runs item by item and prints the difference with its interval and p value.
//!
//!     cargo run --release -p earnest-report --example compare -- RESULTS BASELINE RUN
use std::path::Path;

use earnest_report::compare::compare_runs;
use earnest_results::folder;
use earnest_results::scores::CompareSettings;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [results, runs @ ..] = &arguments[..] else { return Err("usage: compare RESULTS BASELINE RUN".into()) };
    let store = folder::open(Path::new(results))?;
    for comparison in compare_runs(&store, runs, &CompareSettings::default(), &mut ())? {
        let found = &comparison.overall;
        let interval = found
            .interval
            .map_or_else(String::new, |(low, high)| format!(", 95 % {:+.1} to {:+.1}", 100.0 * low, 100.0 * high));
        let p = found.p.map_or_else(String::new, |p| format!(", p {p:.3}"));
        let (run, baseline) = (&comparison.run, &comparison.baseline);
        println!("{run} against {baseline}: {:+.1} points{interval}{p}", 100.0 * found.difference);
    }
    Ok(())
}
