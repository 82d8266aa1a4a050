//! The value of an expression that a completion ends with.
use std::sync::LazyLock;

use regex::Regex;

use super::scorer::same_number;
use earnest_answer::python::{PythonError, PythonValue, python_close, python_eval};

static BOXED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\\boxed\{([^{}]*)\}").expect("the pattern is a constant that the tests use"));

/// Reason for a completion having no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoValue {
    #[error("there is no expression")]
    NoExpression,
    #[error("{written}: {error}")]
    Exception { written: String, error: PythonError },
    #[error("{0} is no number")]
    NoNumber(String),
}

/// The expression as it is written, and its value.
///
/// # Errors
/// The reason for there being none.
pub(super) fn value(visible: &str) -> Result<(String, PythonValue), NoValue> {
    let boxed = BOXED.captures_iter(visible).last().and_then(|found| found.get(1)).map(|part| part.as_str());
    let fences = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("```");
    let line = boxed.or_else(|| visible.lines().rfind(fences)).ok_or(NoValue::NoExpression)?;
    let line = line.rsplit(':').next().unwrap_or(line).trim_matches(['`', '$', '*', ' ', '\t']);
    let line = line.trim_end_matches('.').trim_end_matches(['`', '$', '*', ' ', '\t']);
    // `3 * 4 = 12` is the expression and its result, `x = 3 * 4` a name and the expression.
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphabetic() || c == '_');
    let written = line.split('=').map(str::trim).find(|part| !is_name(part)).unwrap_or(line);
    let python = written.replace(['\u{d7}', '\u{b7}'], "*").replace('\u{f7}', "/").replace('\u{2212}', "-");
    let python = python.replace("\\times", "*").replace("\\cdot", "*").replace("\\div", "/");
    let written = written.to_owned();
    match python_eval(&python) {
        Ok(found @ PythonValue::Number(_)) => Ok((written, found)),
        Ok(_) => Err(NoValue::NoNumber(written)),
        Err(error) => Err(NoValue::Exception { written, error }),
    }
}

/// True if a value is the expected number.
pub(super) fn agrees(value: &PythonValue, gold: &str) -> bool {
    let exact = value.text().is_ok_and(|text| same_number(&text, gold));
    // A fraction such as 1/3 has no exact double.
    exact || (gold.contains('/') && python_eval(gold).is_ok_and(|gold| python_close(value, &gold).unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_computed() {
        for (said, gold, right) in [
            ("(3 + 5) * 2", "16", true),
            ("We need this:\nAnswer: `(3 + 5) * 2`", "16", true),
            ("3 \u{d7} 4 = 12", "12", true),
            ("```\n10 / 4\n```", "2.5", true),
            ("$\\boxed{7 \\times 6}$", "42", true),
            ("1/3", "1/3", true),
            ("x = 6*7", "42", true),
            (".5 + 1.", "1.5", true),
            (".3", "3", false),
            ("2 + 2", "5", false),
            ("2**100", "1267650600228229401496703205376", true),
        ] {
            assert_eq!(value(said).is_ok_and(|(_, value)| agrees(&value, gold)), right, "{said}");
        }
        for said in ["", "I do not know", "'text'", "open('x')"] {
            assert!(value(said).is_err(), "{said}");
        }
    }
}
