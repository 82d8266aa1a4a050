//! English number words, as the reference writes them (the Python package num2words, English cardinals) and back.
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

const UNITS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Names of the powers of a thousand (short scale), as far as anyone writes them.
const GROUPS: [&str; 22] = [
    "",
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
    "sextillion",
    "septillion",
    "octillion",
    "nonillion",
    "decillion",
    "undecillion",
    "duodecillion",
    "tredecillion",
    "quattuordecillion",
    "quindecillion",
    "sexdecillion",
    "septendecillion",
    "octodecillion",
    "novemdecillion",
    "vigintillion",
];

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
    for place in (0..groups).rev() {
        let end = digits.len() - 3 * place;
        let group: usize = digits.get(end.saturating_sub(3)..end)?.parse().ok()?;
        if group == 0 && groups > 1 {
            continue;
        }
        if !words.is_empty() {
            words.push_str(if place == 0 && group < 100 { " and " } else { ", " });
        }
        words.push_str(&group_words(group));
        if place > 0 {
            words.push(' ');
            words.push_str(GROUPS[place]);
        }
    }
    Some(words)
}

fn group_words(group: usize) -> String {
    match group {
        0..=19 => UNITS[group].to_owned(),
        20..=99 if group.is_multiple_of(10) => TENS[group / 10].to_owned(),
        20..=99 => format!("{}-{}", TENS[group / 10], UNITS[group % 10]),
        _ if group.is_multiple_of(100) => format!("{} hundred", UNITS[group / 100]),
        _ => format!("{} hundred and {}", UNITS[group / 100], group_words(group % 100)),
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

/// A number written in words inside a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordNumber {
    /// Byte range.
    pub start: usize,
    pub end: usize,
    /// Its digits, e.g. `192` or `4.5`.
    pub digits: String,
}

/// The numbers that a text writes in words, from left to right: `forty-two`, `one hundred and six`, `two point five`. A lone
/// `one` is left out, because it is a pronoun more often than a number.
pub fn words_in(text: &str) -> Vec<WordNumber> {
    let tokens = words(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match longest(text, &tokens[at..]) {
            Some((count, digits)) => {
                let (start, end) = (tokens[at].0, tokens[at + count - 1].1);
                if !text[start..end].eq_ignore_ascii_case("one") {
                    found.push(WordNumber { start, end, digits });
                }
                at += count;
            }
            None => at += 1,
        }
    }
    found
}

/// Byte ranges of runs of letters; hyphens separate, so that `forty-two` is two words.
fn words(text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, character) in text.char_indices() {
        if character.is_alphanumeric() || character == '\'' {
            match found.last_mut() {
                Some((_, end)) if *end == at => *end = at + character.len_utf8(),
                _ => found.push((at, at + character.len_utf8())),
            }
        }
    }
    found
}

/// What a word adds to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Unit(u64),
    Ten(u64),
    Hundred,
    Group(usize),
    And,
    Point,
}

fn classify(word: &str) -> Option<Word> {
    let word = word.to_ascii_lowercase();
    if let Some(unit) = UNITS.iter().position(|unit| *unit == word) {
        return Some(Word::Unit(unit as u64));
    }
    if let Some(ten) = TENS.iter().position(|ten| !ten.is_empty() && *ten == word) {
        return Some(Word::Ten(10 * ten as u64));
    }
    if let Some(group) = GROUPS.iter().skip(1).position(|group| *group == word) {
        return Some(Word::Group(group + 1));
    }
    match word.as_str() {
        "hundred" => Some(Word::Hundred),
        "and" => Some(Word::And),
        "point" => Some(Word::Point),
        _ => None,
    }
}

