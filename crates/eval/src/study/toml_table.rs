//! Tables of a TOML file, read key by key: every wrong value and every unknown key is noted with its line, none ends the reading.
use std::cell::RefCell;
use std::fmt::Display;
use std::str::FromStr;

use earnest_digest::toml_file::{nearest, place};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistake, Place};

/// Mistakes found so far, and the text that they are in.
pub(super) struct Notes<'t> {
    text: &'t str,
    mistakes: RefCell<Vec<Mistake>>,
}

impl<'t> Notes<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Notes { text, mistakes: RefCell::default() }
    }

    pub(super) fn place(&self, key: &str, byte: usize) -> Place {
        Place { key: key.to_owned(), line: Some(place(self.text, byte).0) }
    }

    pub(super) fn add(&self, mistake: Mistake) {
        self.mistakes.borrow_mut().push(mistake);
    }

    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        self.mistakes.into_inner()
    }
}

/// A table whose keys are asked for one by one. Keys may be written with `-` or `_`.
pub(super) struct Table<'a> {
    notes: &'a Notes<'a>,
    /// Name with the tables around it; empty for the file.
    name: String,
    /// Keys in the order of the file: as written, byte, value.
    entries: Vec<(&'a str, usize, &'a Spanned<DeValue<'a>>)>,
    /// Byte of the table.
    start: usize,
    known: Vec<&'static str>,
}

/// A value and its place.
pub(super) struct Found<'a> {
    pub(super) place: Place,
    pub(super) value: &'a DeValue<'a>,
}

fn plain(key: &str) -> String {
    key.replace('_', "-")
}

