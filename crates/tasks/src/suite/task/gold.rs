//! Numbers in expected answers: plain ones, and those that a reference solution ends with.
use std::sync::LazyLock;

use regex::Regex;

use earnest_answer::reader::{Asked, Form, read};

static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^[-+]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$|^-?[0-9]+/[0-9]*[1-9][0-9]*$",
    )
    .expect("the pattern is a constant that the tests use")
});

/// The number that a text is, without currency, percent sign, group separators and a unit in brackets (`7 (apples)`); none for
/// anything else.
pub(super) fn plain(text: &str) -> Option<String> {
    let text = text.trim().replace('\u{2212}', "-");
    let text = match text.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
        Some((number, unit)) if !unit.contains(|c: char| c.is_ascii_digit() || matches!(c, '(' | ')')) => {
            number.trim().to_owned()
        }
        _ => text,
    };
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let rest = rest.trim_start_matches(['$', '\u{20ac}', '\u{a3}', '\u{a5}']).trim_end_matches('%').trim();
    let number = format!("{sign}{rest}");
    PLAIN.is_match(&number).then(|| number.trim_end_matches('.').replace(',', ""))
}

/// True for a text that is a number or says in a usual way which one is its result: `#### 18`, `\boxed{18}`.
pub(super) fn says_number(text: &str) -> bool {
    plain(text).is_some() || ((text.contains("####") || text.contains("\\boxed")) && from(text, "").is_some())
}

/// True for a number with what it counts behind it: `5 apples`, `$3 per day`.
pub(super) fn counts_something(text: &str) -> bool {
    let text = text.trim().trim_end_matches('.');
    text.split_once(char::is_whitespace).is_some_and(|(number, unit)| {
        plain(number).is_some()
            && unit.split_whitespace().count() <= 3
            && !unit.chars().any(|c| c.is_ascii_digit())
            && unit.chars().any(char::is_alphabetic)
    })
}

/// The number of an expected answer: a plain one, or what the reader of final answers takes from it.
pub(super) fn from(text: &str, question: &str) -> Option<String> {
    plain(text).or_else(|| solution(text, question))
}

/// The number that the reader takes from a reference solution.
pub(super) fn solution(text: &str, question: &str) -> Option<String> {
    let reading = read(&Asked { prompt: question, form: Form::Number }, text, false);
    reading.answer.ok().map(|answer| answer.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers() {
        for (text, number) in [
            ("18", "18"),
            (" -1,234.50 ", "-1234.50"),
            ("$5", "5"),
            ("-$5", "-5"),
            ("12%", "12"),
            (".5", ".5"),
            ("3/4", "3/4"),
            ("1e3", "1e3"),
            ("\u{2212}7", "-7"),
            ("18.", "18"),
            ("15.8 (cats)", "15.8"),
        ] {
            assert_eq!(plain(text).as_deref(), Some(number), "{text}");
        }
        for text in ["", "x", "1 2", "12,34", "3/0", "5 apples", "5 (2 of them)", "1.2.3", "-", "$"] {
            assert_eq!(plain(text), None, "{text}");
        }
    }

    #[test]
    fn solutions_are_read() {
        let solution = "She sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\nShe makes 9 * 2 = $<<9*2=18>>18.\n#### 18";
        assert_eq!(from(solution, "How much does she make?").as_deref(), Some("18"));
        assert!(says_number(solution) && says_number("It is $\\boxed{7}$."));
        assert!(!says_number("Paris in 1889") && !says_number("no number ####"));
        assert_eq!(from("none", ""), None);
        let counting =
            ["5 apples", "$3 per day", "20 km/h", "1,200 dollars.", "Apollo 11", "5", "3 of 4", "about 5 kg"];
        assert_eq!(counting.map(counts_something), [true, true, true, true, false, false, false, false]);
    }
}
