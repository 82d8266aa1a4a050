//! Numbers as they are written, digit by digit.
use num_bigint::BigInt;

/// A decimal number by its digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub negative: bool,
    /// Digits before the point.
    pub whole: String,
    /// Digits after it.
    pub decimals: String,
    /// Power of ten after `e`.
    pub exponent: Option<i64>,
}

/// Digits beyond which nothing is calculated: no question has as many, and products of longer ones take long.
const LONGEST: usize = 2_000;

impl Written {
    /// Reads `-12.5`, `1.25e7`, `(7)` or `1 2 3`; spaces and one pair of brackets do not matter. None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('(').trim_end_matches(')').replace(' ', "");
        let (text, exponent) = match text.split_once(['e', 'E']) {
            Some((significand, power)) => (significand, Some(power.parse().ok()?)),
            None => (text.as_str(), None),
        };
        let (negative, text) = match text.strip_prefix(['-', '\u{2212}']) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() + decimals.len() > LONGEST || !digits(whole) || !digits(decimals) {
            return None;
        }
        Some(Written { negative, whole: whole.to_owned(), decimals: decimals.to_owned(), exponent })
    }

    /// All digits, the point left out.
    pub fn digits(&self) -> String {
        format!("{}{}", self.whole, self.decimals)
    }

    /// The number times ten to a power, if that is a whole number; the exponent is left out.
    pub fn scaled(&self, places: usize) -> Option<BigInt> {
        let missing = places.checked_sub(self.decimals.len())?;
        let magnitude = BigInt::parse_bytes(format!("{}{}", self.digits(), "0".repeat(missing)).as_bytes(), 10)?;
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_digits() {
        let float = Written::parse("-12.50").unwrap();
        assert_eq!((float.negative, float.whole.as_str(), float.decimals.as_str()), (true, "12", "50"));
        assert_eq!((float.digits().as_str(), float.scaled(3)), ("1250", Some(BigInt::from(-12_500))));
        assert_eq!(float.scaled(1), None);
        assert_eq!(Written::parse("1.25e7").unwrap().exponent, Some(7));
        assert_eq!(Written::parse("(7)").unwrap().whole, "7");
        assert_eq!(Written::parse("0 1 2").unwrap().whole, "012");
        for text in ["", "1/2", "1,287", "x", "1e", ".5", "--1"] {
            assert_eq!(Written::parse(text), None, "{text}");
        }
    }
}
