//! Powers of ten behind a number.
use super::script::{digits, is_minus, superscript};
use super::{Scanned, Spelling};

/// The power of ten that stands behind a number: `e16`, `E+16`, `× 10^{16}`, `·10³`, `\times 10^4`; of `10^16` itself too.
pub(super) fn power_of_ten(text: &str, number: &Scanned) -> Option<(String, usize)> {
    let at = number.end;
    let rest = &text[at..];
    let upright = ["\\mathrm{e}", "\\text{e}", "\\mathrm{E}", "\\text{E}"];
    let letter = rest.strip_prefix(['e', 'E']).or_else(|| upright.iter().find_map(|letter| rest.strip_prefix(letter)));
    if let Some(behind) = letter {
        let (power, end) = exponent(text, text.len() - behind.len())?;
        return (!text[end..].starts_with(|c: char| c.is_ascii_alphabetic())).then_some((power, end));
    }
    // `9.3 e 8`: no word between two numbers of one.
    if number.spelling == Spelling::Decimal
        && number.text.find('.') == Some(1)
        && let Some(behind) = rest.strip_prefix(" e ").or_else(|| rest.strip_prefix(" E "))
        && let Some(power) = exponent(text, text.len() - behind.len())
    {
        return Some(power);
    }
    let ten = number.spelling == Spelling::Integer && number.text == "10";
    if let Some(power) = ten.then(|| raised(text, at)).flatten().or_else(|| in_words(text, at)) {
        return Some(power);
    }
    let times = rest.trim_start_matches([' ', '\u{a0}', '\u{2009}']);
    let sign = ["×", "\\times", "\\cdot", "·", "⋅", "∙", "•", "x", "X", "*", "∗", "✕"]
        .into_iter()
        .find(|sign| times.starts_with(sign))?;
    let ten = times[sign.len()..].trim_start_matches([' ', '\u{a0}', '\u{2009}', '{']);
    let (run, end) = digits(text, text.len() - ten.len());
    raised(text, end).filter(|_| run == "10")
}

/// "times ten to the power of 15"
fn in_words(text: &str, at: usize) -> Option<(String, usize)> {
    let rest = text[at..].strip_prefix(" times ")?;
    let rest = rest.strip_prefix("ten to the ").or_else(|| rest.strip_prefix("10 to the "))?;
    let rest = rest.strip_prefix("power of ").or_else(|| rest.strip_prefix("power ")).unwrap_or(rest);
    exponent(text, text.len() - rest.len())
}

/// `^{16}`, `**16`, superscripts: the exponent and the first byte behind it.
fn raised(text: &str, at: usize) -> Option<(String, usize)> {
    let rest = &text[at..];
    let first = rest.chars().next()?;
    if first == '⁻' || superscript(first).is_some() {
        let mut power = String::new();
        let mut end = at;
        for c in rest.chars() {
            match (c, superscript(c)) {
                ('⁻', _) if power.is_empty() => power.push('-'),
                (_, Some(value)) => power.push((b'0' + value) as char),
                _ => break,
            }
            end += c.len_utf8();
        }
        return (power != "-").then_some((power, end));
    }
    let behind = rest.strip_prefix("**").or_else(|| rest.strip_prefix('^')).or_else(|| rest.strip_prefix("<sup>"))?;
    let inner = behind.trim_start_matches([' ', '{', '(']);
    let (power, end) = exponent(text, text.len() - inner.len())?;
    let closes =
        |close: &&str| text[end..].starts_with(close) && inner.len() < behind.len() + usize::from(*close == "</sup>");
    let close = ["}", ")", "</sup>"].into_iter().find(closes);
    Some((power, end + close.map_or(0, str::len)))
}

/// A signed whole number: canonical, without a plus sign and leading zeros.
fn exponent(text: &str, at: usize) -> Option<(String, usize)> {
    let sign = text[at..].chars().next().filter(|&c| is_minus(c) || c == '+');
    let (written, end) = digits(text, at + sign.map_or(0, char::len_utf8));
    if !(1..=6).contains(&written.len()) {
        return None;
    }
    let power = written.trim_start_matches('0');
    let minus = if sign.is_some_and(is_minus) && !power.is_empty() { "-" } else { "" };
    Some((format!("{minus}{}", if power.is_empty() { "0" } else { power }), end))
}
