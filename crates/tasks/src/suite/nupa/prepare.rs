//! From a raw pair to a task's operands (spec section 3.3).
use num_bigint::BigInt;
use num_traits::Zero;

use earnest_answer::number::{Fraction, Number, trim_leading_zeros, trim_trailing_zeros};

use super::draw::DigitSource;
use super::exact::compare;
use super::pairs::RawPair;
use super::{NupaError, Operation, Representation, TaskId};
use crate::suite::python_random::PythonRandom;

/// A task's operands as they stand in the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operands {
    /// The first operand.
    pub a: String,
    /// The second operand, where the task has one.
    pub b: Option<String>,
}

/// Source of positions, digits, counts and exponent differences.
pub enum Auxiliary<'a> {
    /// A real generator.
    Uniform(&'a mut DigitSource),
    /// The authors' program: a generator seeded afresh with an operand.
    Reference,
}

impl Auxiliary<'_> {
    fn draw(&mut self, reference_seed: &str, low: i64, high: i64) -> i64 {
        match self {
            Auxiliary::Uniform(random) => random.between(low, high),
            Auxiliary::Reference => PythonRandom::new(reference_seed).randint(low, high),
        }
    }
}

/// A number's length as the reference counts it: digits of an integer, decimals of a float or of a significand, the longer
/// part of a fraction. Generated floats never have more integer digits than decimals, so this is their longest part.
pub fn number_length(representation: Representation, text: &str) -> usize {
    match representation {
        Representation::Integer => text.len(),
        Representation::Float => text.split_once('.').map_or(0, |(_, decimals)| decimals.len()),
        Representation::Fraction => text.split('/').map(str::len).max().unwrap_or(0),
        Representation::Scientific => {
            text.split('e').next().and_then(|s| s.split_once('.')).map_or(0, |(_, decimals)| decimals.len())
        }
    }
}

/// A question's length: the longest of its number operands.
pub fn question_length(task: TaskId, a: &str, b: Option<&str>) -> usize {
    let own = number_length(task.representation, a);
    match (task.operation.second(), b) {
        (super::Second::SameRepresentation, Some(b)) => own.max(number_length(task.representation, b)),
        _ => own,
    }
}

/// Prepares the operands of `task`.
///
/// # Errors
/// [`NupaError::Number`] where a raw number is malformed; generated pairs never are.
pub fn prepare(task: TaskId, pair: RawPair, auxiliary: &mut Auxiliary<'_>) -> Result<Operands, NupaError> {
    use Operation as O;
    use Representation as R;
    let RawPair { a, b } = pair;
    let both = |a: String, b: String| Ok(Operands { a, b: Some(b) });
    match (task.operation, task.representation) {
        (O::Add, R::Scientific) => {
            let (significand, exponent) = scientific(task, &a)?;
            let exponent = exponent.min(98);
            let difference = auxiliary.draw(first_part(&b), -5, 5);
            let b_exponent = (exponent + difference).clamp(0, 98);
            let b = format!("{}e{b_exponent}", scientific(task, &b)?.0);
            both(format!("{significand}e{exponent}"), b)
        }
        (O::AddEasy, _) => {
            let a_is_shorter = number_length(R::Fraction, &a) <= number_length(R::Fraction, &b);
            if a_is_shorter { both(reduced_modulo(task, &a)?, b) } else { both(a, reduced_modulo(task, &b)?) }
        }
        (O::Sub, R::Scientific) => {
            let (a, b) = larger_first(task, a, b)?;
            let (significand, exponent) = scientific(task, &a)?;
            let exponent = exponent.max(1);
            let difference = auxiliary.draw(first_part(&b), -5, -1);
            let b = format!("{}e{}", scientific(task, &b)?.0, (exponent + difference).clamp(0, 99));
            both(at_least_one_more(task, format!("{significand}e{exponent}"), &b)?, b)
        }
        (O::Sub, _) => larger_first(task, a, b).and_then(|(a, b)| both(a, b)),
        (O::MultiplyEasy, _) => {
            let (a, b) = longer_first(task, a, b);
            let b = truncated_to_three(task, &b)?;
            both(a, b)
        }
        (O::TrueDiv, R::Fraction) if first_part(&b) == "0" => both(a, "1/1".into()),
        (O::TrueDiv, _) => both(a, at_least_one(b)),
        (O::FloorDiv, _) => larger_first(task, a, b).and_then(|(a, b)| both(a, at_least_one(b))),
        (O::Mod, _) => {
            let (a, b) = larger_first(task, a, b)?;
            let longest = a.len() * 7 / 10 + 1;
            let b = last_digits(&b, longest);
            both(a, at_least_one(b))
        }
        (O::ModEasy, _) => {
            let (a, b) = larger_first(task, a, b)?;
            let b = last_digits(&b, 3);
            both(a, at_least_one(b))
        }
        (O::Max | O::Min, R::Fraction) => both(at_most_one(a), at_most_one(b)),
        (O::GetDigit, _) => {
            let (a, b) = longer_first(task, a, b);
            let digits = a.bytes().filter(u8::is_ascii_digit).count() as i64;
            let position = auxiliary.draw(first_part(&b), 0, digits - 1);
            both(a, position.to_string())
        }
        (O::Length, _) => Ok(Operands { a: longer_first(task, a, b).0, b: None }),
        (O::Count, _) => {
            let (a, b) = longer_first(task, a, b);
            let digit = auxiliary.draw(first_part(&b), 0, 9);
            both(a, digit.to_string())
        }
        (O::ToFloat, R::Fraction) => finite_fraction(task, longer_first(task, a, b), auxiliary),
        (O::ToFloat, _) => {
            let (a, b) = longer_first(task, a, b);
            let (significand, exponent) = scientific(task, &a)?;
            let largest = exponent.min(number_length(R::Scientific, &a) as i64);
            let exponent = auxiliary.draw(first_part(&b), 0, largest);
            Ok(Operands { a: format!("{significand}e{exponent}"), b: None })
        }
        (O::ToScient, R::Integer) => {
            let (a, b) = longer_first(task, a, b);
            let zeroed = auxiliary.draw(first_part(&b), 0, a.len() as i64 / 2).unsigned_abs() as usize;
            Ok(Operands { a: format!("{}{}", &a[..a.len() - zeroed], "0".repeat(zeroed)), b: None })
        }
        (O::ToScient, _) => Ok(Operands { a: longer_first(task, a, b).0, b: None }),
        (O::Sig, _) => {
            let (a, b) = longer_first(task, a, b);
            let digits = match task.representation {
                R::Float => a.replace('.', "").trim_matches('0').len(),
                _ => a.len(),
            };
            let figures = auxiliary.draw(first_part(&b), 2, (digits as i64).max(2));
            both(a, figures.to_string())
        }
        _ => both(a, b),
    }
}

