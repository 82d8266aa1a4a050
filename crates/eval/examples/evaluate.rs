//! Evaluates the built-in model on a small suite and prints its accuracy.
//!
//!     cargo run --release -p earnest-eval --example evaluate [RESULTS]

use earnest_eval::evaluate::{EvaluationSettings, evaluate};
use earnest_eval::model::{BUILT_IN, Device, LocatedModel, ModelSource};
use earnest_models::checkpoint::WeightFormat;
use earnest_models::hub::HubSettings;
use earnest_results::Plan;
use earnest_results::store::Filter;
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let results = std::env::args().nth(1).unwrap_or_else(|| "earnest-results".into());
    let model = LocatedModel::find(BUILT_IN.as_ref(), &HubSettings::default(), WeightFormat::default())?;
    let model = ModelSource::Local { model, device: Device::Cpu, note: None };
    let suite = Suite::new(ArithmeticBench::new(Options::default())?);
    let settings = EvaluationSettings {
        plan: Plan { limit: Some(64), samples: 1, shard: None },
        ..EvaluationSettings::new(suite, model, results)
    };
    let done = evaluate(&settings, &mut ())?;
    let (mut right, mut all) = (0, 0);
    for sample in done.store.samples(&done.run, Filter::default()) {
        all += 1;
        right += usize::from(sample?.score.is_some_and(|score| score.correct));
    }
    println!("{}: {right} of {all} right", done.run.manifest.run);
    Ok(())
}
