//! A number in one of the four notations of the Number Cookbook (section 2.1), with its parts.
use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::Zero;

use super::{
    Decimal, Digitwise, Fraction, NumberError, Rounding, digitwise_left_aligned, digitwise_right_aligned, is_digits,
    trim_leading_zeros, trim_trailing_zeros,
};

/// Notation of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Notation {
    /// `123`.
    Integer,
    /// `10.4`.
    Decimal,
    /// `7/13`.
    Fraction,
    /// `1.23e4`.
    Scientific,
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Notation::Integer => "an integer",
            Notation::Decimal => "a decimal",
            Notation::Fraction => "a fraction",
            Notation::Scientific => "a number in scientific notation",
        })
    }
}

/// From which end digits of a part correspond to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// Integers, numerators, denominators, exponents.
    Right,
    /// Decimals.
    Left,
}

/// A run of digits inside a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// ASCII digits.
    pub digits: String,
    /// Alignment with the same part of another number.
    pub alignment: Alignment,
}

/// A number in a notation. Scientific numbers and decimals are the same exact values, written differently.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Number {
    Integer(BigInt),
    /// A finite decimal, written with a point.
    Decimal(Decimal),
    /// A fraction in lowest terms.
    Fraction(Fraction),
    /// A finite decimal, written with an exponent.
    Scientific(Decimal),
}

impl Number {
    /// Reads `text` in `notation`. Zeros that do not change the value are accepted.
    ///
    /// # Errors
    /// [`NumberError`] for malformed text, zero denominators and extreme exponents.
    pub fn parse(notation: Notation, text: &str) -> Result<Self, NumberError> {
        Ok(match notation {
            Notation::Integer => {
                if !is_digits(text.strip_prefix('-').unwrap_or(text)) {
                    return Err(NumberError::Malformed {
                        text: text.into(),
                        notation,
                        expected: "digits without separators, like 123",
                    });
                }
                Number::Integer(BigInt::parse_bytes(text.as_bytes(), 10).expect("the digits were checked just above"))
            }
            Notation::Decimal => Number::Decimal(Decimal::parse_plain(text)?),
            Notation::Fraction => Number::Fraction(Fraction::parse(text)?),
            Notation::Scientific => Number::Scientific(Decimal::parse_scientific(text)?),
        })
    }

    pub fn notation(&self) -> Notation {
        match self {
            Number::Integer(_) => Notation::Integer,
            Number::Decimal(_) => Notation::Decimal,
            Number::Fraction(_) => Notation::Fraction,
            Number::Scientific(_) => Notation::Scientific,
        }
    }

    /// The digit runs of the canonical text, without signs: one of an integer, integer part and decimals of a decimal,
    /// numerator and denominator of a fraction, and integer part, decimals and exponent in scientific notation.
    pub fn parts(&self) -> Vec<Part> {
        let right = |digits: &str| Part { digits: digits.into(), alignment: Alignment::Right };
        let left = |digits: &str| Part { digits: digits.into(), alignment: Alignment::Left };
        let text = self.to_string().replace('-', "");
        let pieces: Vec<&str> = text.split(['.', '/', 'e']).collect();
        match (self.notation(), pieces.as_slice()) {
            (Notation::Decimal, [integer, decimals]) => vec![right(integer), left(decimals)],
            (Notation::Scientific, [integer, decimals, exponent]) => {
                vec![right(integer), left(decimals), right(exponent)]
            }
            (_, pieces) => pieces.iter().map(|piece| right(piece)).collect(),
        }
    }

