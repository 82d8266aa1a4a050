//! Fractions and mixed numbers.
use super::groups::{Separator, groups};
use super::script::{FRACTIONS, char_at, digit, digits};
use super::{Scanned, Spelling};

/// `2½`, `2 1/4`, `2 \frac{1}{4}`, `2 and 1/4` as one improper fraction.
pub(super) fn mixed(text: &str, number: &Scanned) -> Option<Scanned> {
    if number.text.len() > 9 {
        return None;
    }
    let rest = &text[number.end..];
    // `3-1/2`
    if let Some(part) = rest.strip_prefix('-') {
        let start = text.len() - part.len();
        let mut top = String::new();
        let slash = digits(text, start, &mut top);
        let mut bottom = String::new();
        let end = text[slash..]
            .strip_prefix(['/', '\u{2044}'])
            .map(|rest| digits(text, text.len() - rest.len(), &mut bottom))?;
        let behind = text[end..].trim_start();
        let operates = behind.starts_with(['=', '+', '-', '*', '/', '×', '·', '≈', '\u{2212}']);
        let value = proper(&number.text, &top, &bottom);
        return value.filter(|_| !operates && top.len() + bottom.len() <= 4).map(|text| Scanned {
            text,
            spelling: Spelling::Fraction,
            end,
        });
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
    let (fraction, end) = if let Some(&(_, fraction)) = FRACTIONS.iter().find(|(c, _)| *c == first) {
        (fraction.to_owned(), start + first.len_utf8())
    } else if let Some((top, bottom, end)) = latex_fraction(text, start) {
        (format!("{top}/{bottom}"), end)
    } else {
        // Without a space it would be another number's digits.
        if start == number.end {
            return None;
        }
        let mut top = String::new();
        let slash = digits(text, start, &mut top);
        let bottom_at = text[slash..].strip_prefix(['/', '\u{2044}']).map(|rest| text.len() - rest.len())?;
        let mut bottom = String::new();
        let end = digits(text, bottom_at, &mut bottom);
        (format!("{top}/{bottom}"), end)
    };
    let (top, bottom) = fraction.split_once('/')?;
    // "84 / 12" is a division.
    if top.is_empty() || bottom.is_empty() || top.len() > 4 || bottom.len() > 4 {
        return None;
    }
    match proper(&number.text, top, bottom) {
        Some(text) => Some(Scanned { text, spelling: Spelling::Fraction, end }),
        // `4 10/3` is no number: neither 4 nor 10/3.
        None if text[..start].ends_with(' ') && start == number.end + 1 => {
            Some(Scanned { text: number.text.clone(), spelling: Spelling::None, end })
        }
        None => None,
    }
}

/// A whole number and a proper fraction as one improper fraction.
fn proper(whole: &str, top: &str, bottom: &str) -> Option<String> {
    let (whole, top, bottom): (u64, u64, u64) = (whole.parse().ok()?, top.parse().ok()?, bottom.parse().ok()?);
    (top < bottom && whole < 1_000_000_000).then(|| format!("{}/{bottom}", whole * bottom + top))
}

/// `\frac{7}{15}`, `\dfrac715` and the like with whole numbers: numerator, denominator and the first byte behind.
pub fn latex_fraction(text: &str, at: usize) -> Option<(String, String, usize)> {
    let rest = &text[at..];
    let name = ["\\frac", "\\dfrac", "\\tfrac", "\\cfrac", "\\sfrac", "\\nicefrac"]
        .into_iter()
        .find(|name| rest.starts_with(name))?;
    let mut at = at + name.len();
    let mut parts = [String::new(), String::new()];
    for part in &mut parts {
        at = skip_spaces(text, at);
        if text[at..].starts_with('{') {
            let inside = skip_spaces(text, at + 1);
            let end = skip_spaces(text, digits_grouped(text, inside, part));
            if part.is_empty() || !text[end..].starts_with('}') {
                return None;
            }
            at = end + 1;
        } else {
            let c = char_at(text, at)?;
            part.push((b'0' + digit(c)?) as char);
            at += c.len_utf8();
        }
    }
    let [top, bottom] = parts;
    Some((top, bottom, at))
}

/// Digits that LaTeX or commas may group.
fn digits_grouped(text: &str, at: usize, into: &mut String) -> usize {
    let mut end = digits(text, at, into);
    for group in groups(text, end) {
        if group.digits.len() != 3 || group.before == Separator::Point {
            break;
        }
        into.push_str(&group.digits);
        end = group.end;
    }
    end
}

fn skip_spaces(text: &str, mut at: usize) -> usize {
    while text.as_bytes().get(at) == Some(&b' ') {
        at += 1;
    }
    at
}
