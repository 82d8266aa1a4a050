//! The NUPA vectors: task answers and prompts, extraction and metrics, range averages.
use std::path::Path;

use earnest_tasks::suite::nupa::answer::{AnswerForm, ReferenceMarker, extract_paper, extract_reference};
use earnest_tasks::suite::nupa::{
    AggregateError, Auxiliary, DigitSet, MetricName, NupaOptions, NupaSuite, Operation, PairSource, RawPair, Record,
    Second, TaskId, Wording, exact_answer, half_even_answer, measure, prepare, question, question_length,
    reference_answer, reference_statistics,
};
use earnest_tasks::suite::{Answered, Scoring};
use serde_json::{Map, Value};

use super::report::{FileReport, check_json_lines, flag, require_equal as same, require_fields, text};

/// Checks the subject's files.
pub fn check(root: &Path) -> Vec<FileReport> {
    let suite = NupaSuite::new(NupaOptions::default()).expect("the default options are possible");
    vec![
        check_json_lines(root, "nupa/tasks.jsonl", |row| task_row(&suite, row)),
        check_json_lines(root, "nupa/metrics.jsonl", metric_row),
        check_json_lines(root, "nupa/aggregate.jsonl", aggregate_row),
    ]
}

type Row = Map<String, Value>;

/// A row has exactly these fields (and those that its task asks for): one that is missing would be one that is not checked.
const TASK_FIELDS: [&str; 16] = [
    "task",
    "title",
    "representation",
    "second",
    "output",
    "dataset",
    "length",
    "a",
    "b",
    "answer",
    "reference_answer",
    "reference_disagrees",
    "in_reference_test_range",
    "in_reference_config",
    "source",
    "prompt",
];

const METRIC_FIELDS: [&str; 17] = [
    "id",
    "mode",
    "output_domain",
    "task",
    "truth",
    "prediction_text",
    "prompt",
    "note",
    "extracted",
    "reference_crashes",
    "reference_error",
    "exact_match",
    "digit_match",
    "dlength",
    "paper_extracted",
    "paper",
    "paper_differs",
];

const STATISTICS_FIELDS: [&str; 8] = [
    "well_learned_digit",
    "has_performance_digit",
    "in_domain",
    "out_domain",
    "short_range",
    "medium_range",
    "long_range",
    "very_long_range",
];

/// A field that is a string or null.
fn optional<'a>(row: &'a Row, field: &str) -> Result<Option<&'a str>, String> {
    match row.get(field) {
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        _ => Err(format!("field `{field}` is missing or neither a string nor null")),
    }
}

fn task_row(suite: &NupaSuite, row: &Row) -> Result<(), String> {
    let task: TaskId = text(row, "task")?.parse().map_err(|error| format!("{error}"))?;
    let generated = text(row, "source")? == "reference_generator";
    let half_even = task.operation == Operation::Sig;
    let mut fields = TASK_FIELDS.to_vec();
    fields.extend(generated.then_some("raw_pair"));
    fields.extend(half_even.then_some("answer_half_even"));
    require_fields(row, &fields)?;
    let a = text(row, "a")?;
    let b = optional(row, "b")?;
    let said = |error: earnest_tasks::suite::nupa::NupaError| error.to_string();
    let answer = exact_answer(task, a, b).map_err(said)?;
    same("answer", answer.as_str(), text(row, "answer")?)?;
    let reference = reference_answer(task, a, b).map_err(said)?;
    same("reference answer", reference.as_str(), text(row, "reference_answer")?)?;
    same("reference disagrees", answer != reference, flag(row, "reference_disagrees")?)?;
    if half_even {
        let ours = half_even_answer(task, a, b).map_err(said)?;
        same("half-even answer", ours.as_str(), text(row, "answer_half_even")?)?;
    }
    scorers(suite, task, a, b, &answer, &reference)?;
    let data_set = match task.pair_source() {
        PairSource::Add => "add",
        PairSource::Compare => "compare",
        PairSource::CompareHarder => "compare_harder",
    };
    same("data set", data_set, text(row, "dataset")?)?;
    let second = match task.operation.second() {
        Second::None => "none",
        Second::SameRepresentation => task.representation.name(),
        Second::ShortInteger => "int",
    };
    same("second operand", second, text(row, "second")?)?;
    // The id ends with the output's representation.
    same(
        "id",
        task.to_string(),
        format!("{}_{}_{second}_{}", text(row, "title")?, text(row, "representation")?, text(row, "output")?),
    )?;
    let golden = text(row, "prompt")?;
    same("reference prompt", question(task, a, b, Wording::Reference).as_str(), golden)?;
    same("prompt", question(task, a, b, Wording::Corrected), golden.replace("mininal", "minimal"))?;
    let length = question_length(task, a, b);
    same("length", Some(length as u64), row.get("length").and_then(Value::as_u64))?;
    same(
        "in reference range",
        Some(task.in_reference_range(length)),
        row.get("in_reference_test_range").and_then(Value::as_bool),
    )?;
    same("in released set", Some(task.in_released_set()), row.get("in_reference_config").and_then(Value::as_bool))?;
    same("title", task.operation.title(), text(row, "title")?)?;
    same("representation", task.representation.name(), text(row, "representation")?)?;
    match text(row, "source")? {
        "edge" => Ok(()),
        "reference_generator" => {
            let raw = |index: usize| {
                row.get("raw_pair").and_then(|pair| pair[index].as_str()).map(String::from).ok_or("no raw pair")
            };
            let pair = RawPair { a: raw(0)?, b: raw(1)? };
            let operands = prepare(task, pair, &mut Auxiliary::Reference).map_err(said)?;
            same("prepared operands", (operands.a.as_str(), operands.b.as_deref()), (a, b))
        }
        other => Err(format!("unknown source `{other}`")),
    }
}

