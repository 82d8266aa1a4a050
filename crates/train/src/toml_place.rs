//! Lines of training files, for their errors.
use toml::de::{DeTable, DeValue};

/// `line 3, ` before a sentence; nothing without a line.
pub(crate) fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}, "))
}

/// Line of a key: of the file, or of one of a list of tables and their defaults `[training]`; of the table, if the key is in neither.
pub(crate) fn line_of(text: &str, table: Option<(&str, usize)>, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let file = document.get_ref();
    let of_key = |table: &DeTable<'_>| {
        table.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(name, _)| name.span().start)
    };
    let byte = match table {
        None => of_key(file)?,
        Some((list, index)) => {
            let DeValue::Array(tables) = file.get(list)?.get_ref() else { return None };
            let own = tables.get(index)?;
            let defaults = file.get("training").and_then(|table| table.get_ref().as_table());
            let found = own.get_ref().as_table().and_then(of_key).or_else(|| defaults.and_then(of_key));
            found.unwrap_or(own.span().start)
        }
    };
    Some(1 + text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count())
}
