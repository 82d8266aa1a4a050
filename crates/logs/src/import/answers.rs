//! Expected answers by id, for logs that have none.
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::LogError;
use earnest_tasks::suite::registry::{RowSource, Rows};

/// Names of the column of ids, in the order in which they are looked for.
const IDS: [&str; 3] = ["custom_id", "id", "item"];
/// Names of the column of answers.
const ANSWERS: [&str; 5] = ["answer", "gold", "target", "label", "expected"];

/// Expected answers by the id of their question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    by_id: HashMap<String, (String, Map<String, Value>)>,
    /// SHA-256 of the file.
    pub sha256: String,
}

impl Answers {
    /// Reads a file of answers: JSON lines, JSON, CSV or Parquet with a column of ids and one of answers.
    ///
    /// # Errors
    /// Files that cannot be read, without such columns, and two answers for one id.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        let source =
            RowSource { paths: vec![path.to_owned()], format: None, skip_bad_rows: false, columns: Vec::new() };
        let rows: Arc<dyn Rows> = earnest_rows::read(&source)?;
        let mut by_id = HashMap::new();
        for number in 0..rows.len() {
            let row = rows.row(number).map_err(|error| LogError::unread(path, error))?;
            let column = |names: &[&str], word: &str| {
                let found = names.iter().find_map(|name| row.text(name));
                found.ok_or_else(|| {
                    let columns: Vec<&str> = row.values.keys().map(String::as_str).collect();
                    LogError::setting(format!("{} has no {word}", row.place)).hint(format!(
                        "it has {}; name a column {}",
                        columns.join(", "),
                        names.join(" or ")
                    ))
                })
            };
            let (id, answer) = (column(&IDS, "id")?.into_owned(), column(&ANSWERS, "answer")?.into_owned());
            if by_id.get(&id).is_some_and(|(known, _): &(String, _)| *known != answer) {
                return Err(LogError::setting(format!(
                    "{} has another answer for {id} than an earlier row",
                    row.place
                )));
            }
            by_id.insert(id, (answer, row.values));
        }
        let files: Vec<Value> = rows.files().iter().map(|file| file.sha256.clone().into()).collect();
        let sha256 = match &files[..] {
            [Value::String(only)] => only.clone(),
            several => {
                earnest_digest::hex(&earnest_digest::sha256(Value::from(several.to_vec()).to_string().as_bytes()))
            }
        };
        Ok(Answers { by_id, sha256 })
    }

    /// Returns the answer of a question.
    pub fn get(&self, id: &str) -> Option<&str> {
        self.by_id.get(id).map(|(answer, _)| answer.as_str())
    }

    /// Returns the fields of the answer's row: what a batch file does not say of its questions.
    pub(super) fn fields(&self, id: &str) -> Option<&Map<String, Value>> {
        self.by_id.get(id).map(|(_, fields)| fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_by_id() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let lines = write("a.jsonl", "{\"id\": \"x\", \"answer\": 18}\n{\"id\": \"y\", \"answer\": \"1.50\"}\n");
        let found = Answers::read(&lines).unwrap();
        assert_eq!((found.get("x"), found.get("y"), found.get("z")), (Some("18"), Some("1.50"), None));
        let csv = write("a.csv", "custom_id,question,gold\nx,1+1?,2\nx,again,2\n");
        assert_eq!(Answers::read(&csv).unwrap().get("x"), Some("2"));
        for wrong in ["name,gold\nx,2\n", "id,gold\nx,2\nx,3\n"] {
            let error = Answers::read(&write("b.csv", wrong)).unwrap_err();
            assert!(error.to_string().contains("b.csv"), "{error}");
        }
        assert!(Answers::read(&folder.path().join("none.csv")).is_err());
    }
}
