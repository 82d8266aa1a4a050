//! Algorithms on strings of ASCII digits. Digit strings have no sign; leading zeros are allowed unless said otherwise.
use std::cmp::Ordering;

use super::Rounding;

/// True for a non-empty string of ASCII digits.
pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Drops leading zeros but keeps one digit: `007` becomes `7`, `000` becomes `0`.
pub fn trim_leading_zeros(digits: &str) -> &str {
    let trimmed = digits.trim_start_matches('0');
    if trimmed.is_empty() { &digits[digits.len().saturating_sub(1)..] } else { trimmed }
}

/// Drops trailing zeros but keeps one digit: `500` becomes `5`, `000` becomes `0`.
pub fn trim_trailing_zeros(digits: &str) -> &str {
    let trimmed = digits.trim_end_matches('0');
    if trimmed.is_empty() { &digits[..digits.len().min(1)] } else { trimmed }
}

/// Compares two digit strings as integers.
pub fn compare_integer_digits(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Compares two digit strings as the decimals after a point, so the shorter is padded with zeros on the right.
pub fn compare_decimal_digits(a: &str, b: &str) -> Ordering {
    a.trim_end_matches('0').cmp(b.trim_end_matches('0'))
}

/// Digit-by-digit operation on one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Digitwise {
    /// The larger digit.
    Max,
    /// The smaller digit.
    Min,
    /// The sum modulo 10, without carry.
    AddModulo10,
}

impl Digitwise {
    fn apply(self, a: u8, b: u8) -> u8 {
        match self {
            Digitwise::Max => a.max(b),
            Digitwise::Min => a.min(b),
            Digitwise::AddModulo10 => {
                let sum = a - b'0' + b;
                if sum > b'9' { sum - 10 } else { sum }
            }
        }
    }
}

/// Applies `operation` position by position from the right; a missing digit counts as 0. The result is as long as the
/// longer operand, leading zeros included.
pub fn digitwise_right_aligned(operation: Digitwise, a: &str, b: &str) -> String {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let missing = long.len() - short.len();
    let (above, beside) = long.as_bytes().split_at(missing);
    let digits = above.iter().map(|&x| operation.apply(x, b'0'));
    let digits = digits.chain(beside.iter().zip(short.bytes()).map(|(&x, y)| operation.apply(x, y)));
    text(digits.collect())
}

/// Applies `operation` position by position from the left; a missing digit counts as 0. The result is as long as the
/// longer operand, trailing zeros included.
pub fn digitwise_left_aligned(operation: Digitwise, a: &str, b: &str) -> String {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let (beside, below) = long.as_bytes().split_at(short.len());
    let digits = beside.iter().zip(short.bytes()).map(|(&x, y)| operation.apply(x, y));
    text(digits.chain(below.iter().map(|&x| operation.apply(x, b'0'))).collect())
}

fn text(digits: Vec<u8>) -> String {
    String::from_utf8(digits).expect("digit operations give ASCII digits")
}

/// Rounds a digit string to its first `figures` digits, padding with zeros where it is shorter. The second value is
/// true if the rounding carried out of the first digit: then the result stands for ten times as much (`99996` to 4
/// figures is `1000` with a carry). The decision looks at the whole tail, so nothing is rounded twice.
pub fn round_digits(digits: &str, figures: usize, rounding: Rounding) -> (String, bool) {
    if digits.len() <= figures {
        let mut padded = String::with_capacity(figures);
        padded.push_str(digits);
        padded.extend(std::iter::repeat_n('0', figures - digits.len()));
        return (padded, false);
    }
    let (kept, tail) = digits.as_bytes().split_at(figures);
    let mut kept = kept.to_vec();
    let beyond_half = tail[1..].iter().any(|&digit| digit != b'0');
    let up = match tail[0].cmp(&b'5') {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal if beyond_half => true,
        Ordering::Equal => match rounding {
            Rounding::HalfUp => true,
            Rounding::HalfEven => kept.last().is_some_and(|digit| (digit - b'0') % 2 == 1),
        },
    };
    let mut carried = false;
    if up {
        carried = true;
        for digit in kept.iter_mut().rev() {
            if *digit == b'9' {
                *digit = b'0';
            } else {
                *digit += 1;
                carried = false;
                break;
            }
        }
        if let (true, Some(first)) = (carried, kept.first_mut()) {
            *first = b'1';
        }
    }
    (text(kept), carried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_trimmed_to_one_digit() {
        assert_eq!(trim_leading_zeros("007"), "7");
        assert_eq!(trim_leading_zeros("000"), "0");
        assert_eq!(trim_leading_zeros(""), "");
        assert_eq!(trim_trailing_zeros("500"), "5");
        assert_eq!(trim_trailing_zeros("00"), "0");
        assert_eq!(trim_trailing_zeros(""), "");
    }

    #[test]
    fn comparison_ignores_padding() {
        assert_eq!(compare_integer_digits("0099", "100"), Ordering::Less);
        assert_eq!(compare_integer_digits("000", "0"), Ordering::Equal);
        assert_eq!(compare_decimal_digits("9", "11"), Ordering::Greater);
        assert_eq!(compare_decimal_digits("50", "5"), Ordering::Equal);
        assert_eq!(compare_decimal_digits("0", "00"), Ordering::Equal);
    }

    #[test]
    fn digitwise_alignment() {
        assert_eq!(digitwise_right_aligned(Digitwise::Max, "1000", "999"), "1999");
        assert_eq!(digitwise_right_aligned(Digitwise::AddModulo10, "91", "19"), "00");
        assert_eq!(digitwise_left_aligned(Digitwise::Min, "001", "34"), "000");
    }

    #[test]
    fn rounding_reads_the_whole_tail() {
        let up = |digits, figures| round_digits(digits, figures, Rounding::HalfUp);
        assert_eq!(up("99996", 4), ("1000".into(), true));
        assert_eq!(up("14501", 2), ("15".into(), false));
        assert_eq!(up("5", 3), ("500".into(), false));
        let even = |digits, figures| round_digits(digits, figures, Rounding::HalfEven);
        assert_eq!(even("50205", 4), ("5020".into(), false));
        assert_eq!(even("50215", 4), ("5022".into(), false));
        assert_eq!(even("502051", 4), ("5021".into(), false));
        assert_eq!(round_digits("7", 0, Rounding::HalfUp), (String::new(), true));
    }
}
