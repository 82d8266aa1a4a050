//! The condition on which a run ends before its plan does.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Forms of a condition, for messages.
const FORMS: &str = "'difference to RUN decided' or 'difference to RUN decided, or within 2 points'";

/// Condition on which a run ends: its paired difference to a stored run is known well enough. Part of a run's identity, because the
/// rows that a run has depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Stored run with the same items.
    pub difference_to: String,
    /// Points within which the difference is taken for none; without it only a difference decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
}

impl Until {
    /// Fraction within which the difference is taken for none.
    pub fn margin(&self) -> Option<f64> {
        self.within.map(|points| points / 100.0)
    }
}

impl fmt::Display for Until {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "difference to {} decided", self.difference_to)?;
        match self.within {
            Some(points) => write!(formatter, ", or within {points} points"),
            None => Ok(()),
        }
    }
}

/// A condition that does not follow the grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UntilError {
    /// Another word than the one expected.
    #[error("'{found}' at character {at}, expected {expected}; write {FORMS}")]
    Word { found: String, at: usize, expected: String },
    /// The condition ends too early.
    #[error("the condition ends where {expected} is expected; write {FORMS}")]
    End { expected: String },
    /// A margin that is no difference of accuracies.
    #[error("'{found}' at character {at}, expected a number of points above 0 and below 100, e.g. 2")]
    Points { found: String, at: usize },
}

/// Words of a condition with the numbers of their first characters, from 1. A comma at the end of a word is a word.
struct Words<'a> {
    words: std::vec::IntoIter<(usize, &'a str)>,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let mut words = Vec::new();
        let mut rest = text;
        let mut at = 1;
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            at += rest[..start].chars().count();
            rest = &rest[start..];
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let word = &rest[..end];
            match word.strip_suffix(',') {
                Some(before) if !before.is_empty() => {
                    words.extend([(at, before), (at + before.chars().count(), ",")]);
                }
                _ => words.push((at, word)),
            }
            at += word.chars().count();
            rest = &rest[end..];
        }
        Words { words: words.into_iter() }
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.as_slice().first().map(|(_, word)| *word)
    }

    /// Next word, described as `expected` if there is none.
    fn next(&mut self, expected: &str) -> Result<(usize, &'a str), UntilError> {
        self.words.next().ok_or_else(|| UntilError::End { expected: expected.to_owned() })
    }

    /// Takes one of these words.
    fn take(&mut self, words: &[&str]) -> Result<(), UntilError> {
        let expected = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" or ");
        let (at, found) = self.next(&expected)?;
        match words.contains(&found) {
            true => Ok(()),
            false => Err(UntilError::Word { found: found.to_owned(), at, expected }),
        }
    }
}

/// `difference to RUN decided`, and optionally `, or within D points`.
impl FromStr for Until {
    type Err = UntilError;

    fn from_str(text: &str) -> Result<Self, UntilError> {
        let mut words = Words::of(text);
        words.take(&["difference"])?;
        words.take(&["to"])?;
        let difference_to = words.next("the name of a run")?.1.to_owned();
        words.take(&["decided"])?;
        if words.peek().is_none() {
            return Ok(Until { difference_to, within: None });
        }
        if words.peek() == Some(",") {
            words.take(&[","])?;
        }
        words.take(&["or"])?;
        words.take(&["within"])?;
        let (at, found) = words.next("a number of points")?;
        let points = found.parse::<f64>().ok().filter(|points| *points > 0.0 && *points < 100.0);
        let within = points.ok_or_else(|| UntilError::Points { found: found.to_owned(), at })?;
        words.take(&["points", "point"])?;
        match words.words.next() {
            None => Ok(Until { difference_to, within: Some(within) }),
            Some((at, found)) => {
                Err(UntilError::Word { found: found.to_owned(), at, expected: "the end of the condition".to_owned() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_written_alike() {
        let parse = |text: &str| text.parse::<Until>().unwrap();
        let plain = Until { difference_to: "nupa-a-1f2e".into(), within: None };
        assert_eq!(parse("difference to nupa-a-1f2e decided"), plain);
        assert_eq!(parse(&plain.to_string()), plain);
        let within = Until { within: Some(2.5), ..plain.clone() };
        for text in [
            "difference to nupa-a-1f2e decided, or within 2.5 points",
            "  difference to nupa-a-1f2e decided , or within 2.5 points ",
            "difference to nupa-a-1f2e decided or within 2.5 point",
        ] {
            assert_eq!(parse(text), within, "{text}");
        }
        assert_eq!(parse(&within.to_string()), within);
        assert_eq!(within.margin(), Some(0.025));
        // Only what is set is part of a run's identity.
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"difference_to":"nupa-a-1f2e"}"#);
    }

    #[test]
    fn errors_point_at_what_is_wrong() {
        let message = |text: &str| text.parse::<Until>().unwrap_err().to_string();
        let starts = |text: &str, start: &str| {
            let said = message(text);
            assert!(said.starts_with(start), "{said}");
        };
        starts("", "the condition ends where 'difference' is expected; write 'difference to RUN decided' or");
        starts("diference to x decided", "'diference' at character 1, expected 'difference'; write");
        starts("difference  from x decided", "'from' at character 13, expected 'to'; write");
        starts("difference to", "the condition ends where the name of a run is expected");
        starts("difference to ä x", "'x' at character 17, expected 'decided'");
        starts("difference to x decided, and within 2 points", "'and' at character 26, expected 'or'");
        starts("difference to x decided,", "the condition ends where 'or' is expected");
        starts("difference to x decided or within", "the condition ends where a number of points is expected");
        for (number, at) in [("0", 35), ("-1", 35), ("100", 35), ("NaN", 35), ("two", 35)] {
            let text = format!("difference to x decided or within {number} points");
            starts(&text, &format!("'{number}' at character {at}, expected a number of points"));
        }
        starts("difference to x decided or within 2", "the condition ends where 'points' or 'point' is expected");
        starts("difference to x decided or within 2 points now", "'now' at character 44, expected the end of");
    }
}
