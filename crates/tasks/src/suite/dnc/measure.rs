//! Comparison of a predicted equation or number with the gold one.
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};

use super::expression::Expression;
use earnest_answer::number::Fraction;
use earnest_answer::python::{PythonError, python_close, python_eval};

/// The paper's metrics of an equation (spec section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaperEquation {
    /// Acc_eq: the strings are identical.
    pub equation: bool,
    /// Acc_ans: identical, or both evaluate (as Python does) to values that differ by less than 1e-4.
    pub answer: bool,
    /// The class of the error that the comparison raises. The reference counts syntax, type, name and zero-division errors as
    /// wrong and ends at others; here all count as wrong.
    pub exception: Option<&'static str>,
}

/// Scores a predicted left side as the paper does.
pub fn paper_equation(prediction: &str, gold: &str) -> PaperEquation {
    let equation = prediction == gold;
    if equation {
        return PaperEquation { equation, answer: true, exception: None };
    }
    let close = python_eval(prediction).and_then(|ours| python_close(&ours, &python_eval(gold)?));
    PaperEquation { equation, answer: close == Ok(true), exception: close.err().map(PythonError::class) }
}

/// Ours, beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equation {
    /// Equal as strings, blanks aside.
    pub string: bool,
    /// The exact values are equal up to the tolerance of [`same_value`].
    pub value: bool,
    /// The same formula: equal whatever the operands are ([`Expression::is_equivalent_to`]).
    pub equivalent: bool,
}

/// Compares a predicted equation with the gold one by string, by value and as a formula.
pub fn equation(prediction: &Expression, written: &str, gold: &Expression, gold_text: &str) -> Equation {
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let value = match (prediction.value(), gold.value()) {
        (Ok(ours), Ok(gold)) => same_value(&ours, None, &gold),
        _ => false,
    };
    Equation { string: squeezed(written) == squeezed(gold_text), value, equivalent: prediction.is_equivalent_to(gold) }
}

/// True if a number is the gold one: `|p - g| <= max(1e-4, 1e-6 |g|)`, or, where the gold has no finite decimal, a correct
/// rounding of it to the decimals that are written, at least two.
pub fn same_value(prediction: &Fraction, written: Option<&str>, gold: &Fraction) -> bool {
    let difference = magnitude(&(prediction - gold));
    let power = |exponent: u32| Fraction::new(BigInt::from(1), BigInt::from(10).pow(exponent));
    let (Ok(absolute), Ok(relative)) = (power(4), power(6)) else { return false };
    if difference <= absolute || difference <= &relative * &magnitude(gold) {
        return true;
    }
    let decimals = written
        .and_then(|text| text.split_once('.'))
        .map_or(0, |(_, digits)| digits.bytes().take_while(u8::is_ascii_digit).count());
    if gold.to_decimal().is_ok() || !(2..=400).contains(&decimals) {
        return false;
    }
    let Ok(places) = u32::try_from(decimals) else { return false };
    round_half_up(gold, places).is_some_and(|rounded| rounded == *prediction)
}

fn magnitude(value: &Fraction) -> Fraction {
    if value.numerator().is_negative() { &Fraction::from(BigInt::zero()) - value } else { value.clone() }
}

/// The nearest decimal with so many places, halves away from zero.
pub fn round_half_up(value: &Fraction, places: u32) -> Option<Fraction> {
    let scale = BigInt::from(10).pow(places);
    let doubled = value.numerator().abs() * &scale * 2u8 + value.denominator();
    let whole = doubled.div_floor(&(value.denominator() * 2u8));
    Fraction::new(if value.numerator().is_negative() { -whole } else { whole }, scale).ok()
}

/// DROP: the paper's scorer on a number (string identity, or the values within 1e-4).
pub fn drop_match(prediction: &str, gold: &str) -> bool {
    let scored = paper_equation(prediction.trim(), gold.trim());
    scored.equation || scored.answer
}

#[cfg(test)]
mod tests {
    use super::super::expression::exact;
    use super::*;

    #[test]
    fn the_paper_counts_surface_and_forgives_value() {
        let of = |p, g| {
            let found = paper_equation(p, g);
            (found.equation, found.answer)
        };
        assert_eq!(of("5+7", "5+7"), (true, true));
        assert_eq!(of("105+698", "105.0+698.0"), (false, true));
        assert_eq!(of("7/0", "7"), (false, false));
        assert_eq!(of("5×7", "5*7"), (false, false));
        assert_eq!(paper_equation("7/0", "7").exception, Some("ZeroDivisionError"));
        assert!(drop_match("5", "5.0") && drop_match(" 5 ", "5") && !drop_match("five", "5"));
    }

    #[test]
    fn values_and_correct_roundings_count() {
        let third = Fraction::new(10.into(), 3.into()).unwrap();
        let same = |text: &str, gold: &Fraction| same_value(&exact(text).unwrap(), Some(text), gold);
        assert!(same("3.33", &third) && same("3.3333333", &third) && !same("3.3", &third) && !same("3.34", &third));
        let gold = exact("37.38").unwrap();
        assert!(same("37.38", &gold) && same("37.380", &gold) && same("37.38005", &gold) && !same("37.39", &gold));
        let large = exact("123456789").unwrap();
        assert!(same("123456800", &large) && !same("123456913", &large));
        let negative = Fraction::new((-10).into(), 3.into()).unwrap();
        assert!(same("-3.33", &negative) && !same("3.33", &negative));
    }

    #[test]
    fn three_readings_of_an_equation() {
        let of = |p: &str, g: &str| {
            let found = equation(&Expression::parse(p).unwrap(), p, &Expression::parse(g).unwrap(), g);
            (found.string, found.value, found.equivalent)
        };
        assert_eq!(of("5 + 7", "5+7"), (true, true, true));
        assert_eq!(of("7+5.0", "5+7"), (false, true, true));
        assert_eq!(of("12", "5+7"), (false, true, false));
        assert_eq!(of("5-7", "5+7"), (false, false, false));
    }
}
