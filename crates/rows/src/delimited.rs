//! CSV and TSV: a line of names, unless they are given, then rows of cells, which are texts.
use std::collections::HashSet;
use std::io::Read;

use super::cursor::Cursor;
use super::json::{NOT_UTF8, characters, write_text};
use super::refusal::{ENDLESS, LONGEST, MOST_LINES, Refusal, endless, too_long, too_many_lines};
use super::rows::Output;
use super::text::unreadable;
use crate::parquet_file::MOST_COLUMNS;

/// Reads a table whose cells are separated by that byte. Cells may be quoted; a quoted cell may hold separators and lines.
///
/// Not the `csv` crate: it takes the rest of a file for one cell where a quote is not closed, and accepts text after a closing one.
pub(super) fn read(text: impl Read, separator: u8, given: &[String], output: &mut Output<'_>) -> Result<(), Refusal> {
    let mut table = Table { cursor: Cursor::new(text), separator, record: Record::default() };
    let names = if given.is_empty() {
        if !table.next()? {
            return Ok(());
        }
        names(&table.record, separator)?
    } else {
        given_names(given)?
    };
    let source = if given.is_empty() { "the first line" } else { "the task file" };
    let mut row = Vec::new();
    while table.next()? {
        let record = &table.record;
        output.admit(record.line)?;
        let fault = match &record.fault {
            Some((line, character, reason)) => Some((*line, Some(*character), reason.clone())),
            None if record.length > LONGEST as u64 => Some((record.line, None, too_long(record.length))),
            None if record.count != names.len() as u64 => {
                let cells = |count: u64| format!("{count} cell{}", if count == 1 { "" } else { "s" });
                let reason = format!(
                    "the row has {}, but {source} names {} columns; a cell with a {} in it needs quotes",
                    cells(record.count),
                    names.len(),
                    named(separator)
                );
                Some((record.line, None, reason))
            }
            None => None,
        };
        if let Some((line, character, reason)) = fault {
            output.bad.add(output.name, "line", line, character, &reason);
            continue;
        }
        row.clear();
        for (name, cell) in names.iter().zip(record.cells()) {
            let Some(name) = name else { continue };
            row.push(if row.is_empty() { b'{' } else { b',' });
            row.extend_from_slice(name);
            row.push(b':');
            // Checked cell by cell when they were read.
            write_text(&mut row, std::str::from_utf8(cell).unwrap_or_default());
        }
        row.push(b'}');
        output.spool(record.line, &row)?;
    }
    Ok(())
}

fn named(separator: u8) -> &'static str {
    if separator == b'\t' { "tab" } else { "comma" }
}

/// Names of the columns as JSON texts; none for a first column without a name, the row numbers that pandas writes.
fn names(header: &Record, separator: u8) -> Result<Vec<Option<Vec<u8>>>, Refusal> {
    let refused = |reason: String| Err(Refusal::new(format!("line {}: {reason}", header.line)));
    if let Some((line, character, reason)) = &header.fault {
        return Err(Refusal::new(format!("line {line}, character {character}: {reason}")));
    }
    if header.length > LONGEST as u64 {
        return refused(too_long(header.length));
    }
    if header.count > MOST_COLUMNS {
        return refused(format!("it names {} columns; at most {MOST_COLUMNS} are read", header.count));
    }
    let names: Vec<&str> = header.cells().map(|cell| std::str::from_utf8(cell).unwrap_or_default().trim()).collect();
    if let [name] = names.as_slice()
        && let Some(other) = [';', '\t', ','].into_iter().find(|other| name.contains(*other))
    {
        let shown = if other == '\t' {
            "tabs"
        } else if other == ';' {
            "semicolons"
        } else {
            "commas"
        };
        let refusal = Refusal::new(format!("line {}: its cells seem to be separated by {shown}", header.line));
        return Err(refusal.help(match other {
            ';' => "separate them by commas (.csv) or tabs (.tsv)",
            '\t' => "name the file .tsv, or give the format tsv",
            _ => "name the file .csv, or give the format csv",
        }));
    }
    let numbers: Vec<&str> = names.iter().copied().filter(|name| is_number(name)).collect();
    if !numbers.is_empty() && !is_count(&numbers) {
        let reason = format!("`{}` is no name of a column; the first line of the file must name them", numbers[0]);
        let example = ["question", "answer"].join(if separator == b'\t' { "\t" } else { "," });
        return refused(reason).map_err(|refusal| {
            refusal.help(format!(
                "add a first line, such as {example}, or name the columns in a task file: columns = [...]"
            ))
        });
    }
    written(&names).or_else(refused)
}

/// Names that the task file gives.
fn given_names(given: &[String]) -> Result<Vec<Option<Vec<u8>>>, Refusal> {
    let names: Vec<&str> = given.iter().map(|name| name.trim()).collect();
    written(&names).map_err(|reason| Refusal::new(format!("in columns, {reason}")))
}

/// Names as JSON texts.
///
/// # Errors
/// If a name is empty, but for that of the first column, or stands twice.
fn written(names: &[&str]) -> Result<Vec<Option<Vec<u8>>>, String> {
    let mut before = HashSet::new();
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() && (at > 0 || names.len() == 1) {
            return Err(format!("column {} has no name", at + 1));
        }
        if !before.insert(name) {
            return Err(format!("two columns have the name `{name}`"));
        }
    }
    let json = |name: &&str| {
        let mut out = Vec::new();
        write_text(&mut out, name);
        (!name.is_empty()).then_some(out)
    };
    Ok(names.iter().map(json).collect())
}

