//! Rows by number: where each begins, in its own file or in a temporary one.
use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::rc::Rc;
use std::time::SystemTime;

use earnest_tasks::suite::registry::{HostError, Row, RowFile, Rows};
use earnest_tasks::suite::{MAX_SAMPLES, most_rows, most_rows_in_words};

use super::json::parse;
use super::refusal::{BadRows, LONGEST, Refusal, most_bytes, most_in_words};

/// Beginnings and places of a file's rows. Eight bytes a row, because files have millions of them.
#[derive(Debug, Default)]
pub(super) struct Index {
    starts: Vec<u64>,
    /// End of the last row or of the file.
    pub end: u64,
    /// Rows whose number in the file does not follow the one before, with that number.
    jumps: Vec<(usize, u64)>,
    next: u64,
}

impl Index {
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    fn push(&mut self, number: u64, start: u64) {
        if number != self.next || self.jumps.is_empty() {
            self.jumps.push((self.starts.len(), number));
        }
        self.next = number + 1;
        self.starts.push(start);
    }

    /// The line or row of the file that a row is.
    fn number(&self, row: usize) -> u64 {
        let jump = self.jumps.partition_point(|(first, _)| *first <= row).checked_sub(1);
        jump.map_or(0, |jump| self.jumps[jump].1 + (row - self.jumps[jump].0) as u64)
    }

    /// Memory that it takes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u64>() + self.jumps.capacity() * size_of::<(usize, u64)>()
    }
}

/// Rows of one file as they are found.
pub(super) struct Output<'a> {
    pub name: &'a str,
    pub unit: &'static str,
    pub index: Index,
    pub bad: &'a mut BadRows,
    pub spool: &'a mut Spool,
    /// Rows of all files so far, bad ones included.
    pub rows: u64,
    /// Those of this file.
    pub of_file: u64,
    /// Bytes of the file that were read.
    pub read: Rc<Cell<u64>>,
    /// Bytes that its rows have in the temporary file.
    pub spooled: u64,
}

impl Output<'_> {
    /// Counts a row, good or bad, before it is looked at.
    pub fn admit(&mut self, number: u64) -> Result<(), Refusal> {
        (self.rows, self.of_file) = (self.rows + 1, self.of_file + 1);
        let (all, read) = (MAX_SAMPLES as u64, self.read.get());
        if self.rows <= all && self.of_file <= most_rows(read) {
            return Ok(());
        }
        let most = if self.rows > all { all.to_string() } else { most_rows_in_words(read) };
        let message = format!("{} {number} is one row more than the {most} that are read", self.unit);
        Err(Refusal::new(message).help("divide the file, and take one part"))
    }

    /// Adds a row that stays in its file.
    pub fn keep(&mut self, number: u64, start: u64) {
        self.index.push(number, start);
    }

    /// Adds a row that is written to the temporary file.
    pub fn spool(&mut self, number: u64, row: &[u8]) -> Result<(), Refusal> {
        self.spooled += row.len() as u64;
        let read = self.read.get();
        if self.spooled > most_bytes(read) {
            let limit = most_in_words(read);
            return Err(Refusal::new(format!("its rows up to {} {number} have more than {limit}", self.unit)));
        }
        let start = self.spool.write(row)?;
        self.index.push(number, start);
        self.index.end = start + row.len() as u64;
        Ok(())
    }

    /// Adds a bad row.
    pub fn bad(&mut self, number: u64, reason: &str) {
        self.bad.add(self.name, self.unit, number, None, reason);
    }
}

/// A temporary file without a name, for rows that cannot be read from their own file. The system removes it with the process.
#[derive(Default)]
pub(super) struct Spool {
    file: Option<BufWriter<File>>,
    written: u64,
    /// Bytes that may be written: what is free in the temporary folder, but for a tenth.
    most: u64,
}

