//! The paper's results on models that its authors trained: Tables 12 to 18.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A printed number about trained models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedTraining {
    /// The table's number.
    pub table: u8,
    /// The task's short name.
    pub task: String,
    /// The row or column head that says what was trained: `RoPE`, `rev+pad`, `NoPE + rev + 1d`.
    pub variant: String,
    /// The head that says what it was asked, or which model: `D9`, `1.3M model`, `S`.
    pub column: String,
    /// `exact match`, `digit match`, `dlength`, or `digits` for limits.
    pub metric: &'static str,
    /// As printed.
    pub value: f64,
    /// As printed, from three trainings; not every table has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std_err: Option<f64>,
    /// Reason for not relying on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
}

/// Decimals that are written backwards are put back wrongly by the authors' scoring: a perfect model gets these values.
const SCRAMBLED: &str = "the authors' scoring scrambles reversed decimals; a perfect model would be given the same";

/// Tables 12 to 18, cell by cell, as printed.
pub fn published_trainings() -> &'static [PublishedTraining] {
    static ALL: LazyLock<Vec<PublishedTraining>> = LazyLock::new(read);
    &ALL
}

/// A mean with its error.
#[derive(Deserialize)]
struct Mean {
    mean: f64,
    std_err: f64,
}

#[derive(Deserialize)]
struct Table12 {
    values: BTreeMap<String, BTreeMap<String, BTreeMap<String, Mean>>>,
}