fn is_number(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_digit()) && name.parse::<f64>().is_ok()
}

/// True for numbers that count columns: 0, 1, 2, 3.
fn is_count(numbers: &[&str]) -> bool {
    let counted: Option<Vec<u64>> = numbers.iter().map(|number| number.parse().ok()).collect();
    counted.is_some_and(|counted| {
        counted.len() > 1 && counted[0] <= 1 && counted.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]))
    })
}

/// One row of cells.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    /// Ends of the cells in the bytes; not of more than are read.
    ends: Vec<usize>,
    /// Number of cells.
    count: u64,
    /// Line in which it begins.
    line: u64,
    /// Bytes of its cells, those that were not kept included.
    length: u64,
    /// The first thing wrong with it: line, character and reason.
    fault: Option<(u64, u64, String)>,
}

impl Record {
    fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    fn push(&mut self, byte: u8) {
        self.length += 1;
        if self.length <= LONGEST as u64 {
            self.bytes.push(byte);
        }
    }

    /// Refuses a row without an end.
    fn check_end(&self) -> Result<(), Refusal> {
        if self.length + self.count > ENDLESS { Err(endless("the row in line", self.line)) } else { Ok(()) }
    }

    /// Ends a cell that began at a place of the file.
    fn end_cell(&mut self, line: u64, character: u64) {
        let start = self.ends.last().copied().unwrap_or(0);
        let cell = &self.bytes[start..];
        if self.length <= LONGEST as u64
            && self.fault.is_none()
            && let Err(error) = std::str::from_utf8(cell)
        {
            let before = &cell[..error.valid_up_to()];
            let lines = before.iter().filter(|byte| **byte == b'\n').count() as u64;
            let in_line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            let first = if lines == 0 { character } else { 1 };
            self.fault = Some((line + lines, first + characters(in_line), NOT_UTF8.to_owned()));
        }
        self.count += 1;
        match self.count <= MOST_COLUMNS {
            true => self.ends.push(self.bytes.len()),
            // Neither kept nor looked at again.
            false => self.bytes.truncate(start),
        }
    }
}

struct Table<R> {
    cursor: Cursor<R>,
    separator: u8,
    record: Record,
}

impl<R: Read> Table<R> {
    /// Reads the next row that is not a blank line; false at the end.
    fn next(&mut self) -> Result<bool, Refusal> {
        loop {
            let record = &mut self.record;
            record.bytes.clear();
            record.ends.clear();
            (record.length, record.count, record.fault, record.line) = (0, 0, None, self.cursor.place().0);
            if record.line > MOST_LINES {
                return Err(too_many_lines());
            }
            if self.cursor.peek().map_err(unreadable)?.is_none() {
                return Ok(false);
            }
            let quoted = self.row()?;
            if quoted || self.record.count > 1 || !self.record.bytes.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Reads cells up to the end of the row; true if one of them is quoted.
    fn row(&mut self) -> Result<bool, Refusal> {
        let mut any_quoted = false;
        loop {
            let (line, character) = self.cursor.place();
            self.record.check_end()?;
            let quoted = self.cursor.peek().map_err(unreadable)? == Some(b'"');
            if quoted {
                any_quoted = true;
                self.cursor.step(b'"');
                self.quoted(line, character)?;
            }
            let (after, after_quote) = (self.record.bytes.len(), self.cursor.place());
            let next = self.plain()?;
            if quoted && self.record.bytes.len() > after {
                let reason = format!(
                    "text after a closing quote; a quote inside a cell is written twice, and a {} ends it",
                    named(self.separator)
                );
                self.record.fault.get_or_insert((after_quote.0, after_quote.1, reason));
            }
            // After the quote of the cell's beginning.
            self.record.end_cell(line, character + u64::from(quoted));
            if next != Some(self.separator) {
                return Ok(any_quoted);
            }
        }
    }

    /// Reads the rest of a quoted cell, that opens at a place.
    fn quoted(&mut self, line: u64, character: u64) -> Result<(), Refusal> {
        loop {
            let Some(byte) = self.cursor.peek().map_err(unreadable)? else {
                let message = format!("line {line}, character {character}: the quote that opens here is not closed");
                return Err(Refusal::new(message).help("close it; a quote inside a cell is written twice"));
            };
            self.cursor.step(byte);
            self.record.check_end()?;
            if byte == b'"' {
                if self.cursor.peek().map_err(unreadable)? != Some(b'"') {
                    return Ok(());
                }
                self.cursor.step(b'"');
            }
            self.record.push(byte);
        }
    }

    /// Reads up to the end of a cell and steps over its separator or line's end, which is returned.
    fn plain(&mut self) -> Result<Option<u8>, Refusal> {
        let first = self.record.bytes.len();
        loop {
            let Some(byte) = self.cursor.peek().map_err(unreadable)? else { return Ok(None) };
            if byte == b'\n' {
                if self.record.bytes[first..].last() == Some(&b'\r') {
                    self.record.bytes.pop();
                }
                self.cursor.step(byte);
                return Ok(Some(byte));
            }
            self.cursor.step(byte);
            if byte == self.separator {
                return Ok(Some(byte));
            }
            self.record.push(byte);
            self.record.check_end()?;
        }
    }
}
