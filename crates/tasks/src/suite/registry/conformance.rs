//! Rules that every registration keeps, checked by tests: of the built-in suites, and of a new one before it is listed.
use std::collections::BTreeSet;

use super::{BuiltIn, Channel, Mode, NoHost, OptionError, OptionSpec, OptionValues};
use crate::suite::{Item, Suite};

/// Items checked per prompt mode.
const CHECKED_ITEMS: usize = 200;

/// A rule that a registration breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConformanceError {
    #[error("the suite name {0} is not lower case with dashes")]
    SuiteName(&'static str),
    #[error("--{0} is not lower case with dashes, or is listed twice")]
    OptionName(&'static str),
    #[error("an option excludes or needs --{0}, which is not an option of the suite")]
    UnknownOption(&'static str),
    #[error("the default options are refused without a next step: {0}")]
    NoNextStep(#[source] OptionError),
    #[error("the suite made from its own options reports {name} {version}")]
    Identity { name: String, version: String },
    #[error("the registration says adaptive: {announced}, and its suite does otherwise")]
    Adaptive { announced: bool },
    #[error("the registration announces {announced} items, the suite has {actual}")]
    ItemCount { announced: usize, actual: usize },
    #[error("item {item} has the task {task}, which the registration does not list")]
    UnlistedTask { item: String, task: String },
    #[error("two items have the id {0}")]
    DuplicateItem(String),
    #[error("a run stored with these options would ask other items")]
    Unstable,
    #[error("the deciding scorers are {suite:?} in the suite and {stored:?} in a stored run")]
    ChosenScorers { suite: Vec<String>, stored: Vec<String> },
    #[error(transparent)]
    Options(#[from] OptionError),
    #[error("{mode} prompts: {source}")]
    Prompts { mode: Mode, source: Box<ConformanceError> },
}

/// Checks a registration: names of options, and, where the suite needs no files, its items with default options in both
/// prompt modes and after a round through the manifest.
///
/// # Errors
/// [`ConformanceError`] with the first rule that is broken.
pub fn conforms(suite: &dyn BuiltIn) -> Result<(), ConformanceError> {
    check_names(suite)?;
    let values = OptionValues::new(1, Vec::new());
    let choice = match suite.configure(&values, &NoHost) {
        Ok(choice) => choice,
        Err(error) if error.help.is_some() => return Ok(()),
        Err(error) => return Err(ConformanceError::NoNextStep(error)),
    };
    for mode in [Mode::Raw, Mode::Chat] {
        let made = choice.suite(Channel::local(mode)).map_err(ConformanceError::from);
        made.and_then(|made| check_items(suite, &made))
            .map_err(|error| ConformanceError::Prompts { mode, source: Box::new(error) })?;
    }
    Ok(())
}

/// True for lower case with dashes.
fn kebab(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9'));
    name.split('-').all(part)
}

fn check_names(suite: &dyn BuiltIn) -> Result<(), ConformanceError> {
    let card = suite.card();
    if !kebab(card.name) {
        return Err(ConformanceError::SuiteName(card.name));
    }
    check_options(card.options)?;
    suite.generator().map_or(Ok(()), |generator| check_options(generator.options()))
}

fn check_options(options: &[OptionSpec]) -> Result<(), ConformanceError> {
    let (mut settings, mut command_line) = (BTreeSet::new(), BTreeSet::new());
    for option in options {
        if !kebab(option.name) || !settings.insert(option.name) {
            return Err(ConformanceError::OptionName(option.name));
        }
        for name in std::iter::once(&option.long).chain(option.aliases) {
            if !kebab(name) || !command_line.insert(*name) {
                return Err(ConformanceError::OptionName(name));
            }
        }
    }
    let mut others = options.iter().flat_map(|option| option.excludes.iter().chain(option.needs));
    match others.find(|name| !settings.contains(*name)) {
        Some(name) => Err(ConformanceError::UnknownOption(name)),
        None => Ok(()),
    }
}

fn check_items(registration: &dyn BuiltIn, suite: &Suite) -> Result<(), ConformanceError> {
    let card = registration.card();
    let is_known = suite.scoring.version() == card.version || card.alike.contains(&suite.scoring.version());
    if suite.scoring.name() != card.name || !is_known {
        return Err(ConformanceError::Identity {
            name: suite.scoring.name().to_owned(),
            version: suite.scoring.version().to_owned(),
        });
    }
    if suite.items.chooser().is_some() != card.adaptive {
        return Err(ConformanceError::Adaptive { announced: card.adaptive });
    }
    if let Some(announced) = registration.items()
        && announced != suite.items.len()
    {
        return Err(ConformanceError::ItemCount { announced, actual: suite.items.len() });
    }
    let tasks: Result<BTreeSet<String>, OptionError> =
        registration.tasks().iter().map(|name| registration.task(name)).collect();
    let tasks = tasks?;
    let mut ids = BTreeSet::new();
    for item in suite.items.iter().take(CHECKED_ITEMS) {
        if !tasks.contains(&item.task) {
            return Err(ConformanceError::UnlistedTask { item: item.id, task: item.task });
        }
        if !ids.insert(item.id.clone()) {
            return Err(ConformanceError::DuplicateItem(item.id));
        }
    }
    let options = suite.scoring.options();
    let stored = registration.stored(&options, &NoHost)?;
    let beginning = |suite: &Suite| suite.items.iter().take(CHECKED_ITEMS).collect::<Vec<Item>>();
    if beginning(&stored) != beginning(suite) || stored.scoring.options() != options {
        return Err(ConformanceError::Unstable);
    }
    if registration.chosen(&options) != suite.scoring.chosen() {
        let suite = suite.scoring.chosen().into_iter().map(str::to_owned).collect();
        let stored = registration.chosen(&options);
        return Err(ConformanceError::ChosenScorers { suite, stored });
    }
    Ok(())
}
