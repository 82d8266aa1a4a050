//! Chance of a class of errors: how often wrong answers that know nothing of a mistake fall into it.
use num_bigint::BigInt;

use super::{Calculation, ErrorClass, Wrong, classify};
use crate::suite::nupa::DigitSource;
use earnest_answer::number::Fraction;

/// Kind of wrong answers that are drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomWrong {
    /// A random number with as many digits as the right one.
    SameLength,
    /// A random number with one digit more or less.
    OtherLength,
    /// The right number with one digit replaced by a random one.
    OneDigit,
}

impl RandomWrong {
    /// All, random numbers first.
    pub const ALL: [RandomWrong; 3] = [RandomWrong::SameLength, RandomWrong::OtherLength, RandomWrong::OneDigit];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            RandomWrong::SameLength => "random, right length",
            RandomWrong::OtherLength => "random, other length",
            RandomWrong::OneDigit => "one random digit",
        }
    }

    /// A wrong answer; `expected` has a digit that is not 0. Differences have a random sign, unless a digit is replaced.
    fn draw(self, random: &mut DigitSource, calculation: Calculation, expected: &str) -> String {
        let (sign, digits) = expected.strip_prefix('-').map_or(("", expected), |digits| ("-", digits));
        loop {
            let drawn = match self {
                RandomWrong::SameLength => like(random, digits, None),
                RandomWrong::OtherLength => {
                    // Of the significand, the numerator or the denominator; of a power, not of its exponent.
                    let parts = if digits.contains('/') { 2 } else { 1 };
                    let other = random.below(parts) as usize;
                    like(random, digits, Some(other))
                }
                RandomWrong::OneDigit => {
                    let indices: Vec<usize> =
                        digits.char_indices().filter(|(_, one)| one.is_ascii_digit()).map(|(index, _)| index).collect();
                    let index = indices[random.below(indices.len() as u64) as usize];
                    let digit = random.below(10).to_string();
                    format!("{}{digit}{}", &digits[..index], &digits[index + 1..])
                }
            };
            let sign = match self {
                RandomWrong::OneDigit => sign,
                _ if calculation == Calculation::Subtract => ["", "-"][usize::from(random.chance(1, 2))],
                _ => sign,
            };
            let answer = format!("{sign}{drawn}");
            if answer != expected {
                return answer;
            }
        }
    }
}

/// A random number in the form of another: every part has as many digits, but for one that has one more or less.
fn like(random: &mut DigitSource, text: &str, other: Option<usize>) -> String {
    let mut drawn = String::with_capacity(text.len() + 1);
    let mut rest = text;
    let mut part = 0;
    while !rest.is_empty() {
        let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
        // Digits after a point are the same part as those before it, and take its change of length.
        let decimals = rest[end..].strip_prefix('.').map(|after| {
            let end = after.find(|one: char| !one.is_ascii_digit()).unwrap_or(after.len());
            &after[..end]
        });
        let length = end + decimals.map_or(0, str::len);
        let length = match other {
            Some(changed) if changed == part => {
                let longer = random.chance(1, 2) || length == 1;
                if longer { length + 1 } else { length - 1 }
            }
            _ => length,
        };
        let digits = number(random, length);
        match decimals {
            Some(_) if length > 1 => drawn += &format!("{}.{}", &digits[..1], &digits[1..]),
            _ => drawn += &digits,
        }
        rest = &rest[end + decimals.map_or(0, |decimals| decimals.len() + 1)..];
        if let Some(sign) = rest.chars().next() {
            drawn.push(sign);
            rest = &rest[sign.len_utf8()..];
        }
        part += 1;
    }
    drawn
}

/// Numbers that chance is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    Whole,
    /// Numerator and denominator have the digits.
    Fractions,
    /// Numbers with an exponent, whose significand has the digits.
    Powers,
}

/// Calculations that chance is measured for: sums, differences, products, and copying, which stands for all that only digits are compared of. What a sum of
/// powers has for an answer is drawn.
pub const CALCULATIONS: [(&str, Calculation, Numbers); 7] = [
    ("a + b", Calculation::Add, Numbers::Whole),
    ("a - b", Calculation::Subtract, Numbers::Whole),
    ("a * b", Calculation::Multiply, Numbers::Whole),
    ("copy", Calculation::Other, Numbers::Whole),
    ("fractions, a + b", Calculation::Add, Numbers::Fractions),
    ("fractions, a - b", Calculation::Subtract, Numbers::Fractions),
    ("powers, a + b", Calculation::Add, Numbers::Powers),
];

