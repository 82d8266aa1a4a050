//! Exact numbers: integers, finite decimals, fractions and scientific notation of any length, their canonical texts,
//! and the digit operations of the Number Cookbook's test suite; number words. Nothing here passes through binary floating point.

mod decimal;
mod digits;
mod error;
mod fraction;
mod value;
pub mod words;

pub use decimal::check_figures;
pub use decimal::{Decimal, Rounding};
pub use digits::{
    Digitwise, compare_decimal_digits, compare_integer_digits, digitwise_left_aligned, digitwise_right_aligned,
    is_digits, round_digits, trim_leading_zeros, trim_trailing_zeros,
};
pub use error::NumberError;
pub use fraction::Fraction;
pub use value::{Alignment, Notation, Number, Part};
