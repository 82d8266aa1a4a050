//! The class of a wrong answer.
use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};
use serde_json::Value;

use super::columns::{Missed, missed_borrows, missed_carries, missed_carries_of_product};
use super::digits::{is_dropped, is_reordered, is_repeated};
use super::near::near;
use super::{ErrorClass, Written};
use crate::suite::arithmetic_bench::Task;
use crate::suite::nupa::{Operation, TaskId};
use crate::suite::{FailureClass, Score};
use earnest_answer::number::Fraction;

/// Characters of a fraction beyond which nothing is calculated.
const LONGEST_FRACTION: usize = 2_000;

/// Digits of an operand up to which it may be a count by chance.
const LONGEST_COUNT: usize = 2;

/// Arithmetic operation of a question, as far as classes of errors depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calculation {
    Add,
    Subtract,
    Multiply,
    /// Whole quotient.
    Divide,
    /// Quotient as a fraction.
    Quotient,
    Remainder,
    /// The larger or the smaller operand.
    Choose,
    /// A number of digits, or the digit at a place.
    Count,
    /// Anything else: digits are compared.
    Other,
}

impl Calculation {
    /// The calculation of a task of NUPA or Arithmetic-Bench, by the name that items carry.
    pub fn of_task(task: &str) -> Self {
        if let Ok(task) = task.parse::<Task>() {
            return match task {
                Task::Add | Task::Add1 => Calculation::Add,
                Task::Sub | Task::Sub1 => Calculation::Subtract,
                Task::Mul | Task::Mul1 => Calculation::Multiply,
                Task::Div | Task::Div1 => Calculation::Divide,
                Task::Length | Task::Count => Calculation::Count,
                _ => Calculation::Other,
            };
        }
        match TaskId::find(task).map(|task| task.operation) {
            Some(Operation::Add | Operation::AddEasy) => Calculation::Add,
            Some(Operation::Sub) => Calculation::Subtract,
            Some(Operation::MultiplyHard | Operation::MultiplyEasy) => Calculation::Multiply,
            Some(Operation::FloorDiv) => Calculation::Divide,
            Some(Operation::TrueDiv) => Calculation::Quotient,
            Some(Operation::Length | Operation::Count | Operation::GetDigit) => Calculation::Count,
            Some(Operation::Mod | Operation::ModEasy) => Calculation::Remainder,
            Some(Operation::Max | Operation::MaxHard | Operation::Min | Operation::MinHard) => Calculation::Choose,
            _ => Calculation::Other,
        }
    }
}

/// A wrong answer with what was asked.
#[derive(Debug, Clone, Copy)]
pub struct Wrong<'a> {
    pub calculation: Calculation,
    /// Operands, where they are known.
    pub a: Option<&'a str>,
    pub b: Option<&'a str>,
    pub expected: &'a str,
    /// The answer as it was read.
    pub answer: Option<&'a str>,
    /// Number that the question shows as an example of the form of the answer.
    pub shown: Option<&'a str>,
}

impl<'a> Wrong<'a> {
    /// The answer of a stored sample, with the operands that its covariates have.
    pub fn new(task: &str, covariates: &'a BTreeMap<String, Value>, expected: &'a str, score: &'a Score) -> Self {
        let operand = |name: &str| covariates.get(name).and_then(Value::as_str);
        let (a, b) = (operand("a"), operand("b"));
        let shown = TaskId::find(task).map(|task| task.answer_form().shown());
        Wrong { calculation: Calculation::of_task(task), a, b, expected, answer: score.answer.as_deref(), shown }
    }
}

/// Classification of a wrong answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    pub class: ErrorClass,
    /// Position from the right of the first carry or borrow that was left out.
    pub position: Option<usize>,
}

impl From<ErrorClass> for Finding {
    fn from(class: ErrorClass) -> Self {
        Finding { class, position: None }
    }
}

