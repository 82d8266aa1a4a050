//! What can be wrong with a number's text or an operation on it.
use super::Notation;

/// An error of parsing or of exact arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    #[error("`{text}` is not {notation}: expected {expected}")]
    Malformed { text: String, notation: Notation, expected: &'static str },
    #[error("the exponent of `{text}` is beyond ±{limit}")]
    ExponentOutOfRange { text: String, limit: i64 },
    #[error("`{text}` has a zero denominator")]
    ZeroDenominator { text: String },
    #[error("division by zero")]
    DivisionByZero,
    #[error("`{0}` has no finite decimal expansion: its reduced denominator has a prime factor other than 2 and 5")]
    NotFinite(String),
    #[error("`{left}` is {left_notation} and `{right}` is {right_notation}: the operation needs one notation")]
    MixedNotations { left: String, left_notation: Notation, right: String, right_notation: Notation },
    #[error("{operation} is not defined on {notation}")]
    Undefined { operation: &'static str, notation: Notation },
    #[error("digit position {position} is outside `{number}`, which has {digits} digits counted from 0")]
    PositionOutOfRange { position: usize, number: String, digits: usize },
    #[error("{0} is not a decimal digit")]
    NotADigit(u32),
    #[error("significant figures must be at least 1")]
    NoSignificantFigures,
}
