//! Errors of a task file, with their places.
use std::path::Path;

use crate::nearest;
use crate::suite::quoted::{LONGEST_QUOTED, shortened};
use crate::suite::registry::OptionError;

/// Error of the TOML reader, with its place and, for an unknown key, the nearest known one.
pub(super) fn explained(error: &toml::de::Error, text: &str, path: &Path) -> OptionError {
    let (place, message) = toml_sentence(error, text);
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let (Some(name), true) = (names.next(), unknown) else {
        let message = shortened(&message, 10 * LONGEST_QUOTED);
        return OptionError::usage(format!("{}{place}: {message}", path.display()))
            .help("`earnest tasks new NAME` writes an example");
    };
    let known: Vec<&str> = names.collect();
    let thing = if message.starts_with("unknown field") { "key" } else { "value" };
    let error = OptionError::usage(format!(
        "{}{place}: there is no {thing} {}",
        path.display(),
        shortened(name, LONGEST_QUOTED)
    ));
    let all = format!("the {thing}s here are {}", known.join(", "));
    match nearest(name, known) {
        Some(found) => error.help(format!("write {found}? {all}")),
        None => error.help(all),
    }
}

/// Place of an error of the TOML reader, as line and column, and its sentence.
pub fn toml_sentence(error: &toml::de::Error, text: &str) -> (String, String) {
    let place = error.span().map(|span| place(text, span.start)).unwrap_or_default();
    let message = error.message().trim().replace('\n', "; ");
    let value = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    let digits = value.trim_start_matches(['+', '-']).replace('_', "");
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match is_whole && digits.parse::<i64>().is_err() {
        true => (place, format!("{value} is too large: whole numbers go from {} to {}", i64::MIN, i64::MAX)),
        false => (place, message),
    }
}

/// `, line 3, column 5` of a byte.
pub(super) fn place(text: &str, byte: usize) -> String {
    let before = &text[..text.floor_char_boundary(byte)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    format!(", line {line}, column {column}")
}

/// Place of a key or value in a task file: as a key, in quotes, or anywhere, but not in a comment; empty if it stands nowhere as it is.
pub(super) fn place_of(text: &str, value: &str) -> String {
    let first = value.lines().find(|line| !line.trim().is_empty()).unwrap_or(value);
    if first.is_empty() {
        return String::new();
    }
    let is_key =
        |line: &str| line.trim_start().strip_prefix(first).is_some_and(|rest| rest.trim_start().starts_with('='));
    let quoted = ['"', '\''].map(|quote| format!("{quote}{first}"));
    let mut start = 0;
    let mut best: Option<(u8, usize)> = None;
    for line in text.split_inclusive('\n') {
        let found = line.find(first).filter(|_| !line.trim_start().starts_with('#')).map(|at| {
            if is_key(line) {
                return (0, at);
            }
            match quoted.iter().find_map(|quoted| line.find(quoted)) {
                Some(quote) => (1, quote + 1),
                None => (2, at),
            }
        });
        if let Some((rank, at)) = found.filter(|(rank, _)| best.is_none_or(|(least, _)| *rank < least)) {
            best = Some((rank, start + at));
        }
        start += line.len();
    }
    best.map(|(_, byte)| place(text, byte)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_64_bits_have_a_plain_sentence() {
        for (text, digits) in [
            ("a = 99999999999999999999\n", "99999999999999999999"),
            ("a = 18_446_744_073_709_551_615\n", "18_446_744_073_709_551_615"),
        ] {
            let error = toml::from_str::<std::collections::BTreeMap<String, i64>>(text).unwrap_err();
            let (place, sentence) = toml_sentence(&error, text);
            assert_eq!(place, ", line 1, column 5");
            let said = format!("{digits} is too large: whole numbers go from {} to {}", i64::MIN, i64::MAX);
            assert_eq!(sentence, said);
        }
        let error = toml::from_str::<std::collections::BTreeMap<String, u8>>("a = 300").unwrap_err();
        assert!(toml_sentence(&error, "a = 300").1.contains("300"));
    }

    #[test]
    fn places_count_from_one() {
        assert_eq!(place("ab\ncd", 4), ", line 2, column 2");
        assert_eq!(place_of("a = 1\nb = 'x('", "x("), ", line 2, column 6");
        assert_eq!(place_of("a", "zz"), "");
        assert_eq!(place_of("# stop\nx = 'stop'\nstop = ['']", "stop"), ", line 3, column 1");
        assert_eq!(place_of("# best\nnote = 'the best'\nprimary = 'best'", "best"), ", line 3, column 12");
    }
}
