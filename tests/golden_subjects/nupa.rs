//! The NUPA vectors: task answers and prompts, extraction and metrics, range averages.
use std::path::Path;

use earnest::answer::nupa::{AnswerForm, ReferenceMarker, extract_paper, extract_reference};
use earnest::suite::nupa::{
    AggregateError, Auxiliary, DigitSet, MetricName, RawPair, Record, TaskId, Wording, exact_answer, half_even_answer,
    measure, prepare, question, question_length, reference_answer, reference_statistics,
};
use serde_json::{Map, Value};

use super::report::{FileReport, check_json_lines, require_equal as same, text};

/// Checks the subject's files.
pub fn check(root: &Path) -> Vec<FileReport> {
    vec![
        check_json_lines(root, "nupa/tasks.jsonl", task_row),
        check_json_lines(root, "nupa/metrics.jsonl", metric_row),
        check_json_lines(root, "nupa/aggregate.jsonl", aggregate_row),
    ]
}

type Row = Map<String, Value>;

/// A field that is a string or null.
fn optional<'a>(row: &'a Row, field: &str) -> Result<Option<&'a str>, String> {
    match row.get(field) {
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        _ => Err(format!("field `{field}` is missing or neither a string nor null")),
    }
}

fn task_row(row: &Row) -> Result<(), String> {
    let task: TaskId = text(row, "task")?.parse().map_err(|error| format!("{error}"))?;
    let a = text(row, "a")?;
    let b = optional(row, "b")?;
    let said = |error: earnest::suite::nupa::NupaError| error.to_string();
    same("answer", exact_answer(task, a, b).map_err(said)?.as_str(), text(row, "answer")?)?;
    let reference = reference_answer(task, a, b).map_err(said)?;
    same("reference answer", reference.as_str(), text(row, "reference_answer")?)?;
    if let Some(golden) = row.get("answer_half_even").and_then(Value::as_str) {
        same("half-even answer", half_even_answer(task, a, b).map_err(said)?.as_str(), golden)?;
    }
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

fn metric_row(row: &Row) -> Result<(), String> {
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
    same("reference stops", Some(ours.is_none()), row.get("reference_crashes").and_then(Value::as_bool))?;
    if let Some(ours) = ours {
        numbers(row, ours.exact, ours.digit_match, ours.dlength_total)?;
    }
    let paper = prediction.and_then(|text| extract_paper(form, text)).unwrap_or_default();
    same("paper extraction", paper, text(row, "paper_extracted")?)?;
    let golden = row.get("paper").ok_or("field `paper` is missing")?;
    match (measure(form, DigitSet::Python, truth, paper), golden) {
        (None, Value::Null) => Ok(()),
        (Some(ours), Value::Object(golden)) => numbers(golden, ours.exact, ours.digit_match, ours.dlength),
        (ours, golden) => Err(format!("paper metrics: {ours:?} instead of {golden}")),
    }
}

fn numbers(golden: &Row, exact: bool, digit_match: f64, dlength: usize) -> Result<(), String> {
    same("exact match", Some(u64::from(exact)), golden.get("exact_match").and_then(Value::as_u64))?;
    same("digit match", Some(digit_match), golden.get("digit_match").and_then(Value::as_f64))?;
    same("dlength", Some(dlength as u64), golden.get("dlength").and_then(Value::as_u64))
}

fn aggregate_row(row: &Row) -> Result<(), String> {
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
    let task = text(row, "task")?;
    for metric in MetricName::ALL {
        let golden = &row.get("statistics").ok_or("field `statistics` is missing")?[metric.name()][task];
        match (reference_statistics(metric, &records), golden) {
            (Err(AggregateError::UnknownScheme(_) | AggregateError::EmptyRange(_)), Value::Null) => {
                if row.get("reference_error").is_none_or(Value::is_null) {
                    return Err("an error that the reference does not have".into());
                }
            }
            (Ok(ours), Value::Object(golden)) => {
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
