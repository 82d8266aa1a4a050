//! Suites on the command line: one subcommand each, built from their registrations.

mod command;
mod entry;
mod order;
mod usage_error;

use super::Exit;
use super::error::CliError;
use super::values::Prompts;
use earnest_eval::run::RunSettings;
use earnest_eval::suites::{self, ConfiguredSuite, LocalHost};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::registry::{self, ErrorKind, OptionError, OptionValues};

pub use command::{GeneratorCommand, SuiteCommand, given_options_of, with_options_of};
pub use earnest_tasks::suite::registry::Channel;
pub use entry::entries;
pub use order::suite_first;
pub use usage_error::{names_at, suite_usage_error};

impl From<OptionError> for CliError {
    fn from(error: OptionError) -> Self {
        let exit = match error.kind {
            ErrorKind::Usage => Exit::Usage,
            ErrorKind::Unreadable | ErrorKind::Data => Exit::Results,
            ErrorKind::Programs => Exit::Engine,
        };
        CliError { exit, message: error.message, help: error.help }
    }
}

/// Converts an error of a suite.
pub fn suite_error(error: impl Into<OptionError>) -> CliError {
    error.into().into()
}

/// Values of a suite's options with the command's seed and prompts.
pub fn values(given: &OptionValues, seed: u64, prompts: &Prompts) -> OptionValues {
    let mut values = given.clone();
    values.seed = seed;
    values.prompts.clone_from(&prompts.names);
    values
}

/// Checks a suite's options and finds its data. Options of other suites are errors.
pub fn choose(name: &str, given: &OptionValues, seed: u64, prompts: &Prompts) -> Result<ConfiguredSuite, CliError> {
    let values = values(given, seed, prompts);
    if let Some(suite) = registry::find(name)
        && let Some(foreign) =
            given.names().find(|given| !suite.card().options.iter().any(|option| option.name == *given))
    {
        return Err(usage_error::foreign(name, foreign));
    }
    Ok(suites::configure(name, &values)?)
}

/// Lines of a suite's generator.
pub fn generate(name: &str, given: &OptionValues, seed: u64) -> Result<Box<dyn registry::Lines>, CliError> {
    let generator = registry::find(name).and_then(|suite| suite.generator());
    let generator = generator.ok_or_else(|| CliError::usage(format!("{name} has no generator")))?;
    Ok(generator.lines(&values(given, seed, &Prompts::default()), &LocalHost)?)
}

/// Number of items for a first look at a suite: a minute or two instead of an hour.
pub fn first_look(name: &str, given: &OptionValues) -> Option<usize> {
    registry::find(name)?.first_look(given)
}

/// Names of the suites.
pub fn names() -> Vec<&'static str> {
    registry::BUILT_IN.iter().map(|suite| suite.card().name).collect()
}

/// Names of the tables of suites that have several.
pub fn tables() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for name in registry::BUILT_IN.iter().flat_map(|suite| suite.card().tables) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names
}

/// Checks that a suite has the table of this metric.
///
/// # Errors
/// [`Exit::Usage`] with the suite's tables.
pub fn check_table(suite: &str, metric: Option<&str>) -> Result<(), CliError> {
    let tables = registry::find(suite).map_or(&[][..], |suite| suite.card().tables);
    match metric {
        Some(name) if name != "all" && !tables.contains(&name) => {
            let error = CliError::usage(format!("{suite} has no table {name}"));
            Err(match tables {
                [] => error.help("it has one table, which is shown without --metric"),
                _ => error.help(format!("its tables are {}", tables.join(", "))),
            })
        }
        _ => Ok(()),
    }
}

/// The suite of a stored run, with the current scoring rules.
pub fn stored(settings: &RunSettings) -> Result<Box<dyn Suite>, CliError> {
    Ok(suites::stored(settings)?)
}
