//! Values of the template language, with Python's numeric tower: whole numbers, binary floating point, fractions.
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::rational::{self, Rational};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Int(BigInt),
    Float(f64),
    Ratio(Rational),
    Bool(bool),
    Text(Arc<str>),
    /// Text that questions print, with the value that everything else sees ("two thirds", 2/3).
    Item(Arc<str>, Box<Value>),
    List(Vec<Value>),
}

/// A number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    Int(BigInt),
    Float(f64),
    Ratio(Rational),
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    #[error("division by zero")]
    DivisionByZero,
    #[error("{0}")]
    Type(String),
    #[error("a number becomes too large")]
    TooLarge,
}

/// Bits of the largest whole number: far beyond any word problem, far below what would stall a machine.
const MOST_BITS: u64 = 1 << 16;

impl Value {
    pub(super) fn int(value: impl Into<BigInt>) -> Value {
        Value::Int(value.into())
    }

    pub(super) fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    pub(super) fn ratio(numerator: i64, denominator: i64) -> Value {
        Value::Ratio(Rational::new(numerator.into(), denominator.into()))
    }

    /// The value behind an item's text.
    pub(super) fn bare(&self) -> &Value {
        match self {
            Value::Item(_, value) => value.bare(),
            other => other,
        }
    }

    /// As a number; true and false are 1 and 0, as in Python.
    pub(super) fn number(&self) -> Result<Number, EvalError> {
        match self.bare() {
            Value::Int(value) => Ok(Number::Int(value.clone())),
            Value::Float(value) => Ok(Number::Float(*value)),
            Value::Ratio(value) => Ok(Number::Ratio(value.clone())),
            Value::Bool(value) => Ok(Number::Int(BigInt::from(u8::from(*value)))),
            other => Err(EvalError::Type(format!("{} is no number", other.kind()))),
        }
    }

    /// The exact rational number: floats by their shortest decimal text, which is what a reader sees (0.1 is 1/10).
    pub fn exact(&self) -> Option<Rational> {
        match self.bare() {
            Value::Int(value) => Some(Rational::from(value.clone())),
            Value::Float(value) => decimal(*value),
            Value::Ratio(value) => Some(value.clone()),
            Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Item(..) => None,
        }
    }

    /// True as a condition.
    pub(super) fn truth(&self) -> Result<bool, EvalError> {
        match self.bare() {
            Value::Bool(value) => Ok(*value),
            Value::Text(text) => Ok(!text.is_empty()),
            Value::List(items) => Ok(!items.is_empty()),
            _ => Ok(match self.number()? {
                Number::Int(value) => !value.is_zero(),
                Number::Float(value) => value != 0.0,
                Number::Ratio(value) => !value.is_zero(),
            }),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a floating-point number",
            Value::Ratio(_) => "a fraction",
            Value::Bool(_) => "a truth value",
            Value::Text(_) => "a text",
            Value::Item(..) => "an item",
            Value::List(_) => "a list",
        }
    }

    /// What a question prints: an item's text.
    pub(super) fn shown(&self) -> String {
        match self {
            Value::Item(text, _) => text.to_string(),
            other => other.to_string(),
        }
    }
}

/// What a worked answer prints: an item's value, floats as Python's `repr` does, fractions as p/q, or whole.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bare() {
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => f.write_str(&python_repr(*value)),
            Value::Ratio(value) => value.fmt(f),
            Value::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            Value::Text(text) => f.write_str(text),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(Value::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Value::Item(..) => unreachable!("bare() unpacks items"),
        }
    }
}

/// The shortest text that reads back as the same float, in Python's spelling.
pub(super) fn python_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{value:?}")
}

/// The decimal number that a float's shortest text shows.
fn decimal(value: f64) -> Option<Rational> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa: BigInt = format!("{whole}{fraction}").parse().ok()?;
    let exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
    let power = BigInt::from(10).pow(exponent.unsigned_abs());
    Some(if exponent < 0 { Rational::new(mantissa, power) } else { Rational::from(mantissa * power) })
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Int(value) => Value::Int(value),
            Number::Float(value) => Value::Float(value),
            Number::Ratio(value) => Value::Ratio(value),
        }
    }
}

/// Arithmetic operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

impl Number {
    pub(super) fn float(&self) -> Result<f64, EvalError> {
        let value = match self {
            Number::Int(value) => value.to_f64(),
            Number::Float(value) => Some(*value),
            Number::Ratio(value) => Some(rational::to_float(value)),
        };
        match (value, self) {
            (Some(value), Number::Float(_)) => Ok(value),
            (Some(value), _) if value.is_finite() => Ok(value),
            _ => Err(EvalError::TooLarge),
        }
    }

