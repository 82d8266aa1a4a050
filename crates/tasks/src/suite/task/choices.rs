//! Choices of a question, and the right one.
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::columns::{NoText, text};
use super::definition::GoldForm;

/// Reason for values being no choices of a question, or an answer being none of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChoicesError {
    #[error(transparent)]
    NoText(#[from] NoText),
    #[error("{0:?} is no list of choices")]
    NoListIn(String),
    #[error("it is no list of choices")]
    NoList,
    #[error("{0} choices leave nothing to choose")]
    TooFew(usize),
    #[error("{0} choices are more than there are letters")]
    TooMany(usize),
    #[error("one of them is empty")]
    Empty,
    #[error("two of them are equal")]
    Equal,
    #[error("there are {choices} choices and {labels} labels")]
    Labels { choices: usize, labels: usize },
    #[error(
        "the answer {0} is the text of one choice and the index or letter of another; say with \
         gold = \"index\", \"letter\" or \"text\" under [questions] what it is"
    )]
    Ambiguous(String),
    #[error("the answer {answer:?} is no index of the choices, which go from 0 to {last}")]
    NoIndex { answer: String, last: usize },
    #[error("the answer {answer:?} is none of the choices {choices}")]
    NoneOf { answer: String, choices: String },
}

/// Choices of one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choices {
    pub texts: Vec<String>,
    /// Labels of the file, where it has some.
    labels: Vec<String>,
}

/// Letter of a choice, by its index.
pub(super) fn letter(index: usize) -> String {
    char::from(b'A' + (index % 26) as u8).to_string()
}

impl Choices {
    /// Choices as they are usually written: a list, `{"text": [...], "label": [...]}`, a list of such objects, or texts by label.
    ///
    /// # Errors
    /// Any other form, and fewer than 2 or more than 26.
    pub(super) fn read(value: &Value) -> Result<Self, ChoicesError> {
        let texts = |list: &[Value]| list.iter().map(text).collect::<Result<Vec<String>, NoText>>();
        let (texts, labels) = match value {
            Value::Array(list) if list.iter().all(|one| one.get("text").is_some()) => {
                let part =
                    |name: &str| list.iter().filter_map(|one| one.get(name)).map(text).collect::<Result<Vec<_>, _>>();
                (part("text")?, part("label")?)
            }
            Value::Array(list) => (texts(list)?, Vec::new()),
            Value::Object(fields) => match (fields.get("text"), fields.get("label")) {
                (Some(Value::Array(all)), Some(Value::Array(labels))) => (texts(all)?, texts(labels)?),
                (Some(Value::Array(all)), None) => (texts(all)?, Vec::new()),
                _ => {
                    let all = fields.values().map(text).collect::<Result<Vec<String>, NoText>>()?;
                    (all, fields.keys().cloned().collect())
                }
            },
            // CSV files have lists as JSON.
            Value::String(json) => match serde_json::from_str::<Value>(json) {
                Ok(list @ (Value::Array(_) | Value::Object(_))) => return Choices::read(&list),
                _ => return Err(ChoicesError::NoListIn(json.clone())),
            },
            _ => return Err(ChoicesError::NoList),
        };
        Choices::new(texts, labels)
    }

    /// Choices from their texts.
    pub(super) fn new(texts: Vec<String>, labels: Vec<String>) -> Result<Self, ChoicesError> {
        match texts.len() {
            count @ (0 | 1) => Err(ChoicesError::TooFew(count)),
            count @ 27.. => Err(ChoicesError::TooMany(count)),
            _ if texts.iter().any(|text| text.trim().is_empty()) => Err(ChoicesError::Empty),
            _ if (1..texts.len()).any(|index| texts[..index].contains(&texts[index])) => Err(ChoicesError::Equal),
            choices if !labels.is_empty() && labels.len() != choices => {
                Err(ChoicesError::Labels { choices, labels: labels.len() })
            }
            _ => Ok(Choices { texts, labels }),
        }
    }

    /// The choices under each other, with letters.
    pub(super) fn lettered(&self) -> String {
        let lines: Vec<String> =
            self.texts.iter().enumerate().map(|(index, text)| format!("{}. {text}", letter(index))).collect();
        lines.join("\n")
    }

    /// Index of the right choice.
    ///
    /// # Errors
    /// If the answer names none of them, or two by two readings.
    pub(super) fn right(&self, answer: &Value, form: Option<GoldForm>) -> Result<usize, ChoicesError> {
        let said = text(answer)?;
        let said = said.trim();
        let by_text = || self.texts.iter().position(|text| text.trim() == said);
        let by_label = || self.labels.iter().position(|label| label == said).or_else(|| self.by_letter(said));
        let by_index = || {
            let whole = said.strip_suffix(".0").unwrap_or(said);
            whole.parse::<usize>().ok().filter(|index| *index < self.texts.len())
        };
        let found = match form {
            Some(GoldForm::Text) => by_text(),
            Some(GoldForm::Letter) => by_label(),
            Some(GoldForm::Index) => by_index(),
            None => {
                let readings = [by_text(), by_label(), by_index().filter(|_| self.labels.is_empty())];
                let mut different: Vec<usize> = readings.into_iter().flatten().collect();
                different.dedup();
                if different.len() > 1 {
                    return Err(ChoicesError::Ambiguous(said.to_owned()));
                }
                different.first().copied()
            }
        };
        let all = || self.texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ");
        let answer = said.to_owned();
        found.ok_or_else(|| match form {
            Some(GoldForm::Index) => ChoicesError::NoIndex { answer, last: self.texts.len() - 1 },
            _ => ChoicesError::NoneOf { answer, choices: all() },
        })
    }

    fn by_letter(&self, said: &str) -> Option<usize> {
        let bare = said.trim_matches(['(', ')', '.', ' ']);
        let mut letters = bare.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else { return None };
        let index = (letter.to_ascii_uppercase() as usize).checked_sub('A' as usize)?;
        (letter.is_ascii_alphabetic() && index < self.texts.len()).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usual_forms_are_read() {
        for value in [
            json!(["4", 5]),
            json!({"text": ["4", "5"], "label": ["A", "B"]}),
            json!([{"label": "A", "text": "4"}, {"label": "B", "text": "5"}]),
            json!({"A": "4", "B": "5"}),
            json!("[\"4\", \"5\"]"),
        ] {
            let choices = Choices::read(&value).unwrap();
            assert_eq!(choices.lettered(), "A. 4\nB. 5");
            assert_eq!(choices.right(&json!("B"), None), Ok(1), "{value}");
        }
        for value in
            [json!("4"), json!(["4"]), json!(3), json!({"text": ["4", "5"], "label": ["A"]}), json!([[1], [2]])]
        {
            assert!(Choices::read(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn the_right_one_is_found_by_what_names_it() {
        let numbers = Choices::read(&json!(["2", "3", "1"])).unwrap();
        assert!(numbers.right(&json!(1), None).unwrap_err().to_string().contains("gold ="));
        assert_eq!(numbers.right(&json!(1), Some(GoldForm::Index)), Ok(1));
        assert_eq!(numbers.right(&json!(1), Some(GoldForm::Text)), Ok(2));
        assert_eq!(numbers.right(&json!("(c)"), Some(GoldForm::Letter)), Ok(2));
        assert_eq!(numbers.right(&json!(3), None), Ok(1));
        assert!(numbers.right(&json!("9"), None).unwrap_err().to_string().contains("none of the choices"));
        let labelled = Choices::read(&json!({"text": ["x", "y"], "label": ["1", "2"]})).unwrap();
        assert_eq!(labelled.right(&json!("1"), None), Ok(0));
    }
}
