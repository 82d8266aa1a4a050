//! Index hints: markers such as `<i27>` that name the position of a digit or token in its number.
use super::settings::{DigitGroups, TokenizerSettings};
use crate::TrainError;

/// Letters of hints, one for each part of a number: integer part, decimals, exponent.
pub(super) const HINT_LETTERS: [char; 3] = ['i', 'd', 'e'];
/// Largest alphabet of index hints; each takes three tokens.
pub(super) const MAX_HINTS: usize = 1000;

/// Returns the length of the index hint at the start of a text, such as `<i27>`, as written by
/// [`earnest_tasks::suite::nupa::NumberFormat`].
pub(super) fn hint_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?.strip_prefix(HINT_LETTERS)?;
    let digits = inside.find(|c: char| !c.is_ascii_digit())?;
    (digits > 0 && inside[digits..].starts_with('>')).then_some(digits + 3)
}

/// Finds the first index hint in a text; returns its position and length.
pub(super) fn find_hint(text: &str) -> Option<(usize, usize)> {
    text.match_indices('<').find_map(|(at, _)| Some((at, hint_length(&text[at..])?)))
}

/// Checks the size of an alphabet of hints, and that hints are compatible with the groups of digits.
///
/// # Errors
/// [`TrainError::Setting`].
pub(crate) fn check_hints(settings: &TokenizerSettings, hints: Option<usize>) -> Result<(), TrainError> {
    let refused = |problem: String| Err(TrainError::Setting { setting: "index_hints", problem });
    match (hints, settings.groups) {
        (None, _) => Ok(()),
        (Some(hints), _) if !(1..=MAX_HINTS).contains(&hints) => {
            refused(format!("{hints} is out of range; use 1 to {MAX_HINTS}"))
        }
        (Some(_), DigitGroups::Places) => refused(
            "the tokenizer `places` already encodes positions; drop the hints or choose another tokenizer".into(),
        ),
        (Some(_), DigitGroups::Random) if settings.digits > 1 => refused(
            "hints precede tokens, and random groups vary between examples; drop the hints or choose another tokenizer"
                .into(),
        ),
        (Some(_), _) => Ok(()),
    }
}

/// Removes the index hints from a text.
pub(super) fn without_hints(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((at, length)) = find_hint(rest) {
        out.push_str(&rest[..at]);
        rest = &rest[at + length..];
    }
    out + rest
}

/// Converts hints before every digit to hints before every token, counted in tokens from the same start (Number Cookbook, section
/// 4.2).
pub(crate) fn hints_before_tokens(settings: &TokenizerSettings, text: &str) -> String {
    if settings.digits == 1 {
        return text.to_owned();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let Some(begin) = hint_length(rest) else {
            let next = find_hint(rest).map_or(rest.len(), |(at, _)| at);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        };
        let letter = rest[1..].chars().next().unwrap_or('i');
        let (mut indices, mut digits): (Vec<usize>, String) = Default::default();
        let mut next = Some(begin);
        while let Some(length) = next {
            indices.push(rest[2..length - 1].parse().unwrap_or(0));
            rest = &rest[length..];
            let run = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            digits.push_str(&rest[..run]);
            rest = &rest[run..];
            next = hint_length(rest).filter(|_| rest[1..].starts_with(letter));
        }
        let start = indices.iter().copied().min().unwrap_or(0);
        let rising = indices.first() < indices.last();
        let from_left = settings.groups == DigitGroups::LeftToRight || letter == 'd';
        let first = match digits.len() % settings.digits {
            rest if rest > 0 && !from_left => rest,
            _ => settings.digits.min(digits.len()),
        };
        let mut groups = vec![&digits[..first]];
        let mut left = &digits[first..];
        while !left.is_empty() {
            let (group, after) = left.split_at(settings.digits.min(left.len()));
            groups.push(group);
            left = after;
        }
        for (position, group) in groups.iter().enumerate() {
            let index = start + if rising { position } else { groups.len() - 1 - position };
            out.push_str(&format!("<{letter}{index}>{group}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_count_tokens_within_their_part() {
        let of = |groups, text: &str| hints_before_tokens(&TokenizerSettings { digits: 3, groups, words: 8 }, text);
        let reversed = "<i5>1<i6>2<i7>3<i8>4/<i5>9";
        assert_eq!(of(DigitGroups::RightAligned, reversed), "<i5>1<i6>234/<i5>9");
        assert_eq!(of(DigitGroups::LeftToRight, "<i8>1<i7>2<i6>3<i5>4"), "<i6>123<i5>4");
        assert_eq!(of(DigitGroups::RightAligned, "12 < 345, <x> <i>"), "12 < 345, <x> <i>");
    }
}
