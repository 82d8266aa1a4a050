//! Float operations of CPython that RustPython computes differently: `round` on the exact value with ties to even, `%` and
//! `//` from the exact remainder.
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::ToPrimitive;

/// Digits beyond which rounding changes no float, and below which it gives zero: CPython's `NDIGITS_MAX` and `NDIGITS_MIN`.
const MAX_DIGITS: i32 = 323;
const MIN_DIGITS: i32 = -308;

/// Returns `round(value, digits)`; `None` if the result overflows.
pub fn round(value: f64, digits: i32) -> Option<f64> {
    if !value.is_finite() || digits > MAX_DIGITS {
        return Some(value);
    }
    if digits < MIN_DIGITS {
        return Some(0.0f64.copysign(value));
    }
    let rounded: f64 = if digits >= 0 {
        // The standard library formats the exact value with ties to even, and parses correctly rounded.
        format!("{:.*}", digits.unsigned_abs() as usize, value).parse().ok()?
    } else {
        let unit = BigUint::from(10u8).pow(digits.unsigned_abs());
        // A fraction cannot make a tie, but it can break one: it becomes the lowest bit.
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

/// Returns `value // divisor` and `value % divisor`; `None` for a divisor of zero. The remainder of two floats is exact and the
/// quotient follows from it: `1.0 // 0.1` is 9.0.
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

/// Exact value of a float of at least 2^53.
fn integer(value: f64) -> BigUint {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    BigUint::from(mantissa) << ((bits >> 52 & 0x7ff) - 1075)
}
