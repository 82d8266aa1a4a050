//! Records of a file: JSON lines, or the elements of one JSON list.
use std::path::{Path, PathBuf};

use super::fault::LogFault;
use super::scan::{Scanner, Taken};
use crate::LogError;

/// Place of a record in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub offset: u64,
    /// Line, or number of the element, from 1.
    pub number: u32,
}

/// A record's place, and the error of this record alone.
pub(super) type Next = (Place, Result<(), LogError>);

/// Reader of records.
#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    scanner: Scanner,
    list: bool,
    longest: u64,
    number: u32,
    /// The record that was read last.
    pub bytes: Vec<u8>,
}

impl Records {
    pub fn open(path: &Path, longest: u64) -> Result<Self, LogError> {
        let mut scanner = Scanner::open(path)?;
        let list = scanner.peek()? == Some(b'[');
        if list {
            scanner.step(b'[')?;
        } else {
            // Blank lines at the beginning count.
            scanner = Scanner::open(path)?;
        }
        Ok(Records { path: path.to_owned(), scanner, list, longest, number: 0, bytes: Vec::new() })
    }

    /// Reads the next record into [`Records::bytes`]; none at the end.
    pub fn next(&mut self) -> Result<Option<Next>, LogError> {
        loop {
            if self.list && !self.scanner.element()? {
                return Ok(None);
            }
            if self.list {
                self.scanner.peek()?;
            }
            let offset = self.scanner.offset();
            let Some(taken) = self.take()? else { return Ok(None) };
            self.number = self.number.saturating_add(1);
            let place = Place { offset, number: self.number };
            if self.list || !self.bytes.iter().all(u8::is_ascii_whitespace) || taken != Taken::Whole {
                return Ok(Some((place, self.checked(place, taken))));
            }
        }
    }

    /// Reads the record at a place into [`Records::bytes`].
    pub fn read(&mut self, place: Place) -> Result<(), LogError> {
        self.scanner.seek(place.offset)?;
        let taken = self.take()?;
        self.checked(place, taken.unwrap_or(Taken::Whole))
    }

    fn take(&mut self) -> Result<Option<Taken>, LogError> {
        match self.list {
            true => self.scanner.value(&mut self.bytes, self.longest).map(Some),
            false => self.scanner.line(&mut self.bytes, self.longest),
        }
    }

    fn checked(&self, place: Place, taken: Taken) -> Result<(), LogError> {
        match taken {
            Taken::Whole => Ok(()),
            Taken::TooLong(length) => Err(self.error(place, too_long(length, self.longest))),
        }
    }

    /// The error of a record.
    pub fn error(&self, place: Place, reason: impl std::fmt::Display) -> LogError {
        error(&self.path, self.list, place, reason)
    }

    /// True if the records are elements of a list.
    pub fn is_list(&self) -> bool {
        self.list
    }
}

/// The error of a record of a file, which is a list or has lines.
pub(super) fn error(path: &Path, list: bool, place: Place, reason: impl std::fmt::Display) -> LogError {
    match list {
        true => LogError::unread_at(path, format!("element {}", place.number), reason),
        false => LogError::line(path, place.number as usize, reason),
    }
}

/// The reason for leaving out a record.
pub(super) fn too_long(length: u64, longest: u64) -> LogFault {
    LogFault::Longer { what: "the sample has", length, longest }
}

/// The reason for not reading a file.
pub(super) fn too_large(length: u64, longest: u64) -> LogFault {
    LogFault::Longer { what: "it has", length, longest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, longest: u64) -> Vec<Result<String, String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut records = Records::open(&path, longest).unwrap();
        let mut all = Vec::new();
        let mut places = Vec::new();
        while let Some((index, read)) = records.next().unwrap() {
            places.push((index, read.is_ok(), records.bytes.clone()));
            let text = String::from_utf8(records.bytes.clone()).unwrap();
            all.push(read.map(|()| format!("{} {text}", index.number)).map_err(|error| error.to_string()));
        }
        for (index, whole, bytes) in places.into_iter().rev() {
            assert_eq!(records.read(index).is_ok(), whole);
            assert_eq!(records.bytes, bytes);
        }
        all
    }

    #[test]
    fn lines_and_elements_are_records() {
        assert_eq!(read("\u{feff}{\"a\": 1}\n\n{}", 99), [Ok("1 {\"a\": 1}".to_owned()), Ok("3 {}".to_owned())]);
        assert_eq!(read(" [ {\"a\": [1]},\n {}]", 99), [Ok("1 {\"a\": [1]}".to_owned()), Ok("2 {}".to_owned())]);
        let cut = read("{\"a\": 1234567}\n{}\n", 5);
        assert!(cut[0].as_ref().unwrap_err().contains("line 1: the sample has 14 bytes, more than the 5 bytes"));
        assert_eq!(cut[1], Ok("2 {}".to_owned()));
    }
}
