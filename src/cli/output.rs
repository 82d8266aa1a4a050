//! Output files of commands: refused before any work where they would destroy something, and `-` for standard output.
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

use earnest_results::{RowsError, output};

use super::error::CliError;
use super::printer::Screen;

/// Reads an option that names an output file.
pub fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| allowed(&path).map(|()| path))
}

/// Checks an output file again, once a command has read its inputs: files that those name are inputs too.
///
/// # Errors
/// As [`output::check`].
pub fn check(path: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(()) };
    output::check(path)
        .map_err(|error| CliError::usage(format!("cannot write {}: {error}", path.display())).help("name another file"))
}

/// Checks that an output file destroys nothing and that no other argument names it.
///
/// # Errors
/// What the file is, as the end of a sentence about it.
pub fn allowed(path: &Path) -> io::Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    output::check(path)?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // `-f csv -o csv` names a format and a file.
    let is_format =
        |at: usize| at.checked_sub(1).is_some_and(|before| words[before] == "-f" || words[before] == "--format");
    let named = (0..words.len()).filter(|&at| !is_format(at) && names(&words[at], path)).count();
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    // Nothing is lost where there is no file yet.
    if named > 1 && path.is_file() {
        return refused("another argument names it too, and writing would overwrite it");
    }
    if is_standard_input(path) {
        return refused("it is standard input, and writing would overwrite it");
    }
    Ok(())
}

/// True if a word of the command line, or a part of one such as `--name=FILE` or `NAME=FILE,NAME=FILE`, leads to the file of an output.
fn names(word: &OsString, path: &Path) -> bool {
    let leads = |part: &str| !part.is_empty() && output::are_same(Path::new(part), path);
    output::are_same(Path::new(word), path)
        || word.to_str().is_some_and(|word| word.contains(['=', ',']) && word.split(['=', ',']).any(leads))
}

/// True if standard input is this file, by whatever name or link.
#[cfg(unix)]
fn is_standard_input(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let input = io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from).and_then(|file| file.metadata());
    matches!((input, std::fs::metadata(path)), (Ok(input), Ok(output))
        if input.is_file() && (input.dev(), input.ino()) == (output.dev(), output.ino()))
}

#[cfg(not(unix))]
fn is_standard_input(_: &Path) -> bool {
    false
}

/// Writes a file as [`output::write_file`] does; `-` is standard output.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), RowsError>,
) -> Result<(), RowsError> {
    if path != Path::new("-") {
        // `/dev/stdout` and `/dev/tty` may be a terminal too.
        let is_terminal = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
            && std::fs::File::options().write(true).open(path).is_ok_and(|device| device.is_terminal());
        return output::write_file(path, |out| {
            let mut screen = Screen::new(out, is_terminal);
            write(&mut screen)?;
            screen.flush().map_err(|source| RowsError::Write { path: path.to_owned(), source })
        });
    }
    let is_terminal = io::stdout().is_terminal();
    let mut out = BufWriter::new(Screen::new(StandardOutput { reader_left: false }, is_terminal));
    write(&mut out)?;
    out.flush().map_err(|source| RowsError::Write { path: path.to_owned(), source })
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

/// Writes a text as [`write_file`] does.
pub fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    write_file(path, |out| {
        out.write_all(text.as_bytes()).map_err(|source| RowsError::Write { path: path.to_owned(), source })
    })?;
    Ok(())
}
