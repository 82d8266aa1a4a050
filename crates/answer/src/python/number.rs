//! Python's numbers: integers without bound, doubles, complex doubles.
use std::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{FromPrimitive, Signed, ToPrimitive, Zero};

use super::error::PythonError;

#[derive(Debug, Clone, PartialEq)]
pub enum PythonNumber {
    Int(BigInt),
    Float(f64),
    /// Real and imaginary part.
    Complex(f64, f64),
}

/// Bits of the largest integer that is calculated here.
pub(super) const LARGEST: u64 = 100_000;

/// Digits of the largest integer that Python 3.11 reads from decimal text or writes as such.
pub(super) const DIGITS: usize = 4_300;

impl PythonNumber {
    /// `str(number)`: doubles in the shortest form that reads back, with an exponent below 1e-4 and from 1e16.
    ///
    /// # Errors
    /// Of an integer that Python refuses to write out.
    pub fn text(&self) -> Result<String, PythonError> {
        match self {
            PythonNumber::Int(value) => {
                let text = value.to_string();
                if text.trim_start_matches('-').len() > DIGITS { Err(PythonError::Value) } else { Ok(text) }
            }
            PythonNumber::Float(value) => Ok(float_text(*value)),
            PythonNumber::Complex(real, imaginary) => {
                let part = |value: f64| float_text(value).trim_end_matches(".0").to_owned();
                let imaginary = part(*imaginary);
                if *real == 0.0 && real.is_sign_positive() {
                    return Ok(format!("{imaginary}j"));
                }
                let sign = if imaginary.starts_with('-') { "" } else { "+" };
                Ok(format!("({}{sign}{imaginary}j)", part(*real)))
            }
        }
    }

    /// The double of a real number.
    pub(super) fn float(&self) -> Result<f64, PythonError> {
        match self {
            PythonNumber::Int(value) => integer_to_float(value),
            PythonNumber::Float(value) => Ok(*value),
            PythonNumber::Complex(..) => Err(PythonError::Type),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        match self {
            PythonNumber::Int(value) => value.is_zero(),
            PythonNumber::Float(value) => *value == 0.0,
            PythonNumber::Complex(real, imaginary) => *real == 0.0 && *imaginary == 0.0,
        }
    }

    /// Equality of values across types, without rounding.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (PythonNumber::Complex(real, imaginary), other) | (other, PythonNumber::Complex(real, imaginary)) => {
                let (same, rest) = match other {
                    PythonNumber::Complex(a, b) => (PythonNumber::Float(*a), *b),
                    real => (real.clone(), 0.0),
                };
                *imaginary == rest && PythonNumber::Float(*real).equals(&same)
            }
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }

    /// Order of two real numbers, without rounding; none where one is not a number.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (PythonNumber::Int(a), PythonNumber::Int(b)) => Some(a.cmp(b)),
            (PythonNumber::Int(a), PythonNumber::Float(b)) => order_integer(a, *b),
            (PythonNumber::Float(a), PythonNumber::Int(b)) => order_integer(b, *a).map(Ordering::reverse),
            (PythonNumber::Float(a), PythonNumber::Float(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}

fn order_integer(a: &BigInt, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    // An infinity has no integer part.
    let Some(whole) = BigInt::from_f64(b.trunc()) else {
        return Some(if b > 0.0 { Ordering::Less } else { Ordering::Greater });
    };
    Some(a.cmp(&whole).then_with(|| 0.0f64.total_cmp(&(b.fract() + 0.0))))
}

/// The nearest double, halves to even.
pub(super) fn integer_to_float(value: &BigInt) -> Result<f64, PythonError> {
    value.to_f64().filter(|value| value.is_finite()).ok_or(PythonError::Overflow)
}

/// `str` of a double.
pub fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let magnitude = value.abs();
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest.as_str(), "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.trim_start_matches('-').len().saturating_sub(2);
    // Of two shortest texts equally near, Python takes the even one, which is what rounding to so many digits gives.
    let even = format!("{value:.digits$e}");
    let is_same = even.parse::<f64>().is_ok_and(|read| read == value);
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let (mantissa, _) = if is_same { even.split_once('e') } else { None }.unwrap_or((mantissa, ""));
        return format!("{mantissa}e{}{:0>2}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
    }
    let decimals = usize::try_from(i32::try_from(digits).unwrap_or(0) - exponent).unwrap_or(0).max(1);
    let even = format!("{value:.decimals$}");
    if is_same && even.parse::<f64>().is_ok_and(|read| read == value) { even } else { format!("{value:?}") }
}

