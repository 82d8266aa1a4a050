//! Raw pairs of numbers (appendix A.1.7; spec sections 3.1 and 3.2), before a task prepares its operands.
use num_integer::Integer as _;

use super::draw::DigitSource;
use super::{NupaError, PairSource, Representation};

/// Rules of drawing raw pairs where paper and program differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PairRules {
    /// Length of the shorter operand.
    pub shorter: ShorterOperand,
    /// Hard pairs of floats have equal lengths, as the paper says; the program lets them differ.
    pub hard_floats_equal_length: bool,
    /// Reproduce the authors' program where it is biased: auxiliary draws seeded with an operand, lengths that change
    /// while operands are prepared, fractions of 1/1.
    pub reference: bool,
}

impl PairRules {
    /// Checks that the rules fit together.
    ///
    /// # Errors
    /// [`NupaError::Contradiction`].
    pub(super) fn check(self) -> Result<(), NupaError> {
        let contradiction =
            |option, problem: &str| Err(NupaError::Contradiction { option, problem: problem.to_string() });
        if self.reference && self.shorter == ShorterOperand::Any {
            return contradiction(
                "short-operand",
                "`any` contradicts `reference`: the published test draws at least half the length",
            );
        }
        if self.reference && self.hard_floats_equal_length {
            return contradiction(
                "hard-floats",
                "`equal` contradicts `reference`: the authors' program lets the lengths differ",
            );
        }
        Ok(())
    }
}

/// Length of the shorter operand of a pair of length L.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShorterOperand {
    /// Uniform on L/2 to L: appendix A.1.7 and the published test set.
    #[default]
    AtLeastHalf,
    /// Uniform on 1 to L: the main text, and the experiments from scratch.
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPair {
    /// The first number.
    pub a: String,
    /// The second number.
    pub b: String,
}

/// Draws a pair of `length` for `representation`.
pub fn draw_pair(
    source: PairSource,
    representation: Representation,
    length: usize,
    rules: PairRules,
    random: &mut DigitSource,
) -> RawPair {
    let equal = source == PairSource::CompareHarder
        && (representation == Representation::Integer
            || (representation == Representation::Float && rules.hard_floats_equal_length));
    let shortest = match rules.shorter {
        ShorterOperand::AtLeastHalf => (length / 2).max(1),
        ShorterOperand::Any => 1,
    };
    let shorter = if equal { length } else { shortest + random.below((length - shortest + 1) as u64) as usize };
    let mut a = draw_number(representation, length, random);
    let mut b = draw_number(representation, shorter, random);
    if source == PairSource::CompareHarder {
        b = share_prefix(representation, &a, b, random);
    }
    if shorter != length && random.chance(1, 2) {
        std::mem::swap(&mut a, &mut b);
    }
    RawPair { a, b }
}

/// Draws a number of `length` digits as that representation counts them (spec section 3.1).
pub fn draw_number(representation: Representation, length: usize, random: &mut DigitSource) -> String {
    let mut text = String::with_capacity(2 * length + 4);
    match representation {
        Representation::Integer if length == 1 => random.digits(1, &mut text),
        Representation::Integer => {
            random.nonzero_digit(&mut text);
            random.digits(length - 1, &mut text);
        }
        Representation::Float => {
            let integer_length = 1 + random.below(length as u64) as usize;
            random.nonzero_digit(&mut text);
            random.digits(integer_length - 1, &mut text);
            text.push('.');
            decimals(length, random, &mut text);
        }
        Representation::Scientific => {
            random.nonzero_digit(&mut text);
            text.push('.');
            decimals(length, random, &mut text);
            text.push('e');
            text.push_str(&random.below(100).to_string());
        }
        Representation::Fraction => return draw_fraction(length, random),
    }
    text
}

fn decimals(length: usize, random: &mut DigitSource, text: &mut String) {
    random.digits(length - 1, text);
    random.nonzero_digit(text);
}

/// Numerator uniform below 10^L, denominator uniform among L-digit numbers, until the reduced denominator has L digits.
fn draw_fraction(length: usize, random: &mut DigitSource) -> String {
    loop {
        let mut digits = String::with_capacity(length);
        random.digits(length, &mut digits);
        let numerator = digits.parse::<u128>();
        digits.clear();
        random.nonzero_digit(&mut digits);
        random.digits(length - 1, &mut digits);
        let denominator = digits.parse::<u128>();
        let (Ok(numerator), Ok(denominator)) = (numerator, denominator) else {
            unreachable!("fractions have at most 20 digits, which fit u128");
        };
        let divisor = numerator.gcd(&denominator);
        let (numerator, denominator) = (numerator / divisor, (denominator / divisor).to_string());
        if denominator.len() == length {
            return format!("{numerator}/{denominator}");
        }
    }
}

