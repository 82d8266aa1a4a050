//! The same numbers in several notations: what spelling and tokens do to a model that can add or copy them.
use std::collections::BTreeMap;

use num_bigint::BigInt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::question::with_shots;
use super::{NAME, PromptForm};
use crate::suite::arithmetic_bench::{self, Task, bracketed, ends_of_answer_line};
use crate::suite::nupa::{self, DigitSource, Wording};
use crate::suite::registry::Mode;
use crate::suite::{Answered, Budget, FINAL, FailureClass, Item, Score, Shot, score_final};
use earnest_answer::number::words::exact_words;
use earnest_answer::reader::Form;
use earnest_answer::split_thinking;

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

/// Begins the tasks of these items.
const TASK: &str = "notation_";

/// Task of NUPA whose wording the sums have.
pub(super) const SUM: &str = "add_Integer_Integer_Integer";

/// Index of the first question that is an example: beyond all that are asked.
const EXAMPLES: usize = 1 << 20;

/// Digits of sums at most, where the words end, and of sums whose limit is not known.
const LONGEST: usize = 15;
const UNKNOWN: usize = 4;

/// Digits of sums below which numbers are repeated instead: most notations of one digit are plain.
const SHORTEST: f64 = 2.0;

/// Digits of repeated numbers: groups of three are not plain from four on.
const REPEATED: (f64, f64) = (4.0, 6.0);

/// Covariate with what is asked; sums where it is left out, as in runs of version 1.
const ASKED: &str = "asked";

/// Tokens for an answer: words have several a digit.
const A_DIGIT: usize = 8;
const SPARE: usize = 64;
const THINKING: usize = 4_096;

/// Question that is asked of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotationQuestion {
    /// A sum, in NUPA's words.
    #[default]
    Sum,
    /// The number itself, in the words of Arithmetic-Bench.
    Copy,
    /// The number in brackets, in the words of Arithmetic-Bench.
    Box,
}

impl NotationQuestion {
    /// The question of an item or sample with these covariates.
    pub fn of(covariates: &BTreeMap<String, Value>) -> Self {
        covariates.get(ASKED).and_then(|asked| Self::deserialize(asked).ok()).unwrap_or_default()
    }

