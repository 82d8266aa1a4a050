//! Character classes of Python that Rust draws elsewhere.
use std::sync::LazyLock;

use regex::Regex;

/// `str.isspace`: White_Space and the four separators of ASCII.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

static DECIMAL_DIGIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\p{Nd}$").expect("the pattern is a constant and the tests use it"));

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

static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[\p{XID_Start}_]\p{XID_Continue}*$").expect("the pattern is a constant and the tests use it")
});

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
        assert!(is_identifier("_é5") && !is_identifier("5") && !is_identifier("x²") && !is_identifier(""));
    }
}
