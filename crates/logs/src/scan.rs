//! A JSON file as a stream: its members and elements, each held alone.
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::open::open;
use crate::LogError;

/// Size in bytes from which on a buffer grows by quarters, because doubling would take twice what a bound allows.
const LARGE: usize = 16 << 20;

fn append(buffer: &mut Vec<u8>, bytes: &[u8]) {
    if buffer.len() >= LARGE && buffer.capacity() - buffer.len() < bytes.len() {
        buffer.reserve_exact(bytes.len().max(buffer.len() / 4));
    }
    buffer.extend_from_slice(bytes);
}

/// Bytes of a line after which its file is given up: it has no end, such as the holes of a sparse file.
const ENDLESS_LINE: u64 = 1 << 30;

/// Longest name of a member in bytes.
const LONGEST_KEY: u64 = 1 << 16;

/// Reader of a JSON file. It finds where values begin and end; what is in them is for a parser.
#[derive(Debug)]
pub(super) struct Scanner {
    path: PathBuf,
    reader: BufReader<File>,
    offset: u64,
}

/// A value that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Whole,
    /// It has so many bytes, more than allowed, and was passed over.
    TooLong(u64),
}

impl Scanner {
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = open(path)?;
        let mut scanner = Scanner { path: path.to_owned(), reader: BufReader::with_capacity(1 << 17, file), offset: 0 };
        // A byte order mark.
        if scanner.ready()?.starts_with(b"\xef\xbb\xbf") {
            scanner.consume(3);
        }
        Ok(scanner)
    }

    /// Offset of the next byte in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn seek(&mut self, offset: u64) -> Result<(), LogError> {
        let failed = |error| LogError::input(self.path.display(), error);
        match i64::try_from(i128::from(offset) - i128::from(self.offset)) {
            Ok(distance) => self.reader.seek_relative(distance).map_err(failed)?,
            Err(_) => drop(self.reader.seek(SeekFrom::Start(offset)).map_err(failed)?),
        }
        self.offset = offset;
        Ok(())
    }

    fn ready(&mut self) -> Result<&[u8], LogError> {
        loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LogError::input(self.path.display(), error)),
                Ok(_) => return Ok(self.reader.buffer()),
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.offset += bytes as u64;
    }

    /// Steps over blanks; returns the byte after them, which stays the next one.
    pub fn peek(&mut self) -> Result<Option<u8>, LogError> {
        loop {
            let ready = self.ready()?;
            if ready.is_empty() {
                return Ok(None);
            }
            match ready.iter().position(|byte| !byte.is_ascii_whitespace()) {
                None => {
                    let all = ready.len();
                    self.consume(all);
                }
                Some(blanks) => {
                    let byte = ready[blanks];
                    self.consume(blanks);
                    return Ok(Some(byte));
                }
            }
        }
    }

    /// Steps over a bracket, colon or comma, and the blanks before it.
    pub fn step(&mut self, byte: u8) -> Result<(), LogError> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.consume(1);
                Ok(())
            }
            Some(found) => Err(self.wrong(format!(
                "expected `{}` instead of `{}` at byte {}",
                char::from(byte),
                char::from(found).escape_default(),
                self.offset
            ))),
            None => Err(self.ended()),
        }
    }

    fn wrong(&self, reason: impl std::fmt::Display) -> LogError {
        LogError::unread(&self.path, format!("not JSON: {reason}"))
    }

    fn ended(&self) -> LogError {
        LogError::unread(&self.path, format!("the file was cut off: it ends at byte {} inside a value", self.offset))
            .hint("copy the whole file; it cannot be mended")
    }

    /// The name of the next member of the object that was stepped into; none at its end.
    pub fn key(&mut self) -> Result<Option<String>, LogError> {
        match self.peek()? {
            Some(b'}') => {
                self.consume(1);
                return Ok(None);
            }
            Some(b',') => self.consume(1),
            _ => {}
        }
        if self.peek()? != Some(b'"') {
            // Says what is there instead.
            self.step(b'"')?;
        }
        let mut name = Vec::new();
        if let Taken::TooLong(length) = self.value(&mut name, LONGEST_KEY)? {
            return Err(self.wrong(format!("a name has {length} bytes; names of up to {LONGEST_KEY} are read")));
        }
        self.step(b':')?;
        super::json::parse(&name).map(Some).map_err(|reason| self.wrong(reason))
    }

    /// True if the list that was stepped into has another element; steps over its end otherwise.
    pub fn element(&mut self) -> Result<bool, LogError> {
        match self.peek()? {
            Some(b']') => {
                self.consume(1);
                return Ok(false);
            }
            Some(b',') => self.consume(1),
            Some(_) => {}
            None => return Err(self.ended()),
        }
        Ok(true)
    }

    /// Steps over a value.
    pub fn skip(&mut self) -> Result<(), LogError> {
        self.walk(&mut |_| true).map(drop)
    }

    /// Steps over a value of at most so many bytes; false if it is longer, and was not stepped over.
    pub fn skip_short(&mut self, longest: u64) -> Result<bool, LogError> {
        let mut length = 0;
        self.walk(&mut |bytes| {
            length += bytes.len() as u64;
            length <= longest
        })
    }

    /// Reads a value into a buffer, which it replaces.
    pub fn value(&mut self, into: &mut Vec<u8>, longest: u64) -> Result<Taken, LogError> {
        into.clear();
        let mut length = 0;
        self.walk(&mut |bytes| {
            length += bytes.len() as u64;
            if length <= longest {
                append(into, bytes);
            } else {
                *into = Vec::new();
            }
            true
        })?;
        Ok(if length > longest { Taken::TooLong(length) } else { Taken::Whole })
    }

    /// Hands on the bytes of a value; ends early, with false, where the receiver wants no more.
    fn walk(&mut self, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, LogError> {
        let Some(first) = self.peek()? else { return Err(self.ended()) };
        if matches!(first, b',' | b':' | b']' | b'}') {
            return Err(self.wrong(format!(
                "a value is missing before `{}` at byte {}",
                char::from(first),
                self.offset
            )));
        }
        let (mut depth, mut quoted, mut escaped) = (0u64, false, false);
        loop {
            let ready = self.ready()?;
            if ready.is_empty() {
                return Err(self.ended());
            }
            let mut end = None;
            for (at, &byte) in ready.iter().enumerate() {
                if quoted {
                    if escaped {
                        escaped = false;
                    } else if byte == b'\\' {
                        escaped = true;
                    } else if byte == b'"' {
                        quoted = false;
                        if depth == 0 {
                            end = Some(at + 1);
                            break;
                        }
                    }
                    continue;
                }
                match byte {
                    b'"' => quoted = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth > 1 => depth -= 1,
                    b'}' | b']' => {
                        // The end of the value itself, or of what a number stands in.
                        end = Some(at + usize::from(depth == 1));
                        break;
                    }
                    b',' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => {
                        end = Some(at);
                        break;
                    }
                    _ => {}
                }
            }
            let used = end.unwrap_or(ready.len());
            let more = each(&ready[..used]);
            self.consume(used);
            if end.is_some() || !more {
                return Ok(more);
            }
        }
    }

    /// Reads the rest of a line into a buffer, which it replaces, without its end; none at the end of the file.
    pub fn line(&mut self, into: &mut Vec<u8>, longest: u64) -> Result<Option<Taken>, LogError> {
        into.clear();
        let mut length = 0;
        let mut any = false;
        loop {
            let ready = self.ready()?;
            if ready.is_empty() {
                break;
            }
            any = true;
            let newline = ready.iter().position(|byte| *byte == b'\n');
            let text = &ready[..newline.unwrap_or(ready.len())];
            length += text.len() as u64;
            if length <= longest {
                append(into, text);
            } else {
                *into = Vec::new();
            }
            let used = newline.map_or(ready.len(), |newline| newline + 1);
            self.consume(used);
            if length > ENDLESS_LINE {
                let reason = format!("the line before byte {} has more than 1 GiB, and no end was found", self.offset);
                return Err(LogError::unread(&self.path, reason));
            }
            if newline.is_some() {
                break;
            }
        }
        Ok(any.then_some(if length > longest { Taken::TooLong(length) } else { Taken::Whole }))
    }

    /// First bytes of the file, at most `count`.
    pub fn head(path: &Path, count: u64) -> Result<Vec<u8>, LogError> {
        let failed = |error| LogError::input(path.display(), error);
        let mut head = Vec::new();
        open(path)?.take(count).read_to_end(&mut head).map_err(failed)?;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanner(text: &str) -> (tempfile::TempDir, Scanner) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, text).unwrap();
        (folder, Scanner::open(&path).unwrap())
    }

    #[test]
    fn members_and_elements_are_read_one_by_one() {
        let text = r#" {"a": 1, "b" : [ {"x": "}\"]"}, -2.5,"c" , [[]] ], "d": null}"#;
        let (_folder, mut scanner) = scanner(text);
        let mut value = Vec::new();
        scanner.step(b'{').unwrap();
        assert_eq!(scanner.key().unwrap().unwrap(), "a");
        assert_eq!(scanner.value(&mut value, 9).unwrap(), Taken::Whole);
        assert_eq!(value, b"1");
        assert_eq!(scanner.key().unwrap().unwrap(), "b");
        scanner.step(b'[').unwrap();
        let mut elements = Vec::new();
        while scanner.element().unwrap() {
            let taken = scanner.value(&mut value, 10).unwrap();
            elements.push((taken, String::from_utf8(value.clone()).unwrap()));
        }
        let whole = |text: &str| (Taken::Whole, text.to_owned());
        assert_eq!(elements, [(Taken::TooLong(13), String::new()), whole("-2.5"), whole("\"c\""), whole("[[]]")]);
        assert_eq!(scanner.key().unwrap().unwrap(), "d");
        scanner.skip().unwrap();
        assert_eq!(scanner.key().unwrap(), None);
    }

    #[test]
    fn files_that_end_early_are_said_so() {
        for text in ["{\"a\": [1, 2", "{\"a\": \"x", "{\"a\"", "{\"a\":"] {
            let (_folder, mut scanner) = scanner(text);
            scanner.step(b'{').unwrap();
            let error = scanner.key().and_then(|_| scanner.skip()).unwrap_err();
            assert!(error.to_string().contains("cut off"), "{text}: {error}");
        }
        let (_folder, mut scanner) = scanner("{1: 2}");
        scanner.step(b'{').unwrap();
        assert!(scanner.key().unwrap_err().to_string().contains("expected `\"`"));
    }
}
