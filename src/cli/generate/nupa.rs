//! `earnest generate nupa`: questions and training sets as JSON lines.
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use crate::cli::Exit;
use crate::cli::catalogue::nupa;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::session::stop_on_signal;
use crate::cli::values::Lengths;
use crate::suite::nupa::{
    IndexHints, NumberFormat, NupaError, PairRules, Reversal, ShorterOperand, Split, TASKS, TextStyle, TrainingLine,
    TrainingSet, Wording, ruled_tasks,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest generate nupa --tasks add_Integer --lengths 1-8 --per-length 3
  earnest generate nupa --split train --per-length 100000 --tasks max_Float --lengths 1-20 -o train.jsonl
  earnest generate nupa --tasks add_Float --reversal int --zero-padding --index-hints 30
  earnest generate nupa --text rule-following --tasks mod_Integer --lengths 1-6

Every line has task, length, index, split, a, b, prompt, completion and answer; a, b and answer are plain numbers in every \
format. Lines come by task, then length, then index, and depend on the options alone. train, valid and test never share a \
question.")]
pub struct GenerateNupaArgs {
    /// Only these tasks, separated by commas [default: all; with rules, all that have one]
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    pub tasks: Option<Vec<String>>,

    /// Only these lengths, e.g. 5, 1..3 or 1,2,5-7; or `all`; or `reference` [default: all]
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<Lengths>,

    /// Questions of each task at each length; where there are fewer, all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub per_length: usize,

    /// Part of the data
    #[arg(long, value_name = "SPLIT", default_value = "test", value_parser = PossibleValuesParser::new(["train", "valid", "test"]))]
    pub split: String,

    /// Seed of the questions
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// What prompt and completion are
    #[arg(long, value_name = "STYLE", value_enum, default_value_t = TextArg::Question)]
    pub text: TextArg,

    /// Digits written backwards: of integers and integer parts, of decimals, of each part, or of the total text
    #[arg(long, value_name = "PARTS", default_value = "none", value_parser = PossibleValuesParser::new(["none", "int", "dec", "each", "total"]), help_heading = "Numbers")]
    pub reversal: String,

    /// Pad the operands with zeros, part by part, to the longer one
    #[arg(long, help_heading = "Numbers")]
    pub zero_padding: bool,

    /// Put a hint of its place before every digit of the operands, from an alphabet of N hints
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "30", help_heading = "Numbers")]
    pub index_hints: Option<usize>,

    /// Count the hints of integers from the highest digit instead of from the units
    #[arg(long, requires = "index_hints", help_heading = "Numbers")]
    pub hints_from_high_digit: bool,

    /// Draw questions as the authors' program does, biases included
    #[arg(long, help_heading = "Draws")]
    pub reference: bool,

    /// Length of the shorter operand: at least half of the longer one's, or any
    #[arg(long, value_name = "RULE", value_enum, default_value_t = ShortOperandArg::Half, help_heading = "Draws")]
    pub short_operand: ShortOperandArg,

    /// Decimals of the two floats of max_hard and min_hard: may differ in number, or equal
    #[arg(long, value_name = "RULE", value_enum, default_value_t = HardFloatsArg::Differ, help_heading = "Draws")]
    pub hard_floats: HardFloatsArg,

    /// Spelling of the min question; the authors' program says `mininal`
    #[arg(long, value_name = "WORDING", value_enum, default_value_t = WordingArg::Corrected, help_heading = "Draws")]
    pub wording: WordingArg,

    /// Write to this file instead of standard output; it appears under its name once it is complete
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextArg {
    /// The suite's question and its answer
    Question,
    /// Instruction, rule and question; the trace of the rule ends with the answer
    RuleFollowing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShortOperandArg {
    Half,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HardFloatsArg {
    Differ,
    Equal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WordingArg {
    Corrected,
    Reference,
}

/// Generates.
pub fn execute(args: &GenerateNupaArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let set = training_set(args)?;
    // Impossible options are found before a file is touched.
    let lines = set.lines().map_err(nupa::refused)?;
    let mut tally = Tally::default();
    let whole = match &args.output {
        None => printer.stream(|out| write_lines(out, lines, &mut tally))?,
        Some(path) => {
            write_file(path, |out| write_lines(out, lines, &mut tally))?;
            true
        }
    };
    if whole && !quiet {
        printer.message(&tally.sentence(&set, args.output.as_deref()));
    }
    Ok(Exit::Success)
}

fn training_set(args: &GenerateNupaArgs) -> Result<TrainingSet, CliError> {
    let style = match args.text {
        TextArg::Question => TextStyle::Question,
        TextArg::RuleFollowing => TextStyle::RuleFollowing,
    };
    let tasks = match (&args.tasks, style) {
        (Some(names), _) => nupa::tasks(names)?,
        (None, TextStyle::Question) => TASKS.to_vec(),
        (None, TextStyle::RuleFollowing) => ruled_tasks(),
    };
    let known = |error: NupaError| nupa::refused(error);
    Ok(TrainingSet {
        tasks,
        lengths: nupa::lengths(args.lengths.as_ref()),
        per_length: args.per_length,
        split: args.split.parse::<Split>().map_err(known)?,
        seed: args.seed,
        pairs: PairRules {
            shorter: match args.short_operand {
                ShortOperandArg::Half => ShorterOperand::AtLeastHalf,
                ShortOperandArg::Any => ShorterOperand::Any,
            },
            hard_floats_equal_length: args.hard_floats == HardFloatsArg::Equal,
            reference: args.reference,
        },
        wording: match args.wording {
            WordingArg::Corrected => Wording::Corrected,
            WordingArg::Reference => Wording::Reference,
        },
        format: NumberFormat {
            reversal: args.reversal.parse::<Reversal>().map_err(known)?,
            zero_padding: args.zero_padding,
            index_hints: args
                .index_hints
                .map(|alphabet| IndexHints { alphabet, from_high_digit: args.hints_from_high_digit }),
        },
        style,
    })
}

/// What was written.
#[derive(Debug, Default)]
struct Tally {
    lines: usize,
    /// Task, length and lines of every cell that has some.
    cells: Vec<(String, usize, usize)>,
}

impl Tally {
    fn add(&mut self, line: &TrainingLine) {
        self.lines += 1;
        match self.cells.last_mut() {
            Some((task, length, count)) if *length == line.length && *task == line.task => *count += 1,
            _ => self.cells.push((line.task.clone(), line.length, 1)),
        }
    }

    fn sentence(&self, set: &TrainingSet, path: Option<&Path>) -> String {
        let place = path.map_or_else(String::new, |path| format!(" in {}", path.display()));
        let mut text = format!("{} lines{place}", self.lines);
        let asked: usize = set.tasks.iter().map(|&task| set.lengths.of(task).len()).sum();
        let short: Vec<_> = self.cells.iter().filter(|(.., count)| *count < set.per_length).collect();
        let few = short.len() + asked.saturating_sub(self.cells.len());
        if few > 0 {
            text.push_str(&format!(
                "; {few} of {asked} tasks and lengths have fewer than {} questions in the {} part",
                set.per_length, set.split
            ));
            if let Some((task, length, count)) = short.iter().min_by_key(|(.., count)| *count) {
                text.push_str(&format!(", e.g. {task} at length {length} has {count}"));
            }
        }
        text
    }
}

fn write_lines(out: &mut dyn Write, lines: impl Iterator<Item = TrainingLine>, tally: &mut Tally) -> io::Result<()> {
    // Many lines a write, and no memory asked for a line.
    const ENOUGH: usize = 1 << 18;
    let mut buffer = Vec::with_capacity(ENOUGH + (1 << 14));
    for line in lines {
        line.write_json(&mut buffer);
        tally.add(&line);
        if buffer.len() >= ENOUGH {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}

/// Writes beside the file and renames, so that an interrupted command leaves no file that looks complete. What exists and is
/// no ordinary file (a pipe, `/dev/null`) is written to as it is and never replaced.
pub(super) fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
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
        // The error is what counts; a part that was never created cannot be removed.
        let _ = std::fs::remove_file(&part);
        if stop.load(Ordering::Relaxed) {
            let message = format!("interrupted: {} was not written", path.display());
            return CliError::new(Exit::Interrupted, message);
        }
        failed(error)
    })
}

/// A file that takes no more once the user wishes to stop, so that its beginning can be removed.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            // Not `Interrupted`, which writers take as a wish to try again.
            return Err(io::Error::other("stopped"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
