//! Fractions of whole numbers without bound, to and from binary floating point.
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

/// An exact fraction.
pub(super) type Rational = num_rational::Ratio<BigInt>;

/// The value of a float, exactly; none for NaN and infinities.
pub(super) fn from_float(value: f64) -> Option<Rational> {
    if !value.is_finite() {
        return None;
    }
    let bits = value.to_bits();
    let (exponent, fraction) = (((bits >> 52) & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let mantissa = if value < 0.0 { -BigInt::from(mantissa) } else { BigInt::from(mantissa) };
    let power = BigInt::from(1) << exponent.unsigned_abs();
    Some(if exponent < 0 { Rational::new(mantissa, power) } else { Rational::from(mantissa * power) })
}

/// The nearest float, ties to even; infinite beyond the largest.
pub(super) fn to_float(value: &Rational) -> f64 {
    if value.is_zero() {
        return 0.0;
    }
    let (numerator, denominator) = (value.numer().abs(), value.denom());
    // A quotient of at least 66 bits and a mark for what is cut: rounding it once gives the nearest float.
    let shift = 66 + denominator.bits() as i64 - numerator.bits() as i64;
    let (top, bottom) = if shift > 0 {
        (numerator << shift.unsigned_abs(), denominator.clone())
    } else {
        (numerator, denominator << shift.unsigned_abs())
    };
    let quotient = &top / &bottom;
    let rest = u128::from(&quotient * &bottom != top);
    let size = (quotient.to_u128().unwrap_or(u128::MAX) | rest) as f64;
    let mut scaled = size;
    let mut left = -shift;
    // Powers of two in steps that are floats themselves.
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        scaled *= f64::powi(2.0, step as i32);
        left -= step;
        if scaled == 0.0 || scaled.is_infinite() {
            break;
        }
    }
    if value.is_negative() { -scaled } else { scaled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_come_back() {
        for value in [0.0, 1.0, -0.1, 1e300, 123.456, 5e-300, f64::MAX, 2.0_f64.powi(-1000), 1.0 / 3.0] {
            assert_eq!(to_float(&from_float(value).unwrap()), value);
        }
        assert_eq!(from_float(f64::INFINITY), None);
    }

    #[test]
    fn division_rounds_once() {
        for (a, b) in [(1_i64, 3_i64), (2, 3), (10, 7), (-22, 7), (9_007_199_254_740_993, 2), (1, 49)] {
            let quotient = Rational::new(a.into(), b.into());
            if a.unsigned_abs() < 1 << 53 {
                assert_eq!(to_float(&quotient), a as f64 / b as f64);
            }
        }
        let tie = Rational::from(BigInt::from((1_u64 << 53) + 1));
        assert_eq!(to_float(&tie), 9_007_199_254_740_992.0);
        assert_eq!(to_float(&Rational::from(BigInt::from(10).pow(400))), f64::INFINITY);
    }
}
