//! Finite decimals of any length, printed plainly (`50400.5`) or in scientific notation (`5.04005e4`).
use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{Signed, Zero};

use super::{Notation, NumberError, is_digits, round_digits};

/// Exponents beyond this are refused: printing or aligning them would take unbounded memory.
const EXPONENT_LIMIT: i64 = 100_000;

/// Rounding at an exact tie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Away from zero: the Number Cookbook's "round".
    HalfUp,
    /// To the even neighbour.
    HalfEven,
}

/// The exact value `coefficient * 10^exponent`. The coefficient never ends in 0 (zero is `0 * 10^0`), so equal values
/// are equal structs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    coefficient: BigInt,
    exponent: i64,
}

impl Decimal {
    /// `coefficient * 10^exponent`, made canonical.
    ///
    /// # Errors
    /// [`NumberError::ExponentOutOfRange`] where the exponent is beyond ±100,000.
    pub fn new(coefficient: BigInt, exponent: i64) -> Result<Self, NumberError> {
        if exponent.abs() > EXPONENT_LIMIT {
            return Err(NumberError::ExponentOutOfRange {
                text: format!("{coefficient}e{exponent}"),
                limit: EXPONENT_LIMIT,
            });
        }
        Ok(Self::canonical(coefficient, exponent))
    }

    fn canonical(mut coefficient: BigInt, mut exponent: i64) -> Self {
        if coefficient.is_zero() {
            return Decimal { coefficient, exponent: 0 };
        }
        // Doubling and halving steps: thousands of trailing zeros take a handful of divisions, not thousands.
        let mut step = 1u32;
        loop {
            let (quotient, remainder) = coefficient.div_rem(&BigInt::from(10u8).pow(step));
            match (remainder.is_zero(), step) {
                (true, _) => {
                    coefficient = quotient;
                    exponent += i64::from(step);
                    step *= 2;
                }
                (false, 1) => break,
                (false, _) => step /= 2,
            }
        }
        Decimal { coefficient, exponent }
    }

    /// Reads `I.D` with an optional `-`, both parts present.
    ///
    /// # Errors
    /// [`NumberError::Malformed`].
    pub fn parse_plain(text: &str) -> Result<Self, NumberError> {
        let malformed = || NumberError::Malformed {
            text: text.into(),
            notation: Notation::Decimal,
            expected: "digits, a point and digits, like 10.4",
        };
        let (integer, decimals) = unsigned(text).split_once('.').ok_or_else(malformed)?;
        if !is_digits(integer) || !is_digits(decimals) {
            return Err(malformed());
        }
        Self::from_parts(text.starts_with('-'), integer, decimals, 0)
    }

    /// Reads `I.DeX` with an optional `-` before the significand or the exponent; `I` may have any number of digits.
    ///
    /// # Errors
    /// [`NumberError::Malformed`], or [`NumberError::ExponentOutOfRange`].
    pub fn parse_scientific(text: &str) -> Result<Self, NumberError> {
        let malformed = || NumberError::Malformed {
            text: text.into(),
            notation: Notation::Scientific,
            expected: "a significand, `e` and an exponent, like 1.23e4",
        };
        let (significand, exponent) = unsigned(text).split_once('e').ok_or_else(malformed)?;
        let (integer, decimals) = significand.split_once('.').ok_or_else(malformed)?;
        if !is_digits(integer) || !is_digits(decimals) || !is_digits(unsigned(exponent)) {
            return Err(malformed());
        }
        let exponent: i64 = exponent
            .parse()
            .map_err(|_| NumberError::ExponentOutOfRange { text: text.into(), limit: EXPONENT_LIMIT })?;
        Self::from_parts(text.starts_with('-'), integer, decimals, exponent)
    }

    fn from_parts(negative: bool, integer: &str, decimals: &str, exponent: i64) -> Result<Self, NumberError> {
        let digits = format!("{integer}{decimals}");
        let magnitude = BigInt::parse_bytes(digits.as_bytes(), 10).expect("callers pass checked digits");
        let shift = decimals.len() as i64;
        Self::new(if negative { -magnitude } else { magnitude }, exponent.saturating_sub(shift))
    }

