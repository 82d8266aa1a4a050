//! `earnest generate`: items and training sets as JSON lines.
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;

use super::Exit;
use super::catalogue::{self, GeneratorCommand};
use super::error::CliError;
use super::interrupt::stop_on_signal;
use super::output::{output_file, write_file};
use super::printer::Printer;
use super::values::Prompts;
use earnest_results::RowsError;

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
    #[arg(long, short, value_name = "FILE", value_parser = output_file())]
    pub output: Option<PathBuf>,

    /// Prompt format of items: `raw` or `chat`; for suites with several prompts also their names [default: the suite's, else raw]
    #[arg(long, value_name = "PROMPT")]
    pub prompt: Option<Prompts>,

    #[command(subcommand)]
    pub suite: GeneratorCommand,
}

/// Writes a generator's lines.
pub fn execute(args: &GenerateArgs, printer: Printer) -> Result<Exit, CliError> {
    let mut lines = catalogue::generate(&args.suite, args.seed, args.prompt.as_ref())?;
    let whole = match &args.output {
        None => printer.stream(|out| lines.write(out))?,
        Some(path) => {
            write(path, |out| lines.write(out))?;
            true
        }
    };
    if whole {
        let place = args.output.as_deref().map_or_else(String::new, |path| format!(" in {}", path.display()));
        printer.message(&lines.sentence(&place));
    }
    Ok(Exit::Success)
}

/// Writes the file; an interrupted command leaves none.
fn write(path: &Path, lines: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let stop = stop_on_signal()?;
    write_file(path, |out| {
        let mut out = Stoppable { out, stop: &stop };
        lines(&mut out).map_err(|source| RowsError::Write { path: path.to_owned(), source })
    })
    .map_err(|error| {
        if stop.load(Ordering::Relaxed) {
            let message = format!("interrupted: {} was not written", path.display());
            return CliError::new(Exit::Interrupted, message);
        }
        error.into()
    })
}

/// A writer whose writes fail once the stop flag is set.
struct Stoppable<'a> {
    out: &'a mut dyn Write,
    stop: &'a AtomicBool,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            // Not `ErrorKind::Interrupted`, after which writers retry.
            return Err(io::Error::other("stopped"));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
