//! The same sums in several notations: what spelling and tokens do to a model that can add.
use num_bigint::BigInt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::NAME;
use crate::answer::reader::Form;
use crate::number::words::exact_words;
use crate::suite::nupa::{self, Adapter, DigitSource, Wording};
use crate::suite::{Answered, Budget, Item, Score, score_final};

/// A way to write whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notation {
    /// `4821`.
    Plain,
    /// `4,821`.
    Separators,
    /// `4 8 2 1`.
    Spaced,
    /// `4 821`: groups of three from the right.
    Groups,
    /// `0004821`: as many digits as a multiple of three, so that groups of three tokens are aligned from the right.
    Padded,
    /// `four thousand, eight hundred and twenty-one`.
    Words,
    /// Arabic-Indic digits.
    Arabic,
    /// Devanagari digits.
    Devanagari,
    /// Full-width digits.
    FullWidth,
}

/// Sums in each notation.
pub const PAIRS: usize = 24;

/// Begins the tasks of these items.
const TASK: &str = "notation_";

/// Task of NUPA whose wording the sums have.
pub(super) const SUM: &str = "add_Integer_Integer_Integer";

/// Lengths of the operands: one digit has no notation to speak of, and the words end.
const SHORTEST: usize = 2;
const LONGEST: usize = 15;

/// Tokens for an answer: words have several a digit.
const A_DIGIT: usize = 8;
const SPARE: usize = 64;
const THINKING: usize = 4_096;

impl Notation {
    /// All, the one that others are compared with first.
    pub const ALL: [Notation; 9] = [
        Notation::Plain,
        Notation::Separators,
        Notation::Spaced,
        Notation::Groups,
        Notation::Padded,
        Notation::Words,
        Notation::Arabic,
        Notation::Devanagari,
        Notation::FullWidth,
    ];

    /// Name in tasks and files.
    pub fn name(self) -> &'static str {
        match self {
            Notation::Plain => "plain",
            Notation::Separators => "separators",
            Notation::Spaced => "spaced",
            Notation::Groups => "groups",
            Notation::Padded => "padded",
            Notation::Words => "words",
            Notation::Arabic => "arabic",
            Notation::Devanagari => "devanagari",
            Notation::FullWidth => "full_width",
        }
    }

    /// Task of its items.
    pub fn task(self) -> String {
        format!("{TASK}{}", self.name())
    }

    /// The notation of a task; none of other tasks.
    pub fn of_task(task: &str) -> Option<Self> {
        let name = task.strip_prefix(TASK)?;
        Notation::ALL.into_iter().find(|notation| notation.name() == name)
    }

    /// Writes a number given in ASCII digits.
    fn write(self, digits: &str) -> Option<String> {
        let grouped = |separator: char| {
            let mut text = String::new();
            for (place, digit) in digits.chars().enumerate() {
                if place > 0 && (digits.len() - place).is_multiple_of(3) {
                    text.push(separator);
                }
                text.push(digit);
            }
            text
        };
        let script = |zero: char| {
            let shift = |digit: char| char::from_u32(zero as u32 + (digit as u32 - '0' as u32));
            digits.chars().map(shift).collect::<Option<String>>()
        };
        match self {
            Notation::Plain => Some(digits.to_owned()),
            Notation::Separators => Some(grouped(',')),
            Notation::Spaced => Some(digits.chars().map(String::from).collect::<Vec<_>>().join(" ")),
            Notation::Groups => Some(grouped(' ')),
            Notation::Padded => {
                Some(format!("{}{digits}", "0".repeat(digits.len().next_multiple_of(3) - digits.len())))
            }
            Notation::Words => exact_words(digits),
            Notation::Arabic => script('\u{660}'),
            Notation::Devanagari => script('\u{966}'),
            Notation::FullWidth => script('\u{ff10}'),
        }
    }
}

/// Length at which the notations are compared: the whole digits of the 50 % limit of plain sums.
pub(super) fn length(limit: f64) -> usize {
    if limit.is_finite() { (limit as usize).clamp(SHORTEST, LONGEST) } else { LONGEST }
}

