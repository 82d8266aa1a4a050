//! JSON lines: one object a line.
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use rayon::prelude::*;

use super::json::{Fault, parse};
use super::refusal::{ENDLESS, LONGEST, MOST_LINES, Refusal, endless, too_long, too_many_lines};
use super::rows::Output;
use super::text::unreadable;

/// Bytes that are read and checked at a time.
const BATCH: usize = 4 << 20;

/// Lines that are read and checked at a time, blank ones included.
const BATCH_LINES: usize = 1 << 16;

/// Reads lines that begin after a mark of so many bytes. Rows are kept in their file, or else spooled.
pub(super) fn read(text: impl Read, mark: u64, keep: bool, output: &mut Output<'_>) -> Result<(), Refusal> {
    let mut lines = Lines::new(text, mark, BATCH, LONGEST);
    let (mut bad, mut ended_early) = (0, None);
    while lines.next_batch().map_err(unreadable)? {
        let batch = lines.buffer.as_slice();
        let check = |line: &Line| match line.length > LONGEST as u64 {
            true => Some(Err(Fault { place: None, reason: too_long(line.length) })),
            false => line.text(batch).map(|text| parse(text).map(|_| ())),
        };
        // In chunks, because a row is checked in less time than work is handed to another thread.
        let checked: Vec<Option<Result<(), Fault>>> = lines.lines.par_iter().with_min_len(64).map(check).collect();
        for (line, checked) in lines.lines.iter().zip(checked) {
            if line.length > ENDLESS {
                return Err(endless("line", line.number));
            }
            if line.number > MOST_LINES {
                return Err(too_many_lines());
            }
            if checked.is_some() {
                output.admit(line.number)?;
            }
            match checked {
                None => {}
                Some(Ok(())) if keep => output.keep(line.number, line.start),
                Some(Ok(())) => output.spool(line.number, line.text(batch).unwrap_or_default())?,
                Some(Err(fault)) => {
                    bad += 1;
                    if output.index.len() == 0 && fault.reason.ends_with("ends too early") {
                        ended_early.get_or_insert(line.number);
                    }
                    output.bad.add_fault(output.name, line.number, 1, &fault);
                }
            }
        }
    }
    if keep {
        output.index.end = lines.offset;
    }
    match ended_early {
        Some(line) if output.index.len() == 0 && bad > 1 => {
            let message = format!("line {line} begins a JSON object over several lines");
            Err(Refusal::new(message).help("rows are one object a line, or the objects of one array: [{...}, {...}]"))
        }
        _ => Ok(()),
    }
}

/// A line of the batch.
struct Line {
    /// From 1.
    number: u64,
    /// Its first byte in the file.
    start: u64,
    /// Its length without the line's end.
    length: u64,
    /// Its bytes in the batch; none of a line that is too long.
    span: Range<usize>,
}

/// Batches of whole lines.
struct Lines<R> {
    reader: BufReader<R>,
    buffer: Vec<u8>,
    lines: Vec<Line>,
    number: u64,
    /// Bytes read so far.
    offset: u64,
    batch: usize,
    longest: usize,
}

impl<R: Read> Lines<R> {
    fn new(text: R, mark: u64, batch: usize, longest: usize) -> Self {
        let reader = BufReader::with_capacity(1 << 17, text);
        Lines { reader, buffer: Vec::new(), lines: Vec::new(), number: 0, offset: mark, batch, longest }
    }

    /// Reads the next batch; false at the end.
    fn next_batch(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        self.lines.clear();
        while self.buffer.len() < self.batch && self.lines.len() < BATCH_LINES {
            let first = self.buffer.len();
            // Two more for the end of the line.
            let most = self.longest as u64 + 2;
            let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                break;
            }
            let start = self.offset;
            self.offset += read as u64;
            self.number += 1;
            let end = self.buffer.strip_suffix(b"\n").map_or(self.buffer.len(), <[u8]>::len);
            let mut length = (end - first) as u64;
            if length > self.longest as u64 {
                // The rest of the line is passed over, so that it takes no memory.
                if end == self.buffer.len() {
                    let rest = self.skip_line()?;
                    self.offset += rest;
                    length += rest;
                }
                self.buffer.truncate(first);
            }
            let span = first..if self.buffer.len() > first { end } else { first };
            self.lines.push(Line { number: self.number, start, length, span });
        }
        Ok(!self.lines.is_empty())
    }

    fn skip_line(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            let ready = match self.reader.fill_buf() {
                Ok(ready) => ready,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let newline = ready.iter().position(|byte| *byte == b'\n');
            let used = newline.map_or(ready.len(), |newline| newline + 1);
            self.reader.consume(used);
            skipped += used as u64;
            if newline.is_some() || used == 0 || skipped > ENDLESS {
                return Ok(skipped);
            }
        }
    }
}

impl Line {
    /// Its text in the bytes of the batch; none of blanks only.
    fn text<'b>(&self, batch: &'b [u8]) -> Option<&'b [u8]> {
        let text = &batch[self.span.clone()];
        (!text.iter().all(u8::is_ascii_whitespace)).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Number, start, length and text of each line.
    type Seen = (u64, u64, u64, Option<Vec<u8>>);

    fn lines(text: &[u8], batch: usize, longest: usize) -> Vec<Seen> {
        let mut lines = Lines::new(text, 0, batch, longest);
        let mut all = Vec::new();
        while lines.next_batch().unwrap() {
            let seen =
                |line: &Line| (line.number, line.start, line.length, line.text(&lines.buffer).map(<[u8]>::to_vec));
            all.extend(lines.lines.iter().map(seen));
        }
        assert_eq!(lines.offset, text.len() as u64);
        all
    }

    #[test]
    fn long_lines_are_measured_and_not_kept() {
        let found = lines(b"abc\n\nabcdefghijklmnop\nabcdef\nxyz", 4, 6);
        assert_eq!(
            found,
            [
                (1, 0, 3, Some(b"abc".to_vec())),
                (2, 4, 0, None),
                (3, 5, 17, None),
                (4, 22, 6, Some(b"abcdef".to_vec())),
                (5, 29, 3, Some(b"xyz".to_vec())),
            ]
        );
    }

    proptest! {
        #[test]
        fn batches_hold_the_same_lines(text in "[ab \n]{0,60}", batch in 1usize..9) {
            let expected: Vec<String> = text.lines().map(str::to_owned).collect();
            let found = lines(text.as_bytes(), batch, 100);
            prop_assert_eq!(found.len(), expected.len());
            for ((number, start, length, row), (at, line)) in found.into_iter().zip(expected.iter().enumerate()) {
                prop_assert_eq!((number, length), (at as u64 + 1, line.len() as u64));
                prop_assert!(text[start as usize..].starts_with(line.as_str()));
                prop_assert_eq!(row, (!line.trim().is_empty()).then(|| line.clone().into_bytes()));
            }
        }
    }
}
