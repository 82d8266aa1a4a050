//! The suites by name: the one place to register a suite for the command line. One file a suite.

mod arithmetic_bench;
pub mod data;
pub mod dnc;
mod gsm_data;
pub mod gsm_symbolic;
pub mod nupa;

use clap::builder::PossibleValuesParser;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Exit;
use super::args::SuiteArgs;
use super::error::CliError;
use super::values::Prompts;
use crate::prompt::{Mode, ModeRequest};
use crate::run::RunSettings;
use crate::suite::Suite;

/// All suites of the command line, in the order of lists.
const SUITES: [&dyn Registered; 5] = [
    &arithmetic_bench::Registration,
    &nupa::Registration,
    &gsm_symbolic::Symbolic,
    &gsm_symbolic::Mini,
    &dnc::Registration,
];

/// A suite as the command line knows it.
trait Registered: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Its line in `earnest suites`.
    fn entry(&self) -> Result<Entry, CliError>;

    /// Options of this suite alone that are given; the other suites refuse them.
    fn given(&self, args: &SuiteArgs) -> Vec<&'static str>;

    /// Names of its prompts, where it has several that `--prompt` can choose.
    fn prompts(&self) -> &'static [&'static str] {
        &[]
    }

    /// The name that items of a task carry; what is typed may be shorter.
    fn task(&self, name: &str) -> Result<String, CliError> {
        Ok(name.to_owned())
    }

    /// Checks the options, as far as that is possible before a checkpoint is opened.
    fn choose(&self, args: &SuiteArgs, prompts: &Prompts) -> Result<Box<dyn Choice>, CliError>;

    /// The rules that decide under the options of a stored run; none where the options cannot be read.
    fn primary(&self, options: &Value) -> Vec<&'static str>;

    /// The suite with the options of a stored run.
    fn stored(&self, options: &Value) -> Result<Box<dyn Suite>, Unusable>;
}

/// Why a stored run's suite cannot be had again.
pub enum Unusable {
    /// Its options cannot be read: the reason alone.
    Options(String),
    /// Its data are not where they were, or not what they were.
    Data(CliError),
}

impl From<String> for Unusable {
    fn from(reason: String) -> Self {
        Unusable::Options(reason)
    }
}

/// A suite with checked options; what its items look like is settled once the prompt mode is.
pub trait Choice {
    /// The prompt mode to ask for when the user names none.
    fn default_mode(&self) -> ModeRequest {
        ModeRequest::Auto
    }

    /// The suite, with items as this prompt mode needs them and the primary rule that is usual there.
    fn suite(&self, channel: Channel) -> Result<Box<dyn Suite>, CliError>;

    /// The suite with these questions instead of its own, each a task with its operands; none where the suite can not be asked
    /// other questions.
    fn given(&self, channel: Channel, questions: &[GivenQuestion]) -> Result<Option<Box<dyn Suite>>, CliError> {
        let _ = (channel, questions);
        Ok(None)
    }

    /// The name that items of a task carry; what is typed may be shorter.
    fn task(&self, name: &str) -> Result<String, CliError> {
        Ok(name.to_owned())
    }
}

/// How questions reach a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    pub mode: Mode,
    /// An endpoint is asked, not an engine of this machine.
    pub endpoint: bool,
}

impl Channel {
    /// To an engine of this machine.
    pub fn local(mode: Mode) -> Self {
        Channel { mode, endpoint: false }
    }

    /// The primary rule: the one that is asked for, or `last` for conversations and endpoints, whose models talk around their
    /// answers, or `usual` for texts to continue, where a paper's number is reproduced.
    fn profile<P>(self, asked: Option<P>, last: P, usual: P) -> P {
        let talks = self.endpoint || self.mode == Mode::Chat;
        asked.unwrap_or(if talks { last } else { usual })
    }
}

/// The profile of this name, where one is named.
fn profile<P: DeserializeOwned>(suite: &str, args: &SuiteArgs, possible: &[&str]) -> Result<Option<P>, CliError> {
    let Some(name) = &args.profile else { return Ok(None) };
    check_profile(suite, name, possible)?;
    serde_json::from_value(Value::String(name.clone()))
        .map(Some)
        .map_err(|error| CliError::usage(format!("--profile {name}: {error}")))
}

