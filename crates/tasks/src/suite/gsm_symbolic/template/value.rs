//! Values of the template language, with Python's numeric tower: whole numbers, binary floating point, fractions.
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::rational::{self, Rational};
use earnest_answer::python::{Operator, PythonError, PythonNumber, calculate, float_text};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

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

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    Int(BigInt),
    Float(f64),
    Ratio(Rational),
}

/// Error of an evaluation.
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
            other => Err(EvalError::Type(format!("{} is not a number", other.kind()))),
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

    /// Text in a question: an item's text.
    pub(super) fn shown(&self) -> String {
        match self {
            Value::Item(text, _) => text.to_string(),
            other => other.to_string(),
        }
    }
}

/// Text in a worked answer: an item's value, floats as Python's `repr` does, fractions as p/q, or whole.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bare() {
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => f.write_str(&float_text(*value)),
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
        use Number::{Int, Ratio};
        let divides = matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo);
        if divides && other.is_zero() {
            return Err(EvalError::DivisionByZero);
        }
        let negative_power = |number: &Number| matches!(number, Int(power) if power.is_negative());
        match (self, operator, other) {
            (Int(base), Operator::Power, power) if exact && negative_power(&power) => {
                Number::Ratio(base.into()).power(power)
            }
            (base @ Ratio(_), Operator::Power, power @ Int(_)) => base.power(power),
            (Int(a), Operator::Divide, Int(b)) if exact => Ok(Ratio(Rational::new(a, b))),
            (Int(a), _, Int(b)) => python(operator, &PythonNumber::Int(a), &PythonNumber::Int(b)),
            (a @ (Int(_) | Ratio(_)), operator, b @ (Int(_) | Ratio(_))) if operator != Operator::Power => {
                let (Some(a), Some(b)) = (a.rational(), b.rational()) else { return Err(EvalError::TooLarge) };
                fractions(a, operator, b)
            }
            (a, _, b) => python(operator, &PythonNumber::Float(a.float()?), &PythonNumber::Float(b.float()?)),
        }
        .and_then(limited)
    }

    /// A fraction to a whole power, exactly.
    fn power(self, power: Number) -> Result<Number, EvalError> {
        let (Number::Ratio(base), Number::Int(power)) = (self, power) else { return Err(EvalError::TooLarge) };
        let size = power.to_i32().filter(|size| u64::from(size.unsigned_abs()) <= MOST_BITS);
        let size = size.ok_or(EvalError::TooLarge)?;
        let fits = |value: &BigInt| value.bits().saturating_mul(u64::from(size.unsigned_abs())) <= MOST_BITS;
        match (base.is_zero() && size < 0, fits(base.numer()) && fits(base.denom())) {
            (true, _) => Err(EvalError::DivisionByZero),
            (false, true) => Ok(Number::Ratio(base.pow(size))),
            (false, false) => Err(EvalError::TooLarge),
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

/// Python's operator between whole numbers or floats.
fn python(operator: Operator, a: &PythonNumber, b: &PythonNumber) -> Result<Number, EvalError> {
    match calculate(operator, a, b) {
        Ok(PythonNumber::Int(value)) => Ok(Number::Int(value)),
        Ok(PythonNumber::Float(value)) => Ok(Number::Float(value)),
        Ok(PythonNumber::Complex(..)) => Err(EvalError::Type("the root of a negative number".to_owned())),
        Err(PythonError::ZeroDivision) => Err(EvalError::DivisionByZero),
        Err(PythonError::Limit | PythonError::Overflow) => Err(EvalError::TooLarge),
        Err(error) => Err(EvalError::Type(error.to_string())),
    }
}

fn fractions(a: Rational, operator: Operator, b: Rational) -> Result<Number, EvalError> {
    Ok(match operator {
        Operator::Add => Number::Ratio(a + b),
        Operator::Subtract => Number::Ratio(a - b),
        Operator::Multiply => Number::Ratio(a * b),
        Operator::Divide => Number::Ratio(a / b),
        Operator::FloorDivide => Number::Int((a / b).floor().to_integer()),
        Operator::Modulo => {
            let floor = (&a / &b).floor();
            Number::Ratio(a - b * floor)
        }
        other => return Err(EvalError::Type(format!("{other:?} of fractions"))),
    })
}

fn limited(number: Number) -> Result<Number, EvalError> {
    let bits = match &number {
        Number::Int(value) => value.bits(),
        Number::Ratio(value) => value.numer().bits() + value.denom().bits(),
        Number::Float(_) => 0,
    };
    if bits > MOST_BITS { Err(EvalError::TooLarge) } else { Ok(number) }
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
            assert_eq!(float_text(value), text);
        }
    }

    #[test]
    fn floats_are_exact_by_their_text() {
        let exact = |value: f64| Value::Float(value).exact().unwrap().to_string();
        assert_eq!([exact(0.1), exact(2.5), exact(-0.25), exact(1e3)], ["1/10", "5/2", "-1/4", "1000"]);
        assert_eq!(Value::Float(f64::NAN).exact(), None);
    }
}
