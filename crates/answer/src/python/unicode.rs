//! Texts as Python sees them: white space, digits and names of all scripts, classes of regular expressions.
use std::sync::LazyLock;

use regex::Regex;

/// `str.isspace`: White_Space and the four separators of ASCII.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// True if `str.strip` would leave nothing.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// A regular expression with the classes of Python's `re`: `{s}` is `\s`, what `str.isspace` accepts; `{w}` is `\w`, what
/// `str.isalnum` accepts and the underscore (Rust's has marks and joiners too). `\d`, `.`, `^` and the choice among matches are
/// the same in both.
pub fn pattern(text: &str) -> Regex {
    let text = text.replace("{s}", r"[\s\x1c-\x1f]").replace("{w}", r"[\p{L}\p{N}_]");
    Regex::new(&text).expect("the patterns are constants and the tests compile each of them")
}

static DECIMAL_DIGIT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\p{Nd}$"));

fn is_decimal_digit(character: char) -> bool {
    DECIMAL_DIGIT.is_match(character.encode_utf8(&mut [0; 4]))
}

/// The text with every decimal digit of any script in ASCII, as `int` and `float` read it.
pub fn decimal_digits(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() || !c.is_numeric() { c } else { digit(c).unwrap_or(c) }).collect()
}

/// Digits of a script stand together, from zero to nine.
fn digit(character: char) -> Option<char> {
    let code = character as u32;
    let digits_before = (1..=code)
        .map_while(|back| char::from_u32(code - back).filter(|c| !c.is_ascii() && is_decimal_digit(*c)))
        .count();
    is_decimal_digit(character).then(|| char::from_digit(digits_before as u32 % 10, 10)).flatten()
}

static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[\p{XID_Start}_]\p{XID_Continue}*$"));

/// `str.isidentifier`.
pub fn is_identifier(text: &str) -> bool {
    IDENTIFIER.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_spaces_and_names_of_all_scripts() {
        assert_eq!(decimal_digits("٣ ５ ² ½ 𝟗𝟬 x"), "3 5 ² ½ 90 x");
        assert!(is_space('\u{1c}') && is_space('\u{a0}') && !is_space('\u{200b}'));
        assert!(is_blank(" \n\t\x1c\x1f\u{a0}\u{3000}") && !is_blank("\u{200b}"));
        assert!(pattern("^{s}+$").is_match("\x1c\x1d\u{85}"));
        assert!(pattern("^{w}+$").is_match("ünï_²٣") && !pattern("{w}").is_match("\u{301}"));
        assert!(is_identifier("_é5") && !is_identifier("5") && !is_identifier("x²") && !is_identifier(""));
    }
}
