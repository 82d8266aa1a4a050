//! Errors of a task file: place, and the nearest known key.
use std::path::Path;

use crate::suite::registry::OptionError;

/// Error of the TOML reader, with its place and, for an unknown key, the nearest known one.
pub(super) fn explained(error: &toml::de::Error, text: &str, path: &Path) -> OptionError {
    let place = error.span().map(|span| place(text, span.start)).unwrap_or_default();
    let message = error.message().trim().replace('\n', "; ");
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let (Some(name), true) = (names.next(), unknown) else {
        return OptionError::usage(format!("{}{place}: {message}", path.display()))
            .help("`earnest tasks new NAME` writes an example");
    };
    let known: Vec<&str> = names.collect();
    let thing = if message.starts_with("unknown field") { "key" } else { "value" };
    let error = OptionError::usage(format!("{}{place}: there is no {thing} {name}", path.display()));
    let all = format!("the {thing}s here are {}", known.join(", "));
    match nearest(name, known) {
        Some(found) => error.help(format!("write {found}? {all}")),
        None => error.help(all),
    }
}

/// `, line 3, column 5` of a byte.
pub(super) fn place(text: &str, byte: usize) -> String {
    let before = &text[..text.floor_char_boundary(byte)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    format!(", line {line}, column {column}")
}

/// Place of a value in a task file: where its text stands, if it stands there as it is.
pub(super) fn place_of(text: &str, value: &str) -> String {
    let first = value.lines().find(|line| !line.trim().is_empty()).unwrap_or(value);
    text.find(first).filter(|_| !first.is_empty()).map(|byte| place(text, byte)).unwrap_or_default()
}

/// The name that is most like another one; none if all are too far from it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = known.into_iter().map(|other| (distance(name, other), other)).min()?;
    (close.0 <= (name.chars().count() / 2).clamp(1, 3)).then_some(close.1)
}

/// Number of characters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alike_are_found() {
        let known = ["name", "version", "licence", "questions"];
        assert_eq!(nearest("license", known), Some("licence"));
        assert_eq!(nearest("question", known), Some("questions"));
        assert_eq!(nearest("zzz", known), None);
        assert_eq!((distance("kitten", "sitting"), distance("", "ab"), distance("a", "a")), (3, 2, 0));
    }

    #[test]
    fn places_count_from_one() {
        assert_eq!(place("ab\ncd", 4), ", line 2, column 2");
        assert_eq!(place_of("a = 1\nb = 'x('", "x("), ", line 2, column 6");
        assert_eq!(place_of("a", "zz"), "");
    }
}
