//! Numbers to English words.
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use super::english::{GROUPS, TENS, UNITS};

/// The words of a decimal number (`-12.50`), or none for what the reference's library refuses: thousands commas, per cent
/// signs, anything that is no plain decimal, and numbers beyond the names above.
///
/// Quirks kept, because the reference's texts have them: the sign of numbers between -1 and 1 is lost, a whole decimal loses
/// its point (`5.0` is `five`), and decimals pass through a binary double, so very long ones end in another digit.
pub fn number_words(text: &str) -> Option<String> {
    let number = Plain::parse(text)?;
    if number.decimals.is_empty() && !number.exponent {
        return signed_integer_words(&number.integer);
    }
    // The library asks whether the decimal equals its own integer part, and only then goes through a double.
    if number.is_whole() {
        return signed_integer_words(&number.integer);
    }
    let double: f64 = number.text.parse().ok()?;
    if !double.is_finite() {
        return None;
    }
    let shortest = format!("{double}");
    let digits_after = shortest.split_once('.').map_or(0, |(_, digits)| digits.len());
    let whole = double.trunc();
    // The fraction as the library computes it: scaled by a power of ten, in doubles, and rounded when it is near.
    let scale = 10f64.powi(i32::try_from(digits_after).ok()?);
    let scaled = (double - whole).abs() * scale;
    let nearest = scaled.round_ties_even();
    let fraction = if (nearest - scaled).abs() < 0.01 { nearest } else { scaled.floor() };
    let fraction = format!("{:0>width$}", format!("{fraction:.0}"), width = digits_after);
    let mut words = signed_integer_words(&BigInt::parse_bytes(format!("{whole:.0}").as_bytes(), 10)?)?;
    if digits_after > 0 {
        words.push_str(" point");
    }
    for digit in fraction.bytes().take(digits_after) {
        words.push(' ');
        words.push_str(UNITS[usize::from(digit.wrapping_sub(b'0')) % 10]);
    }
    Some(words)
}

