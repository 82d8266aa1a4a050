//! The numbers a text offers.
use std::collections::HashSet;
use std::sync::LazyLock;

use regex::{Matches, Regex};

use super::{Normalised, Shape};

static INTEGER: LazyLock<Regex> = LazyLock::new(|| pattern(r"-?[0-9]+(?:\.[0-9]+)?"));
static PARENTHESISED: LazyLock<Regex> = LazyLock::new(|| pattern(r"\([0-9]+\)"));
static SPACED: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9]+(?: [0-9]+)*"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are constants and the tests compile each of them")
}

/// The numbers of a text that are written like an answer, in order. For [`Shape::Integer`] decimals count as one number,
/// so that `5.5` does not offer `5`.
pub struct Candidates<'t>(Matches<'static, 't>);

impl<'t> Candidates<'t> {
    /// The candidates of one shape.
    pub fn new(text: &'t Normalised, shape: Shape) -> Self {
        let pattern: &'static Regex = match shape {
            Shape::Integer => &INTEGER,
            Shape::Parenthesised => &PARENTHESISED,
            Shape::Spaced => &SPACED,
        };
        Candidates(pattern.find_iter(text.as_str()))
    }
}

impl<'t> Iterator for Candidates<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        self.0.next().map(|found| found.as_str())
    }
}

/// Number of different candidates that are not in `known` (the operands of the question, usually): above one, the
/// response hedges or shows intermediate results.
pub fn distinct(text: &Normalised, shape: Shape, known: &[&str]) -> usize {
    Candidates::new(text, shape).filter(|candidate| !known.contains(candidate)).collect::<HashSet<_>>().len()
}

/// True if `digits` stands somewhere in the text with no digit directly before or behind it, whatever its sign.
pub fn contains_number(text: &Normalised, digits: &str) -> bool {
    let bytes = text.as_str().as_bytes();
    !digits.is_empty()
        && text.as_str().match_indices(digits).any(|(start, found)| {
            let before = start.checked_sub(1).and_then(|i| bytes.get(i));
            let after = bytes.get(start + found.len());
            !before.is_some_and(u8::is_ascii_digit) && !after.is_some_and(u8::is_ascii_digit)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, shape: Shape) -> Vec<String> {
        Candidates::new(&Normalised::new(text), shape).map(str::to_owned).collect()
    }

    #[test]
    fn candidates_by_shape() {
        let text = "1,234-5=1.50 (7) 1 2 (3 4)";
        assert_eq!(all(text, Shape::Integer), ["1234", "-5", "1.50", "7", "1", "2", "3", "4"]);
        assert_eq!(all(text, Shape::Parenthesised), ["(7)"]);
        assert_eq!(all("a 1 2 3  4 5", Shape::Spaced), ["1 2 3", "4 5"]);
        assert!(all("none, -. ()", Shape::Integer).is_empty());
    }

    #[test]
    fn distinct_ignores_repetitions_and_known_numbers() {
        let text = Normalised::new("12+30 = 42, no 43, no 42");
        assert_eq!(distinct(&text, Shape::Integer, &["12", "30"]), 2);
        assert_eq!(distinct(&text, Shape::Integer, &[]), 4);
        assert_eq!(distinct(&Normalised::new(""), Shape::Integer, &[]), 0);
    }

    #[test]
    fn whole_numbers_only() {
        let text = Normalised::new("10-5 and 1,234");
        for (digits, expected) in [("5", true), ("10", true), ("1234", true), ("1", false), ("234", false), ("", false)]
        {
            assert_eq!(contains_number(&text, digits), expected, "{digits}");
        }
    }
}
