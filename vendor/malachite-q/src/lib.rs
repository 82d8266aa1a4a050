//! Quotients of integers, as far as RustPython uses them. See `vendor/README.md`.
use std::cmp::Ordering;

use malachite_base::num::conversion::traits::RoundingInto;
use malachite_base::rounding_modes::RoundingMode;
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{ToPrimitive, Zero};

/// A quotient; the denominator is positive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rational {
    negative: bool,
    numerator: BigUint,
    denominator: BigUint,
}

/// A float that is no quotient: an infinity or NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFinite;

impl Rational {
    /// `numerator / denominator`.
    ///
    /// # Panics
    /// If the denominator is zero; the caller has raised `ZeroDivisionError` by then.
    pub fn from_integers_ref(numerator: &BigInt, denominator: &BigInt) -> Self {
        assert!(!denominator.is_zero(), "division by zero");
        Rational {
            negative: (numerator.sign() == Sign::Minus) != (denominator.sign() == Sign::Minus),
            numerator: numerator.magnitude().clone(),
            denominator: denominator.magnitude().clone(),
        }
    }

    /// Both parts in lowest terms, without the sign.
    pub fn into_numerator_and_denominator(self) -> (BigUint, BigUint) {
        let common = self.numerator.gcd(&self.denominator);
        (self.numerator / &common, self.denominator / common)
    }
}

impl TryFrom<f64> for Rational {
    type Error = NotFinite;

    fn try_from(value: f64) -> Result<Self, NotFinite> {
        if !value.is_finite() {
            return Err(NotFinite);
        }
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let biased = (bits >> 52) & 0x7ff;
        // Subnormal numbers have no implicit leading bit and the exponent of the smallest normal ones.
        let (mantissa, exponent) =
            if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased as i64 - 1075) };
        let scale = BigUint::from(1u8) << exponent.unsigned_abs();
        let mantissa = BigUint::from(mantissa);
        let (numerator, denominator) =
            if exponent < 0 { (mantissa, scale) } else { (mantissa * scale, BigUint::from(1u8)) };
        Ok(Rational { negative: value.is_sign_negative(), numerator, denominator })
    }
}

impl RoundingInto<f64> for Rational {
    /// The nearest float, ties to even; beyond the largest one an infinity.
    fn rounding_into(self, _: RoundingMode) -> (f64, Ordering) {
        let Rational { negative, numerator, denominator } = self;
        if numerator.is_zero() {
            return (0.0, Ordering::Equal);
        }
        // The quotient lies in (2^(size - 1), 2^(size + 1)). It is scaled to 66 bits at least: 53, one to round and a sticky one.
        let size = numerator.bits() as i64 - denominator.bits() as i64;
        let shift = 66 - size;
        let (scaled, divisor) = if shift >= 0 {
            (numerator << shift.unsigned_abs(), denominator)
        } else {
            (numerator, denominator << shift.unsigned_abs())
        };
        let (quotient, rest) = scaled.div_rem(&divisor);
        let quotient = quotient.to_u128().expect("the quotient has 66 or 67 bits");
        let bits = i64::from(128 - quotient.leading_zeros());
        // Exponent of the last place that the result can have: subnormal numbers have fewer places.
        let last = (bits - shift - 53).max(-1074);
        let dropped = last + shift;
        let (mut mantissa, exact, up) = if dropped > 127 {
            (0, false, false)
        } else {
            let half = 1u128 << (dropped - 1);
            let mantissa = quotient >> dropped;
            let remainder = quotient & ((half << 1) - 1);
            let beyond = remainder > half || (remainder == half && (!rest.is_zero() || mantissa & 1 == 1));
            (mantissa, remainder == 0 && rest.is_zero(), beyond)
        };
        mantissa += u128::from(up);
        let magnitude = scale(mantissa as f64, last);
        let ordering = match (exact, up != negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Greater,
            (false, false) => Ordering::Less,
        };
        (if negative { -magnitude } else { magnitude }, ordering)
    }
}

/// `mantissa * 2^exponent`, exact because the mantissa has 53 bits at most and the exponent is -1074 at least.
fn scale(mantissa: f64, exponent: i64) -> f64 {
    // Two steps: 2^exponent alone may be too small for a normal number, or too large.
    let half = exponent / 2;
    mantissa * power(half) * power(exponent - half)
}

/// `2^exponent`; an infinity from 1024 on.
fn power(exponent: i64) -> f64 {
    match exponent {
        1024.. => f64::INFINITY,
        -1022.. => f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(numerator: &str, denominator: &str) -> f64 {
        let parse = |text: &str| text.parse::<BigInt>().unwrap();
        Rational::from_integers_ref(&parse(numerator), &parse(denominator)).rounding_into(RoundingMode::Nearest).0
    }

    #[test]
    fn quotients_are_those_of_cpython() {
        assert_eq!(divide("1", "3"), 1.0 / 3.0);
        assert_eq!(divide("-7", "2"), -3.5);
        assert_eq!(divide("7", "-2"), -3.5);
        assert_eq!(divide("0", "5"), 0.0);
        assert_eq!(divide("9007199254740993", "1"), 9007199254740992.0);
        assert_eq!(divide("9007199254740995", "1"), 9007199254740996.0);
        assert_eq!(divide("18014398509481989", "2"), 9007199254740994.0);
        let large = "1".to_owned() + &"0".repeat(308);
        assert_eq!(divide(&large, "1"), 1e308);
        assert_eq!(divide("1", &large), 1e-308);
        assert_eq!(divide(&(large.clone() + "0"), "1"), f64::INFINITY);
        assert_eq!(divide(&("-".to_owned() + &large + "0"), "1"), f64::NEG_INFINITY);
        assert_eq!(divide("5", &("1".to_owned() + &"0".repeat(324))), 5e-324);
        assert_eq!(divide("1", &("1".to_owned() + &"0".repeat(324))), 0.0);
        assert_eq!(divide("1", &("1".to_owned() + &"0".repeat(900))), 0.0);
        assert_eq!(divide(&(large.clone() + "7"), &(large + "0")), 1.0);
    }

    #[test]
    fn small_quotients_agree_with_the_processor() {
        // Both operands are exact, so the processor's quotient is the correctly rounded one.
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (a, b) = (state >> 40, (state >> 8 & 0xff_ffff) + 1);
            let (value, ordering) =
                Rational::from_integers_ref(&a.into(), &b.into()).rounding_into(RoundingMode::Nearest);
            assert_eq!(value, a as f64 / b as f64, "{a}/{b}");
            assert_eq!(ordering == Ordering::Equal, (value * b as f64 == a as f64) && exact(value, a, b), "{a}/{b}");
        }
    }

    fn exact(value: f64, a: u64, b: u64) -> bool {
        let (numerator, denominator) = Rational::try_from(value).unwrap().into_numerator_and_denominator();
        numerator * b == denominator * a
    }

    #[test]
    fn floats_come_back_as_they_were() {
        for value in [1.0, -2.5, 0.1, 5e-324, f64::MAX, f64::MIN_POSITIVE, 1e22, -1e-310] {
            let rational = Rational::try_from(value).unwrap();
            assert_eq!(rational.rounding_into(RoundingMode::Nearest), (value, Ordering::Equal));
        }
        assert!(Rational::try_from(f64::NAN).is_err() && Rational::try_from(f64::INFINITY).is_err());
        let (numerator, denominator) = Rational::try_from(0.75).unwrap().into_numerator_and_denominator();
        assert_eq!((numerator, denominator), (3u8.into(), 4u8.into()));
    }
}
