//! Prompt and completion pairs in a JSON Lines file.
use std::path::Path;

use earnest_digest::input;
use serde_json::{Map, Value};

use crate::{TextPair, TrainError};

/// Default field names of the prompt, including those of `earnest perturb` and `earnest generate`.
const PROMPTS: [&str; 5] = ["prompt", "question", "Question", "problem", "instruction"];
/// Default field names of a passage before the question.
const PASSAGES: [&str; 4] = ["Body", "body", "passage", "context"];
/// Default field names of the completion.
const COMPLETIONS: [&str; 5] = ["completion", "answer", "Answer", "response", "gold"];

/// Field names given by the user; `None` for the default names.
pub(super) struct PairFields<'a> {
    pub(super) prompt: Option<&'a str>,
    pub(super) completion: Option<&'a str>,
}

/// Reason why a row is not a pair.
#[derive(Debug, thiserror::Error)]
enum RowError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("the field {0} is neither a string nor a number")]
    Type(String),
    #[error("there is no field {0}")]
    Missing(String),
    #[error("none of the fields {0} is present; name the field to use")]
    NoDefault(String),
    #[error("prompt and completion must not be empty")]
    Empty,
}

/// Largest file of pairs in bytes, which is held in memory.
const MOST_PAIRS: u64 = 4 << 30;

/// Reads the pairs of a file, in order.
///
/// # Errors
/// [`TrainError::Setting`] with the first line that is not a pair; [`TrainError::File`].
pub(super) fn read(path: &Path, fields: &PairFields<'_>) -> Result<Vec<TextPair>, TrainError> {
    let bytes = input::read(path, MOST_PAIRS).map_err(|source| TrainError::File { path: path.to_owned(), source })?;
    let invalid = |problem: String| TrainError::Setting { setting: "pairs", problem };
    let text = String::from_utf8(bytes).map_err(|_| invalid(format!("{} is not UTF-8", path.display())))?;
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pair = pair(line, fields);
        pairs.push(pair.map_err(|error| invalid(format!("{}, line {}: {error}", path.display(), number + 1)))?);
    }
    if pairs.is_empty() {
        return Err(invalid(format!("{} has no rows", path.display())));
    }
    Ok(pairs)
}

fn pair(line: &str, fields: &PairFields<'_>) -> Result<TextPair, RowError> {
    let row: Map<String, Value> = serde_json::from_str(line)?;
    let (name, prompt) = field(&row, fields.prompt, &PROMPTS)?;
    let (_, answer) = field(&row, fields.completion, &COMPLETIONS)?;
    // A question needs the passage that is stored in a separate field.
    let passage = match (fields.prompt, name) {
        (None, "Question" | "question") => PASSAGES.iter().find_map(|passage| row.get(*passage)?.as_str()),
        _ => None,
    };
    let prompt = passage.map_or(prompt.clone(), |passage| format!("{} {prompt}", passage.trim_end()));
    if prompt.is_empty() || answer.is_empty() {
        return Err(RowError::Empty);
    }
    Ok(TextPair { prompt, answer })
}

/// Returns the named field, or the first default field of the row, as text; numbers as they are written.
fn field<'a>(
    row: &Map<String, Value>,
    named: Option<&'a str>,
    defaults: &[&'a str],
) -> Result<(&'a str, String), RowError> {
    let present = match named {
        Some(name) => row.get(name).map(|value| (name, value)),
        None => defaults.iter().find_map(|name| Some((*name, row.get(*name)?))),
    };
    match present {
        Some((name, Value::String(text))) => Ok((name, text.clone())),
        Some((name, Value::Number(number))) => Ok((name, number.to_string())),
        Some((name, _)) => Err(RowError::Type(name.to_owned())),
        None => Err(match named {
            Some(name) => RowError::Missing(name.to_owned()),
            None => RowError::NoDefault(defaults.join(", ")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, fields: &PairFields<'_>) -> Result<Vec<TextPair>, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pairs.jsonl");
        std::fs::write(&path, text).unwrap();
        read(&path, fields).map_err(|error| error.to_string())
    }

    const DEFAULTS: PairFields<'_> = PairFields { prompt: None, completion: None };

    #[test]
    fn default_names_are_found_and_passages_come_first() {
        let text = "{\"prompt\": \"1+1=\", \"completion\": \"2\"}\n\n\
                    {\"Body\": \"Tom has 5 pens.\", \"Question\": \"How many?\", \"Answer\": 5.0, \"dnc\": {}}\n";
        let found = rows(text, &DEFAULTS).unwrap();
        assert_eq!(found[0], TextPair { prompt: "1+1=".into(), answer: "2".into() });
        assert_eq!(found[1], TextPair { prompt: "Tom has 5 pens. How many?".into(), answer: "5.0".into() });
        let fields = PairFields { prompt: Some("Body"), completion: Some("Question") };
        let named = rows(text.lines().last().unwrap(), &fields).unwrap();
        assert_eq!(named[0].answer, "How many?");
    }

    #[test]
    fn rows_that_are_not_pairs_are_named() {
        for (text, why) in [
            ("", "no rows"),
            ("{\"prompt\": \"a\"}", "line 1: none of the fields completion"),
            ("{\"prompt\": \"a\", \"completion\": \"b\"}\n[1]", "line 2"),
            ("{\"prompt\": \"a\", \"completion\": [1]}", "neither a string nor a number"),
            ("{\"prompt\": \"\", \"completion\": \"b\"}", "must not be empty"),
        ] {
            let failed = rows(text, &DEFAULTS).unwrap_err();
            assert!(failed.contains(why), "{failed}");
        }
        let failed = rows("{\"prompt\": \"a\"}", &PairFields { prompt: Some("ask"), completion: None }).unwrap_err();
        assert!(failed.contains("no field ask"), "{failed}");
    }
}
