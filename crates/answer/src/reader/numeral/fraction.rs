//! Fractions and mixed numbers.
use super::groups::{Separator, groups};
use super::script::{digit, digits, fraction};
use super::{Scanned, Spelling};

/// `2½`, `2 1/4`, `2 \frac{1}{4}`, `2 and 1/4` as one improper fraction.
pub(super) fn mixed(text: &str, number: &Scanned) -> Option<Scanned> {
    if number.text.len() > 9 {
        return None;
    }
    let rest = &text[number.end..];
    // `3-1/2`
    if rest.starts_with('-') {
        let (top, bottom, end) = quotient(text, number.end + 1)?;
        let operates = text[end..].trim_start().starts_with(['=', '+', '-', '*', '/', '×', '·', '≈', '\u{2212}']);
        let text = proper(&number.text, &top, &bottom).filter(|_| !operates && top.len() + bottom.len() <= 4)?;
        return Some(Scanned { text, spelling: Spelling::Fraction, end });
    }
    let mut part = rest.strip_prefix(" and ").unwrap_or(rest);
    // Spaces of LaTeX too.
    while let Some(behind) =
        [" ", "\u{a0}", "\u{2009}", "\\,", "\\;", "\\ ", "~"].iter().find_map(|space| part.strip_prefix(space))
    {
        part = behind;
    }
    let start = text.len() - part.len();
    let first = part.chars().next()?;
    let (top, bottom, end) = match (fraction(first), latex_fraction(part)) {
        (Some(value), _) => {
            let (top, bottom) = value.split_once('/')?;
            (top.to_owned(), bottom.to_owned(), start + first.len_utf8())
        }
        (None, Some((top, bottom, length))) => (top, bottom, start + length),
        // Without a space it would be another number's digits.
        (None, None) if start == number.end => return None,
        (None, None) => quotient(text, start)?,
    };
    // "84 / 12" is a division.
    if top.is_empty() || bottom.is_empty() || top.len() > 4 || bottom.len() > 4 {
        return None;
    }
    match proper(&number.text, &top, &bottom) {
        Some(text) => Some(Scanned { text, spelling: Spelling::Fraction, end }),
        // `4 10/3` is no number: neither 4 nor 10/3.
        None if text[..start].ends_with(' ') && start == number.end + 1 => {
            Some(Scanned { text: number.text.clone(), spelling: Spelling::None, end })
        }
        None => None,
    }
}

/// Two runs of digits with a stroke between them, and the first byte behind.
fn quotient(text: &str, at: usize) -> Option<(String, String, usize)> {
    let (top, stroke) = digits(text, at);
    let below = text[stroke..].strip_prefix(['/', '\u{2044}'])?;
    let (bottom, end) = digits(text, text.len() - below.len());
    Some((top, bottom, end))
}

/// A whole number and a proper fraction as one improper fraction.
fn proper(whole: &str, top: &str, bottom: &str) -> Option<String> {
    let (whole, top, bottom): (u64, u64, u64) = (whole.parse().ok()?, top.parse().ok()?, bottom.parse().ok()?);
    (top < bottom && whole < 1_000_000_000).then(|| format!("{}/{bottom}", whole * bottom + top))
}

/// `\frac{7}{15}`, `\dfrac715` and the like with whole numbers at the beginning of a text: numerator, denominator and length.
pub fn latex_fraction(text: &str) -> Option<(String, String, usize)> {
    const NAMES: [&str; 6] = ["\\frac", "\\dfrac", "\\tfrac", "\\cfrac", "\\sfrac", "\\nicefrac"];
    let mut at = NAMES.iter().find(|name| text.starts_with(**name))?.len();
    let mut parts = [String::new(), String::new()];
    for part in &mut parts {
        at = skip_spaces(text, at);
        if text[at..].starts_with('{') {
            let end;
            (*part, end) = digits_grouped(text, skip_spaces(text, at + 1));
            at = skip_spaces(text, end) + 1;
            if part.is_empty() || !text[at - 1..].starts_with('}') {
                return None;
            }
        } else {
            let c = text[at..].chars().next()?;
            part.push((b'0' + digit(c)?) as char);
            at += c.len_utf8();
        }
    }
    let [top, bottom] = parts;
    Some((top, bottom, at))
}

/// Digits that LaTeX or commas may group.
fn digits_grouped(text: &str, at: usize) -> (String, usize) {
    let (mut found, mut end) = digits(text, at);
    for group in groups(text, end) {
        if group.digits.len() != 3 || group.before == Separator::Point {
            break;
        }
        found.push_str(&group.digits);
        end = group.end;
    }
    (found, end)
}

fn skip_spaces(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start_matches(' ').len()
}
