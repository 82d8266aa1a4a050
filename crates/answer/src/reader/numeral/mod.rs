//! Numbers in digits, as people and models write them: scripts, digit groups, decimals, powers of ten, fractions.

mod fraction;
mod groups;
mod power;
mod script;

pub use fraction::latex_fraction;
pub use script::{digits as digits_at, is_digit, is_minus, superscript};

use fraction::mixed;
use groups::{groups, plain};
use power::power_of_ten;
use script::{digits, fraction};

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
    let first = text[at..].chars().next()?;
    if let Some(value) = fraction(first) {
        return Some(Scanned { text: value.to_owned(), spelling: Spelling::Fraction, end: at + first.len_utf8() });
    }
    if style.binary && first == '0' && matches!(text.as_bytes().get(at + 1), Some(b'b' | b'B')) {
        let (run, end) = digits(text, at + 2);
        if !run.is_empty() {
            return Some(Scanned { text: run, spelling: Spelling::Integer, end });
        }
    }
    let (whole, end) = if first == '.' { ("0".to_owned(), at) } else { digits(text, at) };
    if whole.is_empty() || first == '.' && !text[at + 1..].starts_with(is_digit) {
        return None;
    }
    spaced(text, &whole, end, style)
        .or_else(|| Some(finish(text, plain(text, whole, end, groups(text, end), style), style)))
}

/// Single digits with one space between them.
fn spaced(text: &str, whole: &str, end: usize, style: Style) -> Option<Scanned> {
    if whole.len() != 1 {
        return None;
    }
    let (mut spaced, mut at, mut count) = (whole.to_owned(), end, 1);
    while text[at..].starts_with(' ') {
        let (run, next) = digits(text, at + 1);
        if run.len() != 1 {
            break;
        }
        // Elsewhere digits with spaces are a number only where nobody would write a list like that.
        spaced.push_str(if style.spaced { " " } else { "" });
        spaced.push_str(&run);
        (at, count) = (next, count + 1);
    }
    let spelling = if style.spaced { Spelling::Spaced } else { Spelling::Integer };
    (count >= if style.spaced { 2 } else { 4 }).then_some(Scanned { text: spaced, spelling, end: at })
}

fn not_a_number(number: Scanned, end: usize) -> Scanned {
    Scanned { spelling: Spelling::None, end, ..number }
}