fn number(task: TaskId, text: &str) -> Result<Number, NupaError> {
    Number::parse(task.representation.notation(), text).map_err(|source| NupaError::Number { task, source })
}

/// The digits up to the first sign of another part.
fn first_part(text: &str) -> &str {
    text.split(['.', '/', 'e']).next().unwrap_or_default()
}

fn longer_first(task: TaskId, a: String, b: String) -> (String, String) {
    let length = |text: &str| number_length(task.representation, text);
    if length(&b) > length(&a) { (b, a) } else { (a, b) }
}

fn larger_first(task: TaskId, a: String, b: String) -> Result<(String, String), NupaError> {
    let order = compare(task, &a, &b).map_err(|source| NupaError::Number { task, source })?;
    Ok(if order.is_lt() { (b, a) } else { (a, b) })
}

fn at_least_one(integer: String) -> String {
    if integer == "0" { "1".into() } else { integer }
}

/// The integer modulo a power of ten.
fn last_digits(integer: &str, count: usize) -> String {
    trim_leading_zeros(&integer[integer.len().saturating_sub(count)..]).to_string()
}

fn scientific(task: TaskId, text: &str) -> Result<(&'_ str, i64), NupaError> {
    let pieces = text.split_once('e').and_then(|(significand, exponent)| Some((significand, exponent.parse().ok()?)));
    match pieces {
        Some(pieces) => Ok(pieces),
        None => {
            number(task, text)?;
            Err(NupaError::Operands { task, expected: "numbers in scientific notation", got: format!("`{text}`") })
        }
    }
}

/// Inverts a fraction above 1.
fn at_most_one(fraction: String) -> String {
    match fraction.split_once('/') {
        Some((numerator, denominator))
            if earnest_answer::number::compare_integer_digits(numerator, denominator).is_gt() =>
        {
            format!("{denominator}/{numerator}")
        }
        _ => fraction,
    }
}

/// Numerator and denominator modulo `10^min(length, 3)`, a zero denominator becoming 1.
fn reduced_modulo(task: TaskId, text: &str) -> Result<String, NupaError> {
    let Number::Fraction(fraction) = number(task, text)? else { return Ok(text.into()) };
    let digits = number_length(Representation::Fraction, text).min(3) as u32;
    let modulus = BigInt::from(10u32.pow(digits));
    let mut denominator = fraction.denominator() % &modulus;
    if denominator.is_zero() {
        denominator = BigInt::from(1u8);
    }
    let reduced = Fraction::new(fraction.numerator() % &modulus, denominator);
    Ok(reduced.map_err(|source| NupaError::Number { task, source })?.to_string())
}

