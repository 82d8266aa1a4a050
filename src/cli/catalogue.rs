//! The suites by name: the one place to register a suite for the command line.
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::Exit;
use super::args::SuiteArgs;
use super::error::CliError;
use crate::run::RunSettings;
use crate::suite::Suite;
use crate::suite::arithmetic_bench::{ArithmeticBench, Lengths, Options, Task};

/// A suite as `earnest suites` lists it.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    pub name: &'static str,
    pub version: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// What it asks.
    pub about: &'static str,
    pub tasks: Vec<String>,
    /// Items with default options.
    pub items: usize,
    /// Options that select items.
    pub options: &'static [&'static str],
}

const ARITHMETIC_BENCH: &str = "arithmetic-bench";

/// The names, for clap: a wrong one is answered with the possible ones.
pub fn names() -> PossibleValuesParser {
    PossibleValuesParser::new([ARITHMETIC_BENCH])
}

/// All suites.
pub fn entries() -> Result<Vec<Entry>, CliError> {
    let full = arithmetic_bench(Options::default())?;
    Ok(vec![Entry {
        name: full.name(),
        version: full.version(),
        paper: "Arithmetic-Bench: Evaluating Multi-Step Reasoning in LLMs with Basic Arithmetic (2025)",
        about: "16 tasks on integers of 1 to 100 digits: how accuracy falls with the length",
        tasks: Task::ALL.iter().map(Task::to_string).collect(),
        items: full.len(),
        options: &["--tasks", "--lengths", "--per-length", "--set", "--seed"],
    }])
}

/// The suite of this name with these options.
pub fn build(name: &str, args: &SuiteArgs) -> Result<Box<dyn Suite>, CliError> {
    match name {
        ARITHMETIC_BENCH => Ok(Box::new(arithmetic_bench(arithmetic_options(args)?)?)),
        _ => Err(CliError::usage(format!("there is no suite {name}")).help("`earnest suites` lists them")),
    }
}

/// The suite of a stored run: the items it asked, scored by today's rules.
pub fn stored(settings: &RunSettings) -> Result<Box<dyn Suite>, CliError> {
    let failed = |reason: String| {
        let message = format!("the options of a run of {} cannot be read: {reason}", settings.suite);
        CliError::new(Exit::Results, message).help("it was written by another version of earnest")
    };
    match settings.suite.as_str() {
        ARITHMETIC_BENCH => {
            let options: Options =
                serde_json::from_value(settings.suite_options.clone()).map_err(|error| failed(error.to_string()))?;
            let suite = ArithmeticBench::new(options).map_err(|error| failed(error.to_string()))?;
            Ok(Box::new(suite))
        }
        other => Err(CliError::new(Exit::Results, format!("this earnest has no suite {other}"))
            .help("`earnest suites` lists those it has")),
    }
}

fn arithmetic_options(args: &SuiteArgs) -> Result<Options, CliError> {
    let mut options = Options { seed: args.seed, ..Options::default() };
    if let Some(names) = &args.tasks {
        let task = |name: &String| name.trim().parse::<Task>().map_err(|error| CliError::usage(error.to_string()));
        options.tasks = names.iter().map(task).collect::<Result<_, _>>()?;
    }
    if let Some(lengths) = &args.lengths {
        options.lengths =
            Lengths::new(lengths.0.iter().copied()).map_err(|error| CliError::usage(error.to_string()))?;
    }
    options.per_length = args.per_length.unwrap_or(options.per_length);
    options.set = args.set.unwrap_or(options.set);
    Ok(options)
}

fn arithmetic_bench(options: Options) -> Result<ArithmeticBench, CliError> {
    ArithmeticBench::new(options).map_err(|error| CliError::usage(error.to_string()))
}
