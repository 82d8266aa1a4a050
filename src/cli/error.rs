//! Errors for the user: the problem, its place and the next step.
use std::io::ErrorKind;

use super::{Exit, args, offered};
use earnest_eval::EvalError;
use earnest_eval::prompt::PromptError;
use earnest_eval::report::{ReportError, quoted};
use earnest_eval::run::RunError;
use earnest_eval::study::StudyError;
use earnest_models::hub::HubError;

/// An error with its exit code and, if there is one, the next step.
#[derive(Debug)]
pub struct CliError {
    pub exit: Exit,
    /// One sentence that names the thing and the place; causes follow after colons.
    pub message: String,
    pub help: Option<String>,
}

impl CliError {
    /// An error without a next step.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        CliError { exit, message: message.into(), help: None }
    }

    /// An invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        CliError::new(Exit::Usage, message)
    }

    /// Adds the next step.
    pub fn help(self, help: impl Into<String>) -> Self {
        CliError { help: Some(help.into()), ..self }
    }

    /// The error whose offered commands name the results folder that this command was given.
    pub fn with_results(self) -> Self {
        let help = self.help.map(|help| offered::here(&help));
        CliError { message: offered::here(&self.message), help, ..self }
    }
}

/// An error and its causes in one line, without repeating a cause that the message already ends with.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let next = cause.to_string();
        if text.is_empty() {
            text = next;
        } else if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
    }
    text
}

impl std::fmt::Display for CliError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        let exit = match &error {
            RunError::Engine(_) | RunError::LostRequests(_) | RunError::UnknownRequest(_) => Exit::Engine,
            RunError::RepeatedItem { .. }
            | RunError::NoRun { .. }
            | RunError::NotExact { .. }
            | RunError::AmbiguousRun { .. } => Exit::Usage,
            _ => Exit::Results,
        };
        let help = match &error {
            RunError::AmbiguousRun { name, runs, labels } => Some(candidates(name, runs, labels, offered::words())),
            error => error.help(),
        };
        CliError { exit, message: error.to_string(), help }
    }
}

/// Lines of several runs each, at most.
const LINES: usize = 12;

/// The runs that a name could mean, a line each, as the whole command where the name is an argument of it. A name that is given several
/// times stands for as many runs.
fn candidates(name: &str, runs: &[String], labels: &[String], arguments: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = arguments.collect();
    let places = places(name, &words);
    let most = if places.len() < 2 { usize::MAX } else { LINES };
    let choices = match places.is_empty() {
        true => Vec::new(),
        false => choices(runs.len(), places.len(), most.saturating_add(1)),
    };
    let mut lines: Vec<String> = Vec::new();
    for choice in choices.iter().take(most) {
        let chosen = |at: usize| places.iter().position(|&place| place == at).map(|number| &runs[choice[number]]);
        let replaced = words.iter().enumerate().map(|(at, word)| quoted(chosen(at).unwrap_or(word)));
        let said: Vec<&str> = choice.iter().map(|&run| labels.get(run).map_or("", String::as_str)).collect();
        lines.push(format!("\n  earnest {}  # {}", replaced.collect::<Vec<_>>().join(" "), said.join(" | ")));
    }
    match choices.len() {
        0 => lines.extend(runs.iter().zip(labels).map(|(run, label)| format!("\n  {run}  # {label}"))),
        all if all > most => lines.push("\n  and so on".to_owned()),
        _ => {}
    }
    format!(
        "give more of the name, or its last part; `earnest runs list` shows when each began and how it ended{}",
        lines.concat()
    )
}

/// Places of a name among the words of a command: those that are no option's value, else the first.
fn places(name: &str, words: &[String]) -> Vec<usize> {
    let all: Vec<usize> = (0..words.len()).filter(|&at| words[at] == name).collect();
    let is_value = |at: &usize| {
        let before = at.checked_sub(1).map(|before| words[before].as_str());
        before.is_some_and(|option| option.starts_with('-') && takes_value(words, option))
    };
    let own: Vec<usize> = all.iter().copied().filter(|at| !is_value(at)).collect();
    if own.is_empty() { all.into_iter().take(1).collect() } else { own }
}

/// True of an option that takes a value, in the command that the words name.
fn takes_value(words: &[String], option: &str) -> bool {
    let mut command = args::definition();
    let mut is_taken = false;
    for word in std::iter::once("").chain(words.iter().map(String::as_str)) {
        if let Some(inner) = command.find_subcommand(word).cloned() {
            command = inner;
        } else if !word.is_empty() {
            continue;
        }
        let found = command.get_arguments().find(|argument| {
            let long = argument.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long));
            long || argument.get_short().is_some_and(|short| option.strip_prefix('-') == Some(&short.to_string()))
        });
        is_taken |= found.is_some_and(|argument| argument.get_action().takes_values());
    }
    is_taken
}