/// Digits of the operands in the columns of [`random_rate`].
pub const CHANCE_DIGITS: [usize; 4] = [1, 2, 3, 4];

/// Per cent of random wrong numbers in a class by [`CHANCE_DIGITS`]: the largest of all calculations and of both lengths.
const RANDOM: [(ErrorClass, [f64; 4]); 12] = [
    (ErrorClass::Unreduced, [0.4, 0.0, 0.0, 0.0]),
    (ErrorClass::Exponent, [11.2, 1.1, 0.1, 0.0]),
    (ErrorClass::Sign, [5.7, 1.6, 0.3, 0.0]),
    (ErrorClass::Operation, [5.9, 1.2, 0.1, 0.0]),
    (ErrorClass::Operand, [11.1, 0.9, 0.2, 0.0]),
    (ErrorClass::Carry, [2.0, 0.4, 0.1, 0.0]),
    (ErrorClass::Borrow, [0.0, 0.2, 0.1, 0.0]),
    (ErrorClass::Neighbour, [1.3, 1.0, 0.2, 0.0]),
    (ErrorClass::Shifted, [1.2, 0.7, 0.2, 0.0]),
    (ErrorClass::Order, [0.7, 0.9, 0.5, 0.2]),
    (ErrorClass::Dropped, [2.8, 9.6, 3.0, 0.7]),
    (ErrorClass::Repeated, [1.2, 0.3, 0.1, 0.0]),
];

/// Per cent of right numbers with one random digit in a class, at six digits, because it hardly depends on them; classes that are left out have none.
const SINGLE: [(ErrorClass, f64); 3] =
    [(ErrorClass::Exponent, 24.8), (ErrorClass::Carry, 4.8), (ErrorClass::Borrow, 3.8)];

/// Per cent of random wrong numbers that fall into a class, by [`CHANCE_DIGITS`]; none for classes that do not depend on digits.
pub fn random_rate(class: ErrorClass) -> Option<[f64; 4]> {
    RANDOM.iter().find(|(of, _)| *of == class).map(|(_, rates)| *rates)
}

/// Per cent of right numbers with one random wrong digit that fall into a class; none for classes that do not depend on digits.
pub fn one_digit_rate(class: ErrorClass) -> Option<f64> {
    random_rate(class)?;
    Some(SINGLE.iter().find(|(of, _)| *of == class).map_or(0.0, |(_, rate)| *rate))
}

/// Largest chance of a class from two digits on, in per cent: what a share of it has to be above to mean something.
pub fn largest_rate(class: ErrorClass) -> Option<f64> {
    let rates = random_rate(class)?;
    Some(rates[1..].iter().copied().chain(one_digit_rate(class)).fold(0.0, f64::max))
}

/// Shares of the classes, in per cent and in the order of [`ErrorClass::ALL`], among `answers` random wrong answers to a calculation on operands
/// of so many digits.
pub fn simulate(
    (calculation, numbers): (Calculation, Numbers),
    digits: usize,
    kind: RandomWrong,
    answers: usize,
    seed: u64,
) -> Vec<f64> {
    let name = format!("chance of errors {calculation:?} {numbers:?} {digits} {kind:?} seed {seed}");
    let mut random = DigitSource::named(&name);
    let mut counts = [0_usize; ErrorClass::ALL.len()];
    let mut left = answers;
    while left > 0 {
        let (a, b) = (operand(&mut random, numbers, digits), operand(&mut random, numbers, digits));
        let Some(expected) = expected(&mut random, calculation, numbers, (&a, &b), digits) else { continue };
        left -= 1;
        let answer = kind.draw(&mut random, calculation, &expected);
        let b = Some(b.as_str()).filter(|_| calculation != Calculation::Other);
        let found = classify(&Wrong { calculation, a: Some(&a), b, expected: &expected, answer: Some(&answer) });
        if let Some(index) = ErrorClass::ALL.iter().position(|class| *class == found.class) {
            counts[index] += 1;
        }
    }
    counts.iter().map(|&count| 100.0 * count as f64 / answers.max(1) as f64).collect()
}

