//! Three scorers for "the response contains the expected number": the paper's, ours, and the strictest.
use super::{Candidates, Normalised};

/// Notation of an answer; it decides what bounds a match and what counts as another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Digits, possibly after a `-`; leading zeros are kept.
    Integer,
    /// Digits in round brackets.
    Parenthesised,
    /// Two or more digit runs, one space between them.
    Spaced,
}

/// An expected answer, checked to be one of the [`Shape`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected<'a> {
    text: &'a str,
    shape: Shape,
}

/// An expected answer in none of the known shapes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the expected answer {answer:?} is neither an integer (`-12`), nor an integer in brackets (`(12)`), nor spaced digits (`1 2`)"
)]
pub struct ShapeError {
    /// The answer as given.
    pub answer: String,
}

impl<'a> Expected<'a> {
    /// Recognises the shape of an expected answer.
    ///
    /// # Errors
    /// If it has none of the shapes; an empty answer has none.
    pub fn parse(answer: &'a str) -> Result<Self, ShapeError> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let shape = if digits(answer.strip_prefix('-').unwrap_or(answer)) {
            Shape::Integer
        } else if answer.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).is_some_and(digits) {
            Shape::Parenthesised
        } else if answer.contains(' ') && answer.split(' ').all(digits) {
            Shape::Spaced
        } else {
            return Err(ShapeError { answer: answer.to_owned() });
        };
        Ok(Expected { text: answer, shape })
    }

    /// The answer as given.
    pub fn text(&self) -> &'a str {
        self.text
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its digits alone, leading zeros included.
    pub fn digits(&self) -> String {
        self.text.chars().filter(char::is_ascii_digit).collect()
    }
}

/// The scores of the three scorers on one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matches {
    pub compat: bool,
    pub boundary: bool,
    pub final_number: bool,
}

impl Matches {
    /// Applies all three scorers; `normalised` is the same text as `response`.
    pub fn of(expected: &Expected<'_>, response: &str, normalised: &Normalised) -> Self {
        Matches {
            compat: compat(expected, response),
            boundary: boundary(expected, normalised),
            final_number: final_number(expected, normalised),
        }
    }
}

/// The paper's scorer (Arithmetic-Bench, section 3.3, `a in b`): the answer is a substring of the response without `,`, `\`
/// and `!`. The printed list of removed symbols is garbled; this set follows from the LaTeX separator `,\!` it is meant for.
pub fn compat(expected: &Expected<'_>, response: &str) -> bool {
    let stripped: String = response.chars().filter(|c| !matches!(c, ',' | '\\' | '!')).collect();
    stripped.contains(expected.text)
}

/// Our scorer: the answer stands in the response as a whole number.
///
/// * integers: no digit and no decimal point with a digit on either side; a non-negative one not directly behind a `-`,
///   whatever precedes that;
/// * spaced digits: no digit, and no digit at the distance of one space, on either side;
/// * bracketed digits bring their own bounds.
pub fn boundary(expected: &Expected<'_>, response: &Normalised) -> bool {
    let text = response.as_str();
    // Occurrences that overlap an earlier one begin inside its digits and are never bounded, so skipping them is exact.
    text.match_indices(expected.text).any(|(start, found)| {
        let before = text.as_bytes()[..start].iter().rev().copied();
        let after = text.as_bytes()[start + found.len()..].iter().copied();
        match expected.shape {
            Shape::Parenthesised => true,
            Shape::Spaced => !touches_digit(before, b' ') && !touches_digit(after, b' '),
            Shape::Integer => {
                let sign_like = !found.starts_with('-') && before.clone().next() == Some(b'-');
                !sign_like && !touches_digit(before, b'.') && !touches_digit(after, b'.')
            }
        }
    })
}

/// True if the bytes begin with a digit, or with `link` and a digit.
fn touches_digit(mut bytes: impl Iterator<Item = u8>, link: u8) -> bool {
    match bytes.next() {
        Some(b) if b.is_ascii_digit() => true,
        Some(b) if b == link => bytes.next().is_some_and(|b| b.is_ascii_digit()),
        _ => false,
    }
}

/// The strictest scorer: the last number of the response, of the same shape, is the answer. It refuses second thoughts
/// (`579, or rather 580`) and lists of guesses.
pub fn final_number(expected: &Expected<'_>, response: &Normalised) -> bool {
    Candidates::new(response, expected.shape).last() == Some(expected.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(answer: &str, response: &str) -> Matches {
        Matches::of(&Expected::parse(answer).unwrap(), response, &Normalised::new(response))
    }

    #[test]
    fn shapes() {
        for (shape, answers) in
            [(Shape::Integer, "0|-5|0012"), (Shape::Parenthesised, "(7)|(10)"), (Shape::Spaced, "1 2|1 2 3")]
        {
            for answer in answers.split('|') {
                assert_eq!(Expected::parse(answer).unwrap().shape(), shape);
            }
        }
        for answer in "|-|()|(-1)|(1|1  2| 1 2|1 2 |1.5|+5|--5|five|٣|1 -2".split('|') {
            assert!(Expected::parse(answer).is_err(), "{answer:?}");
        }
        assert_eq!(Expected::parse("(10)").unwrap().digits(), "10");
    }

    #[test]
    fn numbers_inside_numbers_signs_spaces_and_brackets() {
        // The answer, a response and the scorers that find the one in the other: compat, boundary, final.
        const CASES: &str = "5~15 51 5.5 3.5~c|5~It is 5.~cbf|5~5. Then 5.0~cb|11~111 and 11~cbf|11~1111~c|5~-5~c|5~10-5~c|\
             5~10 - 5~cbf|-5~10-5~cf|-5~\\boxed{-5}~cbf|-1234~\u{2013}1,234~bf|-5~5~|1 2~1 2~cbf|1 2~0 1 2~c|\
             1 2~1 2 3, so 1 2.~cbf|1 1~1 1 1 1~c|(12)~(12) or (13)~cb|(1234)~\\((1{,}234)\\)~bf";
        for case in CASES.split('|') {
            let [answer, response, rules] = case.split('~').collect::<Vec<_>>()[..] else { panic!("{case}") };
            let [compat, boundary, final_number] = ['c', 'b', 'f'].map(|rule| rules.contains(rule));
            assert_eq!(matches(answer, response), Matches { compat, boundary, final_number }, "{case}");
        }
    }

    #[test]
    fn long_texts_take_linear_time() {
        let answer = "1".repeat(332);
        let text = "1".repeat(400) + &"11 (1 -1. ".repeat(40_000);
        for expected in [answer.as_str(), "(1)", "1 1"] {
            matches(expected, &text);
        }
        let found = matches(&answer, &text);
        assert_eq!((found.compat, found.boundary, found.final_number), (true, false, false));
    }
}
