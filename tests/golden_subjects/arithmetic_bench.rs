//! Items (operands to prompt and answer) and scorer cases of Arithmetic-Bench.
use std::path::Path;

use earnest_answer::{Expected, Matches, Normalised};
use earnest_tasks::suite::arithmetic_bench::{Question, Task};
use serde_json::{Map, Value};

use super::report::{FileReport, check_json_lines, flag, require_equal, require_fields, text};

const FILE: &str = "arithmetic_bench/items_and_matchers.jsonl";

/// Checks the subject's file.
pub fn check(root: &Path) -> Vec<FileReport> {
    vec![check_json_lines(root, FILE, check_row)]
}

fn check_row(row: &Map<String, Value>) -> Result<(), String> {
    match text(row, "kind")? {
        "item" => check_item(row),
        "match" => check_match(row),
        other => Err(format!("kind `{other}` is unknown")),
    }
}

fn check_item(row: &Map<String, Value>) -> Result<(), String> {
    require_fields(row, &["kind", "task", "length", "a", "b", "prompt", "answer"])?;
    let task: Task = text(row, "task")?.parse().map_err(|error| format!("{error}"))?;
    let b = if row["b"].is_null() { None } else { Some(text(row, "b")?) };
    let question = Question::new(task, text(row, "a")?, b).map_err(|error| error.to_string())?;
    let length = row["length"].as_u64().ok_or("field `length` is no whole number")?;
    require_equal("length", question.length() as u64, length)?;
    require_equal("prompt", question.prompt().as_str(), text(row, "prompt")?)?;
    let answer = question.answer();
    require_equal("answer", answer.as_str(), text(row, "answer")?)?;
    // The exact answer alone must pass under every scorer.
    let expected = Expected::parse(&answer).map_err(|error| error.to_string())?;
    let all = Matches { compat: true, boundary: true, final_number: true };
    require_equal("matchers on the answer itself", Matches::of(&expected, &answer, &Normalised::new(&answer)), all)
}

fn check_match(row: &Map<String, Value>) -> Result<(), String> {
    require_fields(row, &["kind", "answer", "response", "compat_substring", "boundary", "last_number"])?;
    let expected = Expected::parse(text(row, "answer")?).map_err(|error| error.to_string())?;
    let response = text(row, "response")?;
    let golden = Matches {
        compat: flag(row, "compat_substring")?,
        boundary: flag(row, "boundary")?,
        final_number: flag(row, "last_number")?,
    };
    let computed = Matches::of(&expected, response, &Normalised::new(response));
    require_equal(&format!("answer {:?} in {response:?}", expected.text()), computed, golden)
}
