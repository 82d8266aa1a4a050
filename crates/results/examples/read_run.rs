//! Reads a stored run and prints which of its samples are right.
//!
//! `cargo run --release -p earnest-results --example read_run -- earnest-results RUN`
use std::path::Path;

use earnest_results::RunError;
use earnest_results::store::{Filter, Store};

fn main() -> Result<(), RunError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [results, run] = &arguments[..] else {
        eprintln!("usage: read_run RESULTS RUN");
        return Ok(());
    };
    let store = Store::open(Path::new(results))?;
    let run = store.run(run)?;
    let mut questions = store.questions(&run);
    for sample in store.samples(&run, Filter::default()).indexed() {
        let (index, sample) = sample?;
        let correct = sample.score.as_ref().map(|score| score.correct);
        let question = questions.of_sample(index, &sample)?.map(|asked| asked.item.segments.question);
        println!("{}\t{correct:?}\t{:?}\t{question:?}", sample.item, sample.gold);
    }
    Ok(())
}
