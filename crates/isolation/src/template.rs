//! Bounds of a template: its length and nesting before it is compiled, and what it writes.
use std::fmt;
use std::io::{self, Write};
use std::string::FromUtf8Error;
use std::sync::OnceLock;

use regex::Regex;

/// Largest template, in bytes. Those of published models have up to 30 KiB.
const MAX_SOURCE: usize = 1 << 20;

/// Largest number of operators, brackets and conditions of a template: the parser and the compiler recurse over them, on a stack that
/// is large enough for so many. Templates of published models have a few thousand.
const MAX_OPERATORS: usize = 1 << 15;

/// Size of a template above its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLarge {
    Bytes(usize),
    /// Operators, brackets and conditions.
    Operators(usize),
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooLarge::Bytes(bytes) => write!(f, "it has {bytes} bytes, more than {MAX_SOURCE}"),
            TooLarge::Operators(operators) => write!(
                f,
                "it has {operators} operators, brackets and conditions, more than {MAX_OPERATORS}: it may nest too deeply"
            ),
        }
    }
}

impl std::error::Error for TooLarge {}

/// Checks that a template is short enough, and has too few operators to nest too deeply.
///
/// # Errors
/// The size above its bound.
pub fn check_template(source: &str) -> Result<(), TooLarge> {
    if source.len() > MAX_SOURCE {
        return Err(TooLarge::Bytes(source.len()));
    }
    static WORDS: OnceLock<Regex> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        Regex::new(r"\b(and|elif|else|if|in|is|not|or)\b").expect("the pattern is a constant that compiles")
    });
    // Counted in texts between the tags too: what is counted nowhere cannot be hidden.
    let signs = source.bytes().filter(|byte| b"-+*/%~|.[({<>=!,:".contains(byte)).count();
    let operators = signs + words.find_iter(source).count();
    if operators > MAX_OPERATORS {
        return Err(TooLarge::Operators(operators));
    }
    Ok(())
}

/// Text that a template writes, up to a bound.
#[derive(Debug)]
pub struct Output {
    text: Vec<u8>,
    left: usize,
    full: bool,
}

impl Output {
    /// Nothing yet, and at most so many bytes.
    pub fn of_at_most(bytes: usize) -> Output {
        Output { text: Vec::new(), left: bytes, full: false }
    }

    /// Bytes that can still be written.
    pub fn left(&self) -> usize {
        self.left
    }

    /// True if something was refused because the bound was reached.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn into_text(self) -> Result<String, FromUtf8Error> {
        String::from_utf8(self.text)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            self.full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        self.left = left;
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
