//! Tokens of an expression, as CPython's tokenizer cuts them.
use num_bigint::BigInt;
use num_traits::{Num, ToPrimitive};

use super::error::PythonError;
use super::number::{DIGITS, PythonNumber};
use super::unicode::is_identifier;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(PythonNumber),
    Text(String),
    /// Bytes, a formatted string, a character by its name.
    UnsupportedText,
    Name(String),
    Sign(&'static str),
    /// The end of a line that says something.
    Newline,
    /// White space before the first token of a line.
    Indent,
    /// Text that is no token, or nothing where a bracket is open at the end; nothing is read behind it.
    Invalid(String),
}

/// Longest first.
const SIGNS: [&str; 47] = [
    "...", "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->", ":=", "+=", "-=", "*=",
    "/=", "%=", "&=", "|=", "^=", "@=", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]",
    "{", "}", ",", ":", ".", ";", "=",
];

/// Brackets that CPython reads within each other.
const DEEPEST_BRACKETS: usize = 200;

/// Cuts a text that `eval` is given.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    if text.contains('\0') {
        return vec![invalid("\0")];
    }
    let mut found = Vec::new();
    if let Err(rest) = cut(text, &mut found) {
        found.push(rest);
    }
    found
}

fn invalid(rest: &str) -> Token {
    Token::Invalid(rest.to_owned())
}

/// Cuts a text; the error is what is left where no token begins.
fn cut(text: &str, found: &mut Vec<Token>) -> Result<(), Token> {
    let text = text.trim_start_matches([' ', '\t']).replace("\r\n", "\n").replace('\r', "\n");
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text.as_str();
    // Of a line without a token yet.
    let mut blank = true;
    let mut indented = false;
    while let Some(first) = rest.chars().next() {
        let line_goes_on = !open.is_empty();
        match first {
            ' ' | '\t' => {
                indented |= blank;
                rest = &rest[1..];
                continue;
            }
            '\u{c}' => {
                indented = false;
                rest = &rest[1..];
                continue;
            }
            '#' => {
                indented = false;
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '\n' => {
                if !blank && !line_goes_on {
                    found.push(Token::Newline);
                    blank = true;
                }
                indented &= line_goes_on;
                rest = &rest[1..];
                continue;
            }
            '\\' => {
                let next = rest[1..].strip_prefix('\n').filter(|rest| !rest.is_empty());
                rest = next.ok_or_else(|| invalid(rest))?;
                continue;
            }
            _ => {}
        }
        if blank && indented && !line_goes_on {
            found.push(Token::Indent);
        }
        (blank, indented) = (false, false);
        let (token, length) = token(rest).map_err(|_| invalid(rest))?;
        if let Token::Sign(sign) = token {
            bracket(sign, &mut open).map_err(|_| invalid(rest))?;
        }
        found.push(token);
        rest = &rest[length..];
    }
    // A last line of white space counts, unless it ends or has a comment.
    if blank && indented {
        found.push(Token::Indent);
    }
    if open.is_empty() { Ok(()) } else { Err(invalid("")) }
}

fn bracket(sign: &'static str, open: &mut Vec<&'static str>) -> Result<(), PythonError> {
    let opening = match sign {
        "(" | "[" | "{" if open.len() >= DEEPEST_BRACKETS => return Err(PythonError::Syntax),
        "(" | "[" | "{" => {
            open.push(sign);
            return Ok(());
        }
        ")" => "(",
        "]" => "[",
        "}" => "{",
        _ => return Ok(()),
    };
    if open.pop() == Some(opening) { Ok(()) } else { Err(PythonError::Syntax) }
}

/// The token that a text begins with, and its length in bytes.
fn token(text: &str) -> Result<(Token, usize), PythonError> {
    let bytes = text.as_bytes();
    if bytes[0].is_ascii_digit() || (bytes[0] == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit)) {
        let (number, length) = number(text)?;
        return Ok((Token::Number(number), length));
    }
    if let Some((prefix, quote)) = quoted(text) {
        return string(text, prefix, quote);
    }
    if begins_name(bytes[0]) {
        let length = bytes.iter().position(|byte| !continues_name(*byte)).unwrap_or(bytes.len());
        let name = &text[..length];
        return if is_identifier(name) { Ok((Token::Name(name.to_owned()), length)) } else { Err(PythonError::Syntax) };
    }
    let sign = SIGNS.iter().find(|sign| text.starts_with(**sign)).ok_or(PythonError::Syntax)?;
    Ok((Token::Sign(sign), sign.len()))
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 128
}

fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

/// A literal number and its length. A decimal integer other than zero must not begin with a zero.
fn number(text: &str) -> Result<(PythonNumber, usize), PythonError> {
    let bytes = text.as_bytes();
    let radix = match bytes.get(..2).map(<[u8]>::to_ascii_lowercase).as_deref() {
        Some(b"0x") => 16,
        Some(b"0o") => 8,
        Some(b"0b") => 2,
        _ => return decimal(text),
    };
    let first = if bytes.get(2) == Some(&b'_') { 3 } else { 2 };
    let end = digits(bytes, first, radix);
    // `0b12` too.
    if end == first || bytes.get(end).is_some_and(u8::is_ascii_digit) {
        return Err(PythonError::Syntax);
    }
    ends_number(text, end)?;
    let value = BigInt::from_str_radix(&text[2..end].replace('_', ""), radix).map_err(|_| PythonError::Syntax)?;
    Ok((PythonNumber::Int(value), end))
}

fn decimal(text: &str) -> Result<(PythonNumber, usize), PythonError> {
    let bytes = text.as_bytes();
    let mut end = digits(bytes, 0, 10);
    let mut float = false;
    if bytes.get(end) == Some(&b'.') {
        float = true;
        end = digits(bytes, end + 1, 10);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + signed).is_some_and(u8::is_ascii_digit) {
            float = true;
            end = digits(bytes, end + 1 + signed, 10);
        } else if signed == 1 {
            return Err(PythonError::Syntax);
        }
    }
    let literal = text[..end].replace('_', "");
    let imaginary = matches!(bytes.get(end), Some(b'j' | b'J'));
    if float || imaginary {
        let value: f64 = literal.parse().map_err(|_| PythonError::Syntax)?;
        end += usize::from(imaginary);
        ends_number(text, end)?;
        return Ok((if imaginary { PythonNumber::Complex(0.0, value) } else { PythonNumber::Float(value) }, end));
    }
    let zeros_lead = literal.starts_with('0') && literal.bytes().any(|byte| byte != b'0');
    if zeros_lead || literal.len() > DIGITS {
        return Err(PythonError::Syntax);
    }
    ends_number(text, end)?;
    Ok((PythonNumber::Int(literal.parse().map_err(|_| PythonError::Syntax)?), end))
}

/// End of digits that may have single underscores between them.
fn digits(bytes: &[u8], mut at: usize, radix: u32) -> usize {
    let is_digit = |at: usize| bytes.get(at).is_some_and(|byte| char::from(*byte).is_digit(radix));
    while is_digit(at) {
        at += if bytes.get(at + 1) == Some(&b'_') && is_digit(at + 2) { 2 } else { 1 };
    }
    at
}

/// After a number no name may follow at once, but the words that operators begin with.
fn ends_number(text: &str, end: usize) -> Result<(), PythonError> {
    let rest = &text[end..];
    let word = ["and", "else", "for", "if", "in", "is", "or", "not"].iter().any(|word| rest.starts_with(word));
    if !word && rest.bytes().next().is_some_and(continues_name) { Err(PythonError::Syntax) } else { Ok(()) }
}

/// Letters and quotation marks that a string begins with.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().take(3).position(|byte| matches!(byte, b'"' | b'\''))?;
    let prefix = &text[..at];
    let known = ["", "r", "u", "b", "f", "br", "rb", "fr", "rf"].iter().any(|one| one.eq_ignore_ascii_case(prefix));
    let rest = &text[at..];
    let quote = ["\"\"\"", "'''"].into_iter().find(|quote| rest.starts_with(quote)).unwrap_or(&rest[..1]);
    known.then_some((prefix, quote))
}

fn string(text: &str, prefix: &str, quote: &str) -> Result<(Token, usize), PythonError> {
    let start = prefix.len() + quote.len();
    let mut at = start;
    loop {
        let rest = &text[at..];
        if rest.starts_with(quote) {
            break;
        }
        match rest.chars().next() {
            None => return Err(PythonError::Syntax),
            Some('\n') if quote.len() == 1 => return Err(PythonError::Syntax),
            Some('\\') => at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            Some(character) => at += character.len_utf8(),
        }
    }
    let prefix = prefix.to_ascii_lowercase();
    let body = &text[start..at];
    let token = match prefix.as_str() {
        "" | "u" => unescaped(body)?.map_or(Token::UnsupportedText, Token::Text),
        "r" => Token::Text(body.to_owned()),
        _ => Token::UnsupportedText,
    };
    Ok((token, at + quote.len()))
}

