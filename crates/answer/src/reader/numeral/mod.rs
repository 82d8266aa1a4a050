//! Numbers in digits, as people and models write them: scripts, digit groups, decimals, powers of ten, fractions.

mod fraction;
mod groups;
mod power;
mod script;

pub use fraction::latex_fraction;
pub use script::{digit, digits as digits_at, is_minus, superscript};

use fraction::mixed;
use groups::{groups, plain};
use power::power_of_ten;
use script::{FRACTIONS, char_at, digits};

/// Notation of numbers in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// The language writes decimals with a comma and groups with a point.
    pub decimal_comma: bool,
    /// A whole number was asked for, so that three digits behind one separator are a group.
    pub integer: bool,
    /// A number with decimals was asked for, so that a comma before three last digits is a decimal sign.
    pub decimals: bool,
    /// The question is about digits with spaces between them.
    pub spaced: bool,
    /// Whole numbers of several groups were given and nothing is divided, so that `99.999` is a whole number.
    pub point_groups: bool,
    /// `0b` before digits is a prefix.
    pub binary: bool,
    /// A number of things was asked for, so that "none" and "twice" are numbers.
    pub counts: bool,
    /// A position in a row was asked for, so that "first" and "second" are numbers.
    pub ranks: bool,
    /// A fraction was asked for, so that one may have spaces around its stroke.
    pub fraction: bool,
}

/// Notation of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    Integer,
    Decimal,
    Fraction,
    Scientific,
    /// Digits with spaces between them.
    Spaced,
    /// In words.
    Words,
    /// A date, a time of day, a version: digits that are no number.
    None,
}

/// A number without its sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// Canonical: ASCII digits, `.`, `/` or `e`.
    pub text: String,
    pub spelling: Spelling,
    /// First byte behind it.
    pub end: usize,
}

/// The number whose first digit (or whose decimal point) stands at `at`.
pub fn scan(text: &str, at: usize, style: Style) -> Option<Scanned> {
    let first = char_at(text, at)?;
    if let Some(&(_, fraction)) = FRACTIONS.iter().find(|(c, _)| *c == first) {
        let end = at + first.len_utf8();
        return Some(Scanned { text: fraction.to_owned(), spelling: Spelling::Fraction, end });
    }
    let mut whole = String::new();
    if first == '.' {
        whole.push('0');
        let end = digits(text, at + 1, &mut String::new());
        if end == at + 1 {
            return None;
        }
        return Some(finish(text, plain(text, whole, at, groups(text, at), style), style));
    }
    if style.binary && first == '0' && matches!(text.as_bytes().get(at + 1), Some(b'b' | b'B')) {
        let mut run = String::new();
        let end = digits(text, at + 2, &mut run);
        if !run.is_empty() {
            return Some(Scanned { text: run, spelling: Spelling::Integer, end });
        }
    }
    let end = digits(text, at, &mut whole);
    if whole.is_empty() {
        return None;
    }
    if let Some(spaced) = spaced(text, &whole, end, style) {
        return Some(spaced);
    }
    Some(finish(text, plain(text, whole, end, groups(text, end), style), style))
}

/// Single digits with one space between them.
fn spaced(text: &str, whole: &str, end: usize, style: Style) -> Option<Scanned> {
    if whole.len() != 1 {
        return None;
    }
    let mut spaced = whole.to_owned();
    let mut at = end;
    let mut count = 1;
    while text.as_bytes().get(at) == Some(&b' ') {
        let mut run = String::new();
        let next = digits(text, at + 1, &mut run);
        if run.len() != 1 {
            break;
        }
        spaced.push(' ');
        spaced.push_str(&run);
        at = next;
        count += 1;
    }
    // Elsewhere digits with spaces are a number only where nobody would write a list like that.
    let enough = if style.spaced { 2 } else { 4 };
    (count >= enough).then(|| {
        let text = if style.spaced { spaced } else { spaced.replace(' ', "") };
        let spelling = if style.spaced { Spelling::Spaced } else { Spelling::Integer };
        Scanned { text, spelling, end: at }
    })
}

fn not_a_number(number: Scanned, end: usize) -> Scanned {
    Scanned { spelling: Spelling::None, end, ..number }
}

