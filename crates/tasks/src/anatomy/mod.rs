//! Anatomy of wrong answers: what went wrong, by exact rules on the operands, the expected and the given answer.
//!
//! The first class that applies is taken, in the order of [`ErrorClass::ALL`]: what is no number, then other forms of the right number, then
//! results that are exact for another question, then digits that are somewhere else, then what an answer is made of and how near it comes. A class says what the answer is consistent with, not what
//! the model did; how often random wrong answers fall into a class is measured (`chance`) and shown beside it.
mod chance;
mod columns;
mod digits;
mod finding;
mod near;
mod written;

pub use chance::{CALCULATIONS, Chance, Numbers, RandomWrong, simulate};
pub use columns::{Missed, missed_borrows, missed_carries, missed_carries_of_product};
pub use digits::{WrongPositions, is_dropped, is_reordered, is_repeated, wrong_positions};
pub use finding::{Calculation, Finding, Wrong, classify, of_sample};
pub use written::Written;

use std::fmt;

use serde::{Deserialize, Serialize};

/// Class of a wrong answer: the mistake that it is consistent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The token budget ended the answer.
    Truncated,
    /// The model gives no answer and says so.
    Refusal,
    /// There is no number in it.
    NoNumber,
    /// A fraction with the right value that can be reduced.
    Unreduced,
    /// The right value in another form than the one asked for: separators, leading zeros, a decimal for a fraction.
    Format,
    /// The right significand with another power of ten.
    Exponent,
    /// The right magnitude under the wrong sign.
    Sign,
    /// The exact result of another operation on the same operands; the other operand where one is to be chosen.
    Operation,
    /// One of the operands, where the answer is not a count.
    Operand,
    /// The sum (or product by one digit) with carries left out, and no other difference.
    Carry,
    /// The difference with borrows left out, and no other difference.
    Borrow,
    /// The sum or difference of operands one to three places beside each other, or of one that lacks as many digits at its end: a token too far.
    Neighbour,
    /// The right digits with the point or the zeros at the end elsewhere.
    Shifted,
    /// The right digits in another order.
    Order,
    /// The right digits without some neighbouring ones.
    Dropped,
    /// The right digits with some neighbouring ones twice.
    Repeated,
    /// Zero, where the right number is not.
    Zero,
    /// The number that the question shows as an example of the form.
    Example,
    /// The right number with fewer digits, rounded or cut, or with more where it is to be rounded.
    Rounded,
    /// A few digits that go round: at least half of the answer is a run of one to four digits three times or more.
    Loop,
    /// The beginning of one operand and the end of the other, or such pieces one after another.
    Mixed,
    /// A number of another kind: a whole one for a fraction, one with an exponent where none is asked for.
    Kind,
    /// One of two parts is right: numerator or denominator, the exponent, or the digits before or after the point.
    Part,
    /// One digit of three or more is wrong, missing or too many at an end.
    Digit,
    /// At least half of the digits are right at their positions, and two of them.
    Digits,
    /// Half of the answer or more is the beginning or the end of an operand; or it has the exponent, significand, numerator or denominator of one, or is the
    /// first digit of a number whose digits are counted.
    Piece,
    /// Off by one, of whole numbers, or by a twentieth of the right number at most.
    Close,
    /// Half of the digits at most.
    Short,
    /// Twice the digits or more.
    Long,
    /// Anything else.
    Other,
}

impl ErrorClass {
    /// All, in the order in which they are looked for.
    pub const ALL: [ErrorClass; 30] = [
        ErrorClass::Truncated,
        ErrorClass::Refusal,
        ErrorClass::NoNumber,
        ErrorClass::Unreduced,
        ErrorClass::Format,
        ErrorClass::Exponent,
        ErrorClass::Sign,
        ErrorClass::Operation,
        ErrorClass::Operand,
        ErrorClass::Carry,
        ErrorClass::Borrow,
        ErrorClass::Neighbour,
        ErrorClass::Shifted,
        ErrorClass::Order,
        ErrorClass::Dropped,
        ErrorClass::Repeated,
        ErrorClass::Zero,
        ErrorClass::Example,
        ErrorClass::Rounded,
        ErrorClass::Loop,
        ErrorClass::Mixed,
        ErrorClass::Kind,
        ErrorClass::Part,
        ErrorClass::Digit,
        ErrorClass::Digits,
        ErrorClass::Piece,
        ErrorClass::Close,
        ErrorClass::Short,
        ErrorClass::Long,
        ErrorClass::Other,
    ];

