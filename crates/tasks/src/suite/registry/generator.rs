//! Questions as JSON lines, for suites that offer them: items, or training sets.
use std::io::{self, Write};

use super::{Host, OptionError, OptionSpec, OptionValues};

/// Writer of a suite's questions outside of runs (`earnest generate`).
pub trait Generator: Sync {
    /// One line on what it writes.
    fn about(&self) -> &'static str;

    /// Noun phrase for its lines, beside the items of runs.
    fn writes(&self) -> &'static str;

    /// Examples, and the fields of a line.
    fn details(&self) -> &'static str;

    /// Its options besides the seed.
    fn options(&self) -> &'static [OptionSpec];

    /// Checks the options; impossible ones are found before a file is touched.
    ///
    /// # Errors
    /// Impossible options, or input that cannot be read.
    fn lines(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Lines>, OptionError>;
}

/// Lines about to be written.
pub trait Lines {
    /// Writes them.
    ///
    /// # Errors
    /// The writer's.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()>;

    /// Sentence on what was written; `place` is empty or ` in FILE`.
    fn sentence(&self, place: &str) -> String;
}