#[derive(Deserialize)]
struct Tables13To15 {
    table13: BTreeMap<String, BTreeMap<String, f64>>,
    #[serde(rename = "table14_1.3M_model")]
    table14: BTreeMap<String, BTreeMap<String, f64>>,
    #[serde(rename = "table15_1M_samples")]
    table15: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct FormatRow {
    task: String,
    format: String,
    exact_match: f64,
    std_err: Option<f64>,
}

#[derive(Deserialize)]
struct FormatTable {
    values: BTreeMap<String, Vec<FormatRow>>,
}

#[derive(Deserialize)]
struct Table18 {
    values: BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>,
}

fn read() -> Vec<PublishedTraining> {
    fn parsed<T: for<'de> Deserialize<'de>>(text: &str) -> T {
        serde_json::from_str(text).expect("every embedded table is read by a test")
    }
    let mut all = table_12(parsed(include_str!("published/table12_rope.json")));
    all.extend(tables_13_to_15(parsed(include_str!("published/table13_15_pe_small.json"))));
    all.extend(formats(16, parsed(include_str!("published/table16_formats.json"))));
    all.extend(formats(17, parsed(include_str!("published/table17_index_hint.json"))));
    all.extend(table_18(parsed(include_str!("published/table18_finetune_tricks.json"))));
    all
}

/// The tables' names of tasks.
fn task(printed: &str) -> String {
    match printed {
        "Int-add" | "int_add" => "add_Integer",
        "Float-add" | "float_add" => "add_Float",
        "Frac-mul" | "frac_mul" | "multiply_easy:Fraction" => "multiply_easy_Fraction",
        "Sci-add" | "sci_add" | "add:ScientificNotation" => "add_ScientificNotation",
        "multiply:Integer" => "multiply_hard_Integer",
        other => return other.replace(':', "_"),
    }
    .to_owned()
}

fn table_12(table: Table12) -> Vec<PublishedTraining> {
    let mut all = Vec::new();
    for (name, metrics) in table.values {
        for (metric, key) in [("exact match", "exact_match"), ("digit match", "digit_match"), ("dlength", "dlength")] {
            for (column, value) in &metrics[key] {
                all.push(PublishedTraining {
                    table: 12,
                    task: task(&name),
                    variant: "RoPE".into(),
                    column: column.clone(),
                    metric,
                    value: value.mean,
                    std_err: Some(value.std_err),
                    doubt: None,
                });
            }
        }
    }
    all
}

fn tables_13_to_15(tables: Tables13To15) -> Vec<PublishedTraining> {
    const ENCODINGS: [&str; 3] = ["RoPE", "NoPE", "Alibi"];
    let mut all = Vec::new();
    let mut push = |table, task: String, variant: &str, column: &str, value| {
        let (variant, column, metric) = (variant.to_owned(), column.to_owned(), "digit match");
        all.push(PublishedTraining { table, task, variant, column, metric, value, std_err: None, doubt: None });
    };
    for encoding in ENCODINGS {
        for (key, column) in [("1.3M_model", "1.3M model"), ("1M_samples", "1M samples")] {
            push(13, task("int_add"), encoding, column, tables.table13[encoding][key]);
        }
    }
    for (number, table, column) in [(14, &tables.table14, "1.3M model"), (15, &tables.table15, "1M samples")] {
        for encoding in ENCODINGS {
            for key in ["int_add", "float_add", "frac_mul", "sci_add"] {
                push(number, task(key), encoding, column, table[encoding][key]);
            }
        }
    }
    all
}

fn formats(table: u8, rows: FormatTable) -> Vec<PublishedTraining> {
    // d10 stands before d9 in the alphabet.
    let mut columns: Vec<(String, Vec<FormatRow>)> = rows.values.into_iter().collect();
    columns.sort_by_key(|(column, _)| column.len());
    let mut all = Vec::new();
    for (column, rows) in columns {
        for row in rows {
            let scrambled = ["rev total", "rev each", "rev dec"].iter().any(|format| row.format.starts_with(format));
            all.push(PublishedTraining {
                table,
                task: task(&row.task),
                variant: row.format,
                column: column.to_uppercase(),
                metric: "exact match",
                value: row.exact_match,
                std_err: row.std_err,
                doubt: scrambled.then_some(SCRAMBLED),
            });
        }
    }
    all
}

fn table_18(table: Table18) -> Vec<PublishedTraining> {
    let mut all = Vec::new();
    for (variant, tasks) in &table.values {
        for (name, columns) in tasks {
            for column in ["S", "M", "L", "XL", "wld", "ppd"] {
                let Some(value) = columns[column].as_f64() else { continue };
                all.push(PublishedTraining {
                    table: 18,
                    task: task(name),
                    variant: variant.clone(),
                    column: column.to_owned(),
                    metric: if column.ends_with('d') { "digits" } else { "exact match" },
                    value,
                    std_err: None,
                    doubt: None,
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::nupa::TaskId;

    fn value(table: u8, task: &str, variant: &str, column: &str, metric: &str) -> (f64, Option<f64>) {
        let fits = |cell: &&PublishedTraining| {
            cell.table == table
                && cell.task == task
                && cell.variant == variant
                && cell.column == column
                && cell.metric == metric
        };
        let found: Vec<_> = published_trainings().iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{table} {task} {variant} {column} {metric}");
        (found[0].value, found[0].std_err)
    }

    #[test]
    fn cells_are_those_of_the_paper() {
        assert_eq!(value(12, "add_Integer", "RoPE", "D9", "digit match"), (0.45, Some(0.02)));
        assert_eq!(value(12, "multiply_easy_Fraction", "RoPE", "D8", "dlength"), (0.18, Some(0.02)));
        assert_eq!(value(13, "add_Integer", "Alibi", "1M samples", "digit match"), (0.23, None));
        assert_eq!(value(14, "add_Float", "NoPE", "1.3M model", "digit match"), (0.39, None));
        assert_eq!(value(15, "add_ScientificNotation", "RoPE", "1M samples", "digit match"), (0.99, None));
        assert_eq!(value(16, "add_Float", "rev int+pad", "D10", "exact match"), (0.87, Some(0.16)));
        assert_eq!(value(17, "multiply_hard_Integer", "rev", "D9", "exact match"), (0.43, None));
        assert_eq!(value(18, "add_Float", "RoPE + rev + 1d", "ppd", "digits"), (11.0, None));
        assert_eq!(value(18, "add_Integer", "FT", "S", "exact match"), (0.95, None));
    }

    #[test]
    fn tables_are_whole_and_tasks_exist() {
        let counts: BTreeMap<u8, usize> = published_trainings().iter().fold(BTreeMap::new(), |mut counts, cell| {
            *counts.entry(cell.table).or_default() += 1;
            counts
        });
        let expected = [(12, 24), (13, 6), (14, 12), (15, 12), (16, 28), (17, 24), (18, 168)];
        assert_eq!(counts, BTreeMap::from(expected));
        for cell in published_trainings() {
            assert!(cell.task.parse::<TaskId>().is_ok(), "{}", cell.task);
        }
        assert_eq!(published_trainings().iter().filter(|cell| cell.doubt.is_some()).count(), 12);
    }
}