    /// The integer that the significant digits form.
    pub fn coefficient(&self) -> &BigInt {
        &self.coefficient
    }

    /// The power of ten of the coefficient.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// True for zero.
    pub fn is_zero(&self) -> bool {
        self.coefficient.is_zero()
    }

    fn sign(&self) -> &'static str {
        if self.coefficient.is_negative() { "-" } else { "" }
    }

    /// `I.D`: no leading zeros, at least one decimal, no further trailing zeros.
    pub fn to_plain(&self) -> String {
        let digits = self.coefficient.magnitude().to_string();
        let sign = self.sign();
        if self.exponent >= 0 {
            return format!("{sign}{digits}{}.0", "0".repeat(self.exponent.unsigned_abs() as usize));
        }
        let decimals = self.exponent.unsigned_abs() as usize;
        if digits.len() > decimals {
            let (integer, fraction) = digits.split_at(digits.len() - decimals);
            format!("{sign}{integer}.{fraction}")
        } else {
            format!("{sign}0.{}{digits}", "0".repeat(decimals - digits.len()))
        }
    }

    /// `d.DeX` with one non-zero digit before the point (`0.0e0` for zero), at least one decimal, no further trailing zeros.
    pub fn to_scientific(&self) -> String {
        if self.is_zero() {
            return "0.0e0".into();
        }
        let digits = self.coefficient.magnitude().to_string();
        let exponent = self.exponent + digits.len() as i64 - 1;
        scientific_text(self.sign(), &digits, exponent)
    }

    /// Scientific notation with exactly `figures` significant digits (at least one decimal is printed, so one figure
    /// shows as two). Zero prints as `0.0e0`.
    ///
    /// # Errors
    /// [`NumberError::NoSignificantFigures`] for zero figures, [`NumberError::TooManyFigures`] beyond 100,000.
    pub fn to_significant(&self, figures: usize, rounding: Rounding) -> Result<String, NumberError> {
        check_figures(figures)?;
        if self.is_zero() {
            return Ok("0.0e0".into());
        }
        let digits = self.coefficient.magnitude().to_string();
        let (rounded, carried) = round_digits(&digits, figures, rounding);
        let exponent = self.exponent + digits.len() as i64 - 1 + i64::from(carried);
        Ok(scientific_text(self.sign(), &rounded, exponent))
    }
}

