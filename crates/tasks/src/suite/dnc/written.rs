//! Numbers as people and models write them: `$1,234.50`, `2.03e2`, `153/29`, `12 apples`, `forty-two`.
//!
//! A text is a number or it is none: what stands beside the number may be a unit, never another number or an operator, so that
//! `203 - 100` is not taken for 203.
use std::sync::LazyLock;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed};
use regex::Regex;

use super::expression::{exact, plain};
use super::problem::Scale;
use earnest_answer::number::Fraction;
use earnest_answer::number::words::words_in;

/// Powers of ten beyond this are no answer to any question here, and a text must not make this program compute one.
const LARGEST_POWER: i32 = 300;
/// Longest text that is read.
const LONGEST: usize = 4_000;

/// A number in an answer line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedNumber {
    pub value: Fraction,
    /// The digits as written, for the number of decimals.
    pub written: String,
    /// Something had to be removed or translated.
    pub normalised: bool,
    /// The scale word or per cent sign behind the number; the value does not have it yet.
    pub scale: Option<Scale>,
}

/// Convention of numbers in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    /// `(128)` is 128, and `203 thousand` is not read.
    Plain,
    /// Financial reports: `(128)` is -128, and a scale word may follow.
    Financial,
}

/// A number at the beginning of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leading {
    pub value: Fraction,
    /// The digits, a sign before them, and no commas; in plain notation.
    pub written: String,
    /// Byte range of the digits and their sign, without a currency sign before them.
    pub start: usize,
    pub end: usize,
    /// A fraction that could be reduced: a division left undone.
    pub reducible: bool,
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?P<sign>[+-]?)(?P<currency>[$€£¥]?\s?)(?P<inner>[+-]?)",
        r"(?P<digits>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)",
        r"(?:[eE](?P<e>[+-]?[0-9]{1,4})|\s?(?:[x×*·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{?(?P<power>[+-]?[0-9]{1,4})\}?|",
        r"\s?/\s?(?P<below>[0-9]+))?"
    ))
    .expect("the pattern is a constant and the tests use it")
});

static LATEX_FRACTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\\[dt]?frac\s?\{\s?([0-9]+)\s?\}\s?\{\s?([0-9]+)\s?\}")
        .expect("the pattern is a constant and the tests use it")
});

/// The number with which a text begins; no unit is looked at.
pub(super) fn leading(text: &str) -> Option<Leading> {
    if text.len() > LONGEST {
        return None;
    }
    let found = NUMBER.captures(text)?;
    let group = |name: &str| found.name(name).map_or("", |group| group.as_str());
    let (sign, inner) = (group("sign"), group("inner"));
    if !sign.is_empty() && !inner.is_empty() {
        return None;
    }
    let negative = sign == "-" || inner == "-";
    let digits = group("digits").replace(',', "");
    let mut value = exact(&digits)?;
    let mut written = digits;
    let mut reducible = false;
    let power = found.name("e").or_else(|| found.name("power"));
    if let Some(power) = power {
        let power: i32 = power.as_str().parse().ok().filter(|power: &i32| power.abs() <= LARGEST_POWER)?;
        let ten = BigInt::from(10).pow(power.unsigned_abs());
        let factor =
            if power < 0 { Fraction::new(BigInt::one(), ten).ok()? } else { Fraction::new(ten, BigInt::one()).ok()? };
        value = &value * &factor;
        written = plain(&value);
    } else if let Some(below) = found.name("below") {
        let below = BigInt::parse_bytes(below.as_str().as_bytes(), 10)?;
        // `15.3/2.9` is a division; a fraction has whole numbers.
        if !value.denominator().is_one() || written.contains('.') {
            return None;
        }
        reducible = below.is_one() || !value.numerator().gcd(&below).is_one();
        value = Fraction::new(value.numerator().clone(), below).ok()?;
        written = plain(&value);
    }
    if negative {
        value = &Fraction::from(BigInt::from(0)) - &value;
        written = format!("-{written}");
    }
    let start = if sign.is_empty() { found.name("currency").map_or(0, |group| group.end()) } else { 0 };
    Some(Leading { value, written, start, end: found.get(0)?.end(), reducible })
}