impl Spool {
    fn write(&mut self, row: &[u8]) -> Result<u64, Refusal> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                self.most = room(&std::env::temp_dir());
                none.insert(BufWriter::with_capacity(1 << 18, temporary()?))
            }
        };
        if self.written + row.len() as u64 > self.most {
            let message = format!("they need more than {} MB, nine tenths of what is free", self.most / 1_000_000);
            return Err(no_room(&io::Error::other(message)));
        }
        file.write_all(row).map_err(|error| no_room(&error))?;
        let start = self.written;
        self.written += row.len() as u64;
        Ok(start)
    }

    /// The file, if there is one.
    pub fn finish(self) -> Result<Option<File>, Refusal> {
        self.file.map(|file| file.into_inner().map_err(|error| no_room(error.error()))).transpose()
    }
}

/// Bytes that may be written to a folder: nine tenths of what is free.
#[cfg(unix)]
pub(super) fn room(folder: &std::path::Path) -> u64 {
    // A system that does not say it says so when it is full.
    rustix::fs::statvfs(folder).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize) / 10 * 9)
}

#[cfg(not(unix))]
pub(super) fn room(_: &std::path::Path) -> u64 {
    u64::MAX
}

pub(super) fn temporary() -> Result<File, Refusal> {
    tempfile::tempfile().map_err(|error| no_room(&error))
}

/// Refusal of a file for which the temporary folder has no room.
pub(super) fn no_room(error: &io::Error) -> Refusal {
    let folder = std::env::temp_dir();
    Refusal::new(format!("its rows cannot be written to the temporary folder {}: {error}", folder.display()))
        .help("make room there, or set TMPDIR to another folder; plain JSONL needs none")
}

/// A file that rows are read from again, and what shows that it was changed.
pub(super) struct Kept {
    pub file: File,
    pub state: State,
}

/// Size and time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    length: u64,
    modified: Option<SystemTime>,
}

