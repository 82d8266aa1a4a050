//! Reasons for not reading a file or a row.
use earnest_tasks::suite::MAX_SAMPLES;
use earnest_tasks::suite::registry::OptionError;

use super::json::Fault;

/// Number of bad rows of which messages are kept.
const SHOWN: usize = 5;

/// Largest row in bytes. A longer one is a file that was cut wrongly rather than a question.
pub(super) const LONGEST: usize = 16_000_000;

/// Bytes after which a row is given up together with its file: it has no end, such as the holes of a sparse file.
pub(super) const ENDLESS: u64 = 64 * LONGEST as u64;

/// Lines of a file, blank ones included: ten for each row that may be read.
pub(super) const MOST_LINES: u64 = 10 * MAX_SAMPLES as u64;

/// Bytes that the rows of any file may have: unpacked, or in the temporary file.
const MOST_BYTES: u64 = 512 << 20;

/// Further ones for each byte of the file. Rows of short texts under long names, compressed, have a hundred.
const BYTES_FACTOR: u64 = 200;

/// Bytes that the rows of a file may have of which so many bytes were read.
pub(super) fn most_bytes(read: u64) -> u64 {
    MOST_BYTES.saturating_add(read.saturating_mul(BYTES_FACTOR))
}

/// The limit of [`most_bytes`] in words.
pub(super) fn most_in_words(read: u64) -> String {
    format!("{} MiB and {BYTES_FACTOR} bytes for each of its {read} bytes", MOST_BYTES >> 20)
}

/// A file that cannot be used as a whole; the caller adds its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub message: String,
    pub help: Option<String>,
}

impl Refusal {
    pub fn new(message: impl Into<String>) -> Self {
        Refusal { message: message.into(), help: None }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Refusal { help: Some(help.into()), ..self }
    }

    /// The error for a file of this name.
    pub fn of(self, name: &str) -> OptionError {
        OptionError { help: self.help, ..OptionError::usage(format!("{name}: {}", self.message)) }
    }
}

/// Rows that cannot be used, of all files.
#[derive(Debug, Default)]
pub(super) struct BadRows {
    pub count: usize,
    /// Messages about the first of them.
    pub messages: Vec<String>,
}

impl BadRows {
    /// Adds a row: the file, the line or row, and the reason with the character, if it has one.
    pub fn add(&mut self, file: &str, unit: &str, number: u64, character: Option<u64>, reason: &str) {
        self.count += 1;
        if self.messages.len() < SHOWN {
            let character = character.map_or(String::new(), |character| format!(", character {character}"));
            self.messages.push(format!("{file}, {unit} {number}{character}: {reason}"));
        }
    }

    /// Adds the row that begins at a line and a character of a file.
    pub fn add_fault(&mut self, file: &str, line: u64, character: u64, fault: &Fault) {
        let (line, character) = match fault.place {
            None => (line, None),
            Some((1, within)) => (line, Some(character + within - 1)),
            Some((lines, within)) => (line + lines - 1, Some(within)),
        };
        self.add(file, "line", line, character, &fault.reason);
    }

    /// Messages in one sentence.
    pub fn sentence(&self) -> String {
        let mut text = match self.count {
            1 => String::new(),
            count => format!("{count} rows cannot be read: "),
        };
        text.push_str(&self.messages.join("; "));
        if self.count > self.messages.len() {
            text.push_str(&format!("; and {} more", self.count - self.messages.len()));
        }
        text
    }

    /// The error for rows that are not to be skipped.
    pub fn refused(&self) -> OptionError {
        let help = match self.count {
            1 => "mend it, or continue without it: setting `skip_bad_rows`",
            _ => "mend them, or continue without them: setting `skip_bad_rows`",
        };
        OptionError::bad_rows(self.sentence()).help(help)
    }
}

/// Reason for a row that is too long.
pub(super) fn too_long(bytes: u64) -> String {
    format!("the row is {} MB long; rows may have up to {} MB", bytes.div_ceil(1_000_000), LONGEST / 1_000_000)
}

/// Refusal of a file with a row that does not end.
pub(super) fn endless(unit: &str, number: u64) -> Refusal {
    Refusal::new(format!("{unit} {number} has more than {} MB, and no end was found", ENDLESS / 1_000_000))
}

/// Refusal of a file with too many lines.
pub(super) fn too_many_lines() -> Refusal {
    Refusal::new(format!("it has more than {MOST_LINES} lines, which is the limit"))
}