fn operand(random: &mut DigitSource, numbers: Numbers, digits: usize) -> String {
    match numbers {
        Numbers::Whole => number(random, digits),
        Numbers::Fractions => format!("{}/{}", number(random, digits), number(random, digits)),
        Numbers::Powers => {
            let significand = number(random, digits);
            let point = if digits > 1 { "." } else { "" };
            format!("{}{point}{}e{}", &significand[..1], &significand[1..], number(random, 2))
        }
    }
}

/// The right answer; none where it is 0, of which no digit can be told.
fn expected(
    random: &mut DigitSource,
    calculation: Calculation,
    numbers: Numbers,
    (a, b): (&str, &str),
    digits: usize,
) -> Option<String> {
    let whole = |text: &str| BigInt::parse_bytes(text.as_bytes(), 10).unwrap_or_default();
    let result = match (numbers, calculation) {
        (Numbers::Whole, Calculation::Add) => (whole(a) + whole(b)).to_string(),
        (Numbers::Whole, Calculation::Subtract) => (whole(a) - whole(b)).to_string(),
        (Numbers::Whole, Calculation::Multiply) => (whole(a) * whole(b)).to_string(),
        (Numbers::Fractions, Calculation::Add) => (&Fraction::parse(a).ok()? + &Fraction::parse(b).ok()?).to_string(),
        (Numbers::Fractions, Calculation::Subtract) => {
            (&Fraction::parse(a).ok()? - &Fraction::parse(b).ok()?).to_string()
        }
        (Numbers::Powers, Calculation::Add) => operand(random, numbers, digits),
        _ => a.to_owned(),
    };
    let is_zero = result.split('/').next().is_some_and(|part| part.bytes().all(|byte| byte == b'0'));
    (!is_zero).then_some(result)
}

/// A number whose first digit is not 0.
fn number(random: &mut DigitSource, digits: usize) -> String {
    let mut text = String::with_capacity(digits);
    random.nonzero_digit(&mut text);
    random.digits(digits.saturating_sub(1), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: usize = 20_000;
    /// Digits of operands at which single wrong digits are drawn.
    const ONE_DIGIT: usize = 6;

    /// The largest share of each class, in the order of [`ErrorClass::ALL`].
    fn largest(digits: usize, kinds: &[RandomWrong]) -> Vec<f64> {
        let mut most = vec![0.0_f64; ErrorClass::ALL.len()];
        for (_, calculation, numbers) in CALCULATIONS {
            for kind in kinds {
                let shares = simulate((calculation, numbers), digits, *kind, ANSWERS, 1);
                most.iter_mut().zip(shares).for_each(|(most, share)| *most = most.max(share));
            }
        }
        most
    }

    fn measured(class: ErrorClass, shares: &[f64]) -> f64 {
        let index = ErrorClass::ALL.iter().position(|other| *other == class).unwrap();
        // One digit after the point, as in the tables.
        (10.0 * shares[index]).round() / 10.0
    }

    #[test]
    fn the_table_is_what_is_measured() {
        let by_digits = CHANCE_DIGITS.map(|digits| largest(digits, &RandomWrong::ALL[..2]));
        let one_digit = largest(ONE_DIGIT, &[RandomWrong::OneDigit]);
        let table = RANDOM.map(|(class, _)| (class, [0, 1, 2, 3].map(|index| measured(class, &by_digits[index]))));
        assert_eq!(table, RANDOM);
        let single = SINGLE.map(|(class, _)| (class, measured(class, &one_digit)));
        assert_eq!(single, SINGLE);
        for class in ErrorClass::ALL {
            let expected = random_rate(class).map(|_| measured(class, &one_digit));
            assert_eq!(one_digit_rate(class), expected, "{class}");
            let digits_decide = by_digits.iter().chain([&one_digit]).any(|shares| measured(class, shares) > 0.0);
            assert!(!digits_decide || class == ErrorClass::Other || random_rate(class).is_some(), "{class}");
        }
    }
}
