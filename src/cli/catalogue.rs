//! The suites by name: the one place to register a suite for the command line.
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::Exit;
use super::args::SuiteArgs;
use super::error::CliError;
use super::nupa_args;
use super::values::Lengths as LengthsArg;
use crate::prompt::Mode;
use crate::run::RunSettings;
use crate::suite::Suite;
use crate::suite::arithmetic_bench::{ArithmeticBench, Lengths, Options, Task};
use crate::suite::nupa::{NupaOptions, NupaSuite, TASKS, TaskId};

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
const NUPA: &str = "nupa";

/// The names, for clap: a wrong one is answered with the possible ones.
pub fn names() -> PossibleValuesParser {
    PossibleValuesParser::new([ARITHMETIC_BENCH, NUPA])
}

/// All suites.
pub fn entries() -> Result<Vec<Entry>, CliError> {
    let arithmetic = arithmetic_bench(Options::default())?;
    let nupa = nupa(NupaOptions::default())?;
    Ok(vec![
        Entry {
            name: arithmetic.name(),
            version: arithmetic.version(),
            paper: "Arithmetic-Bench: Evaluating Multi-Step Reasoning in LLMs with Basic Arithmetic (2025)",
            about: "16 tasks on integers of 1 to 100 digits: how accuracy falls with the length",
            tasks: Task::ALL.iter().map(Task::to_string).collect(),
            items: arithmetic.len(),
            options: &["--tasks", "--lengths", "--per-length", "--set", "--seed"],
        },
        Entry {
            name: nupa.name(),
            version: nupa.version(),
            paper: "Number Cookbook: Number Understanding of Language Models and How to Improve It (ICLR 2025)",
            about: "41 tasks in 53 variants on integers, floats, fractions and scientific notation of 1 to 100 digits",
            tasks: TASKS.iter().map(|task| task.short_name()).collect(),
            items: nupa.len(),
            options: &[
                "--tasks",
                "--lengths",
                "--per-length",
                "--seed",
                "--split",
                "--profile",
                "--style",
                "--shots",
                "--budget",
                "--no-stop-at-newline",
                "--wording",
                "--reference",
                "--short-operand",
                "--hard-floats",
            ],
        },
    ])
}

/// A suite with checked options; what its items look like is settled once the prompt mode is.
#[derive(Debug, Clone)]
pub enum Choice {
    ArithmeticBench(Options),
    Nupa(NupaOptions),
}

/// Checks a suite's options. Options that only another suite has are refused.
pub fn choose(name: &str, args: &SuiteArgs) -> Result<Choice, CliError> {
    match name {
        ARITHMETIC_BENCH => {
            if let Some(option) = args.nupa.given().first() {
                return Err(CliError::usage(format!("{ARITHMETIC_BENCH} has no {option}: it is an option of {NUPA}"))
                    .help("`earnest suites` lists the options of each suite"));
            }
            Ok(Choice::ArithmeticBench(arithmetic_options(args)?))
        }
        NUPA => Ok(Choice::Nupa(nupa_args::options(args)?)),
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
        NUPA => {
            let options = NupaOptions::from_json(&settings.suite_options).map_err(|error| failed(error.to_string()))?;
            let suite = NupaSuite::new(options).map_err(|error| failed(error.to_string()))?;
            Ok(Box::new(suite))
        }
        other => Err(CliError::new(Exit::Results, format!("this earnest has no suite {other}"))
            .help("`earnest suites` lists those it has")),
    }
}

impl Choice {
    /// The suite, with items as this prompt mode needs them.
    pub fn suite(&self, mode: Mode) -> Result<Box<dyn Suite>, CliError> {
        Ok(match self.clone() {
            Choice::ArithmeticBench(options) => Box::new(arithmetic_bench(options)?),
            Choice::Nupa(options) => Box::new(nupa(NupaOptions { adapter: nupa_args::adapter(mode), ..options })?),
        })
    }

    /// The name that items of a task carry; what is typed may be shorter.
    pub fn task(&self, name: &str) -> Result<String, CliError> {
        match self {
            Choice::ArithmeticBench(_) => Ok(name.to_owned()),
            Choice::Nupa(_) => name.parse().map(|task: TaskId| task.to_string()).map_err(nupa_args::refused),
        }
    }
}

fn arithmetic_options(args: &SuiteArgs) -> Result<Options, CliError> {
    let mut options = Options { seed: args.seed, ..Options::default() };
    if let Some(names) = &args.tasks {
        let task = |name: &String| name.trim().parse::<Task>().map_err(|error| CliError::usage(error.to_string()));
        options.tasks = names.iter().map(task).collect::<Result<_, _>>()?;
    }
    match &args.lengths {
        None | Some(LengthsArg::All) => {}
        Some(LengthsArg::Reference) => {
            let message = format!("--lengths reference is for {NUPA}; {ARITHMETIC_BENCH} tests every length");
            return Err(CliError::usage(message));
        }
        Some(LengthsArg::Chosen(lengths)) => {
            options.lengths =
                Lengths::new(lengths.iter().copied()).map_err(|error| CliError::usage(error.to_string()))?;
        }
    }
    options.per_length = args.per_length.unwrap_or(options.per_length);
    options.set = args.set.unwrap_or(options.set);
    Ok(options)
}

fn arithmetic_bench(options: Options) -> Result<ArithmeticBench, CliError> {
    ArithmeticBench::new(options).map_err(|error| CliError::usage(error.to_string()))
}

fn nupa(options: NupaOptions) -> Result<NupaSuite, CliError> {
    NupaSuite::new(options).map_err(nupa_args::refused)
}
