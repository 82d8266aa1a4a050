//! The footer, looked over before the library reads it: the library calls itself for each level of the schema and believes counts.
use std::fs::File;

use earnest_tasks::suite::{MAX_SAMPLES, most_rows, most_rows_in_words};
use parquet::file::reader::ChunkReader;

use super::reason::{Damage, in_words};
use super::thrift::{Cursor, Fault, MOST_ELEMENTS};

/// Largest footer in bytes. It is held in memory while a file is open.
const MOST_FOOTER: u64 = 64 << 20;

/// Deepest nesting of columns. A list in a list has four levels.
const DEEPEST: usize = 64;

/// Most columns, those of groups included: as many as a spreadsheet has.
pub(crate) const MOST_COLUMNS: u64 = 16_384;

/// Most parts of columns, one for each column of each row group: some 500 bytes of memory each.
const MOST_CHUNKS: u64 = 500_000;

/// Most bytes of the names of all columns, each with the groups that it stands in.
const MOST_NAMES: u64 = 16 << 20;

/// Longest name of a column in bytes, with the groups that it stands in: errors name columns.
const MOST_NAME: u64 = 64 << 10;

/// The last eight bytes: the footer's length and a mark.
const TAIL: u64 = 8;

/// Checks the footer of a file.
///
/// # Errors
/// The limit that is exceeded, in words. A file without a footer is left to the library, which says so.
pub(super) fn check(file: &File, size: u64) -> Result<(), Damage> {
    if size < TAIL + 4 {
        return Ok(());
    }
    let bytes = |start: u64, length: u64| file.get_bytes(start, length as usize).map_err(in_words);
    let tail = bytes(size - TAIL, TAIL)?;
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if &tail[4..] != b"PAR1" || length + TAIL > size {
        return Ok(());
    }
    if length > MOST_FOOTER {
        return Err(Damage(format!("its footer has {length} bytes; at most {} MiB are read", MOST_FOOTER >> 20)));
    }
    let footer = bytes(size - TAIL - length, length)?;
    let mut found = Found { size, ..Found::default() };
    let walked = found.walk(&mut Cursor::new(&footer));
    match (walked, found.refused) {
        (_, Some(refused)) => Err(Damage(refused)),
        (Ok(()), None) => Ok(()),
        (Err(Fault::Short), None) => Err(Damage("its footer ends too early".to_owned())),
        (Err(Fault::Malformed), None) => Err(Damage("its footer is damaged".to_owned())),
        (Err(Fault::Many), None) => {
            Err(Damage(format!("the lists of its footer have more than {MOST_ELEMENTS} values")))
        }
        (Err(Fault::Deep), None) => Err(Damage("its footer is nested too deeply".to_owned())),
    }
}

/// Facts of a footer.
#[derive(Default)]
struct Found {
    /// Bytes of the file.
    size: u64,
    /// Groups of the schema that are open: fields that they still lack, and bytes of their names.
    open: Vec<(u64, u64)>,
    columns: u64,
    names: u64,
    chunks: u64,
    rows: u64,
    /// The first thing beyond a limit.
    refused: Option<String>,
}

impl Found {
    fn walk(&mut self, footer: &mut Cursor<'_>) -> Result<(), Fault> {
        footer.structure(&mut |footer, field| {
            match field.id {
                2 => footer.structures(field, &mut |footer, left| self.element(footer, left))?,
                4 => footer.structures(field, &mut |footer, _| self.group(footer))?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    fn refuse<T>(&mut self, reason: String) -> Result<T, Fault> {
        self.refused.get_or_insert(reason);
        Err(Fault::Malformed)
    }

    /// A column or group of the schema; `left` is the number of those that follow, with itself.
    fn element(&mut self, footer: &mut Cursor<'_>, left: u64) -> Result<(), Fault> {
        let (mut children, mut name) = (0, 0);
        footer.structure(&mut |footer, field| {
            match field.id {
                4 => name = footer.text()?,
                5 => children = footer.number()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let path = match self.open.last_mut() {
            Some((lacking, path)) => {
                *lacking -= 1;
                *path + name
            }
            None if self.columns > 0 => return self.refuse("its schema has columns outside of its groups".to_owned()),
            None => 0,
        };
        self.columns += 1;
        self.names += path;
        let children = u64::try_from(children).unwrap_or(u64::MAX);
        if children >= left {
            return self.refuse(format!("its schema names {children} columns and has {}", left - 1));
        }
        if children > 0 || self.columns == 1 {
            self.open.push((children, path));
        }
        while self.open.last().is_some_and(|(lacking, _)| *lacking == 0) {
            self.open.pop();
        }
        if self.open.len() > DEEPEST {
            return self.refuse(format!("its columns are nested more than {DEEPEST} levels deep, which is the limit"));
        }
        if self.columns > MOST_COLUMNS + 1 {
            return self.refuse(format!("it has more than {MOST_COLUMNS} columns, which is the limit"));
        }
        if path > MOST_NAME {
            return self.refuse(format!("a column has a name of {path} bytes; up to {} KiB are read", MOST_NAME >> 10));
        }
        if self.names > MOST_NAMES {
            return self.refuse(format!("the names of its columns have more than {} MiB", MOST_NAMES >> 20));
        }
        Ok(())
    }

    fn group(&mut self, footer: &mut Cursor<'_>) -> Result<(), Fault> {
        let (mut chunks, mut rows) = (0, 0);
        footer.structure(&mut |footer, field| {
            match field.id {
                1 => footer.structures(field, &mut |footer, _| {
                    chunks += 1;
                    footer.structure(&mut |_, _| Ok(false))
                })?,
                3 => rows = footer.number()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let Ok(rows) = u64::try_from(rows) else {
            return self.refuse(format!("a row group says that it has {rows} rows"));
        };
        self.chunks += chunks;
        self.rows = self.rows.saturating_add(rows);
        if self.rows > MAX_SAMPLES as u64 {
            return self.refuse(format!("it has {} rows or more; at most {MAX_SAMPLES} are read", self.rows));
        }
        if self.rows > most_rows(self.size) {
            let limit = most_rows_in_words(self.size);
            return self.refuse(format!("it has {} rows or more; a file may have {limit}", self.rows));
        }
        if self.chunks > MOST_CHUNKS {
            return self
                .refuse(format!("its row groups have more than {MOST_CHUNKS} columns in all, which is the limit"));
        }
        Ok(())
    }
}
