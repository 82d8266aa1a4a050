//! Errors of a task file, with their places.
use std::path::Path;

use crate::suite::quoted::{LONGEST_QUOTED, shortened};
use crate::suite::registry::OptionError;
use earnest_digest::toml_file::{self, TomlError};

/// Error of the TOML reader for the task file of this path.
pub(super) fn explained(error: TomlError, path: &Path) -> OptionError {
    let message = shortened(&error.to_string(), 10 * LONGEST_QUOTED);
    let separator = if error.place.is_some() { ", " } else { ": " };
    let help = error.help.unwrap_or_else(|| "`earnest tasks new NAME` writes an example".to_owned());
    OptionError::usage(format!("{}{separator}{message}", path.display())).help(help)
}

/// `, line 3, column 5` of a byte.
pub(super) fn place(text: &str, byte: usize) -> String {
    let (line, column) = toml_file::place(text, byte);
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
    use super::super::definition::Definition;
    use super::*;

    #[test]
    fn numbers_beyond_64_bits_have_a_plain_sentence() {
        for (text, digits) in [
            ("a = 99999999999999999999\n", "99999999999999999999"),
            ("a = 18_446_744_073_709_551_615\n", "18_446_744_073_709_551_615"),
        ] {
            let error = toml_file::read::<std::collections::BTreeMap<String, i64>>(text).unwrap_err();
            let said = format!("{digits} is too large: whole numbers go from {} to {}", i64::MIN, i64::MAX);
            assert_eq!((error.place, error.message), (Some((1, 5)), said));
        }
        let error = toml_file::read::<std::collections::BTreeMap<String, u8>>("a = 300").unwrap_err();
        assert!(error.to_string().starts_with("line 1, column 5, a: ") && error.message.contains("300"), "{error}");
    }

    #[test]
    fn keys_and_tables_around_them_are_named() {
        let text = "name = \"x\"\n\n[generation]\nmax_tokens = \"many\"\n";
        let error = Definition::parse(text, Path::new("t.toml")).unwrap_err();
        let start = "t.toml, line 4, column 14, generation.max_tokens: invalid type";
        assert!(error.message.starts_with(start), "{error}");
        let error = Definition::parse("nam = \"x\"", Path::new("t.toml")).unwrap_err();
        assert_eq!(error.message, "t.toml, line 1, column 1: there is no key nam");
        assert!(error.help.unwrap().starts_with("did you mean name? the keys here are "));
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
