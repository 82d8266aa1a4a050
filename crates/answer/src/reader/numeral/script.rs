//! Digits, signs and fractions of all scripts.

/// Zeros of the scripts whose decimal digits stand in a row, but for ASCII.
const ZEROS: [u32; 38] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xff10, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1fbf0,
];

/// Single characters that are fractions.
const FRACTIONS: &str = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒↉";

/// Their values, in the same order.
const VALUES: [&str; 19] = [
    "1/2", "1/3", "2/3", "1/4", "3/4", "1/5", "2/5", "3/5", "4/5", "1/6", "5/6", "1/7", "1/8", "3/8", "5/8", "7/8",
    "1/9", "1/10", "0/3",
];

/// The value of a character that is a fraction.
pub fn fraction(c: char) -> Option<&'static str> {
    if c.is_ascii() {
        return None;
    }
    FRACTIONS.chars().position(|fraction| fraction == c).map(|index| VALUES[index])
}

/// The value of a decimal digit of any script.
pub fn digit(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.is_ascii_digit().then(|| c as u8 - b'0');
    }
    let code = c as u32;
    ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&code)).map(|zero| (code - zero) as u8)
}

/// True for a decimal digit of any script.
pub fn is_digit(c: char) -> bool {
    digit(c).is_some()
}

/// The value of a superscript digit.
pub fn superscript(c: char) -> Option<u8> {
    "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == c).map(|value| value as u8)
}

/// True for glyphs of a minus sign.
pub fn is_minus(c: char) -> bool {
    matches!(
        c,
        '-' | '\u{2212}' | '\u{2012}' | '\u{2796}' | '\u{2013}' | '\u{2010}' | '\u{2011}' | '\u{fe63}' | '\u{ff0d}'
    )
}

/// The digits that stand at a byte, and the first byte behind them.
pub fn digits(text: &str, mut at: usize) -> (String, usize) {
    let mut found = String::new();
    while let Some((c, value)) = text[at..].chars().next().and_then(|c| Some((c, digit(c)?))) {
        found.push((b'0' + value) as char);
        at += c.len_utf8();
        // Keycaps, and characters without width.
        const NO_WIDTH: [char; 7] =
            ['\u{fe0f}', '\u{20e3}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}'];
        while text[at..].starts_with(NO_WIDTH) {
            at += 3;
        }
    }
    (found, at)
}
