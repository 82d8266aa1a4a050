//! TOML files read into types: their errors have the place, the key and the nearest known one.
use std::fmt::{Display, Formatter};

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

/// An error of a TOML file; the caller adds the file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TomlError {
    /// Line and column from 1; none of a table that was put together from several.
    pub place: Option<(usize, usize)>,
    /// Key with the tables around it, e.g. `training.steps`; empty if it is unknown or the message names it.
    pub key: String,
    pub message: String,
    /// Next step, where there is one.
    pub help: Option<String>,
}

impl Display for TomlError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let place = self.place.map(|(line, column)| format!("line {line}, column {column}"));
        let before = place.into_iter().chain((!self.key.is_empty()).then(|| self.key.clone())).collect::<Vec<_>>();
        match before.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", before.join(", "), self.message),
        }
    }
}

impl std::error::Error for TomlError {}

impl TomlError {
    /// The error of the TOML reader on this text; of a table in memory, on an empty one.
    pub fn new(error: &toml::de::Error, text: &str) -> Self {
        let span = error.span().filter(|_| !text.is_empty());
        let place = span.as_ref().map(|span| place(text, span.start));
        let message = too_large(error, text).unwrap_or_else(|| error.message().trim().replace('\n', "; "));
        let mut names = message.split('`').skip(1).step_by(2);
        let thing = match message.split_once(" `").map(|(start, _)| start) {
            Some("unknown field") => "key",
            Some("unknown variant") => "value",
            _ => {
                let key = match &span {
                    Some(span) => {
                        DeTable::parse(text).map(|table| key_at(table.get_ref(), span.start)).unwrap_or_default()
                    }
                    // The reader names the key of a table in memory in a line of its own.
                    None => error.to_string().lines().find_map(key_line).unwrap_or_default(),
                };
                return TomlError { place, key, message, help: None };
            }
        };
        let name = names.next().unwrap_or_default();
        let known: Vec<&str> = names.collect();
        let all = format!("the {thing}s here are {}", known.join(", "));
        let help = match nearest(name, known) {
            Some(found) => format!("did you mean {found}? {all}"),
            None => all,
        };
        let name: String = name.chars().take(LONGEST_NAME).collect();
        TomlError { place, key: String::new(), message: format!("there is no {thing} {name}"), help: Some(help) }
    }

    /// The error with its next step, for messages that have no room for one.
    pub fn sentence(&self) -> String {
        match &self.help {
            None => self.to_string(),
            Some(help) => format!("{self}; {help}"),
        }
    }
}

/// Characters of an unknown key that a message shows.
const LONGEST_NAME: usize = 100;

/// Reads a text, which may begin with a byte-order mark.
///
/// # Errors
/// [`TomlError`] for a text that is no TOML, and keys or values that the type does not have.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    toml::from_str(text).map_err(|error| TomlError::new(&error, text))
}

/// Reads a table in memory.
///
/// # Errors
/// As [`read`], without places.
pub fn from_table<T: DeserializeOwned>(table: toml::Table) -> Result<T, TomlError> {
    toml::Value::Table(table).try_into().map_err(|error| TomlError::new(&error, ""))
}

/// Line and column of a byte, from 1.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    (before.matches('\n').count() + 1, column)
}

/// The name that is most like another one, letters that changed places being one slip; none if all are too far from it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = known.into_iter().map(|other| (strsim::osa_distance(name, other), other)).min()?;
    (close.0 <= (name.chars().count() / 2).clamp(1, 3)).then_some(close.1)
}

/// Sentence for a whole number beyond 64 bits, which the reader takes for a value of another type.
fn too_large(error: &toml::de::Error, text: &str) -> Option<String> {
    let value = text.get(error.span()?)?;
    let digits = value.trim_start_matches(['+', '-']).replace('_', "");
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_whole && digits.parse::<i64>().is_err())
        .then(|| format!("{value} is too large: whole numbers go from {} to {}", i64::MIN, i64::MAX))
}

/// Key of a line such as ``in `training.steps` ``.
fn key_line(line: &str) -> Option<String> {
    Some(line.trim().strip_prefix("in `")?.strip_suffix('`')?.to_owned())
}

/// The key whose value has this byte, with the tables around it; empty outside of all.
fn key_at(table: &DeTable<'_>, byte: usize) -> String {
    for (key, value) in table {
        let inside = match value.get_ref() {
            DeValue::Table(table) => key_at(table, byte),
            DeValue::Array(list) => {
                let tables = list.iter().filter_map(|one| one.get_ref().as_table());
                tables.map(|table| key_at(table, byte)).find(|inside| !inside.is_empty()).unwrap_or_default()
            }
            _ => String::new(),
        };
        let key_text = key.get_ref();
        if !inside.is_empty() {
            return format!("{key_text}.{inside}");
        }
        if value.span().contains(&byte) {
            return key_text.to_string();
        }
    }
    String::new()
}
