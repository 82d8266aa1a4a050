//! Numbers as people and models write them: signs, currencies, digit groups, fractions, percent signs.
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Digits, in groups of three or not, with decimals or not; also `.5`.
const DIGITS: &str =
    r"(?:[0-9]{1,3}(?:(?:,|\{,\}|\\,|,\\!|[\u{2009}\u{202f}\u{a0}])[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+";
const MINUS: &str = r"[-\u{2212}\u{2013}\u{fe63}\u{ff0d}]";
const CURRENCY: &str = r"(?:(?:US|A|C|HK|NZ)?\\?\$|€|£|¥|₹|USD|EUR|GBP|Rs\.?)";

/// A number with its sign, its power of ten and its fraction bar. Groups: `minus`, `latex_*`, `whole`, `top`, `bottom`,
/// `digits`, `power`.
pub static NUMERAL: LazyLock<Regex> = LazyLock::new(|| compile(&numeral()));

/// The same at the beginning of a text, without a look at the rest.
pub static LEADING_NUMERAL: LazyLock<Regex> = LazyLock::new(|| compile(&format!("^(?:{})", numeral())));

fn numeral() -> String {
    format!(
        r"(?<minus>{MINUS}\s?)?(?:{CURRENCY}\s?)?(?<inner_minus>{MINUS})?(?:\\[dt]?frac\{{(?<latex_top>[0-9]+)\}}\{{(?<latex_bottom>[0-9]+)\}}|(?:(?<whole>[0-9]+)\s+)?(?<top>[0-9]+)\s?/\s?(?<bottom>[0-9]+)|(?<digits>{DIGITS})(?:[eE](?<power>[+-]?[0-9]{{1,3}})\b)?)"
    )
}

fn compile(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and the tests compile it")
}

/// The value of a match. None for a division by zero.
pub fn value(found: &Captures<'_>) -> Option<f64> {
    let part = |name: &str| found.name(name).map(|part| part.as_str());
    let number = |name: &str| part(name).and_then(|digits| digits.parse::<f64>().ok());
    let over = |top: f64, bottom: f64| (bottom != 0.0).then(|| top / bottom);
    let magnitude = if let Some(digits) = part("digits") {
        let plain: String = digits.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
        format!("{plain}e{}", part("power").unwrap_or("0")).parse().ok()?
    } else if let (Some(top), Some(bottom)) = (number("latex_top"), number("latex_bottom")) {
        over(top, bottom)?
    } else {
        number("whole").unwrap_or(0.0) + over(number("top")?, number("bottom")?)?
    };
    let negative = part("minus").is_some() != part("inner_minus").is_some();
    Some(if negative { -magnitude } else { magnitude })
}

/// True if the minus sign before a number subtracts: a number, a letter or a bracket stands before it.
pub fn subtracts(text: &str, found: &Captures<'_>) -> bool {
    found.name("minus").is_some_and(|minus| {
        let before = text[..minus.start()].trim_end_matches([' ', '$', '*']);
        before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | ']' | '%'))
            // "is -5": a word and a space before a sign that touches its number.
            && !(before.ends_with(char::is_alphabetic)
                // Marks of bold type, code and currency may stand between.
                && text[..minus.start()].trim_end_matches(['$', '*', '_', '`']).ends_with(' ')
                && !minus.as_str().ends_with(char::is_whitespace))
    })
}

/// The part of a completion that answers the question: without thinking, and cut at the first later line that begins
/// another question (`Q:`, `Question:`).
pub fn answer_part(response: &str) -> String {
    let visible = earnest_answer::split_thinking(response).visible;
    let mut end = visible.len();
    let mut start = 0;
    for line in visible.split_inclusive('\n') {
        let begins = line.trim_start();
        let asks = begins.starts_with("Q:") || begins.starts_with("Question:");
        if asks && !visible[..start].trim().is_empty() {
            end = start;
            break;
        }
        start += line.len();
    }
    visible[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<f64> {
        value(&NUMERAL.captures(text)?)
    }

    #[test]
    fn numbers_are_read_as_they_are_meant() {
        for (text, expected) in [
            ("5", 5.0),
            ("1,234,567.5", 1234567.5),
            ("1{,}234", 1234.0),
            ("1\u{202f}234", 1234.0),
            ("-5", -5.0),
            ("- 5", -5.0),
            ("\u{2212}5", -5.0),
            ("$5.50", 5.5),
            ("-$5", -5.0),
            ("$-5", -5.0),
            ("\\$1,000", 1000.0),
            ("1/2", 0.5),
            ("-3/4", -0.75),
            ("2 1/2", 2.5),
            ("\\frac{3}{4}", 0.75),
            ("-\\dfrac{1}{8}", -0.125),
            (".5", 0.5),
            ("1,23", 1.0),
            ("007", 7.0),
            ("1.5e3", 1500.0),
            ("2E-2 m", 0.02),
            ("1,000e+1", 10_000.0),
            ("5e", 5.0),
            ("5eggs", 5.0),
            ("5e3x", 5.0),
            ("5e1234", 5.0),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        assert_eq!(read("1/0"), None);
        assert_eq!(read("none"), None);
    }

    #[test]
    fn minus_signs_between_operands_are_no_signs() {
        let at = |text: &str| {
            let found = NUMERAL.captures_iter(text).last().unwrap();
            subtracts(text, &found)
        };
        for subtraction in ["158-238", "158 - 238", "158 -238", "(2)-3", "x - 3", "10% - 5", "$158$ - 238"] {
            assert!(at(subtraction), "{subtraction}");
        }
        for sign in ["is -5", "= -5", "= - 5", "-5", "(-5", "**-5", "is: - 5"] {
            assert!(!at(sign), "{sign}");
        }
    }

    #[test]
    fn the_next_question_is_cut_off() {
        assert_eq!(answer_part("5\n\nQ: 6"), "5\n\n");
        assert_eq!(answer_part("Question: 5"), "Question: 5");
        assert_eq!(answer_part("a FAQ: 5"), "a FAQ: 5");
        assert_eq!(answer_part("<think>5</think>6\n  Question: 7"), "6\n");
    }
}
