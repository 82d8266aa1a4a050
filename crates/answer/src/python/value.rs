//! Python's values.
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

use super::error::PythonError;
use super::number::PythonNumber;

/// A value that an expression has. Nothing changes a value, so that copies of one are as good as itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum PythonValue {
    #[default]
    None,
    Ellipsis,
    Bool(bool),
    Number(PythonNumber),
    Text(String),
    List(Vec<PythonValue>),
    Tuple(Vec<PythonValue>),
    /// Elements that are all different.
    Set(Vec<PythonValue>),
    Dictionary(Vec<(PythonValue, PythonValue)>),
    Range(Box<Range>),
    /// Rest of an iteration.
    Iterator(Vec<PythonValue>),
    /// A builtin function or type, by its name.
    Builtin(&'static str),
    /// A function of the expression, by its index among those.
    Function(usize),
}

/// `range(start, stop, step)`; the step is not zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    pub start: BigInt,
    pub stop: BigInt,
    pub step: BigInt,
}

impl Range {
    /// Number of its integers.
    pub(super) fn length(&self) -> BigInt {
        let span = if self.step.is_negative() { &self.start - &self.stop } else { &self.stop - &self.start };
        if span.is_positive() { span.div_ceil(&self.step.abs()) } else { BigInt::zero() }
    }
}

impl From<i64> for PythonValue {
    fn from(value: i64) -> Self {
        PythonValue::Number(PythonNumber::Int(value.into()))
    }
}

impl From<BigInt> for PythonValue {
    fn from(value: BigInt) -> Self {
        PythonValue::Number(PythonNumber::Int(value))
    }
}

impl From<f64> for PythonValue {
    fn from(value: f64) -> Self {
        PythonValue::Number(PythonNumber::Float(value))
    }
}

impl From<&str> for PythonValue {
    fn from(text: &str) -> Self {
        PythonValue::Text(text.to_owned())
    }
}

impl PythonValue {
    /// The value of a JSON document, as `json.loads` reads it.
    pub fn from_json(document: &serde_json::Value) -> Self {
        use serde_json::Value;
        match document {
            Value::Null => PythonValue::None,
            Value::Bool(value) => PythonValue::Bool(*value),
            Value::Number(number) => match number.to_string().parse::<BigInt>() {
                Ok(value) => value.into(),
                Err(_) => number.as_f64().unwrap_or(f64::NAN).into(),
            },
            Value::String(text) => PythonValue::Text(text.clone()),
            Value::Array(parts) => PythonValue::List(parts.iter().map(Self::from_json).collect()),
            Value::Object(fields) => PythonValue::Dictionary(
                fields.iter().map(|(key, value)| (key.as_str().into(), Self::from_json(value))).collect(),
            ),
        }
    }

    /// `bool(value)`.
    pub fn is_true(&self) -> bool {
        match self {
            PythonValue::None => false,
            PythonValue::Bool(value) => *value,
            PythonValue::Number(number) => !number.is_zero(),
            PythonValue::Text(text) => !text.is_empty(),
            PythonValue::List(parts) | PythonValue::Tuple(parts) | PythonValue::Set(parts) => !parts.is_empty(),
            PythonValue::Dictionary(pairs) => !pairs.is_empty(),
            PythonValue::Range(range) => !range.length().is_zero(),
            _ => true,
        }
    }

    /// `str(value)`.
    ///
    /// # Errors
    /// If the text would have more digits than Python writes, or is different in every process (functions).
    pub fn text(&self) -> Result<String, PythonError> {
        match self {
            PythonValue::Text(text) => Ok(text.clone()),
            other => other.literal(),
        }
    }