/// True for a text that may stand behind a number: nothing, a unit in words, a remark in brackets without numbers.
pub(super) fn is_unit(rest: &str) -> bool {
    // No word can be a number, an operator, a scale or a denial.
    const NO_UNITS: &[&str] = &[
        "plus",
        "minus",
        "times",
        "divided",
        "multiplied",
        "subtract",
        "subtracted",
        "add",
        "added",
        "mod",
        "modulo",
        "quadrillion",
        "lakh",
        "lakhs",
        "crore",
        "crores",
        "score",
        "grand",
        "tn",
        "mil",
        "fifths",
        "sixths",
        "sevenths",
        "eighths",
        "ninths",
        "tenths",
        "hundredths",
        "thousandths",
        "over",
        "or",
        "to",
        "x",
        "half",
        "halves",
        "third",
        "thirds",
        "dozen",
        "dozens",
        "hundred",
        "hundreds",
        "thousand",
        "thousands",
        "million",
        "millions",
        "billion",
        "billions",
        "trillion",
        "trillions",
        "negative",
        "not",
        "between",
        "equals",
        "squared",
        "cubed",
        "than",
        "less",
        "k",
        "bn",
        "e",
    ];
    let rest = rest.trim().trim_end_matches(['.', ',', ';', '!']);
    let mut around = rest.chars().peekable();
    let mut before = ' ';
    while let Some(character) = around.next() {
        let after = around.peek().copied().unwrap_or(' ');
        let joined = before.is_alphabetic() && after.is_alphabetic();
        let fits = match character {
            c if c.is_numeric() => false,
            '-' | '/' => joined,
            '.' | ',' | ';' => true,
            c => c.is_alphabetic() || c.is_whitespace() || "'’()%°$€£¥\"".contains(c),
        };
        if !fits {
            return false;
        }
        before = character;
    }
    let mut words = rest.split(|c: char| !(c.is_alphabetic() || c == '\'')).filter(|word| !word.is_empty());
    words_in(rest).is_empty() && words.all(|word| !NO_UNITS.contains(&word.to_lowercase().as_str()))
}

/// The number of an answer as data have it: `12 (marbles)`, `-3`, `2/11`, `$5`. None if it is not clear that it is one.
pub(super) fn stated(answer: &str) -> Option<Leading> {
    let found = leading(answer)?;
    let rest = &answer[found.end..];
    let remark = rest.trim_start().starts_with('(') && rest.trim_end().ends_with(')');
    (remark || is_unit(rest)).then_some(found)
}

/// Reads an answer line. A fraction of whole numbers counts if it is in lowest terms: `153/29` is a value, `46/2` a division
/// that nobody carried out.
pub fn parse_number(line: &str) -> Option<ParsedNumber> {
    parse_number_as(line, Convention::Plain)
}

/// Reads an answer line under the conventions of its data set.
pub fn parse_number_as(line: &str, convention: Convention) -> Option<ParsedNumber> {
    if line.len() > LONGEST {
        return None;
    }
    let marks = ['*', '`', '"', '_'];
    let clean = line.trim().trim_matches(marks).trim();
    let mut text = clean.replace(['\u{2212}', '\u{2013}'], "-");
    // What answers are wrapped in.
    for _ in 0..4 {
        let bare = text.trim().trim_end_matches('.').trim_end();
        let inner = [("\\boxed{", "}"), ("\\(", "\\)"), ("\\[", "\\]"), ("[", "]"), ("**", "**"), ("$", "$")]
            .into_iter()
            .find_map(|(open, close)| bare.strip_prefix(open)?.strip_suffix(close));
        match inner {
            Some(inner) => text = inner.trim().to_owned(),
            None => break,
        }
    }
    let text = LATEX_FRACTION.replace(text.trim(), "$1/$2").into_owned();
    let (body, brackets) = match bracketed(&text) {
        Some((inside, rest)) => (format!("{inside}{rest}"), true),
        None => (text, false),
    };
    let negated = brackets && convention == Convention::Financial;
    if let Some(found) = leading(&body) {
        let (scale, rest) = scale_of(&body[found.end..], convention);
        if found.reducible || !is_unit(rest) || (negated && found.value.numerator().is_negative()) {
            return None;
        }
        let same = clean.trim_end_matches('.') == found.written
            || clean.strip_prefix('\u{2212}').is_some_and(|digits| found.written.strip_prefix('-') == Some(digits));
        let (value, written) = match negated {
            true => (&Fraction::from(BigInt::from(0)) - &found.value, format!("-{}", found.written)),
            false => (found.value, found.written),
        };
        return Some(ParsedNumber { value, written, normalised: !same, scale });
    }
    in_words(&body)
}

/// `(128)`, `$(1,280)` and what follows: the inside with its currency sign, and the rest.
fn bracketed(text: &str) -> Option<(String, &str)> {
    let (currency, inner) = match text.strip_prefix(['$', '€', '£', '¥']) {
        Some(rest) => (&text[..text.len() - rest.len()], rest.trim_start()),
        None => ("", text),
    };
    let (inside, rest) = inner.strip_prefix('(')?.split_once(')')?;
    Some((format!("{currency}{}", inside.trim()), rest))
}

/// The scale behind a number, and what follows it.
fn scale_of(rest: &str, convention: Convention) -> (Option<Scale>, &str) {
    let bare = rest.trim_start();
    if let Some(after) = bare.strip_prefix('%') {
        return (Some(Scale::Percent), after);
    }
    if let Some((words, after)) = bare.split_at_checked("per cent".len())
        && words.eq_ignore_ascii_case("per cent")
        && !after.starts_with(char::is_alphabetic)
    {
        return (Some(Scale::Percent), after);
    }
    let end = bare.find(|c: char| !c.is_alphabetic()).unwrap_or(bare.len());
    match Scale::parse(&bare[..end]) {
        Some(Scale::Percent) => (Some(Scale::Percent), &bare[end..]),
        Some(scale) if scale != Scale::None && convention == Convention::Financial => (Some(scale), &bare[end..]),
        _ => (None, rest),
    }
}

