//! Number mentions: where a text writes numbers in digits.
//!
//! [`reference_mentions`] follows the authors' code, its quirks included (spec section 1): a decimal at the end of a sentence
//! is torn apart, signs after a currency sign are lost, ordinals and `mp3` count. [`mentions`] is the corrected detector.
use std::sync::LazyLock;

use regex::Regex;

use earnest_answer::python::is_space;

/// A number in a text. Positions are byte offsets; numbers are ASCII, so a mention's length in bytes is that in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    pub text: String,
    pub start: usize,
    pub end: usize,
}

fn in_run(character: char) -> bool {
    character.is_ascii_digit() || "+-,.%".contains(character)
}

/// Section 1, rule 3.
static LEGAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[+-]?[0-9]+(?:\.[0-9]*)?%?|[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?%?|[+-]?\.[0-9]+%?)$")
        .expect("the pattern is a constant and the tests use it")
});

/// The mentions before rule 5, which drops a final comma or point.
pub fn raw_reference_mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    for (start, run, free) in runs(text) {
        if run.bytes().any(|byte| byte.is_ascii_digit()) {
            collect(run, start, free, &mut found);
        }
    }
    found
}

/// The mentions that the reference edits.
pub fn reference_mentions(text: &str) -> Vec<Mention> {
    let mut found = raw_reference_mentions(text);
    for mention in &mut found {
        if mention.text.ends_with([',', '.']) {
            mention.text.pop();
            mention.end -= 1;
        }
    }
    found
}

/// Maximal runs of number characters: offset, text, and whether the run starts the text or follows white space.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str, bool)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(in_run)?;
        let end = text[start..].find(|character| !in_run(character)).map_or(text.len(), |length| start + length);
        rest = end;
        let free = text[..start].chars().next_back().is_none_or(is_space);
        Some((start, &text[start..end], free))
    })
}

fn collect(run: &str, start: usize, free: bool, found: &mut Vec<Mention>) {
    let (aside, body) = match run.strip_prefix([',', '-', '.', '+']) {
        Some(body) if !free => (1, body),
        _ => (0, run),
    };
    if LEGAL.is_match(body) {
        found.push(Mention { text: body.to_owned(), start: start + aside, end: start + run.len() });
        return;
    }
    for separators in [&[','][..], &['-'], &['.'], &['+'], &['-', '+']] {
        let mut parts: Vec<(usize, &str)> = Vec::new();
        let mut at = 0;
        for part in run.split(separators) {
            parts.push((at, part));
            at += part.len() + 1;
        }
        if parts.len() < 2 {
            continue;
        }
        let first = parts.iter().position(|(_, part)| !part.is_empty());
        let last = parts.iter().rposition(|(_, part)| !part.is_empty());
        let (Some(first), Some(last)) = (first, last) else { continue };
        let parts = &parts[first..=last];
        if parts.iter().all(|(_, part)| LEGAL.is_match(part)) {
            for (index, (at, part)) in parts.iter().enumerate() {
                // Only the first part can have its sign set aside: the others count as free.
                collect(part, start + at, free || index > 0, found);
            }
            return;
        }
    }
}

/// Signs that a mention of the corrected detector is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    Nothing,
    /// A currency sign stands before it.
    Currency(char),
    /// A per cent sign follows it.
    Percent,
}

/// A number as the corrected detector sees it. The sign is part of it where it is one (`$-5`, `(-5)`, ` -5`), the per cent and
/// currency signs are not; trailing points and commas of the sentence are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    pub text: String,
    pub start: usize,
    pub end: usize,
    pub attached: Attached,
}

impl Number {
    /// No decimal point, no per cent sign.
    pub fn is_integer(&self) -> bool {
        !self.text.contains('.') && self.attached != Attached::Percent
    }

    /// The text without thousands commas.
    pub fn plain(&self) -> String {
        self.text.replace(',', "")
    }
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+")
        .expect("the pattern is a constant and the tests use it")
});

/// The numbers of a text that can be edited: digits glued to letters (`2nd`, `mp3`), parts of times, dates, fractions and
/// ranges (`12:30`, `5/6`, `2019-20`) and of anything with several points are no quantities of their own and are left out.
pub fn mentions(text: &str) -> Vec<Number> {
    NUMBER
        .find_iter(text)
        .filter_map(|found| {
            let mut start = found.start();
            let (before, after) = (&text[..start], &text[found.end()..]);
            let mut left = before.chars().rev();
            let previous = left.next();
            let sign = match previous {
                // A sign after a word or a digit is a hyphen or a minus between two numbers.
                Some('-') => match left.next() {
                    None => Some(true),
                    Some(further) => Some(further.is_whitespace() || "$€£¥(".contains(further)),
                },
                _ => None,
            };
            if sign == Some(false) {
                return None;
            }
            if sign == Some(true) {
                start -= 1;
            } else if previous.is_some_and(|c| c.is_alphanumeric() || "._/:,+'’\u{2013}\u{2014}%".contains(c)) {
                return None;
            }
            let mut right = after.chars();
            let next = right.next();
            let second = right.next();
            let glued = match next {
                Some(c) if c.is_alphanumeric() => true,
                Some('/' | ':' | '_' | '\u{2013}' | '\u{2014}' | '+') => true,
                Some('-') => second.is_some_and(char::is_numeric),
                Some('.' | ',') => second.is_some_and(char::is_numeric),
                _ => false,
            };
            if glued {
                return None;
            }
            let currency = text[..start].chars().next_back().filter(|c| "$€£¥".contains(*c));
            let attached = match (currency, next) {
                (_, Some('%')) => Attached::Percent,
                (Some(sign), _) => Attached::Currency(sign),
                _ => Attached::Nothing,
            };
            Some(Number { text: text[start..found.end()].to_owned(), start, end: found.end(), attached })
        })
        .collect()
}

