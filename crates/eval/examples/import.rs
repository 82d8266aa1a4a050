//! Imports completions of another engine and prints the accuracy of each task.
//!
//!     cargo run --release -p earnest-eval --example import -- COMPLETIONS MODEL [RESULTS]
//!
//! COMPLETIONS has JSON lines such as `{"item": "arithmetic-bench/1/add/001/000", "completion": "7"}`.

use earnest_eval::import::{ImportSettings, import};
use earnest_results::{ModeRequest, folder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [completions, model, rest @ ..] = &arguments[..] else {
        return Err("usage: import COMPLETIONS MODEL [RESULTS]".into());
    };
    let folder = rest.first().map_or("earnest-results", String::as_str);
    let settings = ImportSettings {
        prompt: ModeRequest::Chat,
        ..ImportSettings::new("arithmetic-bench", completions, model, folder)
    };
    let imported = import(&settings, &mut ())?;
    println!("{}: {} of {} samples", imported.run.manifest.run, imported.recorded, imported.planned);
    for row in folder::document(&imported.store, &imported.run)?.summary.rows {
        if let Some((name, value)) = row.values.first() {
            println!("{}: {name} {:.3} of {} samples", row.name, value.estimate, row.n);
        }
    }
    Ok(())
}