    fn rational(&self) -> Option<Rational> {
        match self {
            Number::Int(value) => Some(Rational::from(value.clone())),
            Number::Ratio(value) => Some(value.clone()),
            Number::Float(value) => rational::from_float(*value),
        }
    }

    fn is_zero(&self) -> bool {
        match self {
            Number::Int(value) => value.is_zero(),
            Number::Float(value) => *value == 0.0,
            Number::Ratio(value) => value.is_zero(),
        }
    }

    /// Python's rules: whole numbers stay whole but under `/`, which is floating point unless `exact`; a fraction with a
    /// whole number is a fraction; anything with a float is a float.
    pub(super) fn apply(self, operator: Operator, other: Number, exact: bool) -> Result<Number, EvalError> {
        use Number::{Float, Int, Ratio};
        let divides = matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Remainder);
        if divides && other.is_zero() {
            return Err(EvalError::DivisionByZero);
        }
        if operator == Operator::Power {
            return self.power(other, exact);
        }
        match (self, other) {
            (Int(a), Int(b)) => whole(a, operator, b, exact),
            (a @ (Int(_) | Ratio(_)), b @ (Int(_) | Ratio(_))) => {
                let (Some(a), Some(b)) = (a.rational(), b.rational()) else { return Err(EvalError::TooLarge) };
                limited(Ok(match operator {
                    Operator::Add => Ratio(a + b),
                    Operator::Subtract => Ratio(a - b),
                    Operator::Multiply => Ratio(a * b),
                    Operator::Divide => Ratio(a / b),
                    Operator::FloorDivide => Int((a / b).floor().to_integer()),
                    Operator::Remainder => {
                        let floor = (&a / &b).floor();
                        Ratio(a - b * floor)
                    }
                    Operator::Power => unreachable!("handled above"),
                }))
            }
            (a, b) => Ok(Float(floating(a.float()?, operator, b.float()?))),
        }
    }

    fn power(self, exponent: Number, exact: bool) -> Result<Number, EvalError> {
        let Number::Int(power) = &exponent else {
            return Ok(Number::Float(self.float()?.powf(exponent.float()?)));
        };
        let size = power.abs().to_u32().filter(|size| u64::from(*size) <= MOST_BITS).ok_or(EvalError::TooLarge)?;
        let fits = |value: &BigInt| value.bits().saturating_mul(u64::from(size)) <= MOST_BITS;
        match self {
            Number::Int(base) if !power.is_negative() && fits(&base) => Ok(Number::Int(base.pow(size))),
            Number::Int(base) if power.is_negative() && fits(&base) => {
                if base.is_zero() {
                    return Err(EvalError::DivisionByZero);
                }
                let inverse = Rational::new(BigInt::one(), base.pow(size));
                Ok(if exact { Number::Ratio(inverse) } else { Number::Float(Number::Ratio(inverse).float()?) })
            }
            Number::Ratio(base) if fits(base.numer()) && fits(base.denom()) => {
                if power.is_negative() && base.is_zero() {
                    return Err(EvalError::DivisionByZero);
                }
                let size = i32::try_from(size).map_err(|_| EvalError::TooLarge)?;
                Ok(Number::Ratio(base.pow(if power.is_negative() { -size } else { size })))
            }
            Number::Float(base) => Ok(Number::Float(base.powf(exponent.float()?))),
            _ => Err(EvalError::TooLarge),
        }
    }

    /// Numbers compare by their exact values, whatever their kinds; none with NaN.
    pub(super) fn compare(&self, other: &Number) -> Option<Ordering> {
        use Number::{Float, Int};
        match (self, other) {
            (Int(a), Int(b)) => Some(a.cmp(b)),
            (Float(a), Float(b)) => a.partial_cmp(b),
            (Float(a), b) if !a.is_finite() => a.partial_cmp(&if b.is_zero() { 0.0 } else { 1.0 }),
            (a, Float(b)) if !b.is_finite() => if a.is_zero() { 0.0 } else { 1.0 }.partial_cmp(b),
            (a, b) => Some(a.rational()?.cmp(&b.rational()?)),
        }
    }

    /// Towards zero, as Python's `int`.
    pub(super) fn truncate(&self) -> Result<BigInt, EvalError> {
        match self {
            Number::Int(value) => Ok(value.clone()),
            Number::Ratio(value) => Ok(value.to_integer()),
            Number::Float(value) => {
                let exact = rational::from_float(*value);
                exact.map(|value| value.to_integer()).ok_or_else(|| EvalError::Type(format!("int of {value}")))
            }
        }
    }

    /// Python's `round`: to the nearest, ties to even, on the exact value.
    pub(super) fn round(&self, places: Option<u32>) -> Result<Number, EvalError> {
        let Some(exact) = self.rational() else { return Err(EvalError::Type("round of no finite number".to_owned())) };
        let Some(places) = places else { return Ok(Number::Int(half_even(&exact))) };
        if places > 300 {
            return Err(EvalError::TooLarge);
        }
        let scale = BigInt::from(10).pow(places);
        let rounded = Rational::new(half_even(&(exact * &scale)), scale);
        Ok(match self {
            Number::Int(value) => Number::Int(value.clone()),
            Number::Ratio(_) => Number::Ratio(rounded),
            Number::Float(value) if places > 17 => Number::Float(*value),
            Number::Float(_) => Number::Float(Number::Ratio(rounded).float()?),
        })
    }

    /// Within 1e-9 of a whole number.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Number::Int(_) => true,
            Number::Float(value) => value.is_finite() && (value - value.round()).abs() < 1e-9,
            Number::Ratio(value) => {
                let off = (value - value.round()).abs();
                off < Rational::new(BigInt::one(), BigInt::from(1_000_000_000))
            }
        }
    }
}

