//! Memorisation task: the digits of π and e by position, which can only be memorised (Arithmetic-Bench, A.4 and A.5).
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock};

use earnest_tasks::suite::nupa::{DigitSource, Split};

/// Maximum number of digits.
pub(super) const MAX_DIGITS: usize = 100_000;

/// Base of a limb, which holds nine decimal digits.
const BASE: u64 = 1_000_000_000;
const LIMB_DIGITS: usize = 9;
/// Extra limbs that absorb rounding errors.
const GUARD_LIMBS: usize = 3;

/// Constant whose digits are memorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// 3.14159...
    Pi,
    /// 2.71828...
    E,
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Constant::Pi => "pi",
            Constant::E => "e",
        })
    }
}

/// Unknown name of a [`Constant`].
#[derive(Debug, thiserror::Error)]
#[error("unknown constant {0:?}; choose pi or e")]
pub struct UnknownConstant(pub String);

impl FromStr for Constant {
    type Err = UnknownConstant;

    fn from_str(name: &str) -> Result<Self, UnknownConstant> {
        match name {
            "pi" => Ok(Constant::Pi),
            "e" => Ok(Constant::E),
            _ => Err(UnknownConstant(name.to_owned())),
        }
    }
}

/// Question for one digit of a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigitQuestion {
    pub constant: Constant,
    /// Position from 1, where the digit before the point is the first, padded to the width of `count`.
    pub position: String,
    /// Number of digits to memorise.
    pub count: usize,
    digit: u8,
}

impl DigitQuestion {
    /// Creates the question for the digit at `position`, from 1 to `count`.
    fn new(constant: Constant, position: usize, count: usize) -> Self {
        let width = count.to_string().len();
        let digit = with_digits(constant, count, |digits| digits[position - 1]);
        DigitQuestion { constant, position: format!("{position:0width$}"), count, digit }
    }

    pub fn prompt(&self) -> String {
        format!("{} {} =", self.constant, self.position)
    }

    /// Returns the digit.
    pub fn answer(&self) -> String {
        self.digit.to_string()
    }

    /// Draws question `stream` from all positions in training; in validation, walks through them in order.
    pub(super) fn sample(constant: Constant, count: usize, split: Split, seed: u64, stream: usize) -> Option<Self> {
        let position = match split {
            Split::Train => {
                let mut random = DigitSource::named(&format!("train memorise {seed} {constant} {count} {stream}"));
                1 + random.below(count as u64) as usize
            }
            // Nothing to generalise to: validation covers the trained digits.
            _ if stream < count => stream + 1,
            _ => return None,
        };
        Some(DigitQuestion::new(constant, position, count))
    }
}

/// Calls `with` on at least the first `count` digits, which are cached.
fn with_digits<T>(constant: Constant, count: usize, with: impl FnOnce(&[u8]) -> T) -> T {
    static CACHE: [OnceLock<Mutex<Vec<u8>>>; 2] = [OnceLock::new(), OnceLock::new()];
    let cached = CACHE[constant as usize].get_or_init(Mutex::default);
    let mut cached = cached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if cached.len() < count {
        *cached = digits(constant, count);
    }
    with(&cached)
}

/// Returns the first `count` decimal digits, that before the point included.
pub(super) fn first_digits(constant: Constant, count: usize) -> Vec<u8> {
    with_digits(constant, count, |digits| digits[..count].to_vec())
}

/// Computes the first `count` decimal digits.
fn digits(constant: Constant, count: usize) -> Vec<u8> {
    let limbs = 1 + count.div_ceil(LIMB_DIGITS) + GUARD_LIMBS;
    let value = match constant {
        Constant::Pi => {
            // Machin: π = 16 arctan(1/5) - 4 arctan(1/239).
            let mut sum = arctan_of_inverse(5, 16, limbs);
            subtract(&mut sum, &arctan_of_inverse(239, 4, limbs));
            sum
        }
        Constant::E => {
            let mut sum = number(2, limbs);
            let mut term = number(1, limbs);
            for k in 2.. {
                divide(&mut term, k);
                if term.iter().all(|limb| *limb == 0) {
                    break;
                }
                add(&mut sum, &term);
            }
            sum
        }
    };
    let mut text = value[0].to_string();
    text.extend(value[1..].iter().map(|limb| format!("{limb:0LIMB_DIGITS$}")));
    text.bytes().take(count).map(|byte| byte - b'0').collect()
}

/// Fixed-point number with this integer part, most significant limb first; the point follows the first limb.
fn number(value: u64, limbs: usize) -> Vec<u64> {
    let mut number = vec![0; limbs];
    number[0] = value;
    number
}

/// Computes `factor * arctan(1 / inverse)`.
fn arctan_of_inverse(inverse: u64, factor: u64, limbs: usize) -> Vec<u64> {
    let mut power = number(factor, limbs);
    divide(&mut power, inverse);
    let mut sum = power.clone();
    for k in 1.. {
        divide(&mut power, inverse * inverse);
        if power.iter().all(|limb| *limb == 0) {
            break;
        }
        let mut term = power.clone();
        divide(&mut term, 2 * k + 1);
        if k % 2 == 1 { subtract(&mut sum, &term) } else { add(&mut sum, &term) }
    }
    sum
}

fn divide(number: &mut [u64], by: u64) {
    let mut rest = 0;
    for limb in number {
        let value = rest * BASE + *limb;
        (*limb, rest) = (value / by, value % by);
    }
}

fn add(number: &mut [u64], other: &[u64]) {
    let mut carry = 0;
    for (limb, other) in number.iter_mut().zip(other).rev() {
        let value = *limb + other + carry;
        (*limb, carry) = (value % BASE, value / BASE);
    }
}

/// Subtracts `other`, which must not be larger.
fn subtract(number: &mut [u64], other: &[u64]) {
    let mut borrow = 0;
    for (limb, other) in number.iter_mut().zip(other).rev() {
        let taken = other + borrow;
        borrow = u64::from(*limb < taken);
        *limb = *limb + borrow * BASE - taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(constant: Constant, count: usize) -> String {
        digits(constant, count).into_iter().map(|digit| char::from(b'0' + digit)).collect()
    }

    #[test]
    fn digits_are_right() {
        assert_eq!(text(Constant::Pi, 50), "31415926535897932384626433832795028841971693993751");
        assert_eq!(text(Constant::E, 50), "27182818284590452353602874713526624977572470936999");
        // Decimals 991 to 1000, computed with Python's integers.
        assert!(text(Constant::Pi, 1001).ends_with("2164201989"));
        assert!(text(Constant::E, 1001).ends_with("9570350354"));
        // Digits do not depend on how many are computed, so rounding errors reach none of them.
        for constant in [Constant::Pi, Constant::E] {
            assert!(text(constant, 3000).starts_with(&text(constant, 2000)));
        }
    }

    #[test]
    fn validation_walks_all_positions_and_training_draws_them() {
        let ask = |split, stream| DigitQuestion::sample(Constant::Pi, 100, split, 1, stream);
        let first = ask(Split::Valid, 0).unwrap();
        assert_eq!((first.prompt().as_str(), first.answer().as_str()), ("pi 001 =", "3"));
        assert_eq!(ask(Split::Valid, 99).unwrap().position, "100");
        assert_eq!(ask(Split::Valid, 100), None);
        let seen: std::collections::BTreeSet<String> =
            (0..2000).map(|stream| ask(Split::Train, stream).unwrap().position).collect();
        assert_eq!(seen.len(), 100);
    }
}
