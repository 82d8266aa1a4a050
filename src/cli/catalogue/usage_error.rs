//! Errors for options and names that the suite does not have.
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use super::command::{SUITES_HEADING, with_suites};
use crate::cli::error::CliError;
use earnest_rows::{file_named, near_file};
use earnest_tasks::nearest;
use earnest_tasks::suite::registry::{self, BUILT_IN, BuiltIn};

/// The command that a command line leads to, and its suite.
fn at(mut command: Command, words: impl Iterator<Item = String>) -> (Command, Option<&'static str>) {
    let mut suite = None;
    for word in words {
        if has_suites(&command) && !command.has_subcommands() {
            command = with_suites(command);
        }
        if let Some(found) = command.find_subcommand(&word) {
            suite = if has_suites(&command) { registry::find(&word).map(|found| found.card().name) } else { None };
            command = found.clone();
        }
    }
    (command, suite)
}

/// True for a command whose subcommands are the suites.
pub(super) fn has_suites(command: &Command) -> bool {
    command.get_subcommand_help_heading() == Some(SUITES_HEADING)
}

/// Names of the subcommands at the point where a command line is wrong.
pub fn names_at(command: Command, words: impl Iterator<Item = String>) -> Vec<String> {
    let (command, _) = at(command, words);
    command.get_subcommands().filter(|found| !found.is_hide_set()).map(|found| found.get_name().to_owned()).collect()
}

/// Today's spelling of an option at the point where a command line is wrong; none if it is no former spelling.
pub fn today_at(command: Command, words: impl Iterator<Item = String>, option: &str) -> Option<String> {
    let (command, _) = at(command, words);
    let name = option.trim_start_matches('-');
    let is_former = |arg: &&Arg| arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name));
    let long = command.get_arguments().find(is_former)?.get_long()?;
    Some(option.replace(name, long))
}

/// An error about suites for a clap error; none for other errors.
pub fn suite_usage_error(error: &Error, command: Command, words: impl Iterator<Item = String>) -> Option<CliError> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let words: Vec<String> = words.collect();
    let repeats = words.iter().any(|word| word == "--from" || word.starts_with("--from="));
    let (command, suite) = at(command, words.into_iter());
    match error.kind() {
        ErrorKind::InvalidSubcommand if has_suites(&command) => {
            let name = text(ContextKind::InvalidSubcommand)?;
            // A word with a dot is more likely to be a file.
            let file = || near_file(Path::new(name)).map(|file| file.display().to_string());
            let suite = || nearest(name, super::names()).map(str::to_owned);
            let named = || file_named(name).map(|file| file.display().to_string());
            let near = if name.contains('.') { file().or_else(suite) } else { named().or_else(suite).or_else(file) };
            let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
            if name.contains(char::REPLACEMENT_CHARACTER) {
                let message = format!("{name}: the name of this file is not UTF-8 text");
                return Some(CliError::usage(message).help("rename it, e.g. to questions.jsonl, and name that"));
            }
            let message = if name.contains('.') { "there is no suite and no file" } else { "there is no suite" };
            Some(CliError::usage(format!("{message} {name}")).help(near + &choose_from()))
        }
        ErrorKind::MissingSubcommand if has_suites(&command) => {
            Some(CliError::usage(format!("{} needs a SUITE", command.get_name())).help(choose_from()))
        }
        ErrorKind::UnknownArgument => {
            let option = text(ContextKind::InvalidArg)?.strip_prefix("--")?.split('=').next()?;
            let owners = owners(option);
            match suite {
                _ if owners.is_empty() => None,
                // The suite's own option is unknown only if it stands before the suite's name.
                Some(suite) if !owners.contains(&suite) => Some(foreign(suite, option)),
                None if !has_suites(&command) => None,
                _ if repeats => {
                    let message = format!("--from repeats a run with its own options; it cannot take --{option}");
                    Some(CliError::usage(message).help("name the SUITE instead of --from to choose options"))
                }
                _ => {
                    let message = format!("--{option} is an option of {}", owners.join(", "));
                    Some(CliError::usage(message).help("name the SUITE too"))
                }
            }
        }
        _ => None,
    }
}

fn choose_from() -> String {
    format!("choose from {}, or a file of questions", super::names().join(", "))
}

/// Names of the suites that have an option.
fn owners(option: &str) -> Vec<&'static str> {
    let has = |suite: &&&dyn BuiltIn| {
        suite
            .card()
            .options
            .iter()
            .any(|own| own.is_own() && (own.name == option || own.long == option || own.aliases.contains(&option)))
    };
    BUILT_IN.iter().filter(has).map(|suite| suite.card().name).collect()
}

/// The error for an option of another suite.
pub fn foreign(suite: &str, option: &str) -> CliError {
    let own: Vec<String> = registry::find(suite)
        .map(|suite| suite.card().options.iter().map(|own| format!("--{}", own.long)).collect())
        .unwrap_or_default();
    let message = format!("{suite} has no --{option}, which is an option of {}", owners(option).join(", "));
    CliError::usage(message).help(format!("the options of {suite} are {}", own.join(", ")))
}