impl<'a> Table<'a> {
    pub(super) fn new(notes: &'a Notes<'a>, name: String, start: usize, table: &'a DeTable<'a>) -> Self {
        let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let key: &'a Spanned<std::borrow::Cow<'a, str>> = key;
            (key.get_ref().as_ref(), key.span().start, value)
        };
        let mut entries: Vec<_> = table.iter().map(entry).collect();
        entries.sort_by_key(|(_, byte, _)| *byte);
        Table { notes, name, entries, start, known: Vec::new() }
    }

    /// Name with the tables around it.
    pub(super) fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Place of the table.
    pub(super) fn place(&self) -> Place {
        self.notes.place(&self.name, self.start)
    }

    /// True if the key is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, ..)| plain(name) == key)
    }

    /// Place of a key; of the table if it is not there.
    pub(super) fn place_of(&self, key: &str) -> Place {
        let byte = self.entries.iter().find(|(name, ..)| plain(name) == key).map(|(_, byte, _)| *byte);
        self.notes.place(&self.path(key), byte.unwrap_or(self.start))
    }

    /// The notes of the file.
    pub(super) fn notes(&self) -> &'a Notes<'a> {
        self.notes
    }

    pub(super) fn add(&self, mistake: Mistake) {
        self.notes.add(mistake);
    }

    /// All keys as written with their values, in the order of the file; they all count as known.
    pub(super) fn all(mut self) -> Vec<(&'a str, Found<'a>)> {
        let entries = std::mem::take(&mut self.entries);
        let found = |(key, byte, value): (&'a str, usize, &'a Spanned<DeValue<'a>>)| {
            (key, Found { place: self.notes.place(&self.path(key), byte), value: value.get_ref() })
        };
        entries.into_iter().map(found).collect()
    }

    /// The value of a key, which is known from now on.
    pub(super) fn value(&mut self, key: &'static str) -> Option<Found<'a>> {
        self.known.push(key);
        let mut found = self.entries.iter().filter(|(name, ..)| plain(name) == key);
        let (_, byte, value) = found.next()?;
        if let Some((twice, byte, _)) = found.next() {
            let place = self.notes.place(&self.path(twice), *byte);
            self.add(Mistake::new(&place, format!("{key} is given twice")));
        }
        Some(Found { place: self.notes.place(&self.path(key), *byte), value: value.get_ref() })
    }

    fn wrong(&self, found: &Found<'_>, expected: impl Display) {
        self.add(Mistake::new(&found.place, format!("expected {expected}, not {}", kind(found.value))));
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let found = self.value(key)?;
        let text = found.value.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(&found, "a text in quotes");
        }
        text
    }

    /// A text that a type reads.
    pub(super) fn parsed<T: FromStr>(&mut self, key: &'static str) -> Option<T>
    where
        T::Err: Display,
    {
        let text = self.text(key)?;
        text.parse().map_err(|error| self.add(Mistake::new(&self.place_of(key), format!("{text}: {error}")))).ok()
    }

    /// One of the named values.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, values: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = values.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if found.is_none() {
            let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
            self.add(Mistake::new(&self.place_of(key), format!("{text} is none of {}", names.join(", "))));
        }
        found
    }

    /// An integer that is not negative and fits its type.
    pub(super) fn integer<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<T> {
        let found = self.value(key)?;
        let number =
            found.value.as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            self.wrong(&found, "a whole number of at least 0");
        }
        number
    }

    pub(super) fn number(&mut self, key: &'static str) -> Option<f64> {
        let found = self.value(key)?;
        let number = match found.value {
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::Integer(number) => number.to_string().parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.wrong(&found, "a number");
        }
        number
    }

    pub(super) fn truth(&mut self, key: &'static str) -> Option<bool> {
        let found = self.value(key)?;
        let truth = found.value.as_bool();
        if truth.is_none() {
            self.wrong(&found, "true or false");
        }
        truth
    }

    /// A list of texts; a single text is a list of one.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let found = self.value(key)?;
        let texts = match found.value {
            DeValue::String(text) => Some(vec![text.to_string()]),
            DeValue::Array(list) => list.iter().map(|one| one.get_ref().as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        match &texts {
            None => match other_element(found.value) {
                Some((number, element)) => {
                    let message = format!("expected a list of texts, and its element {number} is {}", kind(element));
                    self.add(Mistake::new(&found.place, message));
                }
                None => self.wrong(&found, "a list of texts"),
            },
            Some(texts) if texts.is_empty() => self.add(Mistake::new(&found.place, "the list is empty")),
            Some(_) => {}
        }
        texts
    }

    pub(super) fn table(&mut self, key: &'static str) -> Option<Table<'a>> {
        let start = self.entries.iter().find(|(name, ..)| plain(name) == key)?.1;
        let found = self.value(key)?;
        let table = found.value.as_table().map(|table| Table::new(self.notes, self.path(key), start, table));
        if table.is_none() {
            self.wrong(&found, format!("a table, [{}]", self.path(key)));
        }
        table
    }

    /// The tables of a key by name, in the order of the file.
    pub(super) fn named_tables(&mut self, key: &'static str) -> Vec<(String, Table<'a>)> {
        let Some(table) = self.table(key) else { return Vec::new() };
        let Table { notes, name: around, entries, .. } = table;
        let mut tables = Vec::new();
        for (name, byte, value) in entries {
            let path = format!("{around}.{name}");
            match value.get_ref() {
                DeValue::Table(own) => tables.push((name.to_owned(), Table::new(notes, path, byte, own))),
                other => {
                    let message = format!("expected a table, [{path}], not {}", kind(other));
                    notes.add(Mistake::new(&notes.place(&path, byte), message));
                }
            }
        }
        tables
    }

    /// The tables of a list, `[[key]]`; they are named by their numbers, from 1, if there are several.
    pub(super) fn tables(&mut self, key: &'static str) -> Vec<Table<'a>> {
        let Some(found) = self.value(key) else { return Vec::new() };
        let DeValue::Array(list) = found.value else {
            self.wrong(&found, format!("a list of tables, [[{}]]", self.path(key)));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (number, one) in list.iter().enumerate() {
            let name = if list.len() > 1 { format!("{key} {}", number + 1) } else { key.to_owned() };
            match one.get_ref() {
                DeValue::Table(table) => {
                    tables.push(Table::new(self.notes, self.path(&name), one.span().start, table));
                }
                other => self.add(Mistake::new(
                    &self.notes.place(&self.path(&name), one.span().start),
                    format!("expected a table, not {}", kind(other)),
                )),
            }
        }
        tables
    }

    /// Notes every key that nobody asked for.
    pub(super) fn finish(self) {
        for (name, byte, _) in &self.entries {
            if !self.known.contains(&plain(name).as_str()) {
                self.notes.add(unknown(&self.notes.place(&self.path(name), *byte), name, &self.known));
            }
        }
    }
}

/// The mistake of an unknown key, with the nearest known one.
pub(super) fn unknown(place: &Place, name: &str, known: &[&str]) -> Mistake {
    let mistake = Mistake::new(place, format!("there is no key {name} here"));
    match nearest(&plain(name), known.iter().copied()) {
        Some(key) => mistake.hint(format!("did you mean {key}?")),
        None if known.is_empty() => mistake.hint("no key is known here"),
        None => mistake.hint(format!("the keys are {}", known.join(", "))),
    }
}

/// The first element of a list that is no text, with its number from 1.
fn other_element<'v>(value: &'v DeValue<'_>) -> Option<(usize, &'v DeValue<'v>)> {
    let elements = value.as_array()?.iter().enumerate();
    let mut elements = elements.map(|(index, element)| (index + 1, element.get_ref()));
    elements.find(|(_, element)| element.as_str().is_none())
}

/// A value's type in words.
pub(super) fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{text}\""),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_element_that_is_no_text_is_named() {
        let text = "allow-config = [\"twist\", 3]\nprompts = 4\n";
        let document = DeTable::parse(text).unwrap();
        let notes = Notes::new(text);
        let mut file = Table::new(&notes, String::new(), 0, document.get_ref());
        assert_eq!((file.texts("allow-config"), file.texts("prompts")), (None, None));
        file.finish();
        let said: Vec<String> = notes.into_mistakes().iter().map(|mistake| mistake.problem.to_string()).collect();
        assert_eq!(
            said,
            [
                "expected a list of texts, and its element 2 is the number 3",
                "expected a list of texts, not the number 4"
            ]
        );
    }

    #[test]
    fn every_mistake_is_noted_with_its_line() {
        let text = "count = \"three\"\n\n[part]\nsampels = 3\nflag = 1\nmax_tokens = 4\nmax-tokens = 5\n";
        let document = DeTable::parse(text).unwrap();
        let notes = Notes::new(text);
        let mut file = Table::new(&notes, String::new(), 0, document.get_ref());
        assert_eq!(file.integer::<usize>("count"), None);
        let mut part = file.table("part").unwrap();
        assert_eq!((part.integer::<usize>("samples"), part.truth("flag")), (None, None));
        assert_eq!(part.integer::<usize>("max-tokens"), Some(4));
        part.finish();
        file.finish();
        let said: Vec<String> = notes
            .into_mistakes()
            .iter()
            .map(|mistake| format!("{}: {} {:?}", mistake.place, mistake.problem, mistake.problem.hint))
            .collect();
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].starts_with("line 1, count: expected a whole number of at least 0, not the text \"three\""));
        assert!(said[1].starts_with("line 5, part.flag: expected true or false"), "{said:?}");
        assert!(said[2].starts_with("line 7, part.max-tokens: max-tokens is given twice"), "{said:?}");
        assert!(said[3].starts_with("line 4, part.sampels: there is no key") && said[3].contains("samples?"));
    }
}
