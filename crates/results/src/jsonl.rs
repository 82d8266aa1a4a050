//! Samples as lines of JSON, for other programs.
use std::io::{self, Write};

use super::Sample;

/// Writes a sample as one line.
pub fn write_jsonl(to: &mut dyn Write, sample: &Sample) -> io::Result<()> {
    serde_json::to_writer(&mut *to, sample)?;
    to.write_all(b"\n")
}
