//! A text byte by byte, with the line and character of each.
use std::io::{self, BufRead, BufReader, Read};

use super::json::is_continuation;

/// Reader of single bytes.
pub(super) struct Cursor<R> {
    reader: BufReader<R>,
    line: u64,
    character: u64,
}

impl<R: Read> Cursor<R> {
    pub fn new(text: R) -> Self {
        Cursor { reader: BufReader::with_capacity(1 << 17, text), line: 1, character: 1 }
    }

    /// Line and character of the next byte, from 1.
    pub fn place(&self) -> (u64, u64) {
        (self.line, self.character)
    }

    /// The next byte, which stays the next one.
    pub fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.reader.fill_buf() {
                Ok(ready) => return Ok(ready.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Steps over a byte that was peeked.
    pub fn step(&mut self, byte: u8) {
        self.reader.consume(1);
        if byte == b'\n' {
            (self.line, self.character) = (self.line + 1, 1);
        } else if !is_continuation(byte) {
            self.character += 1;
        }
    }

    /// Steps over white space and returns the byte after it, which stays the next one.
    pub fn skip_blanks(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.peek()? {
                Some(byte) if byte.is_ascii_whitespace() => self.step(byte),
                other => return Ok(other),
            }
        }
    }
}