/// Makes `b` share a beginning with `a`.
fn share_prefix(representation: Representation, a: &str, b: String, random: &mut DigitSource) -> String {
    match representation {
        Representation::Float => {
            if random.chance(3, 10) {
                return b;
            }
            let (Some((integer, a_decimals)), Some((_, b_decimals))) = (a.split_once('.'), b.split_once('.')) else {
                return b;
            };
            let shared = random.below(a_decimals.len().min(b_decimals.len()) as u64) as usize;
            format!("{integer}.{}{}", &a_decimals[..shared], &b_decimals[shared..])
        }
        Representation::Scientific => {
            let (Some((a_significand, a_exponent)), Some((b_significand, b_exponent))) =
                (a.split_once('e'), b.split_once('e'))
            else {
                return b;
            };
            let exponent = if random.chance(8, 10) { a_exponent } else { b_exponent };
            // Both significands are a digit, a point and decimals: two bytes before the decimals.
            let decimals = a_significand.len().min(b_significand.len()) - 2;
            match random.below(decimals as u64 + 1) as usize {
                0 => format!("{b_significand}e{exponent}"),
                shared_and_one => {
                    let kept = 2 + shared_and_one - 1;
                    format!("{}{}e{exponent}", &a_significand[..kept], &b_significand[kept..])
                }
            }
        }
        _ => {
            let shared = random.below(a.len() as u64) as usize;
            format!("{}{}", &a[..shared], &b[shared..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Representation::{Float, Fraction, Integer, Scientific};
    use super::*;

    fn pairs(source: PairSource, representation: Representation, length: usize, rules: PairRules) -> Vec<RawPair> {
        let mut random = DigitSource::named("pairs");
        (0..4000).map(|_| draw_pair(source, representation, length, rules, &mut random)).collect()
    }

    #[test]
    fn ranges_of_each_representation() {
        let mut random = DigitSource::named("ranges");
        for length in [1usize, 2, 5, 20, 100] {
            for _ in 0..300 {
                let integer = draw_number(Integer, length, &mut random);
                assert!(integer.len() == length && (length == 1 || !integer.starts_with('0')));
                let float = draw_number(Float, length, &mut random);
                let (whole, part) = float.split_once('.').unwrap();
                assert!((1..=length).contains(&whole.len()) && !whole.starts_with('0'));
                assert!(part.len() == length && !part.ends_with('0'));
                let scientific = draw_number(Scientific, length, &mut random);
                let (significand, exponent) = scientific.split_once('e').unwrap();
                assert!(
                    significand.len() == length + 2 && !significand.starts_with('0') && !significand.ends_with('0')
                );
                assert!(exponent.parse::<u32>().unwrap() < 100);
                if length <= 20 {
                    let fraction = draw_number(Fraction, length, &mut random);
                    let (numerator, denominator) = fraction.split_once('/').unwrap();
                    assert!(numerator.len() <= length && denominator.len() == length);
                    let (n, d): (u128, u128) = (numerator.parse().unwrap(), denominator.parse().unwrap());
                    assert_eq!(n.gcd(&d), 1);
                }
            }
        }
    }

    #[test]
    fn one_digit_integers_are_uniform_with_zero() {
        let mut random = DigitSource::named("one digit");
        let mut counts = [0usize; 10];
        for _ in 0..20_000 {
            counts[draw_number(Integer, 1, &mut random).parse::<usize>().unwrap()] += 1;
        }
        let statistic: f64 = counts.iter().map(|&count| (count as f64 - 2000.0).powi(2) / 2000.0).sum();
        assert!(statistic < 36.0, "{counts:?}");
    }

    #[test]
    fn shorter_operands_are_uniform_and_swapped() {
        let drawn = pairs(PairSource::Add, Integer, 9, PairRules::default());
        let mut counts = [0usize; 10];
        for pair in &drawn {
            assert_eq!(pair.a.len().max(pair.b.len()), 9);
            counts[pair.a.len().min(pair.b.len())] += 1;
        }
        assert_eq!(counts[..4], [0; 4]);
        let statistic: f64 = counts[4..].iter().map(|&count| (count as f64 - 666.7).powi(2) / 666.7).sum();
        assert!(statistic < 26.0, "{counts:?}");
        let swapped = drawn.iter().filter(|pair| pair.a.len() < pair.b.len()).count() as f64;
        let unequal = drawn.iter().filter(|pair| pair.a.len() != pair.b.len()).count() as f64;
        assert!((swapped / unequal - 0.5).abs() < 0.05);
        let any = PairRules { shorter: ShorterOperand::Any, ..PairRules::default() };
        assert!(pairs(PairSource::Add, Integer, 9, any).iter().any(|pair| pair.a.len().min(pair.b.len()) == 1));
    }

    #[test]
    fn hard_pairs_share_what_the_study_measured() {
        let fraction = |drawn: &[RawPair], test: fn(&RawPair) -> bool| {
            drawn.iter().filter(|pair| test(pair)).count() as f64 / drawn.len() as f64
        };
        let integers = pairs(PairSource::CompareHarder, Integer, 20, PairRules::default());
        assert!(integers.iter().all(|pair| pair.a.len() == 20 && pair.b.len() == 20));
        let shared = |pair: &RawPair| pair.a.bytes().zip(pair.b.bytes()).take_while(|(a, b)| a == b).count();
        let mean = integers.iter().map(shared).sum::<usize>() as f64 / integers.len() as f64;
        assert!((mean / 20.0 - 0.48).abs() < 0.03, "{mean}");
        let floats = pairs(PairSource::CompareHarder, Float, 20, PairRules::default());
        let same_integer = fraction(&floats, |pair| pair.a.split('.').next() == pair.b.split('.').next());
        assert!((same_integer - 0.70).abs() < 0.03, "{same_integer}");
        let equal = PairRules { hard_floats_equal_length: true, ..PairRules::default() };
        let floats = pairs(PairSource::CompareHarder, Float, 20, equal);
        assert!(
            floats
                .iter()
                .all(|pair| pair.a.split_once('.').unwrap().1.len() == pair.b.split_once('.').unwrap().1.len())
        );
        let scientific = pairs(PairSource::CompareHarder, Scientific, 20, PairRules::default());
        let same_exponent = fraction(&scientific, |pair| pair.a.split('e').nth(1) == pair.b.split('e').nth(1));
        assert!((same_exponent - 0.807).abs() < 0.03, "{same_exponent}");
    }
}