    fn both<'a>(&'a self, other: &'a Number) -> Result<Pair<'a>, NumberError> {
        Ok(match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => Pair::Integers(a, b),
            (Number::Decimal(a), Number::Decimal(b)) => Pair::Decimals(a, b),
            (Number::Fraction(a), Number::Fraction(b)) => Pair::Fractions(a, b),
            (Number::Scientific(a), Number::Scientific(b)) => Pair::Scientific(a, b),
            _ => {
                return Err(NumberError::MixedNotations {
                    left: self.to_string(),
                    left_notation: self.notation(),
                    right: other.to_string(),
                    right_notation: other.notation(),
                });
            }
        })
    }

    /// The exact sum, in the operands' notation.
    ///
    /// # Errors
    /// [`NumberError::MixedNotations`].
    pub fn add(&self, other: &Number) -> Result<Number, NumberError> {
        Ok(match self.both(other)? {
            Pair::Integers(a, b) => Number::Integer(a + b),
            Pair::Decimals(a, b) => Number::Decimal(a + b),
            Pair::Fractions(a, b) => Number::Fraction(a + b),
            Pair::Scientific(a, b) => Number::Scientific(a + b),
        })
    }

    /// The exact difference, in the operands' notation.
    ///
    /// # Errors
    /// [`NumberError::MixedNotations`].
    pub fn subtract(&self, other: &Number) -> Result<Number, NumberError> {
        Ok(match self.both(other)? {
            Pair::Integers(a, b) => Number::Integer(a - b),
            Pair::Decimals(a, b) => Number::Decimal(a - b),
            Pair::Fractions(a, b) => Number::Fraction(a - b),
            Pair::Scientific(a, b) => Number::Scientific(a - b),
        })
    }

    /// The exact product, in the operands' notation.
    ///
    /// # Errors
    /// [`NumberError::MixedNotations`].
    pub fn multiply(&self, other: &Number) -> Result<Number, NumberError> {
        Ok(match self.both(other)? {
            Pair::Integers(a, b) => Number::Integer(a * b),
            Pair::Decimals(a, b) => Number::Decimal(a * b),
            Pair::Fractions(a, b) => Number::Fraction(a * b),
            Pair::Scientific(a, b) => Number::Scientific(a * b),
        })
    }

    /// The exact quotient of integers or fractions, as a fraction.
    ///
    /// # Errors
    /// [`NumberError::DivisionByZero`], [`NumberError::MixedNotations`], or [`NumberError::Undefined`] on decimals.
    pub fn true_divide(&self, other: &Number) -> Result<Number, NumberError> {
        match self.both(other)? {
            Pair::Integers(_, b) if b.is_zero() => Err(NumberError::DivisionByZero),
            Pair::Integers(a, b) => Ok(Number::Fraction(Fraction::new(a.clone(), b.clone())?)),
            Pair::Fractions(a, b) => Ok(Number::Fraction(a.divided_by(b)?)),
            _ => Err(NumberError::Undefined { operation: "true division", notation: self.notation() }),
        }
    }

    /// Floor quotient and remainder of integers (the remainder has the divisor's sign).
    ///
    /// # Errors
    /// [`NumberError::DivisionByZero`], [`NumberError::MixedNotations`], or [`NumberError::Undefined`].
    pub fn floor_divide(&self, other: &Number) -> Result<(Number, Number), NumberError> {
        match self.both(other)? {
            Pair::Integers(_, b) if b.is_zero() => Err(NumberError::DivisionByZero),
            Pair::Integers(a, b) => {
                let (quotient, remainder) = a.div_mod_floor(b);
                Ok((Number::Integer(quotient), Number::Integer(remainder)))
            }
            _ => Err(NumberError::Undefined { operation: "floor division", notation: self.notation() }),
        }
    }

    /// Compares the values of two numbers in one notation.
    ///
    /// # Errors
    /// [`NumberError::MixedNotations`].
    pub fn compare(&self, other: &Number) -> Result<Ordering, NumberError> {
        Ok(match self.both(other)? {
            Pair::Integers(a, b) => a.cmp(b),
            Pair::Decimals(a, b) | Pair::Scientific(a, b) => a.cmp(b),
            Pair::Fractions(a, b) => a.cmp(b),
        })
    }

    /// Position by position, missing digits 0, signs ignored: integers from the right; decimals on both sides of the
    /// point. The result is canonical.
    ///
    /// # Errors
    /// [`NumberError::MixedNotations`] or [`NumberError::Undefined`].
    pub fn digitwise(&self, operation: Digitwise, other: &Number) -> Result<Number, NumberError> {
        self.both(other)?;
        let digits = |number: &Number| number.parts().into_iter().map(|part| part.digits).collect::<Vec<_>>();
        let (a, b) = (digits(self), digits(other));
        match (self.notation(), a.as_slice(), b.as_slice()) {
            (Notation::Integer, [a], [b]) => {
                Number::parse(Notation::Integer, &digitwise_right_aligned(operation, a, b))
            }
            (Notation::Decimal, [a, c], [b, d]) => {
                let integer = digitwise_right_aligned(operation, a, b);
                let decimals = digitwise_left_aligned(operation, c, d);
                let text = format!("{}.{}", trim_leading_zeros(&integer), trim_trailing_zeros(&decimals));
                Number::parse(Notation::Decimal, &text)
            }
            (notation, ..) => Err(NumberError::Undefined { operation: "a digit-by-digit operation", notation }),
        }
    }

    fn plain_digits(&self, operation: &'static str) -> Result<String, NumberError> {
        match self.notation() {
            Notation::Integer | Notation::Decimal => Ok(self.parts().into_iter().map(|part| part.digits).collect()),
            notation => Err(NumberError::Undefined { operation, notation }),
        }
    }

    /// The digit at a 0-based position from the left; a decimal point is not counted.
    ///
    /// # Errors
    /// [`NumberError::PositionOutOfRange`] or [`NumberError::Undefined`].
    pub fn digit_at(&self, position: usize) -> Result<u8, NumberError> {
        let digits = self.plain_digits("a digit position")?;
        digits.as_bytes().get(position).map(|digit| digit - b'0').ok_or_else(|| NumberError::PositionOutOfRange {
            position,
            number: self.to_string(),
            digits: digits.len(),
        })
    }

    /// Number of digits, a decimal's point not counted.
    ///
    /// # Errors
    /// [`NumberError::Undefined`].
    pub fn digit_count(&self) -> Result<usize, NumberError> {
        Ok(self.plain_digits("a digit count")?.len())
    }

    /// Number of occurrences of `digit` (0 to 9).
    ///
    /// # Errors
    /// [`NumberError::NotADigit`] or [`NumberError::Undefined`].
    pub fn occurrences(&self, digit: u32) -> Result<usize, NumberError> {
        let wanted = char::from_digit(digit, 10).ok_or(NumberError::NotADigit(digit))?;
        Ok(self.plain_digits("a digit count")?.matches(wanted).count())
    }

    fn finite(&self) -> Result<Decimal, NumberError> {
        match self {
            Number::Integer(value) => Decimal::new(value.clone(), 0),
            Number::Decimal(value) | Number::Scientific(value) => Ok(value.clone()),
            Number::Fraction(value) => value.to_decimal(),
        }
    }

    /// The same value as a decimal.
    ///
    /// # Errors
    /// [`NumberError::NotFinite`].
    pub fn to_decimal(&self) -> Result<Number, NumberError> {
        Ok(Number::Decimal(self.finite()?))
    }

    /// The same value in scientific notation.
    ///
    /// # Errors
    /// [`NumberError::NotFinite`].
    pub fn to_scientific(&self) -> Result<Number, NumberError> {
        Ok(Number::Scientific(self.finite()?))
    }

    /// The text with `figures` significant digits, see [`Decimal::to_significant`].
    ///
    /// # Errors
    /// [`NumberError::NotFinite`] or [`NumberError::NoSignificantFigures`].
    pub fn to_significant(&self, figures: usize, rounding: Rounding) -> Result<String, NumberError> {
        self.finite()?.to_significant(figures, rounding)
    }
}

enum Pair<'a> {
    Integers(&'a BigInt, &'a BigInt),
    Decimals(&'a Decimal, &'a Decimal),
    Fractions(&'a Fraction, &'a Fraction),
    Scientific(&'a Decimal, &'a Decimal),
}

impl fmt::Display for Number {
    /// The canonical text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(value) => write!(f, "{value}"),
            Number::Decimal(value) => f.write_str(&value.to_plain()),
            Number::Fraction(value) => write!(f, "{value}"),
            Number::Scientific(value) => f.write_str(&value.to_scientific()),
        }
    }
}
