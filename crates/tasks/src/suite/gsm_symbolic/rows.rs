//! Questions in the layout of Apple's files: one JSON object a line.
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::answer::text;

/// A set of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// GSM-Base: the GSM8K questions that the templates were made from.
    Base,
    /// GSM-Variants: questions drawn from the templates.
    Main,
    /// Variants with one more clause.
    P1,
    /// Variants with two more clauses.
    P2,
}

impl Set {
    /// All, in the order of lists.
    pub const ALL: [Set; 4] = [Set::Base, Set::Main, Set::P1, Set::P2];

    /// Its name on the command line and in items.
    pub fn name(self) -> &'static str {
        match self {
            Set::Base => "base",
            Set::Main => "main",
            Set::P1 => "p1",
            Set::P2 => "p2",
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No set has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a set of questions; there are base, main, p1 and p2")]
pub struct UnknownSet(pub String);

impl FromStr for Set {
    type Err = UnknownSet;

    fn from_str(name: &str) -> Result<Self, UnknownSet> {
        Set::ALL.into_iter().find(|set| set.name() == name).ok_or_else(|| UnknownSet(name.to_owned()))
    }
}

/// A question with its worked answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The template's number.
    pub id: u32,
    /// The draw's number; -1 for the original.
    pub instance: i32,
    pub question: String,
    /// The last line is `#### value`.
    pub answer: String,
    /// Index of the original among the test questions of GSM8K.
    pub original_id: u32,
    #[serde(default)]
    pub original_question: String,
    #[serde(default)]
    pub original_answer: String,
}

impl Row {
    /// The value after `####` as it is written, without commas.
    pub fn gold(&self) -> String {
        let last = self.answer.rsplit("####").next().unwrap_or_default();
        last.replace(',', "").trim().to_owned()
    }

    /// The number that the study's own extractor takes from the worked answer (section 1.3 of its code's behaviour).
    pub fn truth(&self) -> Option<f64> {
        text::extract(&self.answer).value
    }
}

/// Error of a file of questions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    #[error("line {line}: {what}")]
    Line { line: usize, what: String },
    #[error("template {id} instance {instance} stands there twice")]
    Repeated { id: u32, instance: i32 },
    #[error("the answer of template {id} instance {instance} has no number after ####")]
    NoAnswer { id: u32, instance: i32 },
    #[error("there are no questions in it")]
    Empty,
}

/// Reads a file of questions.
///
/// # Errors
/// The first line that is none, a repeated question, an answer without a number.
pub fn parse(jsonl: &str) -> Result<Vec<Row>, RowError> {
    let lines = jsonl.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let rows = lines.map(|(number, line)| {
        serde_json::from_str(line).map_err(|error| RowError::Line {
            line: number + 1,
            what: format!("{error}; a row has id, instance, question, answer and original_id"),
        })
    });
    checked(rows.collect::<Result<_, _>>()?)
}

/// Checks rows and puts them into the study's order: by template, then by instance.
///
/// # Errors
/// As [`parse`].
pub fn checked(mut rows: Vec<Row>) -> Result<Vec<Row>, RowError> {
    rows.sort_by_key(|row| (row.id, row.instance));
    let mut seen = HashSet::new();
    for row in &rows {
        let (id, instance) = (row.id, row.instance);
        if !seen.insert((id, instance)) {
            return Err(RowError::Repeated { id, instance });
        }
        if row.truth().is_none_or(|truth| !truth.is_finite()) {
            return Err(RowError::NoAnswer { id, instance });
        }
    }
    if rows.is_empty() { Err(RowError::Empty) } else { Ok(rows) }
}

/// GSM-Base: of every template the row with the smallest instance, with the original question and answer in its place.
///
/// # Errors
/// If the rows do not carry their originals.
pub fn base(variants: &[Row]) -> Result<Vec<Row>, RowError> {
    let mut first: BTreeMap<u32, &Row> = BTreeMap::new();
    for row in variants {
        let known = first.entry(row.id).or_insert(row);
        if row.instance < known.instance {
            *known = row;
        }
    }
    let original = |row: &&Row| Row {
        instance: -1,
        question: row.original_question.clone(),
        answer: row.original_answer.clone(),
        ..(*row).clone()
    };
    let rows: Vec<Row> = first.values().map(original).collect();
    match rows.iter().find(|row| row.question.is_empty()) {
        Some(row) => Err(RowError::Line { line: 0, what: format!("template {} has no original_question", row.id) }),
        None => checked(rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: u32, instance: i32, answer: &str) -> String {
        serde_json::json!({
            "id": id, "instance": instance, "question": format!("How many? {instance}"), "answer": answer,
            "original_id": 40 + id, "original_question": "How many?", "original_answer": "One.\n#### 1", "canary": "x",
        })
        .to_string()
    }

    #[test]
    fn rows_come_in_the_studys_order() {
        let text = [line(1, 0, "#### 3"), line(0, 1, "a\n#### 1,200"), String::new(), line(0, 0, "#### 7")].join("\n");
        let rows = parse(&text).unwrap();
        let order: Vec<(u32, i32)> = rows.iter().map(|row| (row.id, row.instance)).collect();
        assert_eq!(order, [(0, 0), (0, 1), (1, 0)]);
        assert_eq!((rows[1].gold().as_str(), rows[1].truth()), ("1200", Some(1200.0)));
        let base = base(&rows).unwrap();
        assert_eq!(base.len(), 2);
        assert_eq!((base[1].instance, base[1].question.as_str(), base[1].original_id), (-1, "How many?", 41));
    }

    #[test]
    fn broken_files_say_where() {
        assert!(matches!(parse("{}"), Err(RowError::Line { line: 1, .. })));
        assert_eq!(parse("\n \n"), Err(RowError::Empty));
        let twice = [line(0, 0, "#### 1"), line(0, 0, "#### 1")].join("\n");
        assert_eq!(parse(&twice), Err(RowError::Repeated { id: 0, instance: 0 }));
        assert_eq!(parse(&line(2, 3, "#### none")), Err(RowError::NoAnswer { id: 2, instance: 3 }));
        let bare = r######"{"id":0,"instance":0,"question":"q","answer":"#### 1","original_id":1}"######;
        assert!(base(&parse(bare).unwrap()).is_err());
    }
}