/// The class of a stored sample; none of one that is right.
pub fn of_sample(
    task: &str,
    covariates: &BTreeMap<String, Value>,
    expected: &str,
    score: &Score,
    truncated: bool,
) -> Option<Finding> {
    if score.correct {
        return None;
    }
    if truncated {
        return Some(ErrorClass::Truncated.into());
    }
    let is_form = matches!(score.failure, Some(FailureClass::Form | FailureClass::Format));
    match &score.failure {
        Some(FailureClass::Refusal | FailureClass::Refused) => return Some(ErrorClass::Refusal.into()),
        Some(FailureClass::Truncated) => return Some(ErrorClass::Truncated.into()),
        _ => {}
    }
    let found = classify(&Wrong::new(task, covariates, expected, score));
    // The suite knows which spellings it asked for.
    match found.class {
        ErrorClass::Unreduced => Some(found),
        _ if is_form => Some(ErrorClass::Format.into()),
        _ => Some(found),
    }
}

/// The class of a wrong answer.
pub fn classify(wrong: &Wrong<'_>) -> Finding {
    let Some(answer) = wrong.answer.filter(|answer| answer.bytes().any(|byte| byte.is_ascii_digit())) else {
        return ErrorClass::NoNumber.into();
    };
    match exact(wrong, answer) {
        Finding { class: ErrorClass::Other, .. } => near(wrong, answer).into(),
        found => found,
    }
}

/// The class of an answer that is exactly what a mistake gives; [`ErrorClass::Other`] of others.
fn exact(wrong: &Wrong<'_>, answer: &str) -> Finding {
    if let Some(class) = other_form(wrong.expected, answer) {
        return class.into();
    }
    let written = [wrong.a, wrong.b].into_iter().flatten().any(|operand| is_same(operand, answer));
    // Before its exponent or its digits are compared with those of the right one.
    if wrong.calculation == Calculation::Choose && written {
        return ErrorClass::Operation.into();
    }
    if let Some(class) = by_fraction(wrong, answer) {
        return class.into();
    }
    let (Some(expected), Some(given)) = (Written::parse(wrong.expected), Written::parse(answer)) else {
        let is_operand = written && wrong.calculation != Calculation::Count;
        return if is_operand { ErrorClass::Operand.into() } else { by_digits(wrong.expected, answer).into() };
    };
    let magnitude = |number: &Written| Written { negative: false, ..number.clone() };
    if expected.exponent != given.exponent && expected.exponent.is_some() {
        let significand = |number: &Written| number.digits().trim_end_matches('0').to_owned();
        if significand(&expected) == significand(&given) && expected.whole == given.whole {
            return ErrorClass::Exponent.into();
        }
    }
    if expected.negative != given.negative && magnitude(&expected) == magnitude(&given) {
        return ErrorClass::Sign.into();
    }
    let operands = [wrong.a, wrong.b].map(|operand| operand.and_then(Written::parse));
    if let Some(found) = by_calculation(wrong.calculation, &operands, &given) {
        return found;
    }
    let (digits, read) = (expected.digits(), given.digits());
    let bare = |digits: &str| digits.trim_matches('0').to_owned();
    if bare(&digits) == bare(&read) && !bare(&digits).is_empty() {
        return ErrorClass::Shifted.into();
    }
    by_digits(&digits, &read).into()
}

/// The right value, written otherwise.
fn other_form(expected: &str, answer: &str) -> Option<ErrorClass> {
    if let (Ok(truth), Ok(given)) = (Fraction::parse(expected), Fraction::parse(answer)) {
        return (truth == given && expected != answer).then_some(ErrorClass::Unreduced);
    }
    let plain = |text: &str| {
        let number = Written::parse(&text.replace([',', '_', '\u{a0}'], ""))?;
        let whole = number.whole.trim_start_matches('0').to_owned();
        Some((number.negative, whole, number.decimals.trim_end_matches('0').to_owned(), number.exponent))
    };
    let (truth, given) = (plain(expected)?, plain(answer)?);
    (truth == given).then_some(ErrorClass::Format)
}