/// Refuses a profile that is not among the possible ones.
pub fn check_profile(suite: &str, name: &str, possible: &[&str]) -> Result<(), CliError> {
    if possible.contains(&name) {
        return Ok(());
    }
    Err(CliError::usage(format!("{suite} has no profile {name}"))
        .help(format!("--profile takes {}", possible.join(", "))))
}

/// A question by its task (by the name that items carry) and operands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GivenQuestion {
    pub task: String,
    pub a: String,
    pub b: Option<String>,
}

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
    /// Items with default options; none where they depend on the user's data.
    pub items: Option<usize>,
    /// Options that select items.
    pub options: &'static [&'static str],
}

/// The names, for clap: a wrong one is answered with the possible ones.
pub fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(SUITES.map(Registered::name))
}

/// The prompts of a suite that has several.
pub fn prompts(suite: &str) -> &'static [&'static str] {
    SUITES.into_iter().find(|known| known.name() == suite).map_or(&[], Registered::prompts)
}

/// The name that items of a suite's task carry.
pub fn task(suite: &str, name: &str) -> Result<String, CliError> {
    SUITES.into_iter().find(|known| known.name() == suite).map_or_else(|| Ok(name.to_owned()), |known| known.task(name))
}

/// All suites.
pub fn entries() -> Result<Vec<Entry>, CliError> {
    SUITES.iter().map(|suite| suite.entry()).collect()
}

/// Checks a suite's options. Options that only another suite has are refused.
pub fn choose(name: &str, args: &SuiteArgs, prompts: &Prompts) -> Result<Box<dyn Choice>, CliError> {
    let Some(suite) = SUITES.into_iter().find(|suite| suite.name() == name) else {
        return Err(CliError::usage(format!("there is no suite {name}")).help("`earnest suites` lists them"));
    };
    let own = suite.given(args);
    for other in SUITES.iter().filter(|other| other.name() != name) {
        // An option that two suites share is the chosen one's own.
        if let Some(option) = other.given(args).iter().find(|option| !own.contains(option)) {
            let message = format!("{name} has no {option}: it is an option of {}", other.name());
            return Err(CliError::usage(message).help("`earnest suites` lists the options of each suite"));
        }
    }
    if let Some(unknown) = prompts.names.iter().find(|name| !suite.prompts().contains(&name.as_str())) {
        let error = CliError::usage(format!("{name} has no prompt {unknown}"));
        return Err(match suite.prompts() {
            [] => error.help("--prompt takes auto, chat or raw"),
            prompts => error.help(format!("--prompt takes auto, chat or raw, and of {}", prompts.join(", "))),
        });
    }
    suite.choose(args, prompts)
}

/// The rules that decide what is right in a run, without reading its data; none where its suite or options are not known.
pub fn primary(settings: &RunSettings) -> Vec<String> {
    let suite = SUITES.into_iter().find(|suite| suite.name() == settings.suite);
    let rules = suite.map_or_else(Vec::new, |suite| suite.primary(&settings.suite_options));
    rules.into_iter().map(str::to_owned).collect()
}

/// The suite of a stored run: the items it asked, scored by today's rules.
pub fn stored(settings: &RunSettings) -> Result<Box<dyn Suite>, CliError> {
    let Some(suite) = SUITES.into_iter().find(|suite| suite.name() == settings.suite) else {
        return Err(CliError::new(Exit::Results, format!("this earnest has no suite {}", settings.suite))
            .help("`earnest suites` lists those it has"));
    };
    let suite = suite.stored(&settings.suite_options).map_err(|unusable| {
        let reason = match unusable {
            Unusable::Data(error) => return error,
            Unusable::Options(reason) => reason,
        };
        let message = format!("the options of a run of {} cannot be read: {reason}", settings.suite);
        CliError::new(Exit::Results, message)
            .help("its data was moved or changed, or it was written by another version of earnest")
    })?;
    Ok(settings.thinking_text.of(suite))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_and_endpoints_are_read_by_their_final_answer() {
        let of = |mode, endpoint, asked| Channel { mode, endpoint }.profile(asked, "final", "strict");
        assert_eq!(of(Mode::Raw, false, None), "strict");
        assert_eq!(of(Mode::Chat, false, None), "final");
        assert_eq!(of(Mode::Raw, true, None), "final");
        assert_eq!(of(Mode::Chat, true, Some("ref")), "ref");
        assert_eq!(Channel::local(Mode::Raw).profile(Some("paper"), "final", "strict"), "paper");
    }
}
