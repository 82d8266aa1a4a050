//! Digits, signs and fractions of all scripts.

/// Zeros of the scripts whose decimal digits stand in a row, but for ASCII.
const ZEROS: [u32; 38] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xff10, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1fbf0,
];

/// Single characters that are fractions.
pub(super) const FRACTIONS: [(char, &str); 19] = [
    ('½', "1/2"),
    ('⅓', "1/3"),
    ('⅔', "2/3"),
    ('¼', "1/4"),
    ('¾', "3/4"),
    ('⅕', "1/5"),
    ('⅖', "2/5"),
    ('⅗', "3/5"),
    ('⅘', "4/5"),
    ('⅙', "1/6"),
    ('⅚', "5/6"),
    ('⅐', "1/7"),
    ('⅛', "1/8"),
    ('⅜', "3/8"),
    ('⅝', "5/8"),
    ('⅞', "7/8"),
    ('⅑', "1/9"),
    ('⅒', "1/10"),
    ('↉', "0/3"),
];

/// The value of a decimal digit of any script.
pub fn digit(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.is_ascii_digit().then(|| c as u8 - b'0');
    }
    let code = c as u32;
    ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&code)).map(|zero| (code - zero) as u8)
}

/// The value of a superscript digit.
pub fn superscript(c: char) -> Option<u8> {
    "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == c).map(|value| value as u8)
}

/// True for glyphs of a minus sign.
pub fn is_minus(c: char) -> bool {
    matches!(c, '-' | '\u{2212}' | '\u{2013}' | '\u{2010}' | '\u{2011}' | '\u{fe63}' | '\u{ff0d}')
}

/// Character that begins at a byte.
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii() => Some(*byte as char),
        Some(_) => text[at..].chars().next(),
        None => None,
    }
}

/// Appends the digits that stand at `at`, and returns the first byte behind them.
pub fn digits(text: &str, mut at: usize, into: &mut String) -> usize {
    while let Some(c) = char_at(text, at)
        && let Some(value) = digit(c)
    {
        into.push((b'0' + value) as char);
        at += c.len_utf8();
        // Keycaps.
        while text[at..].starts_with(['\u{fe0f}', '\u{20e3}']) {
            at += 3;
        }
    }
    at
}