/// The suite itself, asked this question: `strict` and `paper` follow exact arithmetic, `ref` the reference.
fn scorers(
    suite: &NupaSuite,
    task: TaskId,
    a: &str,
    b: Option<&str>,
    answer: &str,
    reference: &str,
) -> Result<(), String> {
    let item = suite.item_from_operands(task, a, b).map_err(|error| error.to_string())?;
    same("the item's truth", item.gold.as_str(), answer)?;
    for given in [answer, reference] {
        // The space before the answer is what the reference's marker needs.
        let completion = format!(" {given}");
        let score = suite.score(&item, &Answered { completion: &completion, truncated: false });
        let passes = |scorer: &str| score.scorers.get(scorer);
        same("strict", passes("strict"), Some(given == answer))?;
        same("paper", passes("paper"), Some(given == answer))?;
        same("ref", passes("ref"), Some(given == reference))?;
    }
    Ok(())
}

fn metric_row(row: &Row) -> Result<(), String> {
    require_fields(row, &METRIC_FIELDS)?;
    row.get("id").and_then(Value::as_u64).ok_or("field `id` is no number")?;
    same("task", row.get("task"), Some(&Value::Null))?;
    optional(row, "note")?;
    let form = match text(row, "output_domain")? {
        "Integer" | "int" => AnswerForm::Integer,
        "Float" => AnswerForm::Float,
        "Fraction" => AnswerForm::Fraction,
        "ScientificNotation" => AnswerForm::Scientific,
        other => return Err(format!("unknown output domain `{other}`")),
    };
    let truth = text(row, "truth")?;
    let prediction = optional(row, "prediction_text")?;
    let marked = |marker| prediction.map(|text| extract_reference(form, marker, text));
    let extracted = match text(row, "mode")? {
        "direct" => prediction.map(String::from),
        "hf" => {
            let prompt = text(row, "prompt")?;
            prediction.map(|text| extract_reference(form, ReferenceMarker::Equals, &format!("{prompt}{text}")))
        }
        "gpt" => marked(ReferenceMarker::TheAnswerIs),
        "rfft" => marked(ReferenceMarker::SoTheAnswerIs),
        other => return Err(format!("unknown mode `{other}`")),
    };
    same("extracted", extracted.as_deref(), optional(row, "extracted")?)?;
    let ours = extracted.and_then(|text| measure(form, DigitSet::Python, truth, &text));
    same("reference stops", ours.is_none(), flag(row, "reference_crashes")?)?;
    same("reference error", ours.is_none(), optional(row, "reference_error")?.is_some())?;
    match ours {
        Some(ours) => numbers(row, ours.exact, ours.digit_match, ours.dlength_total)?,
        None => {
            for field in ["exact_match", "digit_match", "dlength"] {
                same(field, row.get(field), Some(&Value::Null))?;
            }
        }
    }
    let paper = prediction.and_then(|text| extract_paper(form, text)).unwrap_or_default();
    same("paper extraction", paper, text(row, "paper_extracted")?)?;
    let golden = row.get("paper").ok_or("field `paper` is missing")?;
    let theirs = measure(form, DigitSet::Python, truth, paper);
    match (theirs, golden) {
        (None, Value::Null) => {}
        (Some(ours), Value::Object(golden)) => {
            require_fields(golden, &["exact_match", "digit_match", "dlength"])?;
            numbers(golden, ours.exact, ours.digit_match, ours.dlength)?;
        }
        (ours, golden) => return Err(format!("paper metrics: {ours:?} instead of {golden}")),
    }
    let metrics = |total: bool, found: Option<earnest_tasks::suite::nupa::Metrics>| {
        found.map(|found| (found.exact, found.digit_match, if total { found.dlength_total } else { found.dlength }))
    };
    let differs = metrics(true, ours) != metrics(false, theirs);
    // Where the reference stops, there is nothing that could agree.
    same("paper differs", differs || ours.is_none(), flag(row, "paper_differs")?)
}