    /// Name for people, in the plural.
    pub fn title(self) -> &'static str {
        match self {
            NotationQuestion::Sum => "sums",
            NotationQuestion::Copy => "copies",
            NotationQuestion::Box => "numbers in brackets (box)",
        }
    }

    /// All.
    pub(super) const ALL: [NotationQuestion; 3] =
        [NotationQuestion::Sum, NotationQuestion::Copy, NotationQuestion::Box];

    /// Tasks of the skill that asks the same in plain digits, the first that is measured.
    pub(super) fn skills(self) -> &'static [&'static str] {
        match self {
            NotationQuestion::Sum => &[SUM, "add"],
            NotationQuestion::Copy => &["copy"],
            NotationQuestion::Box => &["box"],
        }
    }

    /// Question of the notations and its number of digits, by the 90 % limits of plain sums, of copies and of numbers in brackets: what a model mostly gets right in
    /// plain digits, so that there is something to lose. Limits are none where they were not measured.
    pub(super) fn choose(sum: Option<f64>, copy: Option<f64>, brackets: Option<f64>) -> (Self, usize) {
        if let Some(sum) = sum.filter(|sum| *sum >= SHORTEST) {
            return (NotationQuestion::Sum, sum.min(LONGEST as f64) as usize);
        }
        if sum.is_none() && copy.is_none() && brackets.is_none() {
            return (NotationQuestion::Sum, UNKNOWN);
        }
        let limit = |limit: Option<f64>| limit.unwrap_or(0.0);
        let is_copy = limit(copy) >= limit(brackets);
        let (asked, limit) = match is_copy {
            true => (NotationQuestion::Copy, limit(copy)),
            false => (NotationQuestion::Box, limit(brackets)),
        };
        (asked, limit.clamp(REPEATED.0, REPEATED.1) as usize)
    }
}

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

    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            Notation::Plain => "plain digits",
            Notation::Separators => "separators",
            Notation::Spaced => "spaced digits",
            Notation::Groups => "groups of three",
            Notation::Padded => "zero-padded",
            Notation::Words => "words",
            Notation::Arabic => "Arabic-Indic",
            Notation::Devanagari => "Devanagari",
            Notation::FullWidth => "full width",
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

    /// True if numbers of this length are not the same as in plain digits.
    pub(super) fn differs(self, length: usize) -> bool {
        match self {
            Notation::Separators | Notation::Groups => length > 3,
            Notation::Padded => !length.is_multiple_of(3),
            Notation::Spaced => length > 1,
            _ => true,
        }
    }

    /// Writes a number given in ASCII digits.
    fn write(self, digits: &str) -> Option<String> {
        let grouped = |separator: char| {
            let mut text = String::new();
            for (index, digit) in digits.chars().enumerate() {
                if index > 0 && (digits.len() - index).is_multiple_of(3) {
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

/// A question in a notation with its answer in plain digits. The operands depend on seed, length and index alone.
fn question(
    seed: u64,
    notation: Notation,
    (asked, length): (NotationQuestion, usize),
    index: usize,
) -> Option<(String, String)> {
    let mut random = DigitSource::named(&format!("profile notations {length}/{index} seed {seed}"));
    let mut number = || {
        let mut text = String::with_capacity(length);
        random.nonzero_digit(&mut text);
        random.digits(length - 1, &mut text);
        text
    };
    let (a, b) = (number(), number());
    let value = |digits: &str| BigInt::parse_bytes(digits.as_bytes(), 10);
    let repeated = |task| Some((arithmetic_bench::prompt(task, &notation.write(&a)?), a.clone()));
    match asked {
        NotationQuestion::Sum => {
            let (first, second) = (notation.write(&a)?, notation.write(&b)?);
            let question = nupa::question(SUM.parse().ok()?, &first, Some(&second), Wording::Corrected);
            Some((question, (value(&a)? + value(&b)?).to_string()))
        }
        NotationQuestion::Copy => repeated(Task::Copy),
        NotationQuestion::Box => repeated(Task::Box),
    }
}

/// An item in a notation, none where the number is written as in plain digits. Worked examples ask in the notation of the item and answer in plain
/// digits, as in all others.
pub(super) fn item(
    seed: u64,
    form: PromptForm,
    notation: Notation,
    (asked, length): (NotationQuestion, usize),
    index: usize,
) -> Option<Item> {
    if notation != Notation::Plain && !notation.differs(length) {
        return None;
    }
    let (text, gold) = question(seed, notation, (asked, length), index)?;
    // Ids tell sums and copies of one length apart.
    let part = match asked {
        NotationQuestion::Sum => "",
        NotationQuestion::Copy => "copy/",
        NotationQuestion::Box => "box/",
    };
    let id = format!("{NAME}/notations/{}/{part}{length}/{index}", notation.name());
    let mut item = Item::plain(id, notation.task(), text, gold);
    // The same operands in another notation.
    item.cluster = format!("notations/{length}/{index}");
    item.covariates.insert("length".into(), json!(length));
    item.covariates.insert("notation".into(), json!(notation.name()));
    item.covariates.insert("pair".into(), json!(index));
    item.covariates.insert(ASKED.into(), json!(asked));
    let answer = A_DIGIT * length + SPARE;
    item.budget = Budget { answer, thinking: THINKING + answer };
    // As in the suites whose words these are.
    if form.mode == Mode::Raw {
        item.keep_stop = asked != NotationQuestion::Sum;
        item.stop_strings = if item.keep_stop { ends_of_answer_line() } else { vec!["\n".to_owned()] };
    }
    item.segments.mode = Some(form.mode);
    if form.mode == Mode::Raw {
        item.budget.thinking = answer;
    }
    let example = |number: usize| {
        let (question, gold) = question(seed, notation, (asked, length), EXAMPLES + number)?;
        let answer = if asked == NotationQuestion::Box { format!("({gold})") } else { gold };
        Some(Shot { question, answer })
    };
    let shots = (0..form.shots).filter_map(example).collect();
    Some(with_shots(item, shots, form.mode))
}

/// Scores a number by its final answer in any notation. Where digits were asked for apart, they may be apart in the answer; the commas of number
/// words are none between answers, and zeros before padded numbers do not matter. Brackets that were asked for must be there.
pub(super) fn score(notation: Notation, item: &Item, answered: &Answered<'_>) -> Score {
    if NotationQuestion::of(&item.covariates) != NotationQuestion::Box {
        return score_number(notation, item, answered);
    }
    // As a number alone, brackets are none of it.
    let bare = answered.completion.replace(['(', ')'], "");
    let mut score = score_number(notation, item, &Answered { completion: &bare, ..*answered });
    let visible = split_thinking(answered.completion).visible;
    let mut inside: Vec<&str> = bracketed(&visible).filter(|inside| !inside.trim().is_empty()).collect();
    let last = inside.split_off(inside.len().saturating_sub(MOST_BRACKETS));
    let is_right =
        |inside: &&str| score_number(notation, item, &Answered { completion: inside, truncated: false }).correct;
    if score.correct && !last.iter().rev().any(is_right) {
        score.correct = false;
        score.scorers.insert(FINAL, false);
        score.failure = Some(FailureClass::Format);
    }
    score
}

/// Brackets of a completion in which the number is looked for, from the end.
const MOST_BRACKETS: usize = 16;

/// Scores a number by its final answer, brackets or not.
fn score_number(notation: Notation, item: &Item, answered: &Answered<'_>) -> Score {
    let completion = answered.completion;
    let score = score_final(item, Form::Integer, answered);
    let rewritten = match notation {
        Notation::Spaced | Notation::Groups => joined(completion),
        Notation::Words => completion.replace(", ", " "),
        Notation::Padded => unpadded(completion),
        _ => return score,
    };
    if score.correct {
        return score;
    }
    let again = score_final(item, Form::Integer, &Answered { completion: &rewritten, ..*answered });
    if again.correct { again } else { score }
}

/// The text without zeros at the start of numbers of several digits.
fn unpadded(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut inside = false;
    let mut rest = text.chars().peekable();
    while let Some(one) = rest.next() {
        let is_padding = one == '0' && !inside && rest.peek().is_some_and(char::is_ascii_digit);
        if !is_padding {
            inside = one.is_ascii_digit();
            kept.push(one);
        }
    }
    kept
}

/// The text without single spaces between digits.
fn joined(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let is_digit = |index: usize| characters.get(index).is_some_and(char::is_ascii_digit);
    let between = |index: usize| characters[index] == ' ' && index > 0 && is_digit(index - 1) && is_digit(index + 1);
    (0..characters.len()).filter(|&index| !between(index)).map(|index| characters[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> PromptForm {
        PromptForm { mode: Mode::Raw, shots: 0 }
    }

    #[test]
    fn examples_are_in_the_notation_and_answered_in_plain_digits() {
        for asked in [NotationQuestion::Sum, NotationQuestion::Copy, NotationQuestion::Box] {
            let item = item(1, PromptForm { shots: 3, ..raw() }, Notation::Words, (asked, 4), 7).unwrap();
            assert_eq!((item.segments.shots.len(), item.stop_strings[0].as_str()), (3, "\n"));
            for shot in &item.segments.shots {
                assert!(shot.question.contains("thousand") && shot.question != item.segments.question, "{shot:?}");
                let digits = shot.answer.trim_matches(['(', ')']);
                assert!(digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{shot:?}");
                assert_eq!(shot.answer.len() > digits.len(), asked == NotationQuestion::Box);
            }
        }
    }

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
        let asked = [NotationQuestion::Sum, NotationQuestion::Copy, NotationQuestion::Box];
        for (notation, asked) in Notation::ALL.into_iter().flat_map(|notation| asked.map(|asked| (notation, asked))) {
            for length in [2, 4, 12] {
                let Some(item) = item(1, raw(), notation, (asked, length), 5) else {
                    assert!(!notation.differs(length));
                    continue;
                };
                assert_eq!(NotationQuestion::of(&item.covariates), asked);
                let plain = super::item(1, raw(), Notation::Plain, (asked, length), 5).unwrap();
                assert_eq!((&item.gold, &item.cluster), (&plain.gold, &plain.cluster), "the numbers are the same");
                let is_plain = item.segments.question == plain.segments.question;
                assert_eq!(is_plain, notation == Notation::Plain, "{notation:?} {length}");
                let written = notation.write(&item.gold).unwrap();
                let bare = [item.gold.clone(), written];
                let brackets = bare.each_ref().map(|number| format!("({number})"));
                let scored = |answer: &str| {
                    score(notation, &item, &Answered { completion: &format!(" {answer}"), truncated: false })
                };
                // Brackets that were asked for are what is asked.
                let is_box = asked == NotationQuestion::Box;
                for answer in if is_box { &brackets } else { &bare } {
                    let found = scored(answer);
                    assert!(found.correct, "{notation:?} {asked:?} {answer}: {found:?}");
                }
                for answer in bare.iter().filter(|_| is_box) {
                    let found = scored(answer);
                    assert!(!found.correct && !found.scorers[FINAL], "{notation:?} {answer}: {found:?}");
                    assert_eq!(found.failure, Some(FailureClass::Format));
                }
                assert!(!score(notation, &item, &Answered { completion: " 17", truncated: false }).correct);
            }
        }
        assert_eq!(joined("1 2  3 a 4 5"), "12  3 a 45");
        assert_eq!(unpadded("004821 + 0 = 4800, 100"), "4821 + 0 = 4800, 100");
    }

    #[test]
    fn what_is_mostly_right_in_plain_digits_is_asked() {
        use NotationQuestion::{Box, Copy, Sum};
        let choose = NotationQuestion::choose;
        assert_eq!(choose(Some(4.7), Some(90.0), None), (Sum, 4));
        assert_eq!(choose(Some(f64::INFINITY), None, None), (Sum, LONGEST));
        assert_eq!(choose(Some(1.9), Some(90.0), Some(20.0)), (Copy, 6));
        assert_eq!(choose(Some(0.0), Some(0.0), Some(5.5)), (Box, 5));
        assert_eq!(choose(Some(0.0), None, None), (Copy, 4));
        assert_eq!(choose(None, Some(f64::INFINITY), None), (Copy, 6));
        assert_eq!(choose(None, None, None), (Sum, UNKNOWN));
    }
}
