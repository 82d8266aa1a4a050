//! Suites on the command line: one subcommand each, built from their registrations.

mod command;
mod entry;
mod order;
mod usage_error;

use super::Exit;
use super::error::CliError;
use super::values::Prompts;
use earnest_results::ModeRequest;
use earnest_results::suites::{ConfiguredSuite, LocalHost};
use earnest_tasks::suite::registry::{self, ErrorKind, Mode, OptionError, OptionValues};

pub use command::{GeneratorCommand, SuiteCommand, given_options_of, with_options_of};
pub use earnest_tasks::suite::registry::Channel;
pub use entry::entries;
pub use order::suite_first;
pub use usage_error::{names_at, suite_usage_error, today_at};

impl From<OptionError> for CliError {
    fn from(error: OptionError) -> Self {
        let exit = match error.kind {
            ErrorKind::Usage | ErrorKind::BadRows => Exit::Usage,
            ErrorKind::Unreadable | ErrorKind::Data => Exit::Results,
            ErrorKind::Programs => Exit::Engine,
        };
        CliError::of(exit, error.message, error.help)
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
    choose_on(&LocalHost::default(), name, given, seed, prompts)
}

/// Checks a suite's options and finds its data, as [`choose`], on a host with a policy for model-written programs.
pub fn choose_on(
    host: &LocalHost,
    name: &str,
    given: &OptionValues,
    seed: u64,
    prompts: &Prompts,
) -> Result<ConfiguredSuite, CliError> {
    let values = values(given, seed, prompts);
    if let Some(suite) = registry::find(name)
        && let Some(foreign) =
            given.names().find(|given| !suite.card().options.iter().any(|option| option.name == *given))
    {
        return Err(usage_error::foreign(name, foreign));
    }
    Ok(host.configure(name, &values)?)
}

/// Lines of a suite's own generator, or its items if it has none or they are asked for.
pub fn generate(
    asked: &GeneratorCommand,
    seed: u64,
    prompts: Option<&Prompts>,
) -> Result<Box<dyn registry::Lines>, CliError> {
    let GeneratorCommand { name, items, options } = asked;
    let generator = registry::find(name).and_then(|suite| suite.generator());
    let Some(generator) = generator.filter(|_| !items) else {
        let of_lines = |option: &&str| generator.is_some_and(|own| own.options().iter().any(|own| own.name == *option));
        let suite = registry::find(name).map(|suite| suite.card());
        let of_items = |option: &&str| suite.iter().any(|card| card.options.iter().any(|own| own.name == *option));
        if let Some(option) = options.names().find(|option| of_lines(option) && !of_items(option)) {
            return Err(CliError::usage(format!(
                "--items writes the items of `earnest run {name}`, which has no --{option}"
            ))
            .help("leave one of the two out"));
        }
        let usual = Prompts::default();
        let prompts = prompts.unwrap_or(&usual);
        let configured = choose(name, options, seed, prompts)?;
        let mode = match prompts.mode.unwrap_or_else(|| configured.default_mode()) {
            ModeRequest::Chat => Mode::Chat,
            ModeRequest::Raw | ModeRequest::Auto => Mode::Raw,
        };
        return Ok(Box::new(registry::ItemLines::new(configured.suite(Channel::local(mode))?)));
    };
    let foreign = options.names().find(|option| !generator.options().iter().any(|own| own.name == *option));
    if let Some(option) = foreign.or(prompts.map(|_| "prompt")) {
        return Err(CliError::usage(format!("--{option} needs --items"))
            .help(format!("without it, `earnest generate {name}` writes {}", generator.writes())));
    }
    Ok(generator.lines(&values(options, seed, &Prompts::default()), &LocalHost::default())?)
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
