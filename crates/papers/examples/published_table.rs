//! Prints the published numbers of one model, whose name may have any spelling.
//!
//! Stored runs are compared by the same function: `EvaluatedRun::new` takes a run's manifest, `EvaluatedRun::add` its samples.
use earnest_papers::arithmetic_bench::{EvaluatedRun, compare};
use earnest_papers::model_key;

fn main() {
    let model = std::env::args().nth(1).unwrap_or_else(|| "Qwen/Qwen2.5-7B-Instruct".to_owned());
    let runs: Vec<EvaluatedRun> = Vec::new();
    let comparison = compare(&runs);
    println!("{}", comparison.paper);
    for table in &comparison.published {
        let same = |name: &str| model_key(name).0 == model_key(&model).0;
        let Some(row) = table.rows.iter().find(|row| same(&row.model)) else { continue };
        println!("\n{}", table.title);
        for (column, value) in table.columns.iter().zip(&row.values) {
            match value {
                Some(percent) => println!("  {column}: {percent:.1} %"),
                None => println!("  {column}: not published"),
            }
        }
    }
}
