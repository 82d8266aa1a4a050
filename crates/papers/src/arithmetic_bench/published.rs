//! Published results: Tables 4 to 6, in per cent, as data.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use earnest_tasks::suite::arithmetic_bench::Task;

/// A table of the paper: accuracies by model and task. Names of models are written as in Table 4; the paper spells some of
/// them otherwise in Tables 5 and 6.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Table {
    /// Its number.
    pub table: u8,
    /// Per cent, averaged over lengths 1 to 100.
    pub values: BTreeMap<String, BTreeMap<Task, f64>>,
    /// Per cent on AIME 2024; Table 5 only.
    #[serde(default)]
    pub aime: BTreeMap<String, f64>,
}

macro_rules! table {
    ($file:literal) => {
        LazyLock::new(|| {
            serde_json::from_str(include_str!($file)).expect("the tables are constants and the tests read them")
        })
    };
}

static MAIN: LazyLock<Table> = table!("published/table4.json");
static MULTIPLICATION: LazyLock<Table> = table!("published/table5.json");
static SUB: LazyLock<Table> = table!("published/table6.json");

/// Tables 4 (main tasks), 5 (multiplication beside AIME 2024, which is another benchmark) and 6 (sub-tasks).
pub fn tables() -> [&'static Table; 3] {
    [&MAIN, &MULTIPLICATION, &SUB]
}

/// Models whose weights are not open: their values can not be run again here.
pub const CLOSED: [&str; 3] = ["gpt-3.5", "gpt-4", "gpt-4o"];

/// Items a length behind a published value: 10 for the Qwen2.5 and Llama-3 models, 1 for all others (section 3.4).
pub fn items_per_length(model: &str) -> usize {
    if model.starts_with("Qwen2.5-") || model.starts_with("Llama-3-") { 10 } else { 1 }
}

/// True for the models that think first, which the paper gave 16,384 new tokens.
pub fn thinks(model: &str) -> bool {
    model.starts_with("DeepSeek-R1") || model == "QwQ-32B" || model == "Qwen3-235B-A22B"
}

/// A value that is doubtful as printed, and why.
pub fn doubt(model: &str, task: Task) -> Option<&'static str> {
    match (model, task) {
        ("Qwen2.5-7B-Instruct" | "Qwen2.5-14B-Instruct", Task::Count | Task::B2d | Task::D2b) => {
            Some("the paper prints the same count, b2d and d2b for Qwen2.5-7B and -14B: probably copied")
        }
        ("Qwen3-235B-A22B", Task::D2b) => Some("20.2 % can not come from 100 items (20 of 99 is 20.2 %)"),
        ("DeepSeek-R1-Distill-Llama-8B", Task::Rev) => Some("6.6 % can not come from 100 items"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_whole() {
        let [main, multiplication, sub] = tables();
        assert_eq!((main.table, multiplication.table, sub.table), (4, 5, 6));
        assert_eq!((main.values.len(), multiplication.values.len(), sub.values.len()), (21, 6, 21));
        assert!(main.values.keys().eq(sub.values.keys()));
        assert!(multiplication.values.keys().eq(multiplication.aime.keys()));
        assert!(main.aime.is_empty() && sub.aime.is_empty());
        assert_eq!(multiplication.aime["Qwen3-235B-A22B (no think)"], 40.1);
        for (model, row) in main.values.iter().chain(&sub.values) {
            assert_eq!(row.len(), 8, "{model}");
        }
        for row in main.values.values() {
            assert!(Task::ALL[..8].iter().all(|task| row.contains_key(task)));
        }
        assert_eq!(main.values["Qwen2.5-7B-Instruct"][&Task::Mul1], 45.2);
        assert_eq!(sub.values["gpt-3.5"][&Task::Count], 10.0);
        // Table 5 repeats Table 4 as far as both have the model.
        for (model, row) in &multiplication.values {
            let Some(known) = main.values.get(model) else { continue };
            assert!((known[&Task::Mul] - row[&Task::Mul]).abs() <= 0.5, "{model}");
        }
    }

    #[test]
    fn resolution_and_doubts_are_those_of_the_values() {
        for table in [tables()[0], tables()[2]] {
            for (model, row) in &table.values {
                for (task, value) in row {
                    // A value must be a multiple of what one item counts, unless it is known to be doubtful.
                    let step = 100.0 / (100.0 * items_per_length(model) as f64);
                    let off = (value / step - (value / step).round()).abs() > 1e-6;
                    assert!(!off || doubt(model, *task).is_some(), "{model} {task} {value}");
                }
            }
        }
        assert!(thinks("DeepSeek-R1-671B") && !thinks("gpt-4o"));
    }
}