fn numbers(golden: &Row, exact: bool, digit_match: f64, dlength: usize) -> Result<(), String> {
    same("exact match", Some(u64::from(exact)), golden.get("exact_match").and_then(Value::as_u64))?;
    same("digit match", Some(digit_match), golden.get("digit_match").and_then(Value::as_f64))?;
    same("dlength", Some(dlength as u64), golden.get("dlength").and_then(Value::as_u64))
}

fn aggregate_row(row: &Row) -> Result<(), String> {
    require_fields(row, &["scenario", "task", "records", "statistics", "reference_error"])?;
    text(row, "scenario")?;
    let failed = optional(row, "reference_error")?.is_some();
    let records: Vec<Record> = row
        .get("records")
        .and_then(Value::as_array)
        .ok_or("no records")?
        .iter()
        .map(|record| {
            let value = |index: usize| record[index].as_f64().ok_or("a record is not four numbers");
            Ok(Record {
                length: record[0].as_u64().ok_or("a record's length is not a number")? as usize,
                exact_match: value(1)?,
                digit_match: value(2)?,
                dlength: value(3)?,
            })
        })
        .collect::<Result<_, &str>>()?;
    if row["records"].as_array().into_iter().flatten().any(|record| record.as_array().map(Vec::len) != Some(4)) {
        return Err("a record is not four numbers".into());
    }
    let task = text(row, "task")?;
    task.parse::<TaskId>().map_err(|error| error.to_string())?;
    match &row["statistics"] {
        Value::Null => same("an error", failed, true)?,
        Value::Object(metrics) => {
            same("an error", failed, false)?;
            require_fields(metrics, &MetricName::ALL.map(MetricName::name))?;
            for tasks in metrics.values() {
                require_fields(tasks.as_object().ok_or("statistics of a metric are no object")?, &[task])?;
            }
        }
        other => return Err(format!("statistics are {other}")),
    }
    for metric in MetricName::ALL {
        let golden = &row["statistics"][metric.name()][task];
        match (reference_statistics(metric, &records), golden) {
            (Err(AggregateError::UnknownScheme(_) | AggregateError::EmptyRange(_)), Value::Null) => {
                if row.get("reference_error").is_none_or(Value::is_null) {
                    return Err("an error that the reference does not have".into());
                }
            }
            (Ok(ours), Value::Object(golden)) => {
                require_fields(golden, &STATISTICS_FIELDS)?;
                let limit = |field: &str| golden.get(field).and_then(Value::as_u64);
                same("well learned", Some(ours.well_learned_digit as u64), limit("well_learned_digit"))?;
                same("performance", Some(ours.has_performance_digit as u64), limit("has_performance_digit"))?;
                let averages = [
                    ("in_domain", ours.in_domain),
                    ("out_domain", ours.out_domain),
                    ("short_range", ours.ranges[0]),
                    ("medium_range", ours.ranges[1]),
                    ("long_range", ours.ranges[2]),
                    ("very_long_range", ours.ranges[3]),
                ];
                for (field, ours) in averages {
                    let golden = golden.get(field).and_then(Value::as_f64).ok_or_else(|| format!("no `{field}`"))?;
                    if (ours - golden).abs() > 1e-12 {
                        return Err(format!("{} {field}: {ours} instead of {golden}", metric.name()));
                    }
                }
            }
            (ours, golden) => return Err(format!("{}: {ours:?} instead of {golden}", metric.name())),
        }
    }
    Ok(())
}
