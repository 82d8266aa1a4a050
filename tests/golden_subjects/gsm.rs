//! The GSM-Symbolic study's extraction from texts and code; code runs in the sandbox, in the embedded interpreter.
use std::path::Path;

use earnest_answer::{CodeNumber, CodeOutcome, CodeRunner, NumberKind};
use earnest_results::SandboxRunner;
use earnest_sandbox::{Pool, Settings};
use earnest_tasks::suite::gsm_symbolic::answer::{Label, code, text as study};
use serde_json::{Map, Value};

use super::files;
use super::report::{FileReport, require_equal as same, require_fields, text};

pub const FILE: &str = "gsm/extraction.json";

type Row = Map<String, Value>;

/// Checks the subject's file.
pub fn check(root: &Path) -> Vec<FileReport> {
    let path = root.join(FILE);
    if !files::is_there(&path) {
        return vec![FileReport::absent(FILE)];
    }
    let pool = match Pool::new(Settings::new(env!("CARGO_BIN_EXE_earnest"))) {
        Ok(pool) => SandboxRunner(pool),
        Err(error) => return vec![FileReport::unreadable(FILE, error)],
    };
    vec![match rows(&path) {
        Ok((texts, codes)) => {
            let texts = texts.iter().map(|row| object(row).and_then(text_row));
            let codes = codes.iter().map(|row| object(row).and_then(|row| code_row(row, &pool)));
            FileReport::checked(FILE, texts.chain(codes))
        }
        Err(why) => FileReport::unreadable(FILE, why),
    }]
}

/// The file's two lists. A list that is missing makes the file unreadable: its rows would be skipped.
pub fn rows(path: &Path) -> Result<(Vec<Value>, Vec<Value>), String> {
    let content = files::read(path).map_err(|error| error.to_string())?;
    let whole: Value = serde_json::from_str(&content).map_err(|error| format!("not JSON: {error}"))?;
    let list = |name: &str| match whole.get(name).and_then(Value::as_array) {
        Some(list) if !list.is_empty() => Ok(list.clone()),
        _ => Err(format!("there are no rows of `{name}`")),
    };
    Ok((list("text")?, list("code")?))
}

fn object(row: &Value) -> Result<&Row, String> {
    row.as_object().ok_or_else(|| "not a JSON object".to_owned())
}

fn label(row: &Row) -> Result<Label, String> {
    text(row, "label")?.parse().map_err(|error| format!("{error}"))
}

fn text_row(row: &Row) -> Result<(), String> {
    require_fields(row, &["response", "value", "label"])?;
    let found = study::extract(text(row, "response")?);
    same("label", found.label, label(row)?)?;
    let golden = match row.get("value") {
        Some(Value::Null) => None,
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) if text == "inf" => Some(f64::INFINITY),
        _ => return Err("field `value` is missing or neither a number nor null".to_owned()),
    };
    same("value", found.value, golden)
}

/// One row of code, with whatever runs it.
pub fn code_row(row: &Row, runner: &dyn CodeRunner) -> Result<(), String> {
    require_fields(row, &["response", "extracted", "function", "value", "type", "label"])?;
    let response = text(row, "response")?;
    let extracted = code::extract(response);
    let parts = extracted.as_ref().map_or(("", ""), |program| (&program.source, &program.function));
    same("extracted", parts.0, text(row, "extracted")?)?;
    same("function", parts.1, text(row, "function")?)?;
    let outcome = code::program(response).map(|program| runner.run(&program));
    let found = match &outcome {
        Err(label) => *label,
        Ok(outcome) => code::classify(outcome),
    };
    if found != label(row)? {
        return Err(format!("label: computed {found}, golden {}; {outcome:?}", label(row)?));
    }
    match (outcome, row.get("value"), row.get("type")) {
        (Ok(CodeOutcome::Number(number)), Some(value), Some(Value::String(kind))) => {
            same("type", number.kind.name(), kind)?;
            same_number(&number, value)
        }
        (Ok(CodeOutcome::Number(_)), _, _) => Err("the row of a number has no value or no type".to_owned()),
        (_, Some(Value::Null), Some(Value::Null)) => Ok(()),
        _ => Err("a row without a number has a value or a type".to_owned()),
    }
}

fn same_number(number: &CodeNumber, golden: &Value) -> Result<(), String> {
    match (number.kind, golden) {
        (NumberKind::Bool, Value::Bool(truth)) => same("value", number.value, f64::from(u8::from(*truth))),
        (NumberKind::Int, Value::Number(int)) if !int.is_f64() => same("value", &number.text, &int.to_string()),
        (NumberKind::Float, Value::Number(float)) => same("value", Some(number.value), float.as_f64()),
        // Infinities, NaN and integers beyond 2^53.
        (NumberKind::Int | NumberKind::Float, Value::String(text)) => same("value", &number.text, text),
        _ => Err(format!("value: computed {number:?}, golden {golden}")),
    }
}
