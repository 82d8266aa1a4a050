//! Chance of a class of errors: how often wrong answers that know nothing of a mistake fall into it.
use num_bigint::BigInt;

use super::{Calculation, ErrorClass, Wrong, classify};
use crate::suite::nupa::DigitSource;

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

    /// A wrong answer; `expected` has a digit that is not 0.
    fn draw(self, random: &mut DigitSource, expected: &str) -> String {
        let (sign, digits) = expected.strip_prefix('-').map_or(("", expected), |digits| ("-", digits));
        loop {
            let answer = match self {
                RandomWrong::SameLength => number(random, digits.len()),
                RandomWrong::OtherLength => {
                    let longer = random.chance(1, 2) || digits.len() == 1;
                    number(random, if longer { digits.len() + 1 } else { digits.len() - 1 })
                }
                RandomWrong::OneDigit => {
                    let place = random.below(digits.len() as u64) as usize;
                    let digit = random.below(10).to_string();
                    format!("{}{digit}{}", &digits[..place], &digits[place + 1..])
                }
            };
            if answer != digits {
                return format!("{sign}{answer}");
            }
        }
    }
}

/// Calculations that chance is measured for: sums, differences, products, and copying, which stands for all that only digits are compared of.
pub const CALCULATIONS: [(&str, Calculation); 4] = [
    ("a + b", Calculation::Add),
    ("a - b", Calculation::Subtract),
    ("a * b", Calculation::Multiply),
    ("copy", Calculation::Other),
];

/// Digits of the operands in the columns of [`random_rate`].
pub const CHANCE_DIGITS: [usize; 4] = [1, 2, 3, 4];

/// Per cent of random wrong numbers in a class by [`CHANCE_DIGITS`]: the largest of all calculations and of both lengths.
const RANDOM: [(ErrorClass, [f64; 4]); 10] = [
    (ErrorClass::Sign, [0.0, 0.0, 0.0, 0.0]),
    (ErrorClass::Operation, [6.0, 1.1, 0.1, 0.0]),
    (ErrorClass::Operand, [11.8, 0.9, 0.1, 0.0]),
    (ErrorClass::Carry, [2.1, 0.4, 0.1, 0.0]),
    (ErrorClass::Borrow, [0.0, 0.4, 0.2, 0.1]),
    (ErrorClass::Neighbour, [1.2, 1.0, 0.3, 0.0]),
    (ErrorClass::Shifted, [1.1, 0.7, 0.3, 0.0]),
    (ErrorClass::Order, [0.6, 0.9, 0.6, 0.3]),
    (ErrorClass::Dropped, [2.6, 9.5, 3.0, 0.6]),
    (ErrorClass::Repeated, [1.0, 0.3, 0.1, 0.0]),
];

/// Per cent of right numbers with one random digit in a class, at six digits, because it hardly depends on them; classes that are left out have none.
const SINGLE: [(ErrorClass, f64); 2] = [(ErrorClass::Carry, 4.8), (ErrorClass::Borrow, 4.1)];

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
pub fn simulate(calculation: Calculation, digits: usize, kind: RandomWrong, answers: usize, seed: u64) -> Vec<f64> {
    let mut random = DigitSource::named(&format!("chance of errors {calculation:?} {digits} {kind:?} seed {seed}"));
    let mut counts = [0_usize; ErrorClass::ALL.len()];
    for _ in 0..answers {
        let (a, b) = (number(&mut random, digits), number(&mut random, digits));
        let value = |text: &str| BigInt::parse_bytes(text.as_bytes(), 10).unwrap_or_default();
        let expected = match calculation {
            Calculation::Add => (value(&a) + value(&b)).to_string(),
            Calculation::Subtract => (value(&a) - value(&b)).to_string(),
            Calculation::Multiply => (value(&a) * value(&b)).to_string(),
            _ => a.clone(),
        };
        let answer = kind.draw(&mut random, &expected);
        let b = Some(b.as_str()).filter(|_| calculation != Calculation::Other);
        let found = classify(&Wrong { calculation, a: Some(&a), b, expected: &expected, answer: Some(&answer) });
        if let Some(place) = ErrorClass::ALL.iter().position(|class| *class == found.class) {
            counts[place] += 1;
        }
    }
    counts.iter().map(|&count| 100.0 * count as f64 / answers.max(1) as f64).collect()
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
        for (_, calculation) in CALCULATIONS {
            for kind in kinds {
                let shares = simulate(calculation, digits, *kind, ANSWERS, 1);
                most.iter_mut().zip(shares).for_each(|(most, share)| *most = most.max(share));
            }
        }
        most
    }

    fn measured(class: ErrorClass, shares: &[f64]) -> f64 {
        let place = ErrorClass::ALL.iter().position(|other| *other == class).unwrap();
        // One digit after the point, as in the tables.
        (10.0 * shares[place]).round() / 10.0
    }

    #[test]
    fn the_table_is_what_is_measured() {
        let by_digits = CHANCE_DIGITS.map(|digits| largest(digits, &RandomWrong::ALL[..2]));
        let one_digit = largest(ONE_DIGIT, &[RandomWrong::OneDigit]);
        let table = RANDOM.map(|(class, _)| (class, [0, 1, 2, 3].map(|place| measured(class, &by_digits[place]))));
        assert_eq!(table, RANDOM);
        for class in ErrorClass::ALL {
            let expected = random_rate(class).map(|_| measured(class, &one_digit));
            assert_eq!(one_digit_rate(class), expected, "{class}");
            let digits_decide = by_digits.iter().chain([&one_digit]).any(|shares| measured(class, shares) > 0.0);
            assert!(!digits_decide || class == ErrorClass::Other || random_rate(class).is_some(), "{class}");
        }
    }
}
