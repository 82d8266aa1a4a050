//! Values of answers as they are written.
use num_bigint::BigInt;

/// Digits of a numerator or denominator beyond which fractions are compared as text: products of longer ones take too long.
const LONGEST_FRACTION: usize = 5_000;

/// A decimal: `0.d1d2d3... * 10^exponent`, without zeros at either end of the digits.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// Characters beyond which spellings are compared as text: no answer that is asked for has as many.
const LONGEST: usize = 20_000;

/// True if two spellings denote one number. What is no number, and digits after a leading zero, are compared as text.
pub fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    if a == b {
        return true;
    }
    if a.len().max(b.len()) > LONGEST || is_padded(a) || is_padded(b) {
        return false;
    }
    match (decimal(a), decimal(b)) {
        (Some(a), Some(b)) => a == b,
        _ => ratio(a).zip(ratio(b)).is_some_and(|((a, b), (c, d))| a * d == b * c),
    }
}

/// The nearest float of a spelling; none where it is no number.
pub fn to_f64(text: &str) -> Option<f64> {
    match text.split_once('/') {
        Some((top, bottom)) => {
            let (top, bottom): (f64, f64) = (top.parse().ok()?, bottom.parse().ok()?);
            (bottom != 0.0).then(|| top / bottom)
        }
        None => text.parse().ok(),
    }
}

/// True if a text has no other characters than digits.
pub fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// Digits after a leading zero: an answer to a question about digits.
fn is_padded(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    digits.len() > 1 && digits.starts_with('0') && is_digits(digits)
}

fn decimal(text: &str) -> Option<Decimal> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (significand, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, decimals) = significand.split_once('.').unwrap_or((significand, ""));
    // `.8`
    let whole = if whole.is_empty() && !decimals.is_empty() { "0" } else { whole };
    if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) {
        return None;
    }
    let power: i64 = power.parse().ok()?;
    let all: Vec<u8> = whole.bytes().chain(decimals.bytes()).collect();
    let Some(first) = all.iter().position(|&digit| digit != b'0') else {
        return Some(Decimal { negative: false, digits: Vec::new(), exponent: 0 });
    };
    let last = all.iter().rposition(|&digit| digit != b'0').map_or(first, |last| last + 1);
    let exponent = power.checked_add(whole.len() as i64)?.checked_sub(first as i64)?;
    Some(Decimal { negative: text.starts_with('-'), digits: all[first..last].to_vec(), exponent })
}

/// Numerator and denominator, not reduced.
fn ratio(text: &str) -> Option<(BigInt, BigInt)> {
    let integer = |digits: &[u8]| BigInt::parse_bytes(digits, 10);
    if let Some((top, bottom)) = text.split_once('/') {
        let plain = |part: &str| part.len() <= LONGEST_FRACTION && is_digits(part);
        if !plain(top.strip_prefix('-').unwrap_or(top)) || !plain(bottom) {
            return None;
        }
        let bottom = integer(bottom.as_bytes())?;
        return (bottom != BigInt::ZERO).then_some((integer(top.as_bytes())?, bottom));
    }
    let decimal = decimal(text)?;
    if decimal.digits.is_empty() {
        return Some((BigInt::ZERO, BigInt::from(1)));
    }
    let shift = decimal.exponent.checked_sub(decimal.digits.len() as i64)?;
    if decimal.digits.len() > LONGEST_FRACTION || shift.unsigned_abs() > LONGEST_FRACTION as u64 {
        return None;
    }
    let top = integer(&decimal.digits).map(|top| if decimal.negative { -top } else { top })?;
    let power = BigInt::from(10).pow(shift.unsigned_abs() as u32);
    Some(if shift < 0 { (top, power) } else { (top * power, BigInt::from(1)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_number_are_the_same() {
        const SAME: &str = "63.00=63|4/1=4|14/30=7/15|1.2e3=1200|1.287e3=1287|0.5=1/2|-0.25=-1/4|-0=0|1e-3=0.001|0012=0012|1 2 3=1 2 3|\
             1e400=10e399";
        const DIFFERENT: &str = "12=-12|0012=12|1/0=1|1/3=0.333|x=0|1.2.3=1.2|=0";
        for (pairs, expected) in [(SAME, true), (DIFFERENT, false)] {
            for (a, b) in pairs.split('|').map(|pair| pair.split_once('=').unwrap()) {
                assert_eq!((same(a, b), same(b, a)), (expected, expected), "{a} {b}");
            }
        }
    }

    #[test]
    fn hostile_lengths_are_compared_at_once() {
        let long = "7".repeat(1_000_000);
        assert!(same(&long, &long));
        assert!(!same(&long, &format!("{long}1")));
        assert!(!same(&format!("{long}/3"), &format!("{long}/4")));
        assert!(!same("1e999999999999", "1/3"));
    }

    #[test]
    fn floats() {
        assert_eq!(to_f64("-3/4"), Some(-0.75));
        assert_eq!(to_f64("1.5e3"), Some(1500.0));
        assert_eq!((to_f64("1/0"), to_f64("1 2")), (None, None));
    }
}