/// `round(number, places)`: halves to even, of a double's exact value.
pub fn rounded(number: &PythonNumber, places: i64) -> Result<PythonNumber, PythonError> {
    match number {
        PythonNumber::Int(value) if places >= 0 => Ok(PythonNumber::Int(value.clone())),
        PythonNumber::Int(value) => {
            if places.unsigned_abs() > value.bits() {
                return Ok(PythonNumber::Int(BigInt::zero()));
            }
            let step = BigInt::from(10).pow(u32::try_from(-places).map_err(|_| PythonError::Limit)?);
            Ok(PythonNumber::Int(nearest_even(value, &step) * step))
        }
        PythonNumber::Float(value) if !value.is_finite() => Ok(PythonNumber::Float(*value)),
        // No double has more decimals than these, and none is as large as half of 1e309.
        PythonNumber::Float(value) if places > 1_100 => Ok(PythonNumber::Float(*value)),
        PythonNumber::Float(value) if places < -309 => Ok(PythonNumber::Float(0.0f64.copysign(*value))),
        PythonNumber::Float(value) if places >= 0 => {
            let places = usize::try_from(places).map_err(|_| PythonError::Limit)?;
            format!("{value:.places$}").parse().map(PythonNumber::Float).map_err(|_| PythonError::Value)
        }
        PythonNumber::Float(value) => {
            let step = BigInt::from(10).pow(u32::try_from(-places).map_err(|_| PythonError::Limit)?);
            let whole = BigInt::from_f64(value.trunc()).ok_or(PythonError::Overflow)?;
            // What stands behind the point only tells whether a half is exact: one more binary digit says so.
            let sticky = if value.fract() == 0.0 { BigInt::zero() } else { BigInt::from(value.signum() as i8) };
            let rounded = nearest_even(&(whole * 2u8 + sticky), &(&step * 2u8)) * step;
            integer_to_float(&rounded).map(|rounded| PythonNumber::Float(rounded.copysign(*value)))
        }
        PythonNumber::Complex(..) => Err(PythonError::Type),
    }
}

/// `round(number)`: the nearest integer, halves to even.
pub(super) fn rounded_to_integer(number: &PythonNumber) -> Result<BigInt, PythonError> {
    match number {
        PythonNumber::Int(value) => Ok(value.clone()),
        PythonNumber::Float(value) if value.is_nan() => Err(PythonError::Value),
        PythonNumber::Float(value) => BigInt::from_f64(value.round_ties_even()).ok_or(PythonError::Overflow),
        PythonNumber::Complex(..) => Err(PythonError::Type),
    }
}

/// The integer nearest to a quotient, halves to even; the divisor is positive.
fn nearest_even(value: &BigInt, divisor: &BigInt) -> BigInt {
    let (floor, rest) = value.div_mod_floor(divisor);
    match (rest * 2u8).cmp(divisor) {
        Ordering::Less => floor,
        Ordering::Greater => floor + 1u8,
        Ordering::Equal if floor.is_even() => floor,
        Ordering::Equal => floor + 1u8,
    }
}

/// `int(number)`: towards zero.
pub(super) fn truncated(number: &PythonNumber) -> Result<BigInt, PythonError> {
    match number {
        PythonNumber::Int(value) => Ok(value.clone()),
        PythonNumber::Float(value) if value.is_nan() => Err(PythonError::Value),
        PythonNumber::Float(value) => BigInt::from_f64(value.trunc()).ok_or(PythonError::Overflow),
        PythonNumber::Complex(..) => Err(PythonError::Type),
    }
}

/// `abs(number)`.
pub(super) fn magnitude(number: &PythonNumber) -> Result<PythonNumber, PythonError> {
    Ok(match number {
        PythonNumber::Int(value) => PythonNumber::Int(value.abs()),
        PythonNumber::Float(value) => PythonNumber::Float(value.abs()),
        PythonNumber::Complex(real, imaginary) => {
            let length = real.hypot(*imaginary);
            if length.is_infinite() && real.is_finite() && imaginary.is_finite() {
                return Err(PythonError::Overflow);
            }
            PythonNumber::Float(length)
        }
    })
}

/// `'%.4f' % number`: with four decimals.
///
/// # Errors
/// Of what is no real number, or too large for a double.
pub fn four_decimals(number: &PythonNumber) -> Result<String, PythonError> {
    let value = number.float()?;
    Ok(if value.is_finite() { format!("{value:.4}") } else { float_text(value) })
}