/// Adds what follows the digits: a power of ten, a denominator; tells dates and times from numbers.
fn finish(text: &str, mut number: Scanned, style: Style) -> Scanned {
    if number.spelling == Spelling::None {
        return number;
    }
    if let Some((power, end)) = power_of_ten(text, &number) {
        let ten = number.text == "10"
            && number.spelling == Spelling::Integer
            && text[number.end..end].starts_with(['^', '⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁻', '*']);
        let significand = if ten { "1".to_owned() } else { number.text };
        return Scanned { text: format!("{significand}e{power}"), spelling: Spelling::Scientific, end };
    }
    let rest = &text[number.end..];
    // A time of day or a ratio: digits on both sides of a colon.
    if number.spelling == Spelling::Integer && rest.starts_with(':') {
        let end = digits(text, number.end + 1, &mut String::new());
        if end > number.end + 1 && number.text.len() <= 2 {
            return not_a_number(number, end);
        }
    }
    if number.spelling == Spelling::Integer {
        if let Some(fraction) = mixed(text, &number) {
            return fraction;
        }
        for slash in ["/", "\u{2044}", " / ", "}/{"] {
            // With spaces it is a division, unless a fraction was asked for.
            if slash == " / " && !style.fraction {
                continue;
            }
            if let Some(behind) = rest.strip_prefix(slash) {
                let start = text.len() - behind.len();
                let mut bottom = String::new();
                let end = digits(text, start, &mut bottom);
                let after = &text[end..];
                if bottom.is_empty()
                    || after
                        .strip_prefix(['.', ','])
                        .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()) && !next.starts_with("000"))
                {
                    break;
                }
                if after.strip_prefix('/').is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit())) {
                    let end = digits(text, end + 1, &mut String::new());
                    return not_a_number(number, end);
                }
                number.text = format!("{}/{bottom}", number.text);
                number.spelling = Spelling::Fraction;
                number.end = end;
                break;
            }
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, style: Style) -> (String, Spelling, String) {
        let found = scan(text, 0, style).unwrap();
        (found.text, found.spelling, text[found.end..].to_owned())
    }

    fn integer(text: &str) -> String {
        read(text, Style { integer: true, ..Style::default() }).0
    }

    #[test]
    fn groups_of_every_kind() {
        for text in [
            "1234567",
            "1,234,567",
            "1{,}234{,}567",
            "1\\,234\\,567",
            "1,\\!234,\\!567",
            "1_234_567",
            "1'234'567",
            "1’234’567",
            "1 234 567",
            "1\u{202f}234\u{202f}567",
            "1.234.567",
            "12,34,567",
            "１２３４５６７",
            "١٢٣٤٥٦٧",
            "१२,३४,५६७",
        ] {
            assert_eq!(integer(text), "1234567", "{text}");
        }
        assert_eq!(integer("1,23"), "1");
        assert_eq!(integer("1, 234"), "1");
        assert_eq!(integer("2019 100"), "2019");
        assert_eq!(integer("05608"), "05608");
    }

    #[test]
    fn decimal_signs_by_language_and_question() {
        let comma = Style { decimal_comma: true, ..Style::default() };
        let float = Style { decimals: true, ..Style::default() };
        assert_eq!(read("3,625", float).0, "3.625");
        assert_eq!(read("3,625", comma).0, "3.625");
        assert_eq!(read("3,625", Style::default()).0, "3625");
        assert_eq!(read("12.450,50 EUR", comma), ("12450.50".into(), Spelling::Decimal, " EUR".into()));
        assert_eq!(read("1.284,5", float).0, "1284.5");
        assert_eq!(read("1,284.5", float).0, "1284.5");
        assert_eq!(read("4.318", Style { integer: true, ..comma }).0, "4318");
        assert_eq!(read("4.318", Style::default()).0, "4.318");
        assert_eq!(read("0,375", float).0, "0.375");
        assert_eq!(read(".5 l", Style::default()).0, "0.5");
        assert_eq!(read("5. Next", Style::default()), ("5".into(), Spelling::Integer, ". Next".into()));
    }

    #[test]
    fn powers_of_ten() {
        for text in [
            "1.287e3",
            "1.287E+03",
            "1.287 × 10^3",
            "1.287×10³",
            "1.287·10^{3}",
            "1.287 \\times 10^{3}",
            "1.287 x 10^3",
            "1.287*10**3",
            "1.287 \\cdot 10^3",
        ] {
            let (found, spelling, rest) = read(text, Style::default());
            assert_eq!((found.as_str(), spelling, rest.as_str()), ("1.287e3", Spelling::Scientific, ""), "{text}");
        }
        assert_eq!(read("10^{16}", Style::default()).0, "1e16");
        assert_eq!(read("3.1 × 10⁻⁶ m", Style::default()).0, "3.1e-6");
        assert_eq!(read("3 × 100", Style::default()).0, "3");
        assert_eq!(read("5eggs", Style::default()).0, "5");
    }

    #[test]
    fn fractions() {
        for (text, expected) in [
            ("7/15", "7/15"),
            ("½", "1/2"),
            ("2½", "5/2"),
            ("3 1/2", "7/2"),
            ("2 \\frac{1}{4}", "9/4"),
            ("1 and 3/4 cups", "7/4"),
        ] {
            let (found, spelling, _) = read(text, Style::default());
            assert_eq!((found.as_str(), spelling), (expected, Spelling::Fraction), "{text}");
        }
        assert_eq!(latex_fraction("\\dfrac{3}{10}", 0), Some(("3".into(), "10".into(), 13)));
        assert_eq!(latex_fraction("\\frac12", 0), Some(("1".into(), "2".into(), 7)));
        assert_eq!(latex_fraction("\\frac{a}{2}", 0), None);
    }

    #[test]
    fn what_is_no_number() {
        for text in ["1.11.7", "12/05/2024", "12:30", "192.168.0.1"] {
            let (_, spelling, rest) = read(text, Style::default());
            assert_eq!((spelling, rest.as_str()), (Spelling::None, ""), "{text}");
        }
    }

    #[test]
    fn spaced_digits() {
        let spaced = Style { spaced: true, ..Style::default() };
        assert_eq!(read("4 8 2 1", spaced), ("4 8 2 1".into(), Spelling::Spaced, "".into()));
        assert_eq!(integer("4 8 2 1"), "4821");
        assert_eq!(integer("4 8"), "4");
    }
}
