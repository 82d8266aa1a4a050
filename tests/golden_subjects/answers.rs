//! Labelled completions for the answer reader: how many are read as their label says, and how often an answer is read where
//! there is none.
use std::collections::BTreeMap;
use std::path::Path;

use earnest_answer::reader::{Asked, Form, read};
use serde_json::{Map, Value};

use super::files;
use super::report::{FileReport, Outcome, text};

pub const FILE: &str = "answers/answers.jsonl";

/// Least share of rows that are read as labelled, in files of others than [`OWN`].
const RIGHT: f64 = 0.97;

/// Our own rows, and the share that is asked of them.
const OWN: &str = "answers/own.jsonl";
const RIGHT_OF_OWN: f64 = 0.95;

/// Largest share of the rows without an answer in which one is read.
const FALSE_ANSWERS: f64 = 0.1;

/// Checks the subject's file, and every other one beside it.
pub fn check(root: &Path) -> Vec<FileReport> {
    let others = files::names(&root.join("answers"), ".jsonl").into_iter().map(|name| format!("answers/{name}"));
    let others = others.filter(|file| file != FILE);
    std::iter::once(FILE.to_owned()).chain(others).map(|file| check_file(root, file)).collect()
}

fn check_file(root: &Path, file: String) -> FileReport {
    let path = root.join(&file);
    if !files::is_there(&path) {
        return FileReport::absent(file);
    }
    let outcome = match files::read(&path) {
        Ok(rows) => measure(&file, &rows),
        Err(error) => Outcome::Unreadable(error.to_string()),
    };
    FileReport { file, outcome }
}

/// A row that was read.
struct Row {
    /// The form, then the tags.
    kinds: Vec<String>,
    /// The label says that there is no answer.
    none: bool,
    /// The reason for a failure.
    result: Result<(), String>,
}

fn measure(file: &str, rows: &str) -> Outcome {
    let mut failures = Vec::new();
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut total, mut nulls, mut false_answers, mut malformed) = (0, 0, 0, 0);
    for line in rows.lines() {
        total += 1;
        let row =
            serde_json::from_str(line).map_err(|error| format!("not JSON: {error}")).and_then(|row| check_row(&row));
        let row = match row {
            Ok(row) => row,
            Err(why) => {
                malformed += 1;
                failures.push(format!("row {total}: {why}"));
                continue;
            }
        };
        for kind in row.kinds {
            let counts = kinds.entry(kind).or_default();
            counts.0 += usize::from(row.result.is_ok());
            counts.1 += 1;
        }
        nulls += usize::from(row.none);
        if let Err(why) = row.result {
            false_answers += usize::from(row.none);
            failures.push(format!("row {total}: {why}"));
        }
    }
    for (kind, (right, all)) in kinds {
        println!("{file} by {kind}: {right}/{all}");
    }
    let right = (total - failures.len()) as f64 / total.max(1) as f64;
    let least = if file == OWN { RIGHT_OF_OWN } else { RIGHT };
    let why = if malformed > 0 {
        Some(format!("{malformed} rows are malformed"))
    } else if right < least {
        Some(format!("{:.1} % of the rows are read as labelled, less than {:.0} %", 100.0 * right, 100.0 * least))
    } else if false_answers as f64 > FALSE_ANSWERS * nulls as f64 {
        Some(format!("an answer is read in {false_answers} of the {nulls} rows that have none, more than a tenth"))
    } else {
        None
    };
    Outcome::Rated { total, failures, why }
}

fn check_row(row: &Value) -> Result<Row, String> {
    let row: &Map<String, Value> = row.as_object().ok_or("not a JSON object")?;
    let form = match text(row, "form")? {
        "integer" => Form::Integer,
        "float" => Form::Float,
        "fraction" => Form::Fraction,
        "scientific" => Form::Scientific,
        "word_problem" | "text_number" => Form::Number,
        other => return Err(format!("form `{other}` is unknown")),
    };
    let truncated = match text(row, "finish")? {
        "stop" => false,
        "length" => true,
        other => return Err(format!("finish `{other}` is unknown")),
    };
    let label = |value: &Value| match value {
        Value::Null => Ok(None),
        Value::String(label) => Ok(Some(label.clone())),
        other => Err(format!("the label {other} is no string")),
    };
    let mut labels = vec![label(row.get("answer").ok_or("field `answer` is missing")?)?];
    for also in row.get("also").and_then(Value::as_array).into_iter().flatten() {
        labels.push(label(also)?);
    }
    let reading = read(&Asked { prompt: text(row, "prompt")?, form }, text(row, "completion")?, truncated);
    let right = labels.iter().any(|label| match (label, &reading.answer) {
        (None, Err(_)) => true,
        (Some(label), Ok(answer)) => answer.is_same_as(label),
        _ => false,
    });
    let result = if right {
        Ok(())
    } else {
        let read = reading.answer.map_or_else(|why| format!("nothing ({})", why.name()), |answer| answer.text);
        Err(format!("{}: labelled {:?}, read {read}", row.get("id").unwrap_or(&Value::Null), labels[0]))
    };
    let tags = row.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let kinds =
        std::iter::once(format!("form {}", text(row, "form")?)).chain(tags.map(|tag| format!("tag {tag}"))).collect();
    Ok(Row { kinds, none: labels[0].is_none(), result })
}
