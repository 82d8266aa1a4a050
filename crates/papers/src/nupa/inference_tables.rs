//! Tables 2, 3, 7 to 10 and 19 of the paper, and its figures, as data. Table 7 prints one block six times, so only its first eight columns
//! are usable; Tables 8 and 9 lack get_digit, length, count, sig on floats and the `min` family.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use earnest_tasks::suite::{Interval, Summary, SummaryRow};

use earnest_tasks::suite::nupa::{DigitLimit, LengthRange, MetricName, Operation, Representation, TaskId};

#[derive(Deserialize)]
struct Limits {
    well_learned: usize,
    performance_preserving: usize,
}

#[derive(Deserialize)]
struct LimitTable {
    values: BTreeMap<String, BTreeMap<String, Limits>>,
}

#[derive(Deserialize)]
struct RangeTable {
    values: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>,
}

#[derive(Deserialize)]
struct RuleRow {
    task: String,
    representation: String,
    digits: usize,
    exact_match: Option<f64>,
    std_err: Option<f64>,
}

#[derive(Deserialize)]
struct RuleTable {
    rows: BTreeMap<String, Vec<RuleRow>>,
}

#[derive(Deserialize)]
struct LengthTable {
    values: BTreeMap<String, BTreeMap<String, Option<usize>>>,
}

/// A row of Table 2.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InferenceTime {
    /// `RF CoT` or `Direct`.
    pub method: String,
    /// Samples generated together.
    #[serde(rename = "batchsize")]
    pub batch_size: usize,
    /// Seconds a sample.
    #[serde(rename = "sec_per_sample")]
    pub seconds_per_sample: f64,
}

#[derive(Deserialize)]
struct TimeTable {
    rows: Vec<InferenceTime>,
}

struct Tables {
    times: TimeTable,
    rules: RuleTable,
    limits: [LimitTable; 3],
    ranges: RangeTable,
    rule_lengths: LengthTable,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> T {
        serde_json::from_str(text).expect("every embedded table is read by a test")
    }
    Tables {
        times: read(include_str!("published/table2_inference_time.json")),
        rules: read(include_str!("published/table3_rfcot.json")),
        limits: [
            read(include_str!("published/table7_exact_match_digits.json")),
            read(include_str!("published/table8_digit_match_digits.json")),
            read(include_str!("published/table9_dlength_digits.json")),
        ],
        ranges: read(include_str!("published/table10_fewshot.json")),
        rule_lengths: read(include_str!("published/table19_rfcot_max_digits.json")),
    }
});

/// The models of Tables 7 to 9.
pub fn published_models() -> Vec<&'static str> {
    TABLES.limits[0].values.keys().map(String::as_str).collect()
}

/// A digit limit of Tables 7 to 9.
pub fn published_digit_limit(metric: MetricName, model: &str, task: TaskId, limit: DigitLimit) -> Option<usize> {
    let limits = TABLES.limits[metric as usize].values.get(model)?.get(&task.table_name())?;
    Some(match limit {
        DigitLimit::WellLearned => limits.well_learned,
        DigitLimit::PerformancePreserving => limits.performance_preserving,
    })
}

/// Exact match over a range of lengths (Table 10), zero-shot or with five examples.
pub fn published_range_accuracy(model: &str, five_shot: bool, task: TaskId, range: LengthRange) -> Option<f64> {
    let model = if five_shot { format!("{model}-5-shot") } else { model.to_string() };
    TABLES.ranges.values.get(&model)?.get(&task.table_name())?.get(range.name()).copied()
}

/// The methods of Table 3: fine-tuned on rule following, two models as they are, and fine-tuned on answers.
pub const TABLE_3_METHODS: [&str; 4] = ["RF CoT", "GPT-4o", "Qwen2-72B", "Llama-8B-ft"];

/// A cell of Table 3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedRuleFollowing {
    /// None where the trace exceeds the paper's 2,000 tokens.
    pub exact_match: Option<f64>,
    /// Over three runs, where the method was trained.
    pub standard_error: Option<f64>,
}

/// Exact match of a method (`RF CoT`, `GPT-4o`, `Qwen2-72B`, `Llama-8B-ft`) at a number of digits (Table 3).
pub fn published_rule_following(method: &str, task: TaskId, digits: usize) -> Option<PublishedRuleFollowing> {
    // The table does not say whether its multiplication is the easy or the hard one; both get the cell.
    let title = match task.operation {
        Operation::MultiplyEasy | Operation::MultiplyHard => "multiply",
        other => other.title(),
    };
    let row =
        TABLES.rules.rows.get(method)?.iter().find(|row| {
            row.task == title && row.representation == task.representation.name() && row.digits == digits
        })?;
    Some(PublishedRuleFollowing { exact_match: row.exact_match, standard_error: row.std_err })
}

/// Columns of Table 19.
pub const TABLE_19_COLUMNS: [&str; 9] =
    ["Add", "Sub", "Multiply", "Floordiv", "Mod", "Max", "DigitMax", "GetDigit", "Length"];

/// A row of Table 19, by [`TABLE_19_COLUMNS`].
pub fn published_rule_lengths(representation: Representation) -> [Option<usize>; 9] {
    let row = TABLES.rule_lengths.values.get(representation.name());
    TABLE_19_COLUMNS.map(|column| *row?.get(column)?)
}

