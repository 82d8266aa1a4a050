//! The exact answer of every task, from the operands' texts. Comparisons and digit tasks run on digit strings: they
//! stay exact at any length and are what makes generating 100-digit items cheap.
use std::cmp::Ordering;

use earnest_answer::number::{
    Digitwise, Notation, Number, NumberError, Rounding, check_figures, compare_decimal_digits, compare_integer_digits,
    digitwise_left_aligned, digitwise_right_aligned, is_digits, round_digits, trim_leading_zeros, trim_trailing_zeros,
};

use super::{NupaError, Operation, Representation, Second, TaskId};

impl Representation {
    /// The notation of numbers in this representation.
    pub fn notation(self) -> Notation {
        match self {
            Representation::Integer => Notation::Integer,
            Representation::Float => Notation::Decimal,
            Representation::Fraction => Notation::Fraction,
            Representation::Scientific => Notation::Scientific,
        }
    }
}

/// The exact answer; significant figures round half up over the whole tail.
///
/// # Errors
/// [`NupaError::Operands`] for a missing, surplus, malformed or negative operand, [`NupaError::Number`] for what has no answer.
pub fn exact_answer(task: TaskId, a: &str, b: Option<&str>) -> Result<String, NupaError> {
    answer(task, a, b, |digits, exponent, figures| significant(digits, exponent, figures, Rounding::HalfUp))
}

/// As [`exact_answer`], with exact ties going to the even digit (only `sig` differs).
///
/// # Errors
/// As [`exact_answer`].
pub fn half_even_answer(task: TaskId, a: &str, b: Option<&str>) -> Result<String, NupaError> {
    answer(task, a, b, |digits, exponent, figures| significant(digits, exponent, figures, Rounding::HalfEven))
}

/// The truth of the authors' program. It differs for `sig` only, in three ways: a next digit of exactly 5 is cut
/// whatever follows, a significand `d.000` gets one zero too many, and a carry out of the first digit loses a factor of 10.
///
/// # Errors
/// As [`exact_answer`].
pub fn reference_answer(task: TaskId, a: &str, b: Option<&str>) -> Result<String, NupaError> {
    answer(task, a, b, |digits, exponent, figures| {
        let cut = digits.as_bytes().get(figures) == Some(&b'5');
        let shown = if cut { &digits[..figures] } else { digits };
        let (mut rounded, carried) = round_digits(shown, figures, Rounding::HalfUp);
        if carried {
            rounded.push('0');
        }
        if rounded.bytes().skip(1).all(|digit| digit == b'0') {
            rounded.push('0');
        }
        scientific_text(&rounded, exponent)
    })
}

/// Writes digits (no leading zeros), the power of ten of the first, with a number of significant figures.
type SignificantFigures = fn(&str, i64, usize) -> String;

fn significant(digits: &str, exponent: i64, figures: usize, rounding: Rounding) -> String {
    let (rounded, carried) = round_digits(digits, figures, rounding);
    scientific_text(&rounded, exponent + i64::from(carried))
}

fn scientific_text(digits: &str, exponent: i64) -> String {
    let (first, rest) = digits.split_at(1);
    format!("{first}.{}e{exponent}", if rest.is_empty() { "0" } else { rest })
}

fn answer(task: TaskId, a: &str, b: Option<&str>, sig: SignificantFigures) -> Result<String, NupaError> {
    let operands = |expected: &'static str| NupaError::Operands {
        task,
        expected,
        got: match b {
            Some(b) => format!("`{a}` and `{b}`"),
            None => format!("`{a}`"),
        },
    };
    if a.starts_with('-') || b.is_some_and(|b| b.starts_with('-')) {
        return Err(operands("non-negative operands"));
    }
    match (task.operation.second(), b) {
        (Second::None, None) => unary(task, a).map_err(|source| NupaError::Number { task, source }),
        (Second::None, Some(_)) => Err(operands("one operand")),
        (_, None) => Err(operands("two operands")),
        (Second::ShortInteger, Some(b)) => {
            let small: u32 = b.parse().map_err(|_| operands("a number and a small integer"))?;
            indexed(task, a, small, sig).map_err(|source| NupaError::Number { task, source })
        }
        (Second::SameRepresentation, Some(b)) => {
            binary(task, a, b).map_err(|source| NupaError::Number { task, source })
        }
    }
}

fn parse(task: TaskId, text: &str) -> Result<Number, NumberError> {
    Number::parse(task.representation.notation(), text)
}