/// Adds what follows the digits: a power of ten, a denominator; tells dates and times from numbers.
fn finish(text: &str, number: Scanned, style: Style) -> Scanned {
    if number.spelling == Spelling::None {
        return number;
    }
    if let Some((power, end)) = power_of_ten(text, &number) {
        let raised = |c| superscript(c).is_some() || matches!(c, '^' | '⁻' | '*');
        let ten =
            number.text == "10" && number.spelling == Spelling::Integer && text[number.end..end].starts_with(raised);
        let significand = if ten { "1" } else { number.text.as_str() };
        return Scanned { text: format!("{significand}e{power}"), spelling: Spelling::Scientific, end };
    }
    if number.spelling != Spelling::Integer {
        return number;
    }
    let rest = &text[number.end..];
    // A time of day or a ratio: digits on both sides of a colon.
    if number.text.len() <= 2 && rest.strip_prefix(':').is_some_and(|behind| behind.starts_with(is_digit)) {
        let end = digits(text, number.end + 1).1;
        return not_a_number(number, end);
    }
    if let Some(fraction) = mixed(text, &number) {
        return fraction;
    }
    // With spaces it is a division, unless a fraction was asked for.
    let strokes = ["/", "\u{2044}", "}/{", if style.fraction { " / " } else { "/" }];
    let Some(below) = strokes.iter().find_map(|stroke| rest.strip_prefix(stroke)) else { return number };
    let (bottom, end) = digits(text, text.len() - below.len());
    let follows =
        |by: &[char]| text[end..].strip_prefix(by).filter(|next| next.starts_with(|c: char| c.is_ascii_digit()));
    if bottom.is_empty() || follows(&['.', ',']).is_some_and(|next| !next.starts_with("000")) {
        return number;
    }
    if follows(&['/']).is_some() {
        return not_a_number(number, digits(text, end + 1).1);
    }
    Scanned { text: format!("{}/{bottom}", number.text), spelling: Spelling::Fraction, end }
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
        const GROUPED: &str = "1234567¦1,234,567¦1{,}234{,}567¦1\\,234\\,567¦1,\\!234,\\!567¦1_234_567¦1'234'567¦1’234’567¦\
             1 234 567¦1\u{202f}234\u{202f}567¦1.234.567¦12,34,567¦１２３４５６７¦١٢٣٤٥٦٧¦१२,३४,५६७";
        let other = ["1,23 1", "1, 234 1", "2019 100 2019", "05608 05608"].map(|case| case.rsplit_once(' ').unwrap());
        for (text, expected) in GROUPED.split('¦').map(|text| (text, "1234567")).chain(other) {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn decimal_signs_by_language_and_question() {
        let comma = Style { decimal_comma: true, ..Style::default() };
        let float = Style { decimals: true, ..Style::default() };
        for (style, cases) in [
            (float, "3,625=3.625 1.284,5=1284.5 1,284.5=1284.5 0,375=0.375"),
            (comma, "3,625=3.625"),
            (Style::default(), "3,625=3625 4.318=4.318 .5=0.5"),
            (Style { integer: true, ..comma }, "4.318=4318"),
        ] {
            for (text, expected) in cases.split(' ').map(|case| case.split_once('=').unwrap()) {
                assert_eq!(read(text, style).0, expected, "{text}");
            }
        }
        assert_eq!(read("12.450,50 EUR", comma), ("12450.50".into(), Spelling::Decimal, " EUR".into()));
        assert_eq!(read("5. Next", Style::default()), ("5".into(), Spelling::Integer, ". Next".into()));
    }

    #[test]
    fn powers_of_ten() {
        const POWERS: &str = "1.287e3¦1.287E+03¦1.287 × 10^3¦1.287×10³¦1.287·10^{3}¦1.287 \\times 10^{3}¦1.287 x 10^3¦\
             1.287*10**3¦1.287 \\cdot 10^3";
        for text in POWERS.split('¦') {
            assert_eq!(read(text, Style::default()), ("1.287e3".into(), Spelling::Scientific, "".into()), "{text}");
        }
        for (text, expected) in [("10^{16}", "1e16"), ("3.1 × 10⁻⁶ m", "3.1e-6"), ("3 × 100", "3"), ("5eggs", "5")]
        {
            assert_eq!(read(text, Style::default()).0, expected);
        }
    }

    #[test]
    fn fractions() {
        const FRACTIONS: &str = "7/15=7/15¦½=1/2¦2½=5/2¦3 1/2=7/2¦2 \\frac{1}{4}=9/4¦1 and 3/4 cups=7/4";
        for (text, expected) in FRACTIONS.split('¦').map(|case| case.split_once('=').unwrap()) {
            let (found, spelling, _) = read(text, Style::default());
            assert_eq!((found.as_str(), spelling), (expected, Spelling::Fraction), "{text}");
        }
        assert_eq!(latex_fraction("\\dfrac{3}{10}"), Some(("3".into(), "10".into(), 13)));
        assert_eq!(latex_fraction("\\frac12"), Some(("1".into(), "2".into(), 7)));
        assert_eq!(latex_fraction("\\frac{a}{2}"), None);
    }

    #[test]
    fn dates_times_and_versions_are_no_numbers() {
        for text in ["1.11.7", "12/05/2024", "12:30", "192.168.0.1"] {
            let (_, spelling, rest) = read(text, Style::default());
            assert_eq!((spelling, rest.as_str()), (Spelling::None, ""), "{text}");
        }
    }

    #[test]
    fn spaced_digits() {
        let spaced = Style { spaced: true, ..Style::default() };
        assert_eq!(read("4 8 2 1", spaced), ("4 8 2 1".into(), Spelling::Spaced, "".into()));
        assert_eq!((integer("4 8 2 1"), integer("4 8")), ("4821".into(), "4".into()));
    }
}
