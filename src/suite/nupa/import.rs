//! Completions that were made elsewhere, as JSON lines: an item's id, or a task and its operands, and the completion.
use serde::Deserialize;

use crate::suite::Item;

use super::{NupaError, NupaSuite, TaskId};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: Option<String>,
    task: Option<String>,
    a: Option<String>,
    b: Option<String>,
    completion: String,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    sample: usize,
    tokens: Option<usize>,
}

/// A completion with the item that it answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The item.
    pub item: Item,
    /// The completion, as it was.
    pub completion: String,
    /// True if a token budget ended it.
    pub truncated: bool,
    /// The number of the sample, where an item has several.
    pub sample: usize,
    /// Completion tokens, if the line says.
    pub tokens: Option<usize>,
}

/// Why a line cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(
        "not a line of completions: {0}; expected {{\"id\": ..., \"completion\": ...}} or {{\"task\": ..., \"a\": ..., \"b\": ..., \"completion\": ...}}"
    )]
    /// Not a JSON object with the known fields.
    Malformed(#[from] serde_json::Error),
    /// No item, or two ways to name it.
    #[error("a line names its item either by `id` or by `task` and `a` (and `b`), and exactly one way")]
    Ambiguous,
    /// The id is well-formed, but the options have no such item.
    #[error("there is no item `{0}` under the run's options; import with the options of the run that made it")]
    NoSuchItem(String),
    /// An unknown task or impossible operands.
    #[error(transparent)]
    Nupa(#[from] NupaError),
}

impl NupaSuite {
    /// Reads one line of completions made elsewhere.
    ///
    /// # Errors
    /// [`ImportError`] for what is malformed, ambiguous, unknown or impossible.
    pub fn import_line(&self, line: &str) -> Result<Imported, ImportError> {
        let line: Line = serde_json::from_str(line)?;
        let item = match (line.id, line.task, line.a) {
            (Some(id), None, None) if line.b.is_none() => self.item_by_id(&id)?.ok_or(ImportError::NoSuchItem(id))?,
            (None, Some(task), Some(a)) => {
                let task: TaskId = task.parse()?;
                self.item_from_operands(task, &a, line.b.as_deref())?
            }
            _ => return Err(ImportError::Ambiguous),
        };
        Ok(Imported {
            item,
            completion: line.completion,
            truncated: line.truncated,
            sample: line.sample,
            tokens: line.tokens,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;
    use crate::suite::nupa::NupaOptions;

    #[test]
    fn ids_and_operands_lead_to_items() {
        let suite = NupaSuite::new(NupaOptions::default()).unwrap();
        let first = suite.items().next().unwrap();
        let by_id = format!(r#"{{"id": "{}", "completion": " 7", "sample": 2}}"#, first.id);
        let imported = suite.import_line(&by_id).unwrap();
        assert_eq!((imported.item, imported.sample), (first, 2));
        let by_operands = r#"{"task": "max_Fraction", "a": "3/5", "b": "3/8", "completion": "3/5", "truncated": true}"#;
        let imported = suite.import_line(by_operands).unwrap();
        assert!(imported.item.gold == "3/5" && imported.truncated);
    }

    #[test]
    fn hostile_lines_are_errors() {
        let suite = NupaSuite::new(NupaOptions::default()).unwrap();
        for line in [
            "",
            "[]",
            r#"{"completion": "7"}"#,
            r#"{"id": "add_Integer_Integer_Integer/3/0"}"#,
            r#"{"id": "add_Integer_Integer_Integer/3/100", "completion": ""}"#,
            r#"{"id": "add_Integer_Integer_Integer/x/0", "completion": ""}"#,
            r#"{"id": "x", "task": "add_Integer", "a": "1", "b": "2", "completion": ""}"#,
            r#"{"task": "add_Integer", "a": "1", "completion": ""}"#,
            r#"{"task": "add_Integer", "a": "1", "b": "-2", "completion": ""}"#,
            r#"{"task": "add_Integer", "a": "1", "b": "2", "completion": "", "colour": 1}"#,
        ] {
            assert!(suite.import_line(line).is_err(), "{line}");
        }
    }
}
