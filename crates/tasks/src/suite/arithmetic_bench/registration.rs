//! Registration of Arithmetic-Bench.
use serde_json::Value;

use super::summary::WITHOUT_ONE;
use super::{ArithmeticBench, CHAT_VERSION, Ends, Lengths, Options, QUESTIONS_VERSION, Scorer, Task, VERSION};
use crate::suite::registry::{
    BuiltIn, Card, Channel, Choice, Host, Mode, OptionError, OptionSpec, OptionValues, RowSamples,
};
use crate::suite::{Items, LengthList, Suite, check_lengths};

const OPTIONS: [OptionSpec; 7] = [
    OptionSpec::list(
        "tasks",
        "TASKS",
        "Only these tasks, separated by commas; `earnest suites` lists them [default: all]",
    )
    .under("Items"),
    OptionSpec::checked(
        "lengths",
        "LENGTHS",
        "Only these lengths: a number, an inclusive range, or a list of both, e.g. 5, 1..3 or 1,2,5-7; or `all` \
         [default: all]",
        check_lengths,
    )
    .under("Items"),
    OptionSpec::integer("per-length", "N", "Items of each task at each length [default: 10]").under("Items"),
    OptionSpec::integer(
        "set",
        "1|2",
        "Item set: 1 or 2, independent draws that show how far a score varies [default: 1]",
    )
    .under("Items"),
    OptionSpec::SEED,
    OptionSpec::scorer(
        "Scorer that decides what is right, of final, boundary, compat and last_number; all are stored [default: final for \
         chat prompts and endpoints, else boundary]",
    ),
    OptionSpec::flag(
        "no-stop-at-newline",
        "Let raw completions go on after the line that holds their answer, and within the budget of conversations",
    ),
];

/// Registration of the suite.
pub struct Registration;

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        Card {
            options: &OPTIONS,
            alike: &[QUESTIONS_VERSION, CHAT_VERSION],
            ..Card::new(
                "arithmetic-bench",
                VERSION,
                "Arithmetic-Bench",
                "Arithmetic-Bench: Evaluating Multi-Step Reasoning in LLMs with Basic Arithmetic (2025)",
                "16 tasks on integers of 1 to 100 digits: how accuracy falls with the length",
            )
        }
    }

    fn tasks(&self) -> Vec<String> {
        Task::ALL.iter().map(Task::to_string).collect()
    }

    fn samples_of_row(&self, row: &str) -> Option<RowSamples> {
        let is_task = |name: &&str| Task::ALL.iter().any(|task| task.id() == *name);
        let part = |task| RowSamples::part(task, "b_is_one", "false");
        let whole = Some(row).filter(is_task).map(RowSamples::of_task);
        whole.or_else(|| row.strip_suffix(WITHOUT_ONE).filter(is_task).map(part))
    }

    fn items(&self) -> Option<usize> {
        ArithmeticBench::new(Options::default()).ok().map(|suite| suite.len())
    }

    fn first_look(&self, values: &OptionValues) -> Option<usize> {
        (!values.has_any(&["tasks", "lengths", "per-length"])).then_some(1_600)
    }

    fn configure(&self, values: &OptionValues, _: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        let scorer = values.scorer(self.card().name, &Scorer::NAMES)?;
        Ok(Box::new(Chosen { options: options(values)?, goes_on: values.has("no-stop-at-newline"), scorer }))
    }

    fn chosen(&self, options: &Value) -> Vec<String> {
        read(options).map_or_else(|_| Vec::new(), |options| vec![options.scorer.name().to_owned()])
    }

    fn stored(&self, options: &Value, _: &dyn Host) -> Result<Suite, OptionError> {
        Ok(Suite::new(ArithmeticBench::new(read(options)?).map_err(OptionError::unreadable)?))
    }
}

fn read(options: &Value) -> Result<Options, OptionError> {
    serde_json::from_value(options.clone()).map_err(OptionError::unreadable)
}

struct Chosen {
    options: Options,
    /// Raw completions go on after their answer.
    goes_on: bool,
    /// As asked for.
    scorer: Option<Scorer>,
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Suite, OptionError> {
        let scorer = channel.scorer(self.scorer, Scorer::Final, Scorer::Boundary);
        let ends = match (channel.mode, self.goes_on) {
            (Mode::Chat, true) => {
                return Err(OptionError::usage(
                    "the setting `no_stop_at_newline` concerns raw prompts, and these are chats, which end by themselves",
                )
                .help("leave it out, or ask with the setting `prompt = raw`"));
            }
            (Mode::Chat, false) | (Mode::Raw, true) => Ends::Model,
            (Mode::Raw, false) => Ends::AnswerLine,
        };
        let options = Options { ends, scorer, ..self.options.clone() };
        Ok(Suite::new(ArithmeticBench::new(options).map_err(OptionError::usage)?))
    }
}

fn options(values: &OptionValues) -> Result<Options, OptionError> {
    let mut options = Options { seed: values.seed, ..Options::default() };
    if let Some(names) = values.list("tasks")? {
        let task = |name: &&str| name.trim().parse::<Task>().map_err(OptionError::usage);
        options.tasks = names.iter().map(task).collect::<Result<_, _>>()?;
    }
    match values.parsed("lengths")? {
        None | Some(LengthList::All) => {}
        Some(LengthList::Reference) => {
            return Err(OptionError::usage(
                "the setting `lengths = reference` is for nupa; arithmetic-bench tests every length",
            ));
        }
        Some(LengthList::Chosen(lengths)) => options.lengths = Lengths::new(lengths).map_err(OptionError::usage)?,
    }
    options.per_length = values.parsed("per-length")?.unwrap_or(options.per_length);
    options.set = values.parsed("set")?.unwrap_or(options.set);
    Ok(options)
}
