//! What every registration must keep, checked by tests: of the built-in suites, and of a new one before it is listed.
use std::collections::BTreeSet;

use super::{BuiltIn, Channel, Mode, NoHost, OptionError, OptionSpec, OptionValues};
use crate::suite::{Item, Suite};

/// Items that are looked at.
const LOOKED_AT: usize = 200;

/// Checks a registration: names of options, and, where the suite needs no files, its items with default options in both
/// prompt modes and after a round through the manifest.
///
/// # Errors
/// The first thing that is wrong, as a sentence.
pub fn conforms(suite: &dyn BuiltIn) -> Result<(), String> {
    check_names(suite)?;
    let values = OptionValues::new(1, Vec::new());
    let choice = match suite.configure(&values, &NoHost) {
        Ok(choice) => choice,
        Err(error) if error.help.is_some() => return Ok(()),
        Err(error) => return Err(format!("default options are refused without a next step: {error}")),
    };
    for mode in [Mode::Raw, Mode::Chat] {
        let made = choice.suite(Channel::local(mode)).map_err(|error| format!("{mode} prompts: {error}"))?;
        check_items(suite, made.as_ref()).map_err(|reason| format!("{mode} prompts: {reason}"))?;
    }
    Ok(())
}

/// True for lower case with dashes.
fn kebab(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9'));
    name.split('-').all(part)
}

fn check_names(suite: &dyn BuiltIn) -> Result<(), String> {
    let card = suite.card();
    if !kebab(card.name) {
        return Err(format!("{} is not a lower-case name with dashes", card.name));
    }
    check_options(card.options)?;
    suite.generator().map_or(Ok(()), |generator| check_options(generator.options()))
}

fn check_options(options: &[OptionSpec]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in options.iter().flat_map(|option| std::iter::once(&option.name).chain(option.aliases)) {
        if !kebab(name) || !seen.insert(*name) {
            return Err(format!("--{name} is not lower case with dashes, or named twice"));
        }
    }
    let mut others = options.iter().flat_map(|option| option.excludes.iter().chain(option.needs));
    let unknown = others.find(|name| !seen.contains(*name));
    match unknown {
        Some(name) => Err(format!("--{name} is named by another option, and no option")),
        None => Ok(()),
    }
}

fn check_items(registration: &dyn BuiltIn, suite: &dyn Suite) -> Result<(), String> {
    let card = registration.card();
    if (suite.name(), suite.version()) != (card.name, card.version) {
        return Err(format!("the suite calls itself {} {}", suite.name(), suite.version()));
    }
    if let Some(items) = registration.items()
        && items != suite.len()
    {
        return Err(format!("{items} items are announced, and there are {}", suite.len()));
    }
    let tasks: Result<BTreeSet<String>, OptionError> =
        registration.tasks().iter().map(|name| registration.task(name)).collect();
    let tasks = tasks.map_err(|error| error.to_string())?;
    let mut ids = BTreeSet::new();
    for item in suite.items().take(LOOKED_AT) {
        if !tasks.contains(&item.task) {
            return Err(format!("{} has the task {}, which is not listed", item.id, item.task));
        }
        if !ids.insert(item.id.clone()) {
            return Err(format!("two items are called {}", item.id));
        }
    }
    let options = suite.options();
    let again = registration.stored(&options, &NoHost).map_err(|error| format!("its own options: {error}"))?;
    let beginning = |suite: &dyn Suite| suite.items().take(LOOKED_AT).collect::<Vec<Item>>();
    if beginning(again.as_ref()) != beginning(suite) || again.options() != options {
        return Err("a stored run would ask other items".to_owned());
    }
    if registration.primary(&options) != suite.primary() {
        return Err(format!("{:?} decide, and {:?} in a stored run", suite.primary(), registration.primary(&options)));
    }
    Ok(())
}