fn half_even(value: &Rational) -> BigInt {
    let floor = value.floor().to_integer();
    let rest = value - Rational::from(floor.clone());
    match rest.cmp(&Rational::new(BigInt::one(), BigInt::from(2))) {
        Ordering::Less => floor,
        Ordering::Greater => floor + 1,
        Ordering::Equal if floor.is_even() => floor,
        Ordering::Equal => floor + 1,
    }
}

fn whole(a: BigInt, operator: Operator, b: BigInt, exact: bool) -> Result<Number, EvalError> {
    limited(Ok(match operator {
        Operator::Add => Number::Int(a + b),
        Operator::Subtract => Number::Int(a - b),
        Operator::Multiply => Number::Int(a * b),
        Operator::FloorDivide => Number::Int(a.div_floor(&b)),
        Operator::Remainder => Number::Int(a.mod_floor(&b)),
        Operator::Divide if exact => Number::Ratio(Rational::new(a, b)),
        Operator::Divide => match (small(&a), small(&b)) {
            (Some(a), Some(b)) => Number::Float(a / b),
            _ => Number::Float(Number::Ratio(Rational::new(a, b)).float()?),
        },
        Operator::Power => unreachable!("handled by the caller"),
    }))
}

/// As a float that is exactly the whole number.
fn small(value: &BigInt) -> Option<f64> {
    value.to_i64().filter(|value| value.unsigned_abs() <= 1 << 53).map(|value| value as f64)
}

fn limited(result: Result<Number, EvalError>) -> Result<Number, EvalError> {
    match &result {
        Ok(Number::Int(value)) if value.bits() > MOST_BITS => Err(EvalError::TooLarge),
        Ok(Number::Ratio(value)) if value.numer().bits() + value.denom().bits() > MOST_BITS => Err(EvalError::TooLarge),
        _ => result,
    }
}

/// CPython's float arithmetic; the divisor of `/`, `//` and `%` is not 0.
fn floating(a: f64, operator: Operator, b: f64) -> f64 {
    match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Power => a.powf(b),
        Operator::Remainder => {
            let rest = a % b;
            if rest == 0.0 {
                f64::copysign(0.0, b)
            } else if (b < 0.0) != (rest < 0.0) {
                rest + b
            } else {
                rest
            }
        }
        Operator::FloorDivide => {
            let rest = a % b;
            let mut quotient = (a - rest) / b;
            if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
                quotient -= 1.0;
            }
            if quotient == 0.0 {
                return f64::copysign(0.0, a / b);
            }
            let floor = quotient.floor();
            if quotient - floor > 0.5 { floor + 1.0 } else { floor }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        for (value, text) in [
            (45.0, "45.0"),
            (7.25, "7.25"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e16, "1e+16"),
            (123_456_789_012_345.6, "123456789012345.6"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e300, "1e+300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(python_repr(value), text);
        }
    }

    #[test]
    fn floats_are_exact_by_their_text() {
        let exact = |value: f64| Value::Float(value).exact().unwrap().to_string();
        assert_eq!([exact(0.1), exact(2.5), exact(-0.25), exact(1e3)], ["1/10", "5/2", "-1/4", "1000"]);
        assert_eq!(Value::Float(f64::NAN).exact(), None);
    }
}
