//! Prompts and completions of a user: JSON lines.
use std::path::Path;

use serde_json::{Map, Value};

use crate::{TextPair, TrainError};

/// Usual names of the prompt, those of `earnest perturb` and `earnest generate` among them.
const PROMPTS: [&str; 5] = ["prompt", "question", "Question", "problem", "instruction"];
/// Usual names of a story before the question.
const STORIES: [&str; 4] = ["Body", "body", "passage", "context"];
/// Usual names of the completion.
const COMPLETIONS: [&str; 5] = ["completion", "answer", "Answer", "response", "gold"];

/// Which fields are read.
pub(super) struct PairFields<'a> {
    pub(super) prompt: Option<&'a str>,
    pub(super) completion: Option<&'a str>,
}

/// The rows of a file, in its order.
///
/// # Errors
/// [`TrainError::Setting`] with the line that is no pair; [`TrainError::File`].
pub(super) fn read(path: &Path, fields: &PairFields<'_>) -> Result<Vec<TextPair>, TrainError> {
    let bytes = std::fs::read(path).map_err(|source| TrainError::File { path: path.to_owned(), source })?;
    let wrong = |problem: String| TrainError::Setting { setting: "pairs", problem };
    let text = String::from_utf8(bytes).map_err(|_| wrong(format!("{} is not UTF-8", path.display())))?;
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pair = serde_json::from_str(line).map_err(|error| error.to_string()).and_then(|row| pair(&row, fields));
        pairs.push(pair.map_err(|why| wrong(format!("{}, line {}: {why}", path.display(), number + 1)))?);
    }
    if pairs.is_empty() {
        return Err(wrong(format!("{} has no rows", path.display())));
    }
    Ok(pairs)
}

fn pair(row: &Map<String, Value>, fields: &PairFields<'_>) -> Result<TextPair, String> {
    let (name, prompt) = field(row, fields.prompt, &PROMPTS)?;
    let (_, answer) = field(row, fields.completion, &COMPLETIONS)?;
    // A question alone can not be answered where its story is a field of its own.
    let story = match (fields.prompt, name) {
        (None, "Question" | "question") => STORIES.iter().find_map(|story| row.get(*story)?.as_str()),
        _ => None,
    };
    let prompt = story.map_or(prompt.clone(), |story| format!("{} {prompt}", story.trim_end()));
    if prompt.is_empty() || answer.is_empty() {
        return Err("prompt and completion have at least one character".to_owned());
    }
    Ok(TextPair { prompt, answer })
}

/// The first of the fields that the row has, as text: a number as it is written.
fn field<'a>(row: &Map<String, Value>, named: Option<&'a str>, usual: &[&'a str]) -> Result<(&'a str, String), String> {
    let found = match named {
        Some(name) => row.get(name).map(|value| (name, value)),
        None => usual.iter().find_map(|name| Some((*name, row.get(*name)?))),
    };
    match found {
        Some((name, Value::String(text))) => Ok((name, text.clone())),
        Some((name, Value::Number(number))) => Ok((name, number.to_string())),
        Some((name, _)) => Err(format!("the field {name} is neither a text nor a number")),
        None => Err(match named {
            Some(name) => format!("there is no field {name}"),
            None => format!("there is none of the fields {}; name the right one", usual.join(", ")),
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

    const USUAL: PairFields<'_> = PairFields { prompt: None, completion: None };

    #[test]
    fn usual_names_are_found_and_stories_come_first() {
        let text = "{\"prompt\": \"1+1=\", \"completion\": \"2\"}\n\n\
                    {\"Body\": \"Tom has 5 pens.\", \"Question\": \"How many?\", \"Answer\": 5.0, \"dnc\": {}}\n";
        let found = rows(text, &USUAL).unwrap();
        assert_eq!(found[0], TextPair { prompt: "1+1=".into(), answer: "2".into() });
        assert_eq!(found[1], TextPair { prompt: "Tom has 5 pens. How many?".into(), answer: "5.0".into() });
        let fields = PairFields { prompt: Some("Body"), completion: Some("Question") };
        let named = rows(text.lines().last().unwrap(), &fields).unwrap();
        assert_eq!(named[0].answer, "How many?");
    }

    #[test]
    fn rows_that_are_no_pairs_are_named() {
        for (text, why) in [
            ("", "no rows"),
            ("{\"prompt\": \"a\"}", "line 1: there is none of the fields completion"),
            ("{\"prompt\": \"a\", \"completion\": \"b\"}\n[1]", "line 2"),
            ("{\"prompt\": \"a\", \"completion\": [1]}", "neither a text nor a number"),
            ("{\"prompt\": \"\", \"completion\": \"b\"}", "at least one character"),
        ] {
            let failed = rows(text, &USUAL).unwrap_err();
            assert!(failed.contains(why), "{failed}");
        }
        let failed = rows("{\"prompt\": \"a\"}", &PairFields { prompt: Some("ask"), completion: None }).unwrap_err();
        assert!(failed.contains("no field ask"), "{failed}");
    }
}