const CURRENCIES: &str = "$€£¥";

/// True if a number stands in the text as prose has numbers, so that another number, or words, in its place leave a sentence that
/// a person could have written. A sign in front of a currency sign or of a typographical kind (`-$3`, `−3`), brackets of
/// accountants (`$(5)`), powers and other mathematics (`10^3`, `x=5`), markup (`[5]`, `#5`, `5</b>`, `$5$`), digits in groups
/// (`1 000`, `2019 2018`, `3 1/2`), ends of spaced ranges (`5 – 7`) and leading zeros are none.
pub fn is_prose(text: &str, number: &Number) -> bool {
    let digits = number.text.trim_start_matches('-');
    if digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.") {
        return false;
    }
    let opens = |before: &str| {
        let mut left = before.chars().rev();
        match left.next() {
            None => true,
            Some(c) if c.is_whitespace() => true,
            Some('(' | '"' | '“' | '«') => left.next().is_none_or(|c| c.is_whitespace() || c == '"' || c == '“'),
            _ => false,
        }
    };
    let before = &text[..number.start];
    let before = match number.attached {
        Attached::Currency(sign) => before.strip_suffix(sign).unwrap_or(before),
        _ => before,
    };
    // Of the same line; a new line begins something else.
    let further = before.trim_end_matches(|c: char| c.is_whitespace() && c != '\n').chars().next_back();
    let spaced = |c: char| c.is_numeric() || CURRENCIES.contains(c) || "\u{2212}^=<>*×÷/+".contains(c);
    if !opens(before) || further.is_some_and(spaced) {
        return false;
    }
    let mut after = &text[number.end..];
    if number.attached == Attached::Percent {
        after = after.strip_prefix('%').unwrap_or(after);
    }
    let mut right = after.chars();
    let (next, second) = (right.next(), right.next());
    let closes = match next {
        None => true,
        Some(c) if c.is_whitespace() => true,
        Some('.' | ',') => second.is_none_or(|c| !c.is_alphanumeric()),
        Some('-') => second.is_some_and(char::is_alphabetic),
        Some(c) => ";!?)\"”»…".contains(c),
    };
    let beyond = after.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
    let follows = |c: char| c.is_numeric() || CURRENCIES.contains(c) || "^=<>*×÷/+\u{2212}".contains(c);
    // `5, 6 and 7` are numbers of their own: only what follows after blanks alone counts.
    closes && !(beyond.len() < after.len() && beyond.starts_with(follows)) && !is_end_of_range(text, number)
}

static RANGE_AFTER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^%?[ \t\x{a0}]+([-\x{2013}])[ \t\x{a0}]+[$€£¥]?([0-9][0-9,]*(?:\.[0-9]+)?)%?")
        .expect("the pattern is a constant and the tests use it")
});
static RANGE_BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"([0-9][0-9,]*(?:\.[0-9]+)?)%?[ \t\x{a0}]+([-\x{2013}])[ \t\x{a0}]+[$€£¥]?$")
        .expect("the pattern is a constant and the tests use it")
});

