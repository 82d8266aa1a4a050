//! The operators between numbers.
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::complex;
use super::error::PythonError;
use super::number::{LARGEST, PythonNumber};
use super::tree::Operator;

/// The result of an operator between two numbers; a result of two integers is an integer but for `/` and negative powers.
pub fn calculate(operator: Operator, left: &PythonNumber, right: &PythonNumber) -> Result<PythonNumber, PythonError> {
    use PythonNumber::{Complex, Int};
    match (left, right) {
        (Int(a), Int(b)) => integers(operator, a, b),
        (Complex(..), _) | (_, Complex(..)) if !operator.is_bitwise() => {
            let (real, imaginary) = complexes(operator, parts(left)?, parts(right)?)?;
            Ok(Complex(real, imaginary))
        }
        _ if operator.is_bitwise() => Err(PythonError::Type),
        _ => doubles(operator, left.float()?, right.float()?),
    }
}

fn parts(number: &PythonNumber) -> Result<(f64, f64), PythonError> {
    match number {
        PythonNumber::Complex(real, imaginary) => Ok((*real, *imaginary)),
        real => real.float().map(|real| (real, 0.0)),
    }
}

fn complexes(operator: Operator, a: (f64, f64), b: (f64, f64)) -> Result<(f64, f64), PythonError> {
    match operator {
        Operator::Add => Ok((a.0 + b.0, a.1 + b.1)),
        Operator::Subtract => Ok((a.0 - b.0, a.1 - b.1)),
        Operator::Multiply => Ok(complex::product(a, b)),
        Operator::Divide => complex::quotient(a, b),
        Operator::Power => complex::power(a, b),
        _ => Err(PythonError::Type),
    }
}

fn integers(operator: Operator, a: &BigInt, b: &BigInt) -> Result<PythonNumber, PythonError> {
    use PythonNumber::{Float, Int};
    match operator {
        Operator::Divide | Operator::FloorDivide | Operator::Modulo if b.is_zero() => Err(PythonError::ZeroDivision),
        Operator::Power if b.is_negative() => doubles(operator, Int(a.clone()).float()?, Int(b.clone()).float()?),
        Operator::Multiply if a.bits() + b.bits() > LARGEST => Err(PythonError::Limit),
        Operator::Add => Ok(Int(a + b)),
        Operator::Subtract => Ok(Int(a - b)),
        Operator::Multiply => Ok(Int(a * b)),
        Operator::FloorDivide => Ok(Int(a.div_floor(b))),
        Operator::Modulo => Ok(Int(a.mod_floor(b))),
        Operator::Divide => quotient(a, b).map(Float),
        Operator::Power => power(a, b).map(Int),
        Operator::BitAnd => Ok(Int(a & b)),
        Operator::BitOr => Ok(Int(a | b)),
        Operator::BitXor => Ok(Int(a ^ b)),
        Operator::ShiftLeft | Operator::ShiftRight if b.is_negative() => Err(PythonError::Value),
        Operator::ShiftLeft if a.is_zero() => Ok(Int(BigInt::zero())),
        Operator::ShiftLeft => match b.to_u64() {
            Some(places) if places.saturating_add(a.bits()) <= LARGEST => Ok(Int(a << places)),
            _ => Err(PythonError::Limit),
        },
        Operator::ShiftRight => Ok(Int(match b.to_u64() {
            Some(places) => a >> places,
            None => BigInt::from(if a.is_negative() { -1 } else { 0 }),
        })),
        Operator::MatrixMultiply => Err(PythonError::Type),
    }
}

fn doubles(operator: Operator, a: f64, b: f64) -> Result<PythonNumber, PythonError> {
    use PythonNumber::{Complex, Float};
    match operator {
        Operator::Add => Ok(Float(a + b)),
        Operator::Subtract => Ok(Float(a - b)),
        Operator::Multiply => Ok(Float(a * b)),
        Operator::Divide | Operator::FloorDivide | Operator::Modulo if b == 0.0 => Err(PythonError::ZeroDivision),
        Operator::Divide => Ok(Float(a / b)),
        Operator::FloorDivide => Ok(Float(floor_and_rest(a, b).0)),
        Operator::Modulo => Ok(Float(floor_and_rest(a, b).1)),
        Operator::Power if a == 0.0 && b < 0.0 => Err(PythonError::ZeroDivision),
        // A root of a negative number.
        Operator::Power if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 => {
            complex::power((a, 0.0), (b, 0.0)).map(|(real, imaginary)| Complex(real, imaginary))
        }
        Operator::Power => {
            let value = a.powf(b);
            if value.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(PythonError::Overflow);
            }
            Ok(Float(value))
        }
        _ => Err(PythonError::Type),
    }
}

/// `//` and `%` of doubles: the rest has the divisor's sign.
fn floor_and_rest(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0.0f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0.0f64.copysign(a / b), rest);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
}

/// Correctly rounded, as Python divides integers: enough digits of the quotient, a last one that says whether more follow, and
/// one rounding when the text is read.
fn quotient(a: &BigInt, b: &BigInt) -> Result<f64, PythonError> {
    // Two integers that are doubles need one rounding anyway.
    let small =
        |value: &BigInt| value.to_i64().filter(|value| value.unsigned_abs() <= 1 << 53).map(|value| value as f64);
    if let (Some(a), Some(b)) = (small(a), small(b)) {
        return Ok(a / b);
    }
    let digits = |value: &BigInt| value.to_string().len() as i64;
    let scale = (40 - digits(a) + digits(b)).max(0);
    let scaled = a.abs() * BigInt::from(10).pow(u32::try_from(scale).map_err(|_| PythonError::Limit)?);
    let (whole, rest) = scaled.div_rem(&b.abs());
    let sticky = u8::from(!rest.is_zero());
    let sign = if a.is_negative() != b.is_negative() { "-" } else { "" };
    let text = format!("{sign}{whole}{sticky}e{}", -scale - 1);
    text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or(PythonError::Overflow)
}

fn power(base: &BigInt, exponent: &BigInt) -> Result<BigInt, PythonError> {
    if base.abs() <= BigInt::one() {
        // Of -1, 0 and 1 only whether the exponent is zero, odd or even matters.
        let same = if exponent.is_zero() { 0 } else { 2 - u32::from(exponent.is_odd()) };
        return Ok(base.pow(same));
    }
    match exponent.to_u32() {
        Some(exponent) if base.bits().saturating_mul(u64::from(exponent)) <= LARGEST => Ok(base.pow(exponent)),
        _ => Err(PythonError::Limit),
    }
}