fn truncated_to_three(task: TaskId, text: &str) -> Result<String, NupaError> {
    let three_decimals = |decimals: &str| trim_trailing_zeros(&decimals[..decimals.len().min(3)]).to_string();
    match (task.representation, text.split_once('.')) {
        (Representation::Integer, _) => Ok(last_digits(text, 3)),
        (Representation::Float, Some((integer, decimals))) => {
            Ok(format!("{}.{}", last_digits(integer, 3), three_decimals(decimals)))
        }
        (Representation::Scientific, Some((integer, rest))) => match rest.split_once('e') {
            Some((decimals, exponent)) => Ok(format!("{integer}.{}e{exponent}", three_decimals(decimals))),
            None => number(task, text).map(|number| number.to_string()),
        },
        (Representation::Fraction, _) => reduced_modulo(task, text),
        _ => number(task, text).map(|number| number.to_string()),
    }
}

/// Adds 1 to `a` where `a - b` would not exceed 1, so that the difference needs no negative exponent.
fn at_least_one_more(task: TaskId, a: String, b: &str) -> Result<String, NupaError> {
    let (x, y, one) = (number(task, &a)?, number(task, b)?, number(task, "1.0e0")?);
    let difference = x.subtract(&y).and_then(|difference| difference.compare(&one));
    if difference.map_err(|source| NupaError::Number { task, source })?.is_gt() {
        return Ok(a);
    }
    Ok(x.add(&one).map_err(|source| NupaError::Number { task, source })?.to_string())
}

/// The larger part of the longer fraction over `2^i 5^j`, so that the decimal is finite.
fn finite_fraction(
    task: TaskId,
    (a, b): (String, String),
    auxiliary: &mut Auxiliary<'_>,
) -> Result<Operands, NupaError> {
    let (Number::Fraction(long), Some((b_numerator, b_denominator))) = (number(task, &a)?, b.split_once('/')) else {
        return Err(NupaError::Operands { task, expected: "fractions", got: format!("`{a}` and `{b}`") });
    };
    let largest = number_length(Representation::Fraction, &a).max(number_length(Representation::Fraction, &b)) as i64;
    let twos = auxiliary.draw(b_numerator, 0, largest).unsigned_abs() as u32;
    let fives = auxiliary.draw(b_denominator, 0, largest).unsigned_abs() as u32;
    let numerator = long.numerator().max(long.denominator()).clone();
    let denominator = BigInt::from(2u8).pow(twos) * BigInt::from(5u8).pow(fives);
    let fraction = Fraction::new(numerator, denominator).map_err(|source| NupaError::Number { task, source })?;
    Ok(Operands { a: fraction.to_string(), b: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(task: &str, a: &str, b: &str) -> (String, Option<String>) {
        let pair = RawPair { a: a.into(), b: b.into() };
        let mut random = DigitSource::named(a);
        let operands = prepare(task.parse().unwrap(), pair, &mut Auxiliary::Uniform(&mut random)).unwrap();
        (operands.a, operands.b)
    }

    fn two(a: &str, b: &str) -> (String, Option<String>) {
        (a.into(), Some(b.into()))
    }

    #[test]
    fn rules_without_chance() {
        assert_eq!(prepared("multiply_easy_Integer", "12", "98003"), two("98003", "12"));
        assert_eq!(prepared("multiply_easy_Integer", "98003", "45007"), two("98003", "7"));
        assert_eq!(prepared("multiply_easy_Float", "1234.10056", "9.123456"), two("9.123456", "234.1"));
        assert_eq!(prepared("multiply_easy_ScientificNotation", "1.0005e7", "2.00004e9"), two("2.00004e9", "1.0e7"));
        assert_eq!(prepared("add_easy_Fraction", "1/2000", "3/7000"), two("1/1", "3/7000"));
        assert_eq!(prepared("mod_Integer", "1000", "9990"), two("9990", "1"));
        assert_eq!(prepared("mod_easy_Integer", "98000", "98001"), two("98001", "1"));
        assert_eq!(prepared("truediv_Fraction", "1/2", "0/1"), two("1/2", "1/1"));
        assert_eq!(prepared("max_Fraction", "7/2", "2/7"), two("2/7", "2/7"));
        assert_eq!(prepared("length_Float", "1.5", "1.55"), ("1.55".into(), None));
    }

    #[test]
    fn scientific_exponents_stay_in_range() {
        let mut seen = std::collections::BTreeSet::new();
        for i in 0..2000 {
            let (a, b) = prepared("add_ScientificNotation", &format!("1.{i}1e50"), "5.5e1");
            assert!(a.ends_with("e50"));
            seen.insert(b.unwrap().split('e').nth(1).unwrap().parse::<i64>().unwrap() - 50);
            let (a, b) = prepared("sub_ScientificNotation", &format!("1.{i}1e0"), "1.2e0");
            let difference = super::super::exact_answer("sub_ScientificNotation".parse().unwrap(), &a, b.as_deref());
            assert!(!difference.unwrap().contains("e-"), "{a} {b:?}");
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (-5..=5).collect::<Vec<_>>());
    }
}