/// Checks the text of an integer or a float and gives its integer digits and decimals (empty for an integer).
fn digits_of(task: TaskId, text: &str) -> Result<(&'_ str, &'_ str), NumberError> {
    let pieces = match task.representation {
        Representation::Integer => is_digits(text).then_some((text, "")),
        Representation::Float => {
            text.split_once('.').filter(|(integer, decimals)| is_digits(integer) && is_digits(decimals))
        }
        _ => None,
    };
    match pieces {
        Some(pieces) => Ok(pieces),
        // The parser's error says best what is wrong; a text it accepts has a notation without digit positions.
        None => {
            parse(task, text)?;
            Err(NumberError::Undefined { operation: "a digit operation", notation: task.representation.notation() })
        }
    }
}

fn unary(task: TaskId, a: &str) -> Result<String, NumberError> {
    match task.operation {
        Operation::Length => {
            let (integer, decimals) = digits_of(task, a)?;
            Ok((integer.len() + decimals.len()).to_string())
        }
        Operation::ToFloat => Ok(parse(task, a)?.to_decimal()?.to_string()),
        _ => {
            let (integer, decimals) = digits_of(task, a)?;
            let (digits, exponent) = leading_digits(integer, decimals);
            Ok(if digits == "0" { "0.0e0".into() } else { scientific_text(trim_trailing_zeros(&digits), exponent) })
        }
    }
}

/// The digits from the first non-zero one on, and the power of ten of that one; `0` for zero.
fn leading_digits(integer: &str, decimals: &str) -> (String, i64) {
    let all = format!("{integer}{decimals}");
    let digits = trim_leading_zeros(&all);
    (digits.to_string(), digits.len() as i64 - 1 - decimals.len() as i64)
}

fn indexed(task: TaskId, a: &str, b: u32, sig: SignificantFigures) -> Result<String, NumberError> {
    let (integer, decimals) = digits_of(task, a)?;
    match task.operation {
        Operation::GetDigit => {
            let mut digits = integer.chars().chain(decimals.chars());
            digits.nth(b as usize).map(String::from).ok_or_else(|| NumberError::PositionOutOfRange {
                position: b as usize,
                number: a.into(),
                digits: integer.len() + decimals.len(),
            })
        }
        Operation::Count => {
            let digit = char::from_digit(b, 10).ok_or(NumberError::NotADigit(b))?;
            Ok(integer.matches(digit).count().to_string())
        }
        _ => {
            let (digits, exponent) = leading_digits(integer, decimals);
            check_figures(b as usize)?;
            Ok(if digits == "0" { "0.0e0".into() } else { sig(&digits, exponent, b as usize) })
        }
    }
}

fn binary(task: TaskId, a: &str, b: &str) -> Result<String, NumberError> {
    use Operation as O;
    let both = || Ok::<_, NumberError>((parse(task, a)?, parse(task, b)?));
    match task.operation {
        O::Add | O::AddEasy => both().and_then(|(a, b)| Ok(a.add(&b)?.to_string())),
        O::Sub => both().and_then(|(a, b)| Ok(a.subtract(&b)?.to_string())),
        O::MultiplyEasy | O::MultiplyHard => both().and_then(|(a, b)| Ok(a.multiply(&b)?.to_string())),
        O::TrueDiv => both().and_then(|(a, b)| Ok(a.true_divide(&b)?.to_string())),
        O::FloorDiv => both().and_then(|(a, b)| Ok(a.floor_divide(&b)?.0.to_string())),
        O::Mod | O::ModEasy => both().and_then(|(a, b)| Ok(a.floor_divide(&b)?.1.to_string())),
        O::Max | O::MaxHard => Ok(if compare(task, a, b)?.is_gt() { a } else { b }.into()),
        O::Min | O::MinHard => Ok(if compare(task, a, b)?.is_lt() { a } else { b }.into()),
        O::DigitMax => digitwise(task, Digitwise::Max, a, b),
        O::DigitMin => digitwise(task, Digitwise::Min, a, b),
        _ => digitwise(task, Digitwise::AddModulo10, a, b),
    }
}

fn digitwise(task: TaskId, operation: Digitwise, a: &str, b: &str) -> Result<String, NumberError> {
    let (a, c) = digits_of(task, a)?;
    let (b, d) = digits_of(task, b)?;
    let integer = digitwise_right_aligned(operation, a, b);
    let integer = trim_leading_zeros(&integer);
    if task.representation == Representation::Integer {
        return Ok(integer.into());
    }
    let decimals = digitwise_left_aligned(operation, c, d);
    Ok(format!("{integer}.{}", trim_trailing_zeros(&decimals)))
}