/// True of two spellings of one number.
fn is_same(one: &str, other: &str) -> bool {
    let numbers = || Some((Written::parse(one)?, Written::parse(other)?));
    match (fraction(one), fraction(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other || numbers().is_some_and(|(one, other)| one == other),
    }
}

/// A fraction, or a whole number as one.
fn fraction(text: &str) -> Option<Fraction> {
    if text.len() > LONGEST_FRACTION {
        return None;
    }
    let whole = || Written::parse(text).filter(|number| number.exponent.is_none())?.scaled(0).map(Fraction::from);
    Fraction::parse(text).ok().or_else(whole)
}

/// Classes of wrong answers to questions whose answer is a fraction.
fn by_fraction(wrong: &Wrong<'_>, answer: &str) -> Option<ErrorClass> {
    let expected = Fraction::parse(wrong.expected).ok()?;
    let given = fraction(answer)?;
    if &Fraction::from(BigInt::ZERO) - &given == expected {
        return Some(ErrorClass::Sign);
    }
    let [a, b] = [wrong.a, wrong.b].map(|operand| operand.and_then(fraction));
    if let (Some(a), Some(b)) = (&a, &b)
        && is_other_operation_on_fractions(wrong.calculation, a, b, &given)
    {
        return Some(ErrorClass::Operation);
    }
    [a, b].into_iter().flatten().any(|operand| operand == given).then_some(ErrorClass::Operand)
}

/// True of the exact result of another operation on fractions, of the quotient the other way round, and of sums and differences of numerators and
/// denominators by themselves.
fn is_other_operation_on_fractions(calculation: Calculation, a: &Fraction, b: &Fraction, given: &Fraction) -> bool {
    let by_parts = |of: fn(&BigInt, &BigInt) -> BigInt| {
        let (above, below) = (of(a.numerator(), b.numerator()), of(a.denominator(), b.denominator()));
        Fraction::new(above, below).ok()
    };
    let is = |of: Calculation, result: Option<Fraction>| of != calculation && result.as_ref() == Some(given);
    match calculation {
        Calculation::Add if by_parts(|one, other| one + other).as_ref() == Some(given) => return true,
        Calculation::Subtract if by_parts(|one, other| one - other).as_ref() == Some(given) => return true,
        Calculation::Choose | Calculation::Count | Calculation::Other => return false,
        _ => {}
    }
    is(Calculation::Add, Some(a + b))
        || is(Calculation::Subtract, Some(a - b))
        || is(Calculation::Subtract, Some(b - a))
        || is(Calculation::Multiply, Some(a * b))
        || is(Calculation::Quotient, a.divided_by(b).ok())
        || b.divided_by(a).ok().as_ref() == Some(given)
}

fn by_digits(expected: &str, answer: &str) -> ErrorClass {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let (expected, answer) = (digits(expected), digits(answer));
    if is_reordered(&expected, &answer) {
        ErrorClass::Order
    } else if is_dropped(&expected, &answer) {
        ErrorClass::Dropped
    } else if is_repeated(&expected, &answer) {
        ErrorClass::Repeated
    } else {
        ErrorClass::Other
    }
}

/// Results of other operations, operands, carries, and operands beside each other.
fn by_calculation(calculation: Calculation, operands: &[Option<Written>; 2], given: &Written) -> Option<Finding> {
    let [Some(a), b] = operands else { return None };
    // Short answers are an operand by chance; a number of several digits is copied.
    if calculation == Calculation::Count {
        return (a == given && a.whole.len() > LONGEST_COUNT).then(|| ErrorClass::Operand.into());
    }
    let Some(b) = b else {
        return (a == given).then(|| ErrorClass::Operand.into());
    };
    if [a, b].iter().any(|number| number.exponent.is_some()) || given.exponent.is_some() {
        return (a == given || b == given).then(|| ErrorClass::Operand.into());
    }
    let places = a.decimals.len().max(b.decimals.len());
    let scaled = |number: &Written| number.scaled(places);
    let (a_whole, b_whole) = (scaled(a)?, scaled(b)?);
    let answer = scaled(given);
    if let Some(answer) = &answer {
        if *answer == a_whole || *answer == b_whole {
            return Some(ErrorClass::Operand.into());
        }
        if is_other_operation(calculation, &a_whole, &b_whole, answer, places) {
            return Some(ErrorClass::Operation.into());
        }
    }
    let product = (&a_whole * &b_whole, 2 * places);
    if !matches!(calculation, Calculation::Multiply | Calculation::Other)
        && given.scaled(product.1).is_some_and(|given| given == product.0)
    {
        return Some(ErrorClass::Operation.into());
    }
    let answer = answer?;
    let missed = |missed: Missed, class| Finding { class, position: Some(missed.first) };
    let digits = |number: &BigInt| number.magnitude().to_string();
    match calculation {
        Calculation::Add if !answer.is_negative() => {
            if let Some(found) = missed_carries(&digits(&a_whole), &digits(&b_whole), &digits(&answer)) {
                return Some(missed(found, ErrorClass::Carry));
            }
            is_misaligned(&a_whole, &b_whole, |a, b| a + b, &answer).then(|| ErrorClass::Neighbour.into())
        }
        Calculation::Subtract => {
            let (larger, smaller) = if a_whole >= b_whole { (&a_whole, &b_whole) } else { (&b_whole, &a_whole) };
            let is_signed = answer.is_negative() == (a_whole < b_whole) || answer.is_zero();
            let found = missed_borrows(&digits(larger), &digits(smaller), &digits(&answer)).filter(|_| is_signed);
            if let Some(found) = found {
                return Some(missed(found, ErrorClass::Borrow));
            }
            is_misaligned(&a_whole, &b_whole, |a, b| a - b, &answer).then(|| ErrorClass::Neighbour.into())
        }
        Calculation::Multiply if places == 0 => {
            let digit = |number: &BigInt| u8::try_from(number).ok().filter(|digit| *digit < 10);
            let of = |number: &BigInt, digit| missed_carries_of_product(&digits(number), digit, &digits(&answer));
            let found = match (digit(&a_whole), digit(&b_whole)) {
                (_, Some(b)) => of(&a_whole, b),
                (Some(a), None) => of(&b_whole, a),
                (None, None) => None,
            };
            found.map(|found| missed(found, ErrorClass::Carry))
        }
        _ => None,
    }
}

/// True of the exact result of another operation; numbers are scaled by ten to `places`.
fn is_other_operation(calculation: Calculation, a: &BigInt, b: &BigInt, answer: &BigInt, places: usize) -> bool {
    if calculation == Calculation::Other {
        return false;
    }
    let divided = |one: &BigInt, other: &BigInt| (places == 0 && !other.is_zero()).then(|| one.div_rem(other));
    let mut results = Vec::new();
    let mut add = |of: Calculation, result: Option<BigInt>| results.extend(result.filter(|_| of != calculation));
    add(Calculation::Add, Some(a + b));
    add(Calculation::Subtract, Some(a - b));
    add(Calculation::Subtract, Some(b - a));
    let quotient = divided(a, b);
    // Quotients of numbers of equal length are one digit, which anything can be.
    add(
        Calculation::Divide,
        quotient.clone().map(|(quotient, _)| quotient).filter(|quotient| *quotient > BigInt::from(9)),
    );
    add(Calculation::Remainder, quotient.map(|(_, rest)| rest));
    results.contains(answer)
}

/// True if the answer is the result for operands one to three places beside each other, or one of which lacks as many digits at its end.
fn is_misaligned(a: &BigInt, b: &BigInt, result: impl Fn(&BigInt, &BigInt) -> BigInt, answer: &BigInt) -> bool {
    (1..=3_u32).any(|places| {
        let power = BigInt::from(10).pow(places);
        let cut = |number: &BigInt| (number / &power, number * &power);
        let ((a_short, a_long), (b_short, b_long)) = (cut(a), cut(b));
        let with = |one: &BigInt, other: &BigInt| !one.is_zero() && !other.is_zero() && result(one, other) == *answer;
        with(&a_long, b) || with(a, &b_long) || with(&a_short, b) || with(a, &b_short)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(calculation: Calculation, a: &str, b: &str, expected: &str, answer: &str) -> ErrorClass {
        let operand = |text| Some(text).filter(|text: &&str| !text.is_empty());
        let wrong = Wrong { calculation, a: operand(a), b: operand(b), expected, answer: operand(answer), shown: None };
        classify(&wrong).class
    }

    #[test]
    fn sums() {
        let of = |answer| class(Calculation::Add, "4795", "618", "5413", answer);
        for (answer, expected) in [
            ("", ErrorClass::NoNumber),
            ("none", ErrorClass::NoNumber),
            ("5,413", ErrorClass::Format),
            ("05413", ErrorClass::Format),
            ("-5413", ErrorClass::Sign),
            ("4177", ErrorClass::Operation),
            ("2963310", ErrorClass::Operation),
            ("4795", ErrorClass::Operand),
            ("618", ErrorClass::Operand),
            ("5403", ErrorClass::Carry),
            ("4303", ErrorClass::Carry),
            ("10975", ErrorClass::Neighbour),
            ("54130", ErrorClass::Shifted),
            ("5431", ErrorClass::Order),
            ("541", ErrorClass::Dropped),
            ("54413", ErrorClass::Repeated),
            ("2987", ErrorClass::Other),
        ] {
            assert_eq!(of(answer), expected, "{answer}");
        }
        let wrong = Wrong {
            calculation: Calculation::Add,
            a: Some("95"),
            b: Some("47"),
            expected: "142",
            answer: Some("42"),
            shown: None,
        };
        assert_eq!(classify(&wrong), Finding { class: ErrorClass::Carry, position: Some(2) });
    }

    #[test]
    fn differences_products_and_choices() {
        let sub = |answer| class(Calculation::Subtract, "47", "503", "-456", answer);
        assert_eq!(sub("456"), ErrorClass::Sign);
        assert_eq!(sub("550"), ErrorClass::Operation);
        assert_eq!(sub("-466"), ErrorClass::Borrow);
        assert_eq!(sub("-457"), ErrorClass::Digit);
        let float = |answer| class(Calculation::Subtract, "5.3", "0.47", "4.83", answer);
        assert_eq!(
            (float("4.93"), float("48.3"), float("5.77")),
            (ErrorClass::Borrow, ErrorClass::Shifted, ErrorClass::Operation)
        );
        let product = |answer| class(Calculation::Multiply, "68", "7", "476", answer);
        assert_eq!(
            (product("426"), product("75"), product("4760")),
            (ErrorClass::Carry, ErrorClass::Operation, ErrorClass::Shifted)
        );
        let larger = |answer| class(Calculation::Choose, "68", "71", "71", answer);
        assert_eq!(
            (larger("68"), larger("17"), larger("139")),
            (ErrorClass::Operation, ErrorClass::Order, ErrorClass::Operation)
        );
    }

    #[test]
    fn fractions_and_powers() {
        let fraction = |answer| class(Calculation::Add, "3/8", "2/5", "31/40", answer);
        assert_eq!(
            (fraction("62/80"), fraction("31/41"), fraction("3/8")),
            (ErrorClass::Unreduced, ErrorClass::Part, ErrorClass::Operand)
        );
        // 5/13 adds numerators and denominators, -1/40 subtracts, 3/20 multiplies, 15/16 and 16/15 divide.
        for answer in ["5/13", "-1/40", "3/20", "15/16", "16/15"] {
            assert_eq!(fraction(answer), ErrorClass::Operation, "{answer}");
        }
        assert_eq!((fraction("-31/40"), fraction("-62/80")), (ErrorClass::Sign, ErrorClass::Sign));
        assert_eq!(
            (fraction("40/31"), fraction("6/16"), fraction("1/0")),
            (ErrorClass::Order, ErrorClass::Operand, ErrorClass::Digits)
        );
        let difference = |answer| class(Calculation::Subtract, "3/8", "2/5", "-1/40", answer);
        assert_eq!(
            (difference("1/40"), difference("1/3"), difference("31/40")),
            (ErrorClass::Sign, ErrorClass::Operation, ErrorClass::Operation)
        );
        let quotient = |answer| class(Calculation::Quotient, "12", "18", "2/3", answer);
        assert_eq!(
            (quotient("3/2"), quotient("12/18"), quotient("30"), quotient("12")),
            (ErrorClass::Operation, ErrorClass::Unreduced, ErrorClass::Operation, ErrorClass::Operand)
        );
        let larger = |answer| class(Calculation::Choose, "3/8", "2/5", "2/5", answer);
        assert_eq!((larger("3/8"), larger("5/2")), (ErrorClass::Operation, ErrorClass::Order));
        let smaller = |answer| class(Calculation::Choose, "1.25e4", "1.25e5", "1.25e4", answer);
        assert_eq!((smaller("1.25e5"), smaller("1.25e6")), (ErrorClass::Operation, ErrorClass::Exponent));
        let power = |answer| class(Calculation::Other, "12345", "", "1.2345e4", answer);
        assert_eq!(
            (power("1.2345e5"), power("1.2354e4"), power("1.235e4")),
            (ErrorClass::Exponent, ErrorClass::Order, ErrorClass::Dropped)
        );
    }

    #[test]
    fn counts_are_no_operands_by_chance() {
        let count = |a, b, answer| class(Calculation::Count, a, b, "2", answer);
        assert_eq!(
            (count("7", "", "7"), count("47", "", "47"), count("4707", "7", "7")),
            (ErrorClass::Other, ErrorClass::Other, ErrorClass::Other)
        );
        assert_eq!(count("4707", "7", "4707"), ErrorClass::Operand);
        for task in ["length", "count"] {
            assert_eq!(Calculation::of_task(task), Calculation::Count, "{task}");
        }
    }

    #[test]
    fn samples_say_why_there_is_no_number() {
        let covariates = BTreeMap::from([("a".to_owned(), Value::from("95")), ("b".to_owned(), Value::from("47"))]);
        let of = |answer: Option<&str>, failure: &str, truncated| {
            let score = Score { answer: answer.map(str::to_owned), failure: Some(failure.into()), ..Score::default() };
            of_sample("add", &covariates, "142", &score, truncated).map(|found| found.class)
        };
        assert_eq!(of(None, "refused", false), Some(ErrorClass::Refusal));
        assert_eq!(of(Some("132"), "wrong", true), Some(ErrorClass::Truncated));
        assert_eq!(of(Some("132"), "wrong", false), Some(ErrorClass::Carry));
        assert_eq!(of(Some("142"), "format", false), Some(ErrorClass::Format));
        assert_eq!(of(None, "no_number", false), Some(ErrorClass::NoNumber));
        // Of NUPA's questions it is known which number they show.
        let score = Score { answer: Some("123".to_owned()), ..Score::default() };
        let of_nupa = of_sample("add_Integer_Integer_Integer", &covariates, "142", &score, false);
        assert_eq!(of_nupa.map(|found| found.class), Some(ErrorClass::Example));
        let right = Score { correct: true, ..Score::default() };
        assert_eq!(of_sample("add", &covariates, "142", &right, false), None);
        assert_eq!(Calculation::of_task("add_Float_Float_Float"), Calculation::Add);
        assert_eq!(Calculation::of_task("word_problems"), Calculation::Other);
    }
}