/// Refuses numbers of significant figures that no text could show.
pub fn check_figures(figures: usize) -> Result<(), NumberError> {
    match figures {
        0 => Err(NumberError::NoSignificantFigures),
        figures if figures as u64 > EXPONENT_LIMIT.unsigned_abs() => Err(NumberError::TooManyFigures(figures)),
        _ => Ok(()),
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix('-').unwrap_or(text)
}

fn scientific_text(sign: &str, digits: &str, exponent: i64) -> String {
    let (first, rest) = digits.split_at(1);
    let rest = if rest.is_empty() { "0" } else { rest };
    format!("{sign}{first}.{rest}e{exponent}")
}

fn aligned(a: &Decimal, b: &Decimal) -> (BigInt, BigInt, i64) {
    let exponent = a.exponent.min(b.exponent);
    let scale = |number: &Decimal| {
        let power = u32::try_from(number.exponent - exponent).expect("exponents stay within a few times the limit");
        &number.coefficient * BigInt::from(10u8).pow(power)
    };
    (scale(a), scale(b), exponent)
}

impl Add for &Decimal {
    type Output = Decimal;
    fn add(self, other: &Decimal) -> Decimal {
        let (a, b, exponent) = aligned(self, other);
        Decimal::canonical(a + b, exponent)
    }
}

impl Sub for &Decimal {
    type Output = Decimal;
    fn sub(self, other: &Decimal) -> Decimal {
        let (a, b, exponent) = aligned(self, other);
        Decimal::canonical(a - b, exponent)
    }
}

impl Mul for &Decimal {
    type Output = Decimal;
    fn mul(self, other: &Decimal) -> Decimal {
        Decimal::canonical(&self.coefficient * &other.coefficient, self.exponent + other.exponent)
    }
}

impl Neg for Decimal {
    type Output = Decimal;
    fn neg(self) -> Decimal {
        Decimal { coefficient: -self.coefficient, exponent: self.exponent }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b, _) = aligned(self, other);
        a.cmp(&b)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Decimal {
        Decimal::parse_plain(text).unwrap()
    }

    fn scientific(text: &str) -> Decimal {
        Decimal::parse_scientific(text).unwrap()
    }

    #[test]
    fn prints_canonically() {
        assert_eq!(plain("007.500").to_plain(), "7.5");
        assert_eq!(plain("0.000").to_plain(), "0.0");
        assert_eq!(plain("-0.050").to_plain(), "-0.05");
        assert_eq!(plain("100.0").to_plain(), "100.0");
        assert_eq!(plain("50400.0").to_scientific(), "5.04e4");
        assert_eq!(plain("0.0").to_scientific(), "0.0e0");
        assert_eq!(plain("0.00123").to_scientific(), "1.23e-3");
        assert_eq!(scientific("7.5e3").to_plain(), "7500.0");
        assert_eq!(scientific("7.5e-3").to_plain(), "0.0075");
    }

    #[test]
    fn refuses_what_is_not_a_decimal() {
        for text in ["", ".", "5", "5.", ".5", "1,0.0", "1.2.3", "+1.0", "--1.0", "1.0e5", "٣.0", " 1.0"] {
            assert!(Decimal::parse_plain(text).is_err(), "{text}");
        }
        for text in ["", "e", "1e5", "1.0", "1.0e", "1.0e+5", "1.0E5", "1.0e5e6", "1.e5", "1.0e--5"] {
            assert!(Decimal::parse_scientific(text).is_err(), "{text}");
        }
        assert!(matches!(
            Decimal::parse_scientific("1.0e99999999999999999999"),
            Err(NumberError::ExponentOutOfRange { .. })
        ));
        assert!(matches!(Decimal::parse_scientific("1.0e200000"), Err(NumberError::ExponentOutOfRange { .. })));
    }

    #[test]
    fn arithmetic_is_exact() {
        assert_eq!((&plain("93.81") + &plain("9.976")).to_plain(), "103.786");
        assert_eq!((&plain("0.1") * &plain("0.1")).to_plain(), "0.01");
        assert_eq!((&scientific("9.92e16") + &scientific("9.731e18")).to_scientific(), "9.8302e18");
        assert_eq!((&scientific("9.9e99") * &scientific("9.9e99")).to_scientific(), "9.801e199");
        assert_eq!((&plain("1.5") - &plain("2.0")).to_plain(), "-0.5");
        assert!(plain("9.9") > plain("9.11"));
    }

    #[test]
    fn significant_figures() {
        let rounded = |text: &str, n| plain(text).to_significant(n, Rounding::HalfUp).unwrap();
        assert_eq!(rounded("99996.0", 4), "1.000e5");
        assert_eq!(rounded("50400.0", 4), "5.040e4");
        assert_eq!(rounded("50400.0", 2), "5.0e4");
        assert_eq!(rounded("0.0", 7), "0.0e0");
        assert_eq!(rounded("9.0", 1), "9.0e0");
        assert_eq!(
            plain("1.0").to_significant(usize::MAX, Rounding::HalfUp),
            Err(NumberError::TooManyFigures(usize::MAX))
        );
        let zeros = Decimal::parse_plain(&format!("7{}.0", "0".repeat(50_000))).unwrap();
        assert_eq!((zeros.exponent(), zeros.coefficient()), (50_000, &BigInt::from(7)));
        assert_eq!(plain("1.0").to_significant(0, Rounding::HalfUp), Err(NumberError::NoSignificantFigures));
    }
}
