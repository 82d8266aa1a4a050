//! Arithmetic-Bench at the command line.
use serde_json::Value;

use super::{Channel, Choice, Entry, Registered, Unusable, profile};
use crate::cli::args::SuiteArgs;
use crate::cli::error::CliError;
use crate::cli::values::{Lengths as LengthsArg, Prompts};
use crate::suite::Suite;
use crate::suite::arithmetic_bench::{ArithmeticBench, Lengths, Options, Profile, Task};

const NAME: &str = "arithmetic-bench";

/// The suite's place in the catalogue.
pub struct Registration;

impl Registered for Registration {
    fn name(&self) -> &'static str {
        NAME
    }

    fn entry(&self) -> Result<Entry, CliError> {
        let suite = build(Options::default())?;
        Ok(Entry {
            name: NAME,
            version: suite.version(),
            paper: "Arithmetic-Bench: Evaluating Multi-Step Reasoning in LLMs with Basic Arithmetic (2025)",
            about: "16 tasks on integers of 1 to 100 digits: how accuracy falls with the length",
            tasks: Task::ALL.iter().map(Task::to_string).collect(),
            items: Some(suite.len()),
            options: &["--tasks", "--lengths", "--per-length", "--set", "--seed", "--profile"],
        })
    }

    fn given(&self, args: &SuiteArgs) -> Vec<&'static str> {
        args.set.map(|_| "--set").into_iter().collect()
    }

    fn choose(&self, args: &SuiteArgs, _: &Prompts) -> Result<Box<dyn Choice>, CliError> {
        Ok(Box::new(Chosen { options: options(args)?, profile: profile(NAME, args, &Profile::NAMES)? }))
    }

    fn primary(&self, options: &Value) -> Vec<&'static str> {
        serde_json::from_value(options.clone())
            .map_or_else(|_| Vec::new(), |options: Options| vec![options.profile.name()])
    }

    fn stored(&self, options: &Value) -> Result<Box<dyn Suite>, Unusable> {
        let options: Options = serde_json::from_value(options.clone()).map_err(|error| error.to_string())?;
        Ok(Box::new(ArithmeticBench::new(options).map_err(|error| error.to_string())?))
    }
}

struct Chosen {
    options: Options,
    /// As asked for.
    profile: Option<Profile>,
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Box<dyn Suite>, CliError> {
        let profile = channel.profile(self.profile, Profile::Final, Profile::Boundary);
        Ok(Box::new(build(Options { profile, ..self.options.clone() })?))
    }
}

fn options(args: &SuiteArgs) -> Result<Options, CliError> {
    let mut options = Options { seed: args.seed, ..Options::default() };
    if let Some(names) = &args.tasks {
        let task = |name: &String| name.trim().parse::<Task>().map_err(|error| CliError::usage(error.to_string()));
        options.tasks = names.iter().map(task).collect::<Result<_, _>>()?;
    }
    match &args.lengths {
        None | Some(LengthsArg::All) => {}
        Some(LengthsArg::Reference) => {
            let message = format!("--lengths reference is for nupa; {NAME} tests every length");
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

fn build(options: Options) -> Result<ArithmeticBench, CliError> {
    ArithmeticBench::new(options).map_err(|error| CliError::usage(error.to_string()))
}
