//! Stored runs and output files for the commands that read runs.
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;

use super::printer::Screen;
use earnest_eval::report::{self, ReportError};

pub use earnest_eval::StoredRun;

/// Writes a file as [`report::write_file`] does; `-` is standard output.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    if path != Path::new("-") {
        return report::write_file(path, write);
    }
    let is_terminal = std::io::stdout().is_terminal();
    let mut out = BufWriter::new(Screen::new(StandardOutput { reader_left: false }, is_terminal));
    write(&mut out)?;
    out.flush().map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

/// Standard output that discards everything once its reader is gone (`| head`).
struct StandardOutput {
    reader_left: bool,
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.reader_left {
            return Ok(bytes.len());
        }
        match std::io::stdout().write(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.reader_left = true;
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.reader_left {
            return Ok(());
        }
        match std::io::stdout().flush() {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.reader_left = true;
                Ok(())
            }
            flushed => flushed,
        }
    }
}
