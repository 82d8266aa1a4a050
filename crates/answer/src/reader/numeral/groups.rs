//! Digits with group separators and decimals.
use super::script::digits;
use super::{Scanned, Spelling, Style, not_a_number};

/// Separator of two runs of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    Point,
    /// Groups only: underscore, apostrophe, thin and no-break space, LaTeX.
    Group,
    Space,
}

fn separator(text: &str, at: usize) -> Option<(Separator, usize)> {
    let rest = &text[at..];
    // A brace keeps LaTeX from setting a space behind the comma, whatever the comma is.
    if rest.starts_with("{,}") {
        return Some((Separator::Comma, 3));
    }
    for (latex, length) in [(",\\!", 3), ("\\,", 2), ("\\!", 2), ("{.}", 3)] {
        if rest.starts_with(latex) {
            return Some((Separator::Group, length));
        }
    }
    let c = rest.chars().next()?;
    let separator = match c {
        ',' | '，' => Separator::Comma,
        '.' | '．' | '٫' => Separator::Point,
        '_' | '\'' | '’' | '٬' | '\u{2009}' | '\u{202f}' | '\u{a0}' | '\u{2008}' | '\u{200a}' | '˙' => {
            Separator::Group
        }
        ' ' => Separator::Space,
        _ => return None,
    };
    Some((separator, c.len_utf8()))
}

/// A run of digits and what stands before it.
pub(super) struct Group {
    pub(super) before: Separator,
    pub(super) digits: String,
    pub(super) end: usize,
}

/// Most groups of two digits that are looked at: a lakh of crores needs fewer.
const MOST_PAIRS: usize = 10;

/// The runs of digits behind a number, as far as they can belong to it and one further. They are few unless they do belong to it,
/// so that a long list costs no more than its length.
pub(super) fn groups(text: &str, mut at: usize) -> Vec<Group> {
    let mut found: Vec<Group> = Vec::new();
    let mut pairs = 0;
    let mut ending = false;
    while let Some((before, length)) = separator(text, at) {
        let (run, end) = digits(text, at + length);
        if run.is_empty() {
            break;
        }
        pairs += usize::from(run.len() == 2);
        let other = run.len() != 3 && run.len() != 2 || pairs > MOST_PAIRS;
        let changes = found.first().is_some_and(|first| first.before != before);
        found.push(Group { before, digits: run, end });
        if ending {
            break;
        }
        ending = other || changes;
        at = end;
    }
    found
}

/// Digits with their groups and decimals: the longest beginning of `groups` that is one number.
pub(super) fn plain(text: &str, whole: String, end: usize, groups: Vec<Group>, style: Style) -> Scanned {
    let first = whole.len();
    let can_group = (1..=3).contains(&first) && (!whole.starts_with('0') || first == 1 && style.integer);
    let mut number = Scanned { text: whole, spelling: Spelling::Integer, end };
    let mut grouped: Option<Separator> = None;
    for (index, group) in groups.iter().enumerate() {
        let next = groups.get(index + 1);
        let three = group.digits.len() == 3;
        let joins = |grouped: Option<Separator>| three && can_group && grouped.is_none_or(|by| by == group.before);
        // What follows is more of the same: one group of several.
        let more = |by: Separator| next.is_some_and(|next| next.before == by && next.digits.len() == 3);
        let follows = |by: Separator| next.is_some_and(|next| next.before == by);
        let spaced = !style.spaced && (first < 3 || next.is_none() || more(Separator::Space));
        let comma = style.decimals || style.decimal_comma || (!style.integer && group.digits.len() == 2);
        let decimal = match group.before {
            Separator::Group if three || grouped == Some(Separator::Group) || indian(&groups[index..]) => false,
            Separator::Space if spaced && joins(grouped) => false,
            Separator::Group | Separator::Space => break,
            Separator::Comma => match grouped {
                Some(Separator::Point | Separator::Space) => true,
                Some(Separator::Comma) if three || indian(&groups[index..]) => false,
                None if indian(&groups[index..]) && can_group => false,
                None if three && can_group => {
                    let several = more(Separator::Comma) || follows(Separator::Point);
                    !several && (style.decimals || (style.decimal_comma && !style.integer))
                }
                // `1,2` is a list where nobody writes decimals with a comma.
                None if comma && !follows(Separator::Comma) => true,
                _ => break,
            },
            Separator::Point => match grouped {
                Some(Separator::Point) if three => false,
                Some(Separator::Point) => return not_a_number(number, group.end),
                None if joins(None) && first > 0 && number.text != "0" => {
                    let before_comma = follows(Separator::Comma) && !more(Separator::Comma);
                    let language = (style.decimal_comma || style.point_groups) && !style.decimals;
                    !(more(Separator::Point) || before_comma || language)
                }
                _ => true,
            },
        };
        if decimal {
            number.text.push('.');
            number.text.push_str(&group.digits);
            (number.spelling, number.end) = (Spelling::Decimal, group.end);
            // A second point makes it a version, a date or an address.
            if group.before == Separator::Point && follows(Separator::Point) {
                let points = groups[index..].iter().take_while(|group| group.before == Separator::Point);
                return not_a_number(number, points.last().map_or(group.end, |last| last.end));
            }
            break;
        }
        number.text.push_str(&group.digits);
        number.end = group.end;
        grouped = Some(group.before);
    }
    // Digits of a repeating decimal in brackets: `0.1(6)`, `0.(27)`.
    let point = if number.spelling == Spelling::Integer { "." } else { "" };
    if let Some(inside) = text[number.end..].strip_prefix(point).and_then(|behind| behind.strip_prefix('(')) {
        let (period, end) = digits(text, text.len() - inside.len());
        if !period.is_empty() && text[end..].starts_with(')') {
            number = Scanned { text: number.text + point + &period, spelling: Spelling::Decimal, end: end + 1 };
        }
    }
    number
}

/// Groups of two digits up to a last one of three: `12,43,567`.
fn indian(groups: &[Group]) -> bool {
    let run = groups.iter().take_while(|group| group.before == groups[0].before);
    let mut lengths = run.map(|group| group.digits.len());
    groups[0].digits.len() == 2 && lengths.find(|&length| length != 2) == Some(3)
}
