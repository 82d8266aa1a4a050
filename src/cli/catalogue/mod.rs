//! Suites on the command line: one subcommand each, built from their registrations.

mod command;
mod entry;
mod usage_error;

use super::Exit;
use super::error::CliError;
use super::values::Prompts;
use earnest_eval::prompt::ModeRequest;
use earnest_eval::run::RunSettings;
use earnest_eval::suites::{self, LocalHost};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::registry::{self, BuiltIn, ErrorKind, OptionError, OptionValues};

pub use command::{GeneratorCommand, SuiteCommand, given_options_of, with_options_of};
pub use earnest_eval::suites::primary;
pub use earnest_tasks::suite::registry::{Channel, Choice, GivenQuestion, check_profile};
pub use entry::entries;
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

/// A suite with checked options.
pub struct Chosen {
    registration: &'static dyn BuiltIn,
    /// Its items, before the prompt mode is known.
    pub choice: Box<dyn Choice>,
}

impl Chosen {
    /// Default prompt mode.
    pub fn default_mode(&self) -> ModeRequest {
        self.registration.card().mode.map_or(ModeRequest::Auto, ModeRequest::from)
    }

    /// The suite for a channel to a model.
    pub fn suite(&self, channel: Channel) -> Result<Box<dyn Suite>, CliError> {
        Ok(self.choice.suite(channel)?)
    }

    /// Full name of a task, as in its items; `name` may be an abbreviation.
    pub fn task(&self, name: &str) -> Result<String, CliError> {
        Ok(self.registration.task(name)?)
    }
}

/// Values of a suite's options with the command's seed and prompts.
fn values(given: &OptionValues, seed: u64, prompts: &Prompts) -> OptionValues {
    let mut values = given.clone();
    values.seed = seed;
    values.prompts.clone_from(&prompts.names);
    values
}

/// Checks a suite's options and finds its data. Options of other suites are errors.
pub fn choose(name: &str, given: &OptionValues, seed: u64, prompts: &Prompts) -> Result<Chosen, CliError> {
    let Some(registration) = registry::find(name) else {
        return Err(CliError::usage(format!("there is no suite {name}")).help("`earnest suites` lists them"));
    };
    let card = registration.card();
    if let Some(foreign) = given.names().find(|given| !card.options.iter().any(|option| option.name == *given)) {
        return Err(usage_error::foreign(name, foreign));
    }
    registry::check_prompts(&card, &prompts.names)?;
    let choice = registration.configure(&values(given, seed, prompts), &LocalHost)?;
    Ok(Chosen { registration, choice })
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

/// Names of the prompts of a suite that has several.
pub fn prompts(suite: &str) -> &'static [&'static str] {
    registry::find(suite).map_or(&[], |suite| suite.card().prompts)
}

/// Number of worked examples inside the text of a suite's questions.
pub fn examples_in_text(suite: &str) -> usize {
    registry::find(suite).map_or(0, |suite| suite.card().examples_in_text)
}

/// Full name of a suite's task, as in its items.
pub fn task(suite: &str, name: &str) -> Result<String, CliError> {
    registry::find(suite).map_or_else(|| Ok(name.to_owned()), |suite| Ok(suite.task(name)?))
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

/// The suite of a stored run, with the current scoring rules.
pub fn stored(settings: &RunSettings) -> Result<Box<dyn Suite>, CliError> {
    Ok(suites::stored(settings)?)
}