impl State {
    pub fn of(metadata: &Metadata) -> Self {
        State { length: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Rows of one file.
pub(super) struct Part {
    pub file: RowFile,
    /// Name for messages, as it was given.
    pub name: String,
    pub unit: &'static str,
    pub index: Index,
    /// Number of its first row among those of all files.
    pub first: usize,
    /// The file itself; none for rows in the temporary file.
    pub kept: Option<Kept>,
}

/// Rows of all files.
pub(super) struct Questions {
    parts: Vec<Part>,
    files: Vec<RowFile>,
    spool: Option<File>,
    bad: BadRows,
}

impl Questions {
    pub fn new(parts: Vec<Part>, spool: Option<File>, bad: BadRows) -> Self {
        let files = parts.iter().map(|part| part.file.clone()).collect();
        Questions { parts, files, spool, bad }
    }
}

impl Rows for Questions {
    fn len(&self) -> usize {
        self.parts.last().map_or(0, |part| part.first + part.index.len())
    }

    fn row(&self, number: usize) -> Result<Row, HostError> {
        // Of parts that begin with the same number all but the last are empty.
        let part = self.parts.partition_point(|part| part.first <= number).checked_sub(1);
        let part = part.and_then(|part| self.parts.get(part)).filter(|part| number - part.first < part.index.len());
        let Some(part) = part else {
            return Err(HostError::failed(format!("there is no row {number}; there are {}", self.len())));
        };
        let row = number - part.first;
        let place = format!("{}, {} {}", part.name, part.unit, part.index.number(row));
        let changed = || {
            let reason = "the file was changed or removed while it was in use; start again";
            HostError::failed(format!("{}: {reason}", part.name))
        };
        let failed = |reason: &dyn std::fmt::Display| HostError::failed(format!("{place}: {reason}"));
        if let Some(kept) = &part.kept {
            let now = kept.file.metadata().map_err(|error| failed(&error))?;
            if State::of(&now) != kept.state {
                return Err(changed());
            }
        }
        let file = part.kept.as_ref().map(|kept| &kept.file).or(self.spool.as_ref()).ok_or_else(changed)?;
        let start = part.index.starts[row];
        let end = part.index.starts.get(row + 1).copied().unwrap_or(part.index.end);
        // In its own file a row may be followed by others that were skipped.
        let length = end.saturating_sub(start).min(LONGEST as u64 + 2);
        let mut bytes = vec![0; length as usize];
        let read = read_at(file, &mut bytes, start).map_err(|error| failed(&error))?;
        bytes.truncate(read);
        if let Some(newline) = bytes.iter().position(|byte| *byte == b'\n') {
            bytes.truncate(newline);
        }
        let parsed = parse(&bytes).map_err(|fault| failed(&fault.reason))?;
        Ok(Row { place, values: parsed.values, written: parsed.written })
    }

    fn files(&self) -> &[RowFile] {
        &self.files
    }

    fn skipped(&self) -> (usize, &[String]) {
        (self.bad.count, &self.bad.messages)
    }
}

/// Reads from a place of a file until the buffer is full or the file ends, without moving a cursor that threads share.
fn read_at(file: &File, buffer: &mut [u8], start: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_piece(file, &mut buffer[filled..], start + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(unix)]
fn read_piece(file: &File, buffer: &mut [u8], start: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, start)
}

#[cfg(not(unix))]
fn read_piece(mut file: &File, buffer: &mut [u8], start: u64) -> io::Result<usize> {
    use std::io::{Read, Seek, SeekFrom};
    use std::sync::{Mutex, PoisonError};
    // Seeking and reading are two steps here.
    static CURSOR: Mutex<()> = Mutex::new(());
    let _held = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(start))?;
    file.read(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rows_follow_gaps() {
        let mut index = Index::default();
        for number in [2, 3, 4, 7, 8, 20] {
            index.push(number, number * 10);
        }
        let numbers: Vec<u64> = (0..index.len()).map(|row| index.number(row)).collect();
        assert_eq!(numbers, [2, 3, 4, 7, 8, 20]);
        assert_eq!(index.jumps.len(), 3);
    }

    #[test]
    fn rows_beyond_the_limits_are_refused_before_they_are_kept() {
        let (mut bad, mut spool, read) = (BadRows::default(), Spool::default(), Rc::new(Cell::new(10)));
        let rows = MAX_SAMPLES as u64 - 1;
        let (name, unit, index) = ("f", "line", Index::default());
        let mut output = Output {
            name,
            unit,
            index,
            bad: &mut bad,
            spool: &mut spool,
            rows,
            of_file: 0,
            read: Rc::clone(&read),
            spooled: 0,
        };
        assert_eq!(output.admit(7), Ok(()));
        assert!(output.admit(8).unwrap_err().message.contains("line 8 is one row more than the 10000000"));
        (output.rows, output.of_file) = (0, 1_000_019);
        assert_eq!(output.admit(7), Ok(()));
        assert!(output.admit(8).unwrap_err().message.contains("the 1000000 and 2 for each of its 10 bytes that are"));
        output.spooled = most_bytes(10) - 2;
        assert!(output.spool(9, b"[]").is_ok());
        let refusal = output.spool(10, b"x").unwrap_err();
        assert!(refusal.message.contains("line 10 have more than 512 MiB and 200 bytes for each"), "{refusal:?}");
        // More of the file has been read.
        read.set(11);
        assert!(output.spool(10, b"x").is_ok());
    }

    #[test]
    fn a_tenth_of_the_disk_stays_free() {
        let mut spool = Spool { most: 4, file: Some(BufWriter::new(tempfile::tempfile().unwrap())), written: 0 };
        assert_eq!(spool.write(b"abc"), Ok(0));
        assert!(spool.write(b"de").unwrap_err().message.contains("nine tenths of what is free"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_folder() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut spool = Spool { file: Some(BufWriter::with_capacity(4, full)), written: 0, most: u64::MAX };
        let refusal = spool.write(b"a row").unwrap_err();
        assert!(refusal.message.contains("temporary folder") && refusal.message.contains("space"), "{refusal:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut spool = Spool { file: Some(BufWriter::with_capacity(64, full)), written: 0, most: u64::MAX };
        assert_eq!(spool.write(b"a row"), Ok(0));
        assert_eq!(spool.write(b"another"), Ok(5));
        assert!(spool.finish().unwrap_err().help.unwrap().contains("TMPDIR"));
    }
}