/// The longest beginning of the words that is one number: how many words, and its digits.
fn longest(text: &str, tokens: &[(usize, usize)]) -> Option<(usize, String)> {
    let mut total = BigInt::zero();
    let mut group: u64 = 0;
    let mut last: Option<Word> = None;
    let mut smallest = GROUPS.len();
    let mut best: Option<(usize, String)> = None;
    let mut taken = 0;
    while let Some(&(start, end)) = tokens.get(taken) {
        let separator = taken.checked_sub(1).and_then(|before| tokens.get(before)).map(|before| &text[before.1..start]);
        let Some(word) = text.get(start..end).and_then(classify) else { break };
        let joined = |separator: &str| matches!(separator, " " | "-" | ", " | "\u{2011}");
        if separator.is_some_and(|separator| !joined(separator)) {
            break;
        }
        // A comma is part of a number only between its groups.
        let comma = separator == Some(", ");
        if comma && !matches!(last, Some(Word::Group(_))) {
            break;
        }
        let empty = last.is_none() || matches!(last, Some(Word::Group(_)));
        let after_hundred = matches!(last, Some(Word::Hundred | Word::And)) && group.is_multiple_of(100);
        let fits = match word {
            Word::Unit(unit) => {
                (empty || after_hundred || (matches!(last, Some(Word::Ten(_))) && (1..10).contains(&unit)))
                    && !(unit == 0 && last.is_some())
            }
            Word::Ten(_) => empty || after_hundred,
            Word::Hundred => matches!(last, Some(Word::Unit(unit)) if (1..20).contains(&unit)) && group < 20,
            Word::Group(place) => {
                group > 0 && place < smallest && matches!(last, Some(Word::Unit(_) | Word::Ten(_) | Word::Hundred))
            }
            Word::And => matches!(last, Some(Word::Hundred | Word::Group(_))),
            Word::Point => matches!(last, Some(Word::Unit(_) | Word::Ten(_) | Word::Hundred | Word::Group(_))),
        };
        if !fits {
            break;
        }
        taken += 1;
        match word {
            Word::Unit(value) | Word::Ten(value) => group += value,
            Word::Hundred => group *= 100,
            Word::Group(place) => {
                total += BigInt::from(group) * BigInt::from(1000).pow(place as u32);
                group = 0;
                smallest = place;
            }
            Word::And => {}
            Word::Point => {
                let mut decimals = String::new();
                for &(start, end) in &tokens[taken..] {
                    if text.get(tokens[taken - 1].1..start) != Some(" ") {
                        break;
                    }
                    match text.get(start..end).and_then(classify) {
                        Some(Word::Unit(digit)) if digit < 10 => decimals.push_str(&digit.to_string()),
                        _ => break,
                    }
                    taken += 1;
                }
                if !decimals.is_empty() {
                    best = Some((taken, format!("{}.{decimals}", total + BigInt::from(group))));
                }
                return best;
            }
        }
        last = Some(word);
        if word != Word::And {
            best = Some((taken, (&total + BigInt::from(group)).to_string()));
        }
    }
    best
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
    fn numbers_in_words_are_found_and_read() {
        let digits = |text: &str| words_in(text).into_iter().map(|found| found.digits).collect::<Vec<_>>();
        assert_eq!(digits("He gave five to his brother."), ["5"]);
        assert_eq!(digits("Ninety-seven cupcakes and fifty-eight"), ["97", "58"]);
        assert_eq!(digits("one hundred and ninety-two, and two"), ["192", "2"]);
        assert_eq!(digits("the other one; someone; tent"), Vec::<String>::new());
        assert_eq!(digits("two point five litres"), ["2.5"]);
        assert_eq!(digits("one thousand, two hundred and six"), ["1206"]);
        assert_eq!(digits("six, seven and eight"), ["6", "7", "8"]);
        assert_eq!(digits("two hundred thousand and five"), ["200005"]);
        assert_eq!(digits("twenty and thirty"), ["20", "30"]);
        assert_eq!(digits("zero fewer"), ["0"]);
    }

    #[test]
    fn words_read_back_to_the_same_number() {
        for value in (0..2500).chain([9_999, 10_000, 100_001, 123_456_789, 1_000_000, 70_707]) {
            let text = value.to_string();
            let words = number_words(&text).unwrap();
            let found = words_in(&words);
            match value {
                1 => assert!(found.is_empty()),
                _ => assert_eq!(
                    (found.len(), found[0].digits.as_str(), found[0].end),
                    (1, text.as_str(), words.len()),
                    "{words}"
                ),
            }
        }
    }
}
