//! Outcome of a program.
use std::fmt;

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

/// Outcome of one program. Scorers decide what counts as an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// The function returned a number.
    Number(Number),
    /// It returned `None`.
    None,
    /// It returned another value; the name of its type.
    Other(String),
    /// The program did not compile, or raised.
    Raised(Exception),
    /// It exceeded the time limit and was killed.
    TimeLimit,
    /// It exceeded the memory limit.
    MemoryLimit,
    /// Its process died: a stack overflow, a signal, a killed worker. The cause of death.
    Crashed(String),
    /// The sandbox failed, which says nothing about the program. The reason.
    Unavailable(String),
}

/// A returned number, exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Number {
    Bool(bool),
    /// Lower-case hexadecimal digits with a leading `-` if negative.
    Int(String),
    /// Python's `repr`: the shortest digits that parse to the same float, or `nan`, `inf`, `-inf`.
    Float(String),
}

impl Number {
    /// Returns the nearest float; an infinity for integers beyond the range of floats.
    pub fn to_f64(&self) -> f64 {
        match self {
            Number::Bool(truth) => f64::from(u8::from(*truth)),
            Number::Int(digits) => integer(digits).and_then(|int| int.to_f64()).unwrap_or(f64::NAN),
            Number::Float(text) => text.parse().unwrap_or(f64::NAN),
        }
    }
}

/// Decimal digits beyond which an integer is printed in hexadecimal: CPython's limit for `str`.
const MAX_DECIMAL_DIGITS: u64 = 4300;

impl fmt::Display for Number {
    /// Formats as Python prints it; integers of more than 4,300 digits, which Python refuses to print, in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(true) => f.write_str("True"),
            Number::Bool(false) => f.write_str("False"),
            Number::Float(text) => f.write_str(text),
            Number::Int(digits) => match integer(digits) {
                // 3.33 bits a digit.
                Some(int) if int.bits() < MAX_DECIMAL_DIGITS * 10 / 3 => write!(f, "{int}"),
                _ => match digits.strip_prefix('-') {
                    Some(magnitude) => write!(f, "-0x{magnitude}"),
                    None => write!(f, "0x{digits}"),
                },
            },
        }
    }
}

fn integer(digits: &str) -> Option<BigInt> {
    BigInt::parse_bytes(digits.as_bytes(), 16)
}

/// A Python exception.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// First matching base class: the first of `SyntaxError`, `NameError`, `AttributeError`, `ZeroDivisionError`, `TypeError`, `ValueError`,
    /// `MemoryError`, `RecursionError`, `ArithmeticError`, `LookupError`, `ImportError`, `AssertionError`, `Exception`,
    /// `BaseException` that the exception is an instance of.
    pub family: String,
    /// Class and message in ASCII, truncated to a few hundred characters.
    pub message: String,
}

/// Separator between the fields of an answer.
const SEPARATOR: char = '\x1f';
/// Last byte of an answer.
pub(super) const END: u8 = 0x1e;
/// Prefix of an answer. Other output in the same pipe, such as messages of the runtime, precedes it.
pub(super) const MARK: &str = "\x1eearnest\x1f";

/// Marker written before a program runs: a process that dies without it did not die of the program.
pub(super) const BEGUN: &[u8] = b"\x1ebegun\x1e";

impl Outcome {
    /// Parses the output of a sample's process: the last complete answer in it.
    pub(super) fn parse(written: &[u8]) -> Option<Outcome> {
        let written = written.strip_suffix(&[END])?;
        let at = written.windows(MARK.len()).rposition(|window| window == MARK.as_bytes())?;
        let answer = std::str::from_utf8(&written[at + MARK.len()..]).ok()?;
        let (kind, text) = answer.split_once(SEPARATOR)?;
        Some(match kind {
            "none" => Outcome::None,
            "bool" => Outcome::Number(Number::Bool(text == "1")),
            "int" => {
                integer(text)?;
                Outcome::Number(Number::Int(text.to_owned()))
            }
            "float" => {
                text.parse::<f64>().ok()?;
                Outcome::Number(Number::Float(text.to_owned()))
            }
            "other" => Outcome::Other(text.to_owned()),
            "raised" => {
                let (family, message) = text.split_once(SEPARATOR)?;
                if family == "MemoryError" {
                    return Some(Outcome::MemoryLimit);
                }
                Outcome::Raised(Exception { family: family.to_owned(), message: message.to_owned() })
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Number(number) => write!(f, "{number}"),
            Outcome::None => f.write_str("None"),
            Outcome::Other(class) => write!(f, "a value of type {class}"),
            Outcome::Raised(exception) => f.write_str(&exception.message),
            Outcome::TimeLimit => f.write_str("a timeout"),
            Outcome::MemoryLimit => f.write_str("a memory limit error"),
            Outcome::Crashed(cause) => write!(f, "a crash ({cause})"),
            Outcome::Unavailable(reason) => write!(f, "a failure of the sandbox ({reason})"),
        }
    }
}
