//! The built-in suites by name. A suite is one folder (with its `mod` line) and one line of [`BUILT_IN`].

mod choice;
mod conformance;
mod generator;
mod host;
mod item_lines;
mod option;

use std::borrow::Cow;

use serde_json::Value;

pub use choice::{Channel, Choice, GivenQuestion, Mode, Takes, TemplateThinking};
pub use conformance::{ConformanceError, conforms};
pub use generator::{Generator, Lines};
pub use host::{DATA_VARIABLE, Host, HostError, NoHost, Programs, ProgramsRecord, Row, RowFile, RowSource, Rows};
pub use item_lines::ItemLines;
pub use option::{ErrorKind, OptionError, OptionKind, OptionSpec, OptionValues, check_scorer};

use crate::suite::{self, Suite};

/// All built-in suites, in the order of lists: the one line that a suite outside its folder has.
pub const BUILT_IN: &[&dyn BuiltIn] = &[
    &suite::arithmetic_bench::Registration,
    &suite::nupa::Registration,
    &suite::gsm_symbolic::Symbolic,
    &suite::gsm_symbolic::Mini,
    &suite::dnc::Registration,
    &suite::profile::Registration,
    &suite::task::Registration,
];

/// The built-in suite of this name.
pub fn find(name: &str) -> Option<&'static dyn BuiltIn> {
    BUILT_IN.iter().copied().find(|suite| suite.card().name == name)
}

/// The registration that a stored run's suite belongs to: of the suite with its name, [`suite::task`] for a task of the user's, or
/// [`suite::log`] for another tool's log.
pub fn find_stored(name: &str, options: &Value) -> Option<&'static dyn BuiltIn> {
    if options.get(suite::log::STORED_KEY).is_some() {
        return Some(&suite::log::Registration);
    }
    match options.get(suite::task::STORED_KEY) {
        Some(_) => Some(&suite::task::Registration),
        None => find(name),
    }
}

/// Facts of a suite that need no options.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    /// Name on the command line and in manifests.
    pub name: &'static str,
    /// Version of items, their order and scoring; a change that moves a score changes it.
    pub version: &'static str,
    /// Other versions that score the same items alike: they come in another order, or their completions end otherwise.
    pub alike: &'static [&'static str],
    /// Heading of its options in help texts.
    pub title: &'static str,
    /// Source.
    pub paper: &'static str,
    /// One-line description of its questions.
    pub about: &'static str,
    /// Options, in the order of help texts and lists.
    pub options: &'static [OptionSpec],
    /// Names of its prompts, where it has several that `--prompt` can choose.
    pub prompts: &'static [&'static str],
    /// Prompt mode where none is asked for; none is the checkpoint's.
    pub mode: Option<Mode>,
    /// Names of its tables, the most important one first, where it has several ([`Scoring::grids`](crate::suite::Scoring::grids)).
    pub tables: &'static [&'static str],
    /// Worked examples inside the text of its questions, which items do not carry as shots.
    pub examples_in_text: usize,
    /// True if earlier answers choose its questions: those are the ones near what a model can just do, so that the share of right answers says
    /// nothing about it.
    pub adaptive: bool,
}

impl Card {
    /// A suite without options, prompts and tables of its own.
    pub const fn new(
        name: &'static str,
        version: &'static str,
        title: &'static str,
        paper: &'static str,
        about: &'static str,
    ) -> Self {
        Card {
            name,
            version,
            alike: &[],
            title,
            paper,
            about,
            options: &[],
            prompts: &[],
            mode: None,
            tables: &[],
            examples_in_text: 0,
            adaptive: false,
        }
    }
}

/// Name of a task for people: the spelling of `earnest suites`, whatever items carry.
pub fn task_label(task: &str) -> Cow<'_, str> {
    BUILT_IN.iter().find_map(|suite| suite.label(task)).map_or(Cow::Borrowed(task), Cow::Owned)
}

/// Samples behind a row of a summary: those of a task, with a value of a covariate where the row is a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSamples {
    /// As the samples spell it.
    pub task: String,
    /// Name and value.
    pub covariate: Option<(&'static str, String)>,
}

impl RowSamples {
    /// All samples of a task.
    pub fn of_task(task: &str) -> Self {
        RowSamples { task: task.to_owned(), covariate: None }
    }

    /// The samples of a task with this value of a covariate.
    pub fn part(task: &str, covariate: &'static str, value: &str) -> Self {
        RowSamples { covariate: Some((covariate, value.to_owned())), ..RowSamples::of_task(task) }
    }
}

/// Returns the samples behind a row of the summary of a stored run; none for a row that joins several tasks. In the user's files and in logs
/// every row is a task.
pub fn samples_of_row(suite: &str, options: &Value, row: &str) -> Option<RowSamples> {
    match find_stored(suite, options) {
        Some(suite) => suite.samples_of_row(row),
        None => Some(RowSamples::of_task(row)),
    }
}

/// True for the suite of a stored run whose share of right answers says nothing, because earlier answers chose its questions.
pub fn is_adaptive(name: &str, options: &Value) -> bool {
    find_stored(name, options).is_some_and(|suite| suite.card().adaptive)
}

/// True if two versions of a suite score an item alike.
pub fn scores_alike(suite: &str, one: &str, other: &str) -> bool {
    let known = |version: &str| {
        find(suite)
            .map(|suite| suite.card())
            .is_some_and(|card| card.version == version || card.alike.contains(&version))
    };
    one == other || (known(one) && known(other))
}