/// A sum in a notation. The operands depend on seed, length and number alone.
pub(super) fn item(seed: u64, adapter: Adapter, notation: Notation, length: usize, index: usize) -> Option<Item> {
    let mut random = DigitSource::named(&format!("profile notations {length}/{index} seed {seed}"));
    let mut number = || {
        let mut text = String::with_capacity(length);
        random.nonzero_digit(&mut text);
        random.digits(length - 1, &mut text);
        text
    };
    let (a, b) = (number(), number());
    let value = |digits: &str| BigInt::parse_bytes(digits.as_bytes(), 10);
    let gold = (value(&a)? + value(&b)?).to_string();
    let (first, second) = (notation.write(&a)?, notation.write(&b)?);
    let question = nupa::question(SUM.parse().ok()?, &first, Some(&second), Wording::Corrected);
    let mut item =
        Item::plain(format!("{NAME}/notations/{}/{length}/{index}", notation.name()), notation.task(), question, gold);
    // The same operands in another notation.
    item.cluster = format!("notations/{length}/{index}");
    item.covariates.insert("length".into(), json!(length));
    item.covariates.insert("notation".into(), json!(notation.name()));
    item.covariates.insert("pair".into(), json!(index));
    let answer = A_DIGIT * length + SPARE;
    item.budget = Budget { answer, thinking: THINKING + answer };
    if adapter == Adapter::Completion {
        item.stop_strings = vec!["\n".to_owned()];
    }
    Some(item)
}

/// Scores a sum by its final answer in any notation. Where digits were asked for apart, they may be apart in the answer; the commas of number
/// words are none between answers.
pub(super) fn score(notation: Notation, item: &Item, answered: &Answered<'_>) -> Score {
    let score = score_final(item, Form::Integer, answered);
    let rewritten = match notation {
        Notation::Spaced | Notation::Groups => joined(answered.completion),
        Notation::Words => answered.completion.replace(", ", " "),
        _ => return score,
    };
    if score.correct {
        return score;
    }
    let again = score_final(item, Form::Integer, &Answered { completion: &rewritten, ..*answered });
    if again.correct { again } else { score }
}

/// The text without single spaces between digits.
fn joined(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let is_digit = |place: usize| characters.get(place).is_some_and(char::is_ascii_digit);
    let between = |place: usize| characters[place] == ' ' && place > 0 && is_digit(place - 1) && is_digit(place + 1);
    (0..characters.len()).filter(|&place| !between(place)).map(|place| characters[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_every_notation() {
        let written: Vec<String> = Notation::ALL.iter().map(|notation| notation.write("4821").unwrap()).collect();
        assert_eq!(
            written,
            [
                "4821",
                "4,821",
                "4 8 2 1",
                "4 821",
                "004821",
                "four thousand, eight hundred and twenty-one",
                "٤٨٢١",
                "४८२१",
                "４８２１"
            ]
        );
        for notation in Notation::ALL {
            assert_eq!(Notation::of_task(&notation.task()), Some(notation));
        }
        assert_eq!((Notation::of_task("notation_"), Notation::of_task("add")), (None, None));
    }

    #[test]
    fn answers_count_in_their_notation_and_in_plain_digits() {
        for notation in Notation::ALL {
            for length in [2, 4, 12] {
                let item = item(1, Adapter::Completion, notation, length, 5).unwrap();
                let plain = super::item(1, Adapter::Completion, Notation::Plain, length, 5).unwrap();
                assert_eq!((&item.gold, &item.cluster), (&plain.gold, &plain.cluster), "the sums are the same");
                for answer in [item.gold.clone(), notation.write(&item.gold).unwrap()] {
                    // Padding is of the question, not of the number.
                    if notation == Notation::Padded && answer != item.gold {
                        continue;
                    }
                    let found =
                        score(notation, &item, &Answered { completion: &format!(" {answer}"), truncated: false });
                    assert!(found.correct, "{notation:?} {answer}: {found:?}");
                }
                assert!(!score(notation, &item, &Answered { completion: " 17", truncated: false }).correct);
            }
        }
        assert_eq!(joined("1 2  3 a 4 5"), "12  3 a 45");
        assert_eq!((length(0.0), length(6.7), length(f64::INFINITY)), (2, 6, 15));
    }
}