/// The first ways, at most so many, to choose `count` of these in their order; none if there are fewer of them.
fn choices(of: usize, count: usize, most: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    let mut choice: Vec<usize> = (0..count).collect();
    while count <= of && all.len() < most {
        all.push(choice.clone());
        // The last one that can move on, with the others behind it.
        let Some(moved) = (0..count).rev().find(|&place| choice[place] + count < of + place) else { break };
        let begin = choice[moved] + 1;
        choice.splice(moved.., (begin..).take(count - moved));
    }
    all
}

impl From<HubError> for CliError {
    fn from(error: HubError) -> Self {
        let exit = match &error {
            HubError::NotARepository { .. }
            | HubError::IsAPath { .. }
            | HubError::NotPinned { .. }
            | HubError::NoRevision { .. }
            | HubError::SeveralCommits { .. }
            | HubError::BadEndpoint { .. }
            | HubError::Registry { .. } => Exit::Usage,
            _ => Exit::Model,
        };
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        CliError::new(Exit::Model, error.to_string()).help(error.help())
    }
}

impl From<ReportError> for CliError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Run(error) => error.into(),
            ReportError::Write { ref source, .. } if source.kind() == ErrorKind::InvalidInput => {
                CliError::usage(error.to_string()).help("name another file")
            }
            error => CliError { exit: Exit::Results, message: error.to_string(), help: error.help() },
        }
    }
}

impl From<EvalError> for CliError {
    fn from(error: EvalError) -> Self {
        let exit = match error {
            EvalError::Hub(error) => return error.into(),
            EvalError::Prompt(error) => return error.into(),
            EvalError::Run(error) => return error.into(),
            EvalError::Report(error) => return error.into(),
            EvalError::Suite(error) => return error.into(),
            EvalError::Setting(_)
            | EvalError::Input { .. }
            | EvalError::Line { .. }
            | EvalError::Log { .. }
            | EvalError::PartsNotMerged { .. } => Exit::Usage,
            EvalError::Model(_) => Exit::Model,
            EvalError::Engine(_) => Exit::Engine,
            EvalError::Results(_) | EvalError::SettingsChanged { .. } | EvalError::PartsMissing { .. } => Exit::Results,
            EvalError::Interrupted { .. } => Exit::Interrupted,
            EvalError::TooManyFailures { .. } => Exit::TooManyFailures,
        };
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        let exit = if error.mistakes.iter().all(|mistake| mistake.of_model) { Exit::Model } else { Exit::Usage };
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn choices_are_in_order() {
        assert_eq!(choices(3, 2, 9), [[0, 1], [0, 2], [1, 2]]);
        assert_eq!(choices(3, 1, 2), [[0], [1]]);
        assert_eq!(choices(2, 2, 9), [[0, 1]]);
        assert!(choices(2, 3, 9).is_empty());
    }

    #[test]
    fn candidates_are_commands() {
        let runs = ["nupa-a-12".to_owned(), "nupa-b-34".to_owned()];
        let labels = ["samples 1".to_owned(), "samples 2".to_owned()];
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>().into_iter();
        let help = candidates("nupa", &runs, &labels, words("runs|show|nupa|--results|my results"));
        assert!(help.ends_with("\n  earnest runs show nupa-a-12 --results 'my results'  # samples 1\n  earnest runs show nupa-b-34 --results 'my results'  # samples 2"), "{help}");
        let help = candidates("nupa", &runs, &labels, words("compare|nupa|--all|nupa|--primary|nupa"));
        assert!(
            help.ends_with(
                "ended\n  earnest compare nupa-a-12 --all nupa-b-34 --primary nupa  # samples 1 | samples 2"
            ),
            "{help}"
        );
        let three = words("compare|nupa|nupa|nupa");
        assert!(
            candidates("nupa", &runs, &labels, three)
                .ends_with("ended\n  nupa-a-12  # samples 1\n  nupa-b-34  # samples 2")
        );
        let help = candidates("nupa", &runs, &labels, words("run|--from|nupa"));
        assert!(help.ends_with("\n  earnest run --from nupa-b-34  # samples 2"), "{help}");
        let many: Vec<String> = (0..8).map(|number| format!("nupa-{number}")).collect();
        let help = candidates("nupa", &many, &many, words("compare|nupa|nupa"));
        assert!(help.contains("\n  earnest compare nupa-0 nupa-1  #") && help.ends_with("\n  and so on"), "{help}");
        let help = candidates("nupa", &runs, &labels, words("compare|other/nupa"));
        assert!(help.ends_with("\n  nupa-a-12  # samples 1\n  nupa-b-34  # samples 2"), "{help}");
        assert!(candidates("a'b", &runs, &labels, words("show|a'b|it's")).contains(r"'it'\''s'"));
    }

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot open data.csv: {source}")]
        struct Open {
            source: std::io::Error,
        }
        let open = || Open { source: std::io::Error::other("no such file") };
        assert_eq!(with_causes(&anyhow::Error::new(open())), "cannot open data.csv: no such file");
        let around = Err::<(), _>(open()).context("cannot fit data.csv").unwrap_err();
        assert_eq!(with_causes(&around), "cannot fit data.csv: cannot open data.csv: no such file");
    }
}
