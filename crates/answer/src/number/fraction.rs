//! Fractions in lowest terms.
use std::ops::{Add, Mul, Sub};

use num_bigint::BigInt;
use num_rational::Ratio;
use num_traits::{One, Zero};

use super::{Decimal, Notation, NumberError, is_digits};

/// A reduced fraction with a positive denominator, always printed with it: `5/1`, `0/1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction(Ratio<BigInt>);

impl Fraction {
    /// `numerator / denominator` in lowest terms.
    ///
    /// # Errors
    /// [`NumberError::ZeroDenominator`].
    pub fn new(numerator: BigInt, denominator: BigInt) -> Result<Self, NumberError> {
        if denominator.is_zero() {
            return Err(NumberError::ZeroDenominator { text: format!("{numerator}/{denominator}") });
        }
        Ok(Fraction(Ratio::new(numerator, denominator)))
    }

    /// Reads `N/D` with an optional `-`; it need not be reduced.
    ///
    /// # Errors
    /// [`NumberError::Malformed`] or [`NumberError::ZeroDenominator`].
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        let malformed = || NumberError::Malformed {
            text: text.into(),
            notation: Notation::Fraction,
            expected: "a numerator, a slash and a denominator, like 7/13",
        };
        let (numerator, denominator) = text.split_once('/').ok_or_else(malformed)?;
        if !is_digits(numerator.strip_prefix('-').unwrap_or(numerator)) || !is_digits(denominator) {
            return Err(malformed());
        }
        let integer =
            |digits: &str| BigInt::parse_bytes(digits.as_bytes(), 10).expect("the digits were checked just above");
        Self::new(integer(numerator), integer(denominator))
    }

    /// The numerator, with the sign.
    pub fn numerator(&self) -> &BigInt {
        self.0.numer()
    }

    /// The denominator, positive.
    pub fn denominator(&self) -> &BigInt {
        self.0.denom()
    }

    /// `self / other`.
    ///
    /// # Errors
    /// [`NumberError::DivisionByZero`].
    pub fn divided_by(&self, other: &Fraction) -> Result<Fraction, NumberError> {
        if other.0.is_zero() {
            return Err(NumberError::DivisionByZero);
        }
        Ok(Fraction(&self.0 / &other.0))
    }

    /// The exact finite decimal.
    ///
    /// # Errors
    /// [`NumberError::NotFinite`] where the reduced denominator is not of the form 2^i 5^j.
    pub fn to_decimal(&self) -> Result<Decimal, NumberError> {
        let mut rest = self.denominator().clone();
        let mut exhaust = |prime: u8| {
            let prime = BigInt::from(prime);
            let mut power = 0u32;
            while (&rest % &prime).is_zero() {
                rest /= &prime;
                power += 1;
            }
            power
        };
        let (twos, fives) = (exhaust(2), exhaust(5));
        if !rest.is_one() {
            return Err(NumberError::NotFinite(self.to_string()));
        }
        let places = twos.max(fives);
        let scaled = self.numerator() * BigInt::from(2u8).pow(places - twos) * BigInt::from(5u8).pow(places - fives);
        Decimal::new(scaled, -i64::from(places))
    }
}

impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.0.numer(), self.0.denom())
    }
}

impl From<BigInt> for Fraction {
    fn from(integer: BigInt) -> Self {
        Fraction(Ratio::from_integer(integer))
    }
}

impl Add for &Fraction {
    type Output = Fraction;
    fn add(self, other: &Fraction) -> Fraction {
        Fraction(&self.0 + &other.0)
    }
}

impl Sub for &Fraction {
    type Output = Fraction;
    fn sub(self, other: &Fraction) -> Fraction {
        Fraction(&self.0 - &other.0)
    }
}

impl Mul for &Fraction {
    type Output = Fraction;
    fn mul(self, other: &Fraction) -> Fraction {
        Fraction(&self.0 * &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(text: &str) -> Fraction {
        Fraction::parse(text).unwrap()
    }

    #[test]
    fn is_always_reduced_and_printed_whole() {
        assert_eq!(fraction("6/8").to_string(), "3/4");
        assert_eq!(fraction("0/9").to_string(), "0/1");
        assert_eq!((&fraction("1/3") + &fraction("2/3")).to_string(), "1/1");
        assert_eq!(fraction("3/8").divided_by(&fraction("2/5")).unwrap().to_string(), "15/16");
        assert_eq!((&fraction("1/3") - &fraction("1/2")).to_string(), "-1/6");
    }

    #[test]
    fn hostile_texts_are_errors() {
        for text in ["", "/", "1/", "/2", "1", "1/2/3", "1 / 2", "1/-2", "a/b"] {
            assert!(matches!(Fraction::parse(text), Err(NumberError::Malformed { .. })), "{text}");
        }
        assert!(matches!(Fraction::parse("1/0"), Err(NumberError::ZeroDenominator { .. })));
        assert_eq!(fraction("1/2").divided_by(&fraction("0/5")), Err(NumberError::DivisionByZero));
    }

    #[test]
    fn finite_decimals_only() {
        assert_eq!(fraction("12345/64").to_decimal().unwrap().to_plain(), "192.890625");
        assert_eq!(fraction("100/1").to_decimal().unwrap().to_plain(), "100.0");
        assert_eq!(fraction("3/1000").to_decimal().unwrap().to_plain(), "0.003");
        assert!(matches!(fraction("1/3").to_decimal(), Err(NumberError::NotFinite(_))));
    }
}
