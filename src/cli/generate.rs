//! `earnest generate`: items and training sets as JSON lines.
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;

use super::Exit;
use super::catalogue::{self, GeneratorCommand};
use super::error::CliError;
use super::interrupt::stop_on_signal;
use super::printer::Printer;
use super::values::Prompts;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest generate arithmetic-bench --lengths 1-8 > questions.jsonl && earnest run questions.jsonl
  earnest generate nupa --items --tasks add_Integer --per-length 5 -o questions.jsonl
  earnest generate nupa --split train --tasks add_Integer --per-length 100000 -o train.jsonl")]
pub struct GenerateArgs {
    /// Seed of the questions
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Output file instead of standard output; it gets its name once it is complete
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Prompt format of items: `raw` or `chat`; for suites with several prompts also their names [default: the suite's, else raw]
    #[arg(long, value_name = "PROMPT")]
    pub prompt: Option<Prompts>,

    #[command(subcommand)]
    pub suite: GeneratorCommand,
}

/// Writes a generator's lines.
pub fn execute(args: &GenerateArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let mut lines = catalogue::generate(&args.suite, args.seed, args.prompt.as_ref())?;
    let whole = match &args.output {
        None => printer.stream(|out| lines.write(out))?,
        Some(path) => {
            write_file(path, |out| lines.write(out))?;
            true
        }
    };
    if whole && !quiet {
        let place = args.output.as_deref().map_or_else(String::new, |path| format!(" in {}", path.display()));
        printer.message(&lines.sentence(&place));
    }
    Ok(Exit::Success)
}

/// Writes to a temporary file and renames it, so that an interrupted command leaves no file that looks complete. A pipe or
/// device is written to directly.
fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let failed = |error: io::Error| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display()));
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let attempt = || -> io::Result<()> {
            let mut out = BufWriter::with_capacity(1 << 18, File::options().write(true).open(path)?);
            write(&mut out)?;
            out.flush()
        };
        return attempt().map_err(failed);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let stop = stop_on_signal()?;
    let attempt = || -> io::Result<()> {
        let file = Stoppable { file: File::create(&part)?, stop: &stop };
        let mut out = BufWriter::with_capacity(1 << 18, file);
        write(&mut out)?;
        out.into_inner()?.file.sync_all()?;
        std::fs::rename(&part, path)
    };
    attempt().map_err(|error| {
        // Ignored: the temporary file may not exist.
        let _ = std::fs::remove_file(&part);
        if stop.load(Ordering::Relaxed) {
            let message = format!("interrupted: {} was not written", path.display());
            return CliError::new(Exit::Interrupted, message);
        }
        failed(error)
    })
}

/// A file whose writes fail once the stop flag is set.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            // Not `ErrorKind::Interrupted`, after which writers retry.
            return Err(io::Error::other("stopped"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