/// The greatest length whose trace fits 2,000 tokens (Table 19; floordiv on integers and max on fractions do not reproduce).
pub fn published_rule_length(task: TaskId) -> Option<usize> {
    let column = match task.operation {
        Operation::Add => "Add",
        Operation::Sub => "Sub",
        Operation::MultiplyHard | Operation::MultiplyEasy => "Multiply",
        Operation::FloorDiv => "Floordiv",
        Operation::Mod => "Mod",
        Operation::Max => "Max",
        Operation::DigitMax => "DigitMax",
        Operation::GetDigit => "GetDigit",
        Operation::Length => "Length",
        _ => return None,
    };
    *TABLES.rule_lengths.values.get(task.representation.name())?.get(column)?
}

/// Seconds per sample (Table 2).
pub fn published_inference_times() -> &'static [InferenceTime] {
    &TABLES.times.rows
}

fn column(row: &SummaryRow, name: &str) -> Option<Interval> {
    row.values.iter().find(|(column, _)| column == name).map(|(_, value)| *value)
}

/// A bar of figures 2 and 5 to 8.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureRow {
    /// The task id.
    pub task: String,
    /// The representation's name.
    pub representation: &'static str,
    /// `S`, `M`, `L` or `XL`.
    pub range: &'static str,
    /// Samples.
    pub n: usize,
    /// Figures 2, 5 and 8.
    pub exact_match: Interval,
    /// Figure 6.
    pub digit_match: Interval,
    /// In digits.
    pub dlength: Interval,
    /// log2(dlength + 1), the scale of figure 7.
    pub log2_dlength: Interval,
}

/// The figures' data: task by range of lengths.
pub fn figure_rows(summary: &Summary) -> Vec<FigureRow> {
    let mut rows = Vec::new();
    for row in &summary.rows {
        let Ok(task) = row.name.parse::<TaskId>() else { continue };
        let representation: Representation = task.representation;
        for range in LengthRange::ALL {
            let of = |metric: MetricName| column(row, &format!("{} {}", metric.name(), range.name()));
            let n = row.numbers.iter().find(|(name, _)| *name == format!("n {}", range.name()));
            let values = (of(MetricName::ExactMatch), of(MetricName::DigitMatch), of(MetricName::Dlength), n);
            let (Some(exact_match), Some(digit_match), Some(dlength), Some((_, n))) = values else { continue };
            let log = |value: f64| (value + 1.0).log2();
            rows.push(FigureRow {
                task: row.name.clone(),
                representation: representation.name(),
                range: range.name(),
                n: *n as usize,
                exact_match,
                digit_match,
                dlength,
                log2_dlength: Interval {
                    estimate: log(dlength.estimate),
                    low: log(dlength.low),
                    high: log(dlength.high),
                },
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str) -> TaskId {
        name.parse().unwrap()
    }

    #[test]
    fn tables_are_read() {
        let limit = |metric, model, name| published_digit_limit(metric, model, task(name), DigitLimit::WellLearned);
        assert_eq!(limit(MetricName::ExactMatch, "GPT-4o", "sub_Integer"), Some(6));
        assert_eq!(limit(MetricName::ExactMatch, "GPT-4o", "max_Integer"), None);
        assert_eq!(limit(MetricName::DigitMatch, "GPT-4o-mini", "add_Integer"), Some(9));
        assert_eq!(limit(MetricName::Dlength, "GPT-4o-mini", "add_Integer"), Some(20));
        assert_eq!(published_models().len(), 9);
        let accuracy = |five| published_range_accuracy("Qwen2-7B", five, task("max_Float"), LengthRange::S);
        assert_eq!((accuracy(false), accuracy(true)), (Some(0.68), Some(1.0)));
        let cell = published_rule_following("RF CoT", task("mod_Integer"), 6).unwrap();
        assert_eq!((cell.exact_match, cell.standard_error), (Some(0.67), Some(0.05)));
        assert_eq!(published_rule_following("RF CoT", task("add_Float"), 7).unwrap().exact_match, None);
        assert_eq!(published_rule_length(task("multiply_hard_Integer")), Some(12));
        assert_eq!(published_rule_length(task("mod_Integer")), Some(6));
        assert_eq!(published_rule_length(task("count_Integer")), None);
        assert_eq!(published_rule_length(task("max_ScientificNotation")), Some(100));
        assert_eq!(
            published_rule_lengths(Representation::Scientific),
            [Some(3), Some(3), Some(3), None, None, Some(100), None, None, None]
        );
        assert_eq!(published_inference_times().len(), 3);
    }

    #[test]
    fn every_published_column_is_a_task_of_ours() {
        for table in &TABLES.limits {
            for columns in table.values.values() {
                for name in columns.keys() {
                    assert!(name.parse::<TaskId>().is_ok(), "{name}");
                }
            }
        }
    }

    #[test]
    fn figures_are_on_the_papers_scales() {
        let value = |estimate| Interval { estimate, low: 0.0, high: 1.0 };
        let columns = [("exact_match S", 0.9), ("digit_match S", 0.95), ("dlength S", 3.0)];
        let row = SummaryRow {
            name: task("add_Integer").to_string(),
            n: 10,
            values: columns.map(|(name, estimate)| (name.to_string(), value(estimate))).to_vec(),
            numbers: vec![("n S".into(), 10.0)],
        };
        let summary = Summary { rows: vec![row], series: Vec::new(), notes: Vec::new() };
        let figures = figure_rows(&summary);
        assert_eq!((figures.len(), figures[0].n, figures[0].log2_dlength.estimate), (1, 10, 2.0));
    }
}