/// The text that escapes stand for; none where a character is named or no Unicode scalar.
fn unescaped(body: &str) -> Result<Option<String>, PythonError> {
    let mut text = String::new();
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let Some(kind) = escape.chars().next() else { return Err(PythonError::Syntax) };
        let after = &escape[kind.len_utf8()..];
        let code = |digits: usize| {
            let written = after.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
            written.and_then(|text| u32::from_str_radix(text, 16).ok()).ok_or(PythonError::Syntax)
        };
        let (code, length) = match kind {
            '\n' => (None, 0),
            '\\' | '\'' | '"' => (Some(kind as u32), 0),
            'a' => (Some(7), 0),
            'b' => (Some(8), 0),
            'f' => (Some(12), 0),
            'n' => (Some(10), 0),
            'r' => (Some(13), 0),
            't' => (Some(9), 0),
            'v' => (Some(11), 0),
            '0'..='7' => {
                let length = escape.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                (u32::from_str_radix(&escape[..length], 8).ok(), length - 1)
            }
            'x' => (Some(code(2)?), 2),
            'u' => (Some(code(4)?), 4),
            'U' => (Some(code(8)?), 8),
            'N' => return Ok(None),
            other => {
                text.push('\\');
                (Some(other as u32), 0)
            }
        };
        if let Some(code) = code {
            match char::from_u32(code) {
                Some(character) => text.push(character),
                None if code > 0x10_ffff => return Err(PythonError::Syntax),
                None => return Ok(None),
            }
        }
        rest = &after[length..];
    }
    text.push_str(rest);
    Ok(Some(text))
}

/// `int(text, radix)`; radix 0 reads the text as a literal.
pub fn parsed_integer(text: &str, radix: u32) -> Result<BigInt, PythonError> {
    let text = super::unicode::decimal_digits(text.trim_matches(super::unicode::is_space));
    let negative = text.starts_with('-');
    let mut body = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let lower = body.to_ascii_lowercase();
    let mut base = radix;
    let mut prefixed = false;
    if let Some((prefix, of_prefix)) = prefixes.iter().find(|(prefix, _)| lower.starts_with(prefix))
        && (radix == 0 || radix == *of_prefix)
    {
        base = *of_prefix;
        prefixed = true;
        body = &body[prefix.len()..];
    }
    if prefixed {
        body = body.strip_prefix('_').unwrap_or(body);
    }
    if base == 0 {
        base = 10;
        if body.starts_with('0') && body.bytes().any(|byte| !matches!(byte, b'0' | b'_')) {
            return Err(PythonError::Value);
        }
    }
    let is_power_of_two = base.is_power_of_two();
    let written = body.replace('_', "");
    let well_formed = digits(body.as_bytes(), 0, base) == body.len() && !body.is_empty();
    if !well_formed || (!is_power_of_two && written.len() > DIGITS) {
        return Err(PythonError::Value);
    }
    let value = BigInt::from_str_radix(&written, base).map_err(|_| PythonError::Value)?;
    Ok(if negative { -value } else { value })
}

/// `float(text)`.
pub fn parsed_float(text: &str) -> Result<f64, PythonError> {
    let text = super::unicode::decimal_digits(text.trim_matches(super::unicode::is_space)).to_ascii_lowercase();
    let body = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match body {
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        "nan" => return Ok(f64::NAN),
        _ => {}
    }
    let bytes = body.as_bytes();
    // Underscores stand between digits only.
    let between =
        |at: usize| at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    let underscores = bytes.iter().enumerate().all(|(at, byte)| *byte != b'_' || between(at));
    let begins = bytes.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !begins || !underscores {
        return Err(PythonError::Value);
    }
    body.replace('_', "").parse::<f64>().map(|value| sign * value).map_err(|_| PythonError::Value)
}

/// A radix of `int`.
pub(super) fn radix(base: &BigInt) -> Result<u32, PythonError> {
    base.to_u32().filter(|base| *base == 0 || (2..=36).contains(base)).ok_or(PythonError::Value)
}