/// The words of an exact decimal, without the reference's quirks: thousands commas are read, the sign of small numbers is
/// kept, every digit that is written is said. None for anything else than a decimal.
pub fn exact_words(text: &str) -> Option<String> {
    let negative = text.starts_with('-');
    let bare = text.trim_start_matches(['-', '+']).replace(',', "");
    let (integer, decimals) = bare.split_once('.').unwrap_or((bare.as_str(), ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(integer) || !digits(decimals) || (integer.is_empty() && decimals.is_empty()) {
        return None;
    }
    let value = BigInt::parse_bytes(if integer.is_empty() { b"0" } else { integer.as_bytes() }, 10)?;
    let mut words = integer_words(&value)?;
    let said = decimals.trim_end_matches('0');
    if !said.is_empty() {
        words.push_str(" point");
        for digit in said.bytes() {
            words.push(' ');
            words.push_str(UNITS[usize::from(digit - b'0')]);
        }
    }
    let zero = value.is_zero() && said.is_empty();
    Some(if negative && !zero { format!("minus {words}") } else { words })
}

fn signed_integer_words(value: &BigInt) -> Option<String> {
    let words = integer_words(&value.abs())?;
    Some(if value.is_negative() { format!("minus {words}") } else { words })
}

/// Groups of three digits from the left, joined with ", "; a last group below a hundred is joined with " and ".
fn integer_words(value: &BigInt) -> Option<String> {
    let digits = value.to_string();
    let mut words = String::new();
    let groups = digits.len().div_ceil(3);
    if groups > GROUPS.len() {
        return None;
    }
    for index in (0..groups).rev() {
        let end = digits.len() - 3 * index;
        let group: usize = digits.get(end.saturating_sub(3)..end)?.parse().ok()?;
        if group == 0 && groups > 1 {
            continue;
        }
        if !words.is_empty() {
            words.push_str(if index == 0 && group < 100 { " and " } else { ", " });
        }
        words.push_str(&below_thousand(group, "-", " hundred and "));
        if index > 0 {
            words.push(' ');
            words.push_str(GROUPS[index]);
        }
    }
    Some(words)
}

/// Words of a number up to 999 as templates write them, without hyphens and `and`: `three hundred thirty five`.
pub fn bare_words(number: usize) -> String {
    below_thousand(number, " ", " hundred ")
}

/// A number below 1,000; what stands between tens and units, and between the digit of the hundreds and the rest.
fn below_thousand(number: usize, hyphen: &str, hundred: &str) -> String {
    match number {
        0..=19 => UNITS[number].to_owned(),
        20..=99 if number.is_multiple_of(10) => TENS[number / 10].to_owned(),
        20..=99 => format!("{}{hyphen}{}", TENS[number / 10], UNITS[number % 10]),
        _ if number.is_multiple_of(100) => format!("{} hundred", UNITS[number / 100 % 10]),
        _ => format!("{}{hundred}{}", UNITS[number / 100 % 10], below_thousand(number % 100, hyphen, hundred)),
    }
}

/// A plain decimal as Python's `Decimal` reads it.
struct Plain<'a> {
    text: &'a str,
    integer: BigInt,
    decimals: String,
    exponent: bool,
}

impl<'a> Plain<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], Some(text[at + 1..].parse::<i32>().ok().filter(|power| power.abs() <= 60)?)),
            None => (text, None),
        };
        let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
        let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || (whole.is_empty() && decimals.is_empty()) {
            return None;
        }
        // Shift the point by the exponent.
        let mut figures = format!("{whole}{decimals}");
        let point = whole.len() as i64 + i64::from(exponent.unwrap_or(0));
        if point < 0 {
            figures = format!("{}{figures}", "0".repeat(point.unsigned_abs() as usize));
        }
        let point = point.max(0) as usize;
        if figures.len() < point {
            figures.push_str(&"0".repeat(point - figures.len()));
        }
        let (whole, decimals) = figures.split_at(point);
        let magnitude = BigInt::parse_bytes(if whole.is_empty() { b"0" } else { whole.as_bytes() }, 10)?;
        let integer = if mantissa.starts_with('-') { -magnitude } else { magnitude };
        Some(Plain { text, integer, decimals: decimals.to_owned(), exponent: exponent.is_some() })
    }

    fn is_whole(&self) -> bool {
        self.decimals.bytes().all(|digit| digit == b'0')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_reference() {
        for (text, words) in [
            ("0", "zero"),
            ("40", "forty"),
            ("42", "forty-two"),
            ("192", "one hundred and ninety-two"),
            ("1001", "one thousand and one"),
            ("1100", "one thousand, one hundred"),
            ("1234567", "one million, two hundred and thirty-four thousand, five hundred and sixty-seven"),
            ("1000001", "one million and one"),
            ("-7", "minus seven"),
            ("-0.5", "zero point five"),
            ("5.0", "five"),
            ("70.00", "seventy"),
            (".25", "zero point two five"),
            ("1.005", "one point zero zero five"),
            ("1e3", "one thousand"),
            ("+3.5", "three point five"),
            (
                "8.399999999999999",
                "eight point three nine nine nine nine nine nine nine nine nine nine nine nine nine eight",
            ),
        ] {
            assert_eq!(number_words(text).as_deref(), Some(words), "{text}");
        }
        for text in ["", "1,050", "50%", "1-2", "15/3", "abc", "1e999", "--1", "."] {
            assert_eq!(number_words(text), None, "{text}");
        }
    }

    #[test]
    fn exact_words_keep_what_the_reference_loses() {
        for (text, words) in [
            ("1,050", "one thousand and fifty"),
            ("-0.5", "minus zero point five"),
            ("12.46", "twelve point four six"),
            ("70.00", "seventy"),
            ("-0", "zero"),
            (
                "0.1234567890123456789",
                "zero point one two three four five six seven eight nine zero one two three four five six seven eight nine",
            ),
        ] {
            assert_eq!(exact_words(text).as_deref(), Some(words), "{text}");
        }
        assert_eq!(exact_words("5%"), None);
    }

    #[test]
    fn bare_words_have_neither_hyphen_nor_and() {
        let words = [0, 7, 19, 20, 35, 100, 340, 999].map(bare_words);
        let expected = [
            "zero",
            "seven",
            "nineteen",
            "twenty",
            "thirty five",
            "one hundred",
            "three hundred forty",
            "nine hundred ninety nine",
        ];
        assert_eq!(words, expected);
    }
}
