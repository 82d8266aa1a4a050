//! What came of a program.
use std::fmt;

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

/// The result of one program. Its wording is the sandbox's; what counts as an answer is decided elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// The function returned a number.
    Number(Number),
    /// It returned `None`.
    None,
    /// It returned something else; the name of its type.
    Other(String),
    /// The program could not be compiled, or raised.
    Raised(Exception),
    /// It was killed when its time was over.
    TimeLimit,
    /// It wanted more memory than it may have.
    MemoryLimit,
    /// Its process died: a stack overflow, a signal, a worker that was killed. How it ended.
    Crashed(String),
    /// The sandbox itself failed; says nothing about the program.
    Unavailable(String),
}

/// A returned number, exact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Number {
    Bool(bool),
    /// Lower-case hexadecimal digits, `-` before them if negative.
    Int(String),
    /// As Python's `repr` writes it: the shortest digits that give the same float, `nan`, `inf`, `-inf`.
    Float(String),
}

impl Number {
    /// The nearest float; an infinity where an integer is too large for one.
    pub fn to_f64(&self) -> f64 {
        match self {
            Number::Bool(truth) => f64::from(u8::from(*truth)),
            Number::Int(digits) => integer(digits).and_then(|int| int.to_f64()).unwrap_or(f64::NAN),
            Number::Float(text) => text.parse().unwrap_or(f64::NAN),
        }
    }
}

/// Decimal digits beyond which an integer is printed in hexadecimal: CPython's own limit for `str`.
const MOST_DECIMAL_DIGITS: u64 = 4300;

impl fmt::Display for Number {
    /// As Python prints it; integers of more than 4,300 digits, which Python refuses to print, in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(true) => f.write_str("True"),
            Number::Bool(false) => f.write_str("False"),
            Number::Float(text) => f.write_str(text),
            Number::Int(digits) => match integer(digits) {
                // 3.33 bits a digit.
                Some(int) if int.bits() < MOST_DECIMAL_DIGITS * 10 / 3 => write!(f, "{int}"),
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
    /// The first of `SyntaxError`, `NameError`, `AttributeError`, `ZeroDivisionError`, `TypeError`, `ValueError`,
    /// `MemoryError`, `RecursionError`, `ArithmeticError`, `LookupError`, `ImportError`, `AssertionError`, `Exception`,
    /// `BaseException` that it is an instance of.
    pub family: String,
    /// Class and message, in ASCII, cut after some hundred characters.
    pub message: String,
}

/// Between the fields of an answer, and at its end.
const SEPARATOR: char = '\x1f';
pub(super) const END: u8 = 0x1e;
/// What an answer begins with: whatever else lands in the same pipe (messages of the runtime) stands before it.
pub(super) const MARK: &str = "\x1eearnest\x1f";

/// Written before a program runs: a process that dies without it has died of something else.
pub(super) const BEGUN: &[u8] = b"\x1ebegun\x1e";

impl Outcome {
    /// Reads what a sample's process wrote: the last complete answer in it.
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
            Outcome::TimeLimit => f.write_str("the time limit"),
            Outcome::MemoryLimit => f.write_str("the memory limit"),
            Outcome::Crashed(how) => write!(f, "a crash ({how})"),
            Outcome::Unavailable(why) => write!(f, "a sandbox that is not available ({why})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(answer: &str) -> Option<Outcome> {
        Outcome::parse(format!("noise{MARK}{answer}\x1e").as_bytes())
    }

    #[test]
    fn answers_are_read_back() {
        assert_eq!(parse("none\x1f"), Some(Outcome::None));
        assert_eq!(parse("bool\x1f1"), Some(Outcome::Number(Number::Bool(true))));
        let Some(Outcome::Number(int)) = parse("int\x1f-ff") else { panic!() };
        assert_eq!((int.to_f64(), int.to_string().as_str()), (-255.0, "-255"));
        let Some(Outcome::Number(float)) = parse("float\x1f1e-07") else { panic!() };
        assert_eq!(float.to_f64(), 1e-7);
        assert!(
            matches!(parse("raised\x1fNameError\x1fNameError: x"), Some(Outcome::Raised(e)) if e.family == "NameError")
        );
        assert_eq!(parse("raised\x1fMemoryError\x1f"), Some(Outcome::MemoryLimit));
    }

    #[test]
    fn damaged_answers_are_none() {
        for answer in ["", "int", "int\x1fxyz", "float\x1fone", "raised\x1fNameError", "what\x1f1"] {
            assert_eq!(parse(answer), None, "{answer:?}");
        }
        assert_eq!(Outcome::parse(b""), None);
        assert_eq!(Outcome::parse(format!("{MARK}none\x1f").as_bytes()), None, "no end");
    }

    #[test]
    fn large_integers_have_a_value_and_a_text() {
        let large = Number::Int("1".to_owned() + &"0".repeat(300));
        assert!(large.to_f64().is_infinite());
        assert_eq!(large.to_string().len(), 362);
        let huge = Number::Int("-f".to_owned() + &"0".repeat(20_000));
        assert_eq!(huge.to_f64(), f64::NEG_INFINITY);
        assert!(huge.to_string().starts_with("-0xf00"));
        assert!(Number::Float("nan".into()).to_f64().is_nan());
    }
}