/// True for either end of a spaced range (`5 – 7`, `10 - 12 years`). A falling pair with a hyphen, and what is asked for or
/// calculated (`what is 5 - 7?`, `5 - 7 = -2`), is a subtraction.
fn is_end_of_range(text: &str, number: &Number) -> bool {
    let (before, after) = (&text[..number.start], &text[number.end..]);
    let from_low = || {
        let found = RANGE_AFTER.captures(after)?;
        let (dash, high) = (found.get(1)?.as_str(), found.get(2)?.as_str());
        Some((before, number.text.as_str(), dash, high, &after[found.get(0)?.end()..]))
    };
    let from_high = || {
        let found = RANGE_BEFORE.captures(before)?;
        let (low, dash) = (found.get(1)?, found.get(2)?);
        Some((&before[..low.start()], low.as_str(), dash.as_str(), number.text.as_str(), after))
    };
    let pair = from_low().or_else(from_high);
    let Some((outer, low, dash, high, rest)) = pair else { return false };
    let value = |text: &str| super::expression::exact(&text.replace(',', ""));
    let rises = matches!((value(low), value(high)), (Some(low), Some(high)) if low < high);
    let (outer, rest) =
        (outer.trim_end_matches(|c: char| c.is_whitespace() || CURRENCIES.contains(c)), rest.trim_start());
    let last = outer.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    let first = rest.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    let calculated = outer.is_empty() && rest.is_empty()
        || outer.ends_with(|c: char| "=+-*/×÷^<>\u{2212}\u{2013}".contains(c))
        || ["is", "calculate", "compute", "evaluate", "solve", "find", "equals", "simplify"].contains(&last.as_str())
        || rest.starts_with(|c: char| "=+-*/×÷^<>\u{2212}\u{2013}".contains(c))
        || ["is", "equals", "equal"].contains(&first.as_str());
    !calculated && (dash != "-" || rises)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> Vec<(String, usize)> {
        reference_mentions(text).into_iter().map(|mention| (mention.text, mention.start)).collect()
    }

    fn texts(text: &str) -> Vec<String> {
        mentions(text).into_iter().map(|number| number.text).collect()
    }

    #[test]
    fn reference_quirks() {
        let of = |pairs: &[(&str, usize)]| pairs.iter().map(|(text, at)| ((*text).to_owned(), *at)).collect::<Vec<_>>();
        assert_eq!(reference("cost $12.46."), of(&[("12", 6), ("46", 9)]));
        assert_eq!(reference("$1,050.00,"), of(&[("1", 1), ("050.00", 3)]));
        assert_eq!(reference("$-1000 (-5) -5"), of(&[("1000", 2), ("5", 9), ("-5", 12)]));
        assert_eq!(reference("5. 5--6 1..2 5%5 %5"), of(&[("5", 0)]));
        // Parts behind a separator keep their own sign; only the first one can lose it.
        assert_eq!(reference("-5,-6 $-5,-6"), of(&[("-5", 0), ("-6", 3), ("5", 8), ("-6", 10)]));
        assert_eq!(
            reference("x1,+2 1,.5 1\u{1c}-5"),
            of(&[("1", 1), ("+2", 3), ("1", 6), (".5", 8), ("1", 11), ("-5", 13)])
        );
        assert_eq!(reference("2nd mp3 12:30 5/6 2019-20").len(), 8);
        assert_eq!(reference("５ ٣ – ٥"), of(&[]));
    }

    #[test]
    fn the_corrected_detector_reads_what_a_person_reads() {
        assert_eq!(texts("It cost $12.46. Or $1,050.00, or 5."), ["12.46", "1,050.00", "5"]);
        assert_eq!(texts("the 2nd, mp3, 12:30, 5/6, 2019-20, 1.2.3, 7-8"), Vec::<String>::new());
        assert_eq!(texts("$-1000 (-5) -3 to .5"), ["-1000", "-5", "-3", ".5"]);
        assert_eq!(texts("F-1, Boeing-737"), Vec::<String>::new());
        assert_eq!(texts("a 50-year-old has 3 cats"), ["50", "3"]);
        assert_eq!(texts("(134) 12% Ärger 5"), ["134", "12", "5"]);
        let prose = |text: &str| -> Vec<String> {
            mentions(text).into_iter().filter(|number| is_prose(text, number)).map(|number| number.text).collect()
        };
        assert_eq!(
            prose("It cost $12.46. Or $1,050.00, or 5 (or 6%), \"7\"; a 50-year-old: 8!"),
            ["12.46", "1,050.00", "5", "6", "7", "50", "8"]
        );
        assert_eq!(prose("-3 and ($5) and $-4 of 5, 6 and 7.\n8 cats"), ["-3", "5", "-4", "5", "6", "7", "8"]);
        assert_eq!(prose("What is 12 - 5? What is 5 - 7? 9 - 4 cats."), ["12", "5", "5", "7", "9", "4"]);
        for text in [
            "aged 5 – 7",
            "10 - 12 years",
            "about $5 - $7 each",
            "-$3",
            "\u{2212}3",
            "\u{2212} 3",
            "$(5)",
            "$ 5",
            "US$5",
            "10^3",
            "x=5",
            "[5]",
            "#5",
            "<b>5</b>",
            "**5**",
            "$5$",
            "{5}",
            "1 000",
            "2019 2018",
            "3 1/2",
            "007",
            "5€",
            "5 €",
            "5'",
            "5's",
            "5°",
            "5.com",
            "f(5)",
            "(-$3)",
            "5=5",
            "5 × 3",
            "~5",
            "\\5",
            "1\u{a0}000",
            "+$5",
            "-(5)",
            "5]",
            "&#36;5",
            "5%5",
            "5+",
            "5-",
        ] {
            assert_eq!(prose(text), Vec::<String>::new(), "{text}");
        }
        let found = mentions("$5 and 6%");
        assert_eq!((found[0].attached, found[1].attached), (Attached::Currency('$'), Attached::Percent));
        for text in ["", "é5é", "\u{feff}5", "5\u{301}"] {
            let _ = (mentions(text), reference_mentions(text));
        }
    }
}
