//! Where Python's texts differ from Rust's: white space, decimal digits of all scripts, and what `float` reads.
use std::sync::LazyLock;

use regex::Regex;

/// `\s` of Python's `re`: what `str.isspace` accepts, which is Unicode white space and the four ASCII separators.
pub const SPACE: &str = r"[\s\x1c-\x1f]";

/// `\w` of Python's `re`: what `str.isalnum` accepts, and the underscore. Rust's has marks and joiners too.
pub const WORD: &str = r"[\p{L}\p{N}_]";

/// A pattern with Python's classes: `{s}` and `{w}` stand for [`SPACE`] and [`WORD`]. `\d`, `.`, `^` and the choice among
/// matches are the same in both.
pub fn pattern(text: &str) -> Regex {
    let text = text.replace("{s}", SPACE).replace("{w}", WORD);
    Regex::new(&text).expect("the patterns are constants and the tests compile each of them")
}

/// True if `str.strip` would leave nothing.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
}

static DECIMAL_DIGIT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d$"));

/// Python's `float` on a text of decimal digits of any script, perhaps with a sign before and a point between them.
/// Beyond the range of floats it is an infinity.
pub fn float(text: &str) -> Option<f64> {
    let ascii: Option<String> = text
        .chars()
        .map(|c| if c.is_ascii() { Some(c) } else { digit_value(c).map(|d| char::from(b'0' + d)) })
        .collect();
    ascii?.parse().ok()
}

/// The value of a decimal digit outside ASCII. Unicode keeps the ten digits of a script together and in order, so that the
/// distance to the beginning of the run tells the value.
fn digit_value(digit: char) -> Option<u8> {
    let is_digit = |c: char| DECIMAL_DIGIT.is_match(c.encode_utf8(&mut [0; 4]));
    if !is_digit(digit) {
        return None;
    }
    let before = (0..digit as u32).rev().map_while(char::from_u32).take_while(|&c| is_digit(c)).count();
    u8::try_from(before % 10).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_all_scripts_have_their_value() {
        assert_eq!(float("٣"), Some(3.0));
        assert_eq!(float("-१२.५"), Some(-12.5));
        assert_eq!(float("９"), Some(9.0));
        assert_eq!(float("𝟗𝟘𝟡𝟬𝟿"), Some(90909.0 - 900.0 + 900.0));
        assert_eq!(float(&"9".repeat(400)), Some(f64::INFINITY));
        assert_eq!(float("²"), None);
    }

    #[test]
    fn white_space_is_pythons() {
        assert!(is_blank(" \n\t\x1c\x1f\u{a0}\u{3000}") && !is_blank("\u{200b}"));
        assert!(pattern("^{s}+$").is_match("\x1c\x1d\u{85}"));
        assert!(pattern("^{w}+$").is_match("ünï_²٣") && !pattern("{w}").is_match("\u{301}"));
    }
}