/// Registration of a suite: implemented in its folder, on a type without fields.
pub trait BuiltIn: Sync {
    /// Facts that need no options.
    fn card(&self) -> Card;

    /// Names of its tasks.
    fn tasks(&self) -> Vec<String>;

    /// Number of items with default options; none where they depend on the user's data.
    fn items(&self) -> Option<usize>;

    /// Influences on the number of items, where [`BuiltIn::items`] has none.
    fn items_depend_on(&self) -> String {
        "your data".to_owned()
    }

    /// The name that items of a task carry; what is typed may be shorter.
    ///
    /// # Errors
    /// If there is no such task.
    fn task(&self, name: &str) -> Result<String, OptionError> {
        Ok(name.to_owned())
    }

    /// Name of a task for people, where its items carry a longer one.
    fn label(&self, _task: &str) -> Option<String> {
        None
    }

    /// The samples behind a row of its summary; none for a row that joins several tasks.
    fn samples_of_row(&self, row: &str) -> Option<RowSamples> {
        let tasks = self.tasks();
        let is_task = || tasks.iter().any(|task| self.task(task).is_ok_and(|task| task == row));
        (tasks.is_empty() || is_task()).then(|| RowSamples::of_task(row))
    }

    /// Writer of its questions outside of runs, for `earnest generate`.
    fn generator(&self) -> Option<&'static dyn Generator> {
        None
    }

    /// Refuses prompts that the suite does not have.
    ///
    /// # Errors
    /// One that names its prompts.
    fn check_prompts(&self, prompts: &[String]) -> Result<(), OptionError> {
        check_prompts(&self.card(), prompts)
    }

    /// Items that are a first look at the suite, a minute or two; none for all that the options select.
    fn first_look(&self, _values: &OptionValues) -> Option<usize> {
        None
    }

    /// Checks options and reads data, as far as that is possible before a checkpoint is opened.
    ///
    /// # Errors
    /// If they are impossible, or data are missing.
    fn configure(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Choice>, OptionError>;

    /// Scorers that decide under the options of a stored run; none where the options cannot be read.
    fn chosen(&self, options: &Value) -> Vec<String>;

    /// The suite with the options of a stored run, as [`Scoring::options`](crate::suite::Scoring::options) gave them.
    ///
    /// # Errors
    /// If the options cannot be read ([`ErrorKind::Unreadable`]), or data are not what they were.
    fn stored(&self, options: &Value, host: &dyn Host) -> Result<Suite, OptionError>;
}

/// Refuses prompts that the suite does not have.
///
/// # Errors
/// One that names its prompts.
pub fn check_prompts(card: &Card, prompts: &[String]) -> Result<(), OptionError> {
    let Some(unknown) = prompts.iter().find(|name| !card.prompts.contains(&name.as_str())) else { return Ok(()) };
    let error = OptionError::usage(format!("{} has no prompt {unknown}", card.name));
    Err(match card.prompts {
        [] => error.help("the setting `prompt` takes auto, chat or raw"),
        names => error.help(format!("the setting `prompt` takes auto, chat or raw, and of {}", names.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_conforms() {
        for suite in BUILT_IN {
            conforms(*suite).unwrap_or_else(|reason| panic!("{}: {reason}", suite.card().name));
        }
    }

    #[test]
    fn rows_lead_to_their_samples() {
        let of = |suite: &str, row: &str| samples_of_row(suite, &Value::Null, row);
        let part = |task, covariate, value| Some(RowSamples::part(task, covariate, value));
        for task in ["mul_1", "copy"] {
            assert_eq!(of("arithmetic-bench", task), Some(RowSamples::of_task(task)));
        }
        assert_eq!(of("arithmetic-bench", "mul_1, b > 1"), part("mul_1", "b_is_one", "false"));
        assert_eq!(of("arithmetic-bench", "nothing, b > 1"), None);
        for suite in ["gsm-mini", "gsm-symbolic"] {
            assert_eq!(of(suite, "gsm base"), part("gsm", "set", "base"));
            assert_eq!(of(suite, "structured-code p2"), part("structured-code", "set", "p2"));
            for none in ["gsm", "gsm other", "other base", "all"] {
                assert_eq!(of(suite, none), None, "{none}");
            }
        }
        assert_eq!(of("dnc", "noise"), Some(RowSamples::of_task("noise")));
        assert_eq!(of("dnc", "Number Detection"), None, "it joins several");
        assert_eq!(of("somebody's", "any, b > 1"), Some(RowSamples::of_task("any, b > 1")));
    }

    #[test]
    fn tasks_are_spelt_alike_everywhere() {
        assert_eq!(task_label("truediv_Integer_Integer_Fraction"), "truediv_Integer");
        for suite in BUILT_IN {
            for name in suite.tasks() {
                assert_eq!(task_label(&suite.task(&name).unwrap()), name, "{}", suite.card().name);
            }
        }
        assert_eq!(task_label("my_task_Integer_Integer"), "my_task_Integer_Integer");
    }

    #[test]
    fn names_are_not_taken_twice() {
        for (index, suite) in BUILT_IN.iter().enumerate() {
            let name = suite.card().name;
            assert_eq!(BUILT_IN.iter().position(|other| other.card().name == name), Some(index));
            assert_eq!(find(name).map(|found| found.card().name), Some(name));
        }
        assert!(find("nothing").is_none());
    }
}