    /// `repr(value)`.
    ///
    /// # Errors
    /// As [`PythonValue::text`].
    pub fn literal(&self) -> Result<String, PythonError> {
        let joined = |parts: &[PythonValue]| -> Result<String, PythonError> {
            Ok(parts.iter().map(PythonValue::literal).collect::<Result<Vec<_>, _>>()?.join(", "))
        };
        Ok(match self {
            PythonValue::None => "None".to_owned(),
            PythonValue::Ellipsis => "Ellipsis".to_owned(),
            PythonValue::Bool(value) => (if *value { "True" } else { "False" }).to_owned(),
            PythonValue::Number(number) => number.text()?,
            PythonValue::Text(text) => quoted(text),
            PythonValue::List(parts) => format!("[{}]", joined(parts)?),
            PythonValue::Tuple(parts) if parts.len() == 1 => format!("({},)", joined(parts)?),
            PythonValue::Tuple(parts) => format!("({})", joined(parts)?),
            PythonValue::Set(parts) if parts.is_empty() => "set()".to_owned(),
            PythonValue::Set(parts) if parts.len() == 1 => format!("{{{}}}", joined(parts)?),
            PythonValue::Dictionary(pairs) => {
                let pair = |(key, value): &(PythonValue, PythonValue)| -> Result<String, PythonError> {
                    Ok(format!("{}: {}", key.literal()?, value.literal()?))
                };
                format!("{{{}}}", pairs.iter().map(pair).collect::<Result<Vec<_>, _>>()?.join(", "))
            }
            PythonValue::Range(range) => {
                let step = if range.step == 1.into() { String::new() } else { format!(", {}", range.step) };
                format!("range({}, {}{step})", range.start, range.stop)
            }
            PythonValue::Set(_) | PythonValue::Iterator(_) | PythonValue::Builtin(_) | PythonValue::Function(_) => {
                return Err(PythonError::Unsupported);
            }
        })
    }

    /// The number that the value is; a truth value is 0 or 1.
    pub(super) fn number(&self) -> Option<PythonNumber> {
        match self {
            PythonValue::Bool(value) => Some(PythonNumber::Int(BigInt::from(i32::from(*value)))),
            PythonValue::Number(number) => Some(number.clone()),
            _ => None,
        }
    }

    /// The integer that the value is.
    pub(super) fn integer(&self) -> Result<BigInt, PythonError> {
        match self.number() {
            Some(PythonNumber::Int(value)) => Ok(value),
            _ => Err(PythonError::Type),
        }
    }

    /// Words of memory, about.
    pub(super) fn size(&self) -> u64 {
        let all = |parts: &[PythonValue]| parts.iter().map(PythonValue::size).sum::<u64>();
        1 + match self {
            PythonValue::Number(PythonNumber::Int(value)) => value.bits() / 64,
            PythonValue::Text(text) => text.len() as u64 / 8,
            PythonValue::List(parts) | PythonValue::Tuple(parts) => all(parts),
            PythonValue::Set(parts) | PythonValue::Iterator(parts) => all(parts),
            PythonValue::Dictionary(pairs) => pairs.iter().map(|(key, value)| key.size() + value.size()).sum(),
            _ => 0,
        }
    }
}

/// `repr` of a text.
fn quoted(text: &str) -> String {
    // Long numbers are written by every line of a rule that reads them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\'' && byte != b'\\') {
        return format!("'{text}'");
    }
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut found = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => found.push_str("\\\\"),
            '\n' => found.push_str("\\n"),
            '\r' => found.push_str("\\r"),
            '\t' => found.push_str("\\t"),
            c if c == quote => found.extend(['\\', c]),
            c if c < ' ' || ('\u{7f}'..='\u{a0}').contains(&c) || c == '\u{ad}' => {
                found.push_str(&format!("\\x{:02x}", c as u32));
            }
            c => found.push(c),
        }
    }
    found.push(quote);
    found
}

/// The offset of an index among `length` elements, counted from the end where negative.
pub(super) fn offset(index: &BigInt, length: usize) -> Option<usize> {
    let index = if index.is_negative() { index + length } else { index.clone() };
    index.to_usize().filter(|index| *index < length)
}
