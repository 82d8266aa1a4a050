//! Errors of numbers' texts and of operations on them.
use super::Notation;

/// An error of parsing or of exact arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// A text that is not in the notation.
    #[error("`{text}` is not {notation}: expected {expected}")]
    Malformed { text: String, notation: Notation, expected: &'static str },
    /// An exponent that would take unbounded memory.
    #[error("the exponent of `{text}` is beyond ±{limit}")]
    ExponentOutOfRange { text: String, limit: i64 },
    /// A fraction over zero.
    #[error("`{text}` has a zero denominator")]
    ZeroDenominator { text: String },
    /// A zero divisor.
    #[error("division by zero")]
    DivisionByZero,
    /// A fraction without a finite decimal expansion.
    #[error("`{0}` has no finite decimal expansion: its reduced denominator has a prime factor other than 2 and 5")]
    NotFinite(String),
    /// Operands in different notations.
    #[error("`{left}` is {left_notation} and `{right}` is {right_notation}: the operation needs one notation")]
    MixedNotations { left: String, left_notation: Notation, right: String, right_notation: Notation },
    /// An operation that the notation does not have.
    #[error("{operation} is not defined on {notation}")]
    Undefined { operation: &'static str, notation: Notation },
    /// A position outside the number.
    #[error("digit position {position} is outside `{number}`, which has {digits} digits counted from 0")]
    PositionOutOfRange { position: usize, number: String, digits: usize },
    /// A value above 9 where a digit is wanted.
    #[error("{0} is not a decimal digit")]
    NotADigit(u32),
    /// Zero significant figures.
    #[error("significant figures must be at least 1")]
    NoSignificantFigures,
    /// More significant figures than a text could show.
    #[error("{0} significant figures are beyond 100000")]
    TooManyFigures(usize),
}