/// A number in words, with nothing before it but its sign.
fn in_words(text: &str) -> Option<ParsedNumber> {
    let lower = text.to_lowercase();
    let bare = ["minus ", "negative "].into_iter().find_map(|sign| lower.strip_prefix(sign));
    let (negative, words) = (bare.is_some(), bare.unwrap_or(&lower));
    let digits = if words.trim_end_matches('.') == "one" {
        "1".to_owned()
    } else {
        let found = words_in(words);
        let [word] = found.as_slice() else { return None };
        if word.start != 0 || !is_unit(&words[word.end..]) {
            return None;
        }
        word.digits.clone()
    };
    let written = if negative { format!("-{digits}") } else { digits };
    Some(ParsedNumber { value: exact(&written)?, written, normalised: true, scale: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (line, value, normalised) in [
            ("12", "12", false),
            ("-12.5", "-12.5", false),
            ("$1,234.50", "1234.5", true),
            ("12 apples", "12", true),
            ("5kg", "5", true),
            ("60 km/h.", "60", true),
            ("3 (school-buses)", "3", true),
            ("forty-two", "42", true),
            ("forty-two plums", "42", true),
            ("minus two", "-2", true),
            ("one", "1", true),
            ("**16**", "16", false),
            ("\u{2212}3", "-3", false),
            ("-$5", "-5", true),
            ("$-5", "-5", true),
            ("20 %", "20", true),
            ("203.", "203", false),
            ("(203)", "203", true),
            ("2.03e2", "203", true),
            ("2.03E+2 miles", "203", true),
            ("2.03 × 10^2", "203", true),
            ("2.03 \\times 10^{2}", "203", true),
            ("5e-1", "0.5", true),
            ("153/29", "153/29", false),
            ("-7/3", "-7/3", false),
            ("31/2 hours", "15.5", true),
            ("\\boxed{\\frac{153}{29}}", "153/29", true),
            ("$12$", "12", true),
        ] {
            let found = parse_number(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((plain(&found.value).as_str(), found.normalised), (value, normalised), "{line}");
        }
    }

    #[test]
    fn what_is_more_or_less_than_a_number_is_not_read() {
        for line in [
            "",
            "none",
            "5 + 6",
            "two or three",
            "x = 5",
            "3 = 3",
            "٣",
            "203 - 100",
            "203 x 2",
            "203 thousand",
            "203 k",
            "203 * 2",
            "203-100",
            "203 to 205",
            "203, 204",
            "203 and 204",
            "203 minus three",
            "12 and a half",
            "3 1/2",
            "46/2",
            "10/1",
            "15.3/2.9",
            "153/29/2",
            "5/0",
            "1,2",
            "1234,567",
            "--5",
            "+-5",
            "5--",
            "1e400",
            "1e99999",
            "2e",
            "12e3x",
            "2 dozen",
            "15 r8",
            "12:30",
            "maybe five",
            "not 12",
            "about 12",
            "5 is not it",
            "(5) - 3",
            "203 x",
            "203 times two",
            "5^2",
            "2*10",
            "9 < 10",
            "1.2.3",
            "five minus two",
        ] {
            assert_eq!(parse_number(line), None, "{line}");
        }
        assert_eq!(parse_number(&"9".repeat(5_000)), None);
    }

    #[test]
    fn financial_reports_have_signs_and_scales_of_their_own() {
        let read =
            |line: &str| parse_number_as(line, Convention::Financial).map(|found| (plain(&found.value), found.scale));
        assert_eq!(read("(128)"), Some(("-128".into(), None)));
        assert_eq!(read("$(1,280.5)"), Some(("-1280.5".into(), None)));
        assert_eq!(read("($128) thousand"), Some(("-128".into(), Some(Scale::Thousand))));
        assert_eq!(read("12.5 million"), Some(("12.5".into(), Some(Scale::Million))));
        assert_eq!(read("-20.46%"), Some(("-20.46".into(), Some(Scale::Percent))));
        assert_eq!(read("(20.46%)"), Some(("-20.46".into(), Some(Scale::Percent))));
        assert_eq!(read("(-5)"), None);
        assert_eq!(read("12 hundred"), None);
    }

    #[test]
    fn answers_of_data_are_numbers_or_refused() {
        let of =
            |answer: &str| stated(answer).map(|found| (plain(&found.value), answer[found.start..found.end].to_owned()));
        assert_eq!(of("1,234.5 (ml)"), Some(("1234.5".into(), "1,234.5".into())));
        assert_eq!(of("12 (5-dollar bills)"), Some(("12".into(), "12".into())));
        assert_eq!(of("$5"), Some(("5".into(), "5".into())));
        assert_eq!(of("46/2"), Some(("23".into(), "46/2".into())));
        assert_eq!((of("abc"), of("1e400"), of("12 - 5"), of("")), (None, None, None, None));
    }
}