/// Compares two operands by value.
///
/// # Errors
/// [`NumberError`] for a text that is not in the task's representation.
pub(super) fn compare(task: TaskId, a: &str, b: &str) -> Result<Ordering, NumberError> {
    match task.representation {
        Representation::Integer | Representation::Float => {
            let (a, c) = digits_of(task, a)?;
            let (b, d) = digits_of(task, b)?;
            Ok(compare_integer_digits(a, b).then_with(|| compare_decimal_digits(c, d)))
        }
        Representation::Fraction => parse(task, a)?.compare(&parse(task, b)?),
        Representation::Scientific => match (normalised(a), normalised(b)) {
            (Some((a, x)), Some((b, y))) => Ok(x.cmp(&y).then_with(|| {
                let (a, c) = a.split_at(1);
                let (b, d) = b.split_at(1);
                a.cmp(b).then_with(|| compare_decimal_digits(&c[1..], &d[1..]))
            })),
            _ => parse(task, a)?.compare(&parse(task, b)?),
        },
    }
}

/// Significand and exponent of `d.DeX` with a non-zero `d`; other texts take the slow way.
fn normalised(text: &str) -> Option<(&str, u32)> {
    let (significand, exponent) = text.split_once('e')?;
    let (integer, decimals) = significand.split_once('.')?;
    let one_digit = integer.len() == 1 && integer != "0" && is_digits(integer);
    if !one_digit || !is_digits(decimals) || !is_digits(exponent) {
        return None;
    }
    Some((significand, exponent.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(task: &str, a: &str, b: Option<&str>) -> Result<String, NupaError> {
        exact_answer(task.parse().unwrap(), a, b)
    }

    #[test]
    fn digit_string_paths_agree_with_numbers() {
        let decimal = |text| Number::parse(Notation::Decimal, text).unwrap();
        for (a, b) in [("44.418", "65.669"), ("5.5", "5.5"), ("0.05", "100.0"), ("9.9", "9.11")] {
            for (name, operation) in [("max", Digitwise::Max), ("min", Digitwise::Min), ("add", Digitwise::AddModulo10)]
            {
                let expected = decimal(a).digitwise(operation, &decimal(b)).unwrap().to_string();
                assert_eq!(of(&format!("digit_{name}_Float"), a, Some(b)).unwrap(), expected);
            }
            assert_eq!(of("to_scient_Float", a, None).unwrap(), decimal(a).to_scientific().unwrap().to_string());
            for figures in 1..9 {
                let expected = decimal(a).to_significant(figures, Rounding::HalfUp).unwrap();
                assert_eq!(of("sig_Float", a, Some(&figures.to_string())).unwrap(), expected);
            }
        }
    }

    #[test]
    fn scientific_comparison_takes_odd_spellings() {
        assert_eq!(of("max_ScientificNotation", "0.0e9", Some("1.0e0")).unwrap(), "1.0e0");
        assert_eq!(of("max_ScientificNotation", "10.0e1", Some("9.9e1")).unwrap(), "10.0e1");
        assert_eq!(of("min_ScientificNotation", "1.10e1", Some("1.1e1")).unwrap(), "1.1e1");
    }

    #[test]
    fn impossible_operands_are_errors() {
        for (task, a, b) in [
            ("add_Integer", "1", None),
            ("length_Integer", "1", Some("2")),
            ("add_Integer", "-1", Some("2")),
            ("add_Integer", "1.0", Some("2")),
            ("truediv_Integer", "1", Some("0")),
            ("mod_Integer", "1", Some("0")),
            ("get_digit_Integer", "123", Some("3")),
            ("get_digit_Float", "12", Some("0")),
            ("count_Integer", "123", Some("10")),
            ("count_Integer", "123", Some("99999999999")),
            ("sig_Integer", "123", Some("0")),
            ("sig_Integer", "123", Some("4000000000")),
            ("to_float_Fraction", "1/3", None),
            ("digit_max_Float", "", Some("1.0")),
            ("max_ScientificNotation", "1e5", Some("1.0e5")),
        ] {
            assert!(of(task, a, b).is_err(), "{task} {a} {b:?}");
        }
    }
}
