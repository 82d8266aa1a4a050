//! The study's extraction from text (its section 3.2).
use std::sync::LazyLock;

use regex::Regex;

use super::{Label, float, trim};
use earnest_answer::python::{is_blank, pattern};

static GSM8K: LazyLock<Regex> = LazyLock::new(|| pattern(r"####{s}*[^\d-]*(-?\d+(?:\.\d+)?)"));
static STATEMENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[Tt]he (?:final )?answer is:?{s}*[^\d-]*(-?\d+(?:\.\d+)?)"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"-?\d+(?:\.\d+)?"));

/// Number that the study's program takes from a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextExtraction {
    /// The number; an infinity beyond the range of floats.
    pub value: Option<f64>,
    pub label: Label,
}

/// The first number after `####`, else after "the final answer is", else the last number; commas do not count.
///
/// The traps are the study's: whatever is no digit and no minus sign may stand between statement and number, newlines and
/// other sentences included; a minus sign that no digit follows ends the statement; `1/2` is 1, and `158-238` ends in -238.
pub fn extract(response: &str) -> TextExtraction {
    let nothing = |label| TextExtraction { value: None, label };
    if response.is_empty() {
        return nothing(Label::EmptyResponse);
    }
    let response = trim(response);
    if is_blank(response) {
        return nothing(Label::EmptyAfterTrim);
    }
    let text = response.replace(',', "");
    let stated = |pattern: &Regex| Some(pattern.captures(&text)?.get(1)?.as_str().to_owned());
    let last = || NUMBER.find_iter(&text).last().map(|found| found.as_str().to_owned());
    let found = stated(&GSM8K)
        .map(|number| (number, Label::Gsm8k))
        .or_else(|| stated(&STATEMENT).map(|number| (number, Label::GsmSymbolic)))
        .or_else(|| last().map(|number| (number, Label::LastNumber)));
    match found {
        Some((number, label)) => TextExtraction { value: float(&number), label },
        None => nothing(Label::NoNumber),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(response: &str, value: impl Into<Option<f64>>, label: Label) {
        assert_eq!(extract(response), TextExtraction { value: value.into(), label }, "{response:?}");
    }

    #[test]
    fn the_traps() {
        check("The answer is unknown. Perhaps\n\nI say 7", 7.0, Label::GsmSymbolic);
        check("The answer is - 5", 5.0, Label::LastNumber);
        check("The answer is 5. No, the answer is 6.", 5.0, Label::GsmSymbolic);
        check("The answer is 5 #### 6", 6.0, Label::Gsm8k);
        check("The answer is -1,234.50.", -1234.5, Label::GsmSymbolic);
        check("the final answer is: 3", 3.0, Label::GsmSymbolic);
        check("THE ANSWER IS 4 or 9", 9.0, Label::LastNumber);
        check("٣٤ and १२", 12.0, Label::LastNumber);
        check("\x1c\x1f", None, Label::EmptyAfterTrim);
        check("the answer is x", None, Label::NoNumber);
        check(",", None, Label::NoNumber);
    }

    #[test]
    fn long_texts_take_linear_time() {
        let text = "the answer is ".repeat(100_000) + "-";
        check(&text, None, Label::NoNumber);
        check(&"#### - ".repeat(100_000), None, Label::NoNumber);
    }
}