    /// True of classes that are told by the digits of an answer, so that random digits fall into them by chance.
    pub fn depends_on_digits(self) -> bool {
        use ErrorClass::{Format, Kind, Long, NoNumber, Refusal, Short, Truncated};
        !matches!(self, Truncated | Refusal | NoNumber | Format | Kind | Short | Long)
    }

    /// True of classes that say how near an answer is to the right one, and not by what mistake.
    pub fn is_near(self) -> bool {
        use ErrorClass::{Close, Digit, Digits, Other, Part, Rounded};
        matches!(self, Rounded | Part | Digit | Digits | Close | Other)
    }

    /// Word in options, files and tables.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Truncated => "truncated",
            ErrorClass::Refusal => "refusal",
            ErrorClass::NoNumber => "no_number",
            ErrorClass::Unreduced => "unreduced",
            ErrorClass::Format => "format",
            ErrorClass::Exponent => "exponent",
            ErrorClass::Sign => "sign",
            ErrorClass::Operation => "operation",
            ErrorClass::Operand => "operand",
            ErrorClass::Carry => "carry",
            ErrorClass::Borrow => "borrow",
            ErrorClass::Neighbour => "neighbour",
            ErrorClass::Shifted => "shifted",
            ErrorClass::Order => "order",
            ErrorClass::Dropped => "dropped",
            ErrorClass::Repeated => "repeated",
            ErrorClass::Zero => "zero",
            ErrorClass::Example => "example",
            ErrorClass::Rounded => "rounded",
            ErrorClass::Loop => "loop",
            ErrorClass::Mixed => "mixed",
            ErrorClass::Kind => "kind",
            ErrorClass::Part => "part",
            ErrorClass::Digit => "digit",
            ErrorClass::Digits => "digits",
            ErrorClass::Piece => "piece",
            ErrorClass::Close => "close",
            ErrorClass::Short => "short",
            ErrorClass::Long => "long",
            ErrorClass::Other => "other",
        }
    }

    /// A few words for people.
    pub fn title(self) -> &'static str {
        match self {
            ErrorClass::Truncated => "cut by the token budget",
            ErrorClass::Refusal => "refusal",
            ErrorClass::NoNumber => "no number",
            ErrorClass::Unreduced => "fraction not reduced",
            ErrorClass::Format => "right value, other form",
            ErrorClass::Exponent => "wrong exponent",
            ErrorClass::Sign => "wrong sign",
            ErrorClass::Operation => "another operation",
            ErrorClass::Operand => "one of the operands",
            ErrorClass::Carry => "carry missed",
            ErrorClass::Borrow => "borrow missed",
            ErrorClass::Neighbour => "operands a token apart",
            ErrorClass::Shifted => "shifted place",
            ErrorClass::Order => "right digits, wrong order",
            ErrorClass::Dropped => "digits dropped",
            ErrorClass::Repeated => "digits repeated",
            ErrorClass::Zero => "zero",
            ErrorClass::Example => "the question's example",
            ErrorClass::Rounded => "rounded",
            ErrorClass::Loop => "digits going round",
            ErrorClass::Mixed => "operands mixed",
            ErrorClass::Kind => "another kind of number",
            ErrorClass::Part => "one of two parts right",
            ErrorClass::Digit => "one digit wrong",
            ErrorClass::Digits => "half of the digits right",
            ErrorClass::Piece => "a piece of an operand",
            ErrorClass::Close => "off by a little",
            ErrorClass::Short => "far too short",
            ErrorClass::Long => "far too long",
            ErrorClass::Other => "no class fits",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no class of errors {0}; there are {names}", names = ErrorClass::ALL.map(ErrorClass::name).join(", "))]
pub struct UnknownClass(pub String);

impl std::str::FromStr for ErrorClass {
    type Err = UnknownClass;

    fn from_str(name: &str) -> Result<Self, UnknownClass> {
        ErrorClass::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| UnknownClass(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (index, class) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!((class.name().parse(), class as usize), (Ok(class), index));
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
        assert!("cary".parse::<ErrorClass>().unwrap_err().to_string().contains("carry, borrow"));
    }
}
