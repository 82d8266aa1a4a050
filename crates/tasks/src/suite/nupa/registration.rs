//! Registration of the NUPA suite.
use serde_json::{Map, Value, json};

use super::generator::NupaGenerator;
use super::given;
use super::{
    Adapter, Lengths, NupaError, NupaOptions, NupaSuite, PromptStyle, QUESTIONS_VERSION, SUITE_VERSION, Scorer, TASKS,
    TaskId, ruled_tasks,
};
use crate::suite::registry::{
    BuiltIn, Card, Channel, Choice, Generator, GivenQuestion, Host, Mode, OptionError, OptionSpec, OptionValues,
};
use crate::suite::{ItemOrder, Items, LengthList, Suite, check_lengths};

const OPTIONS: [OptionSpec; 15] = [
    OptionSpec::path(
        "questions",
        "FILE",
        "Ask the questions of this file: lines of `earnest generate nupa` (task, a, b), or the authors' data set \
         (test.json); the tasks, lengths and number per length choose among them",
    )
    .under("Items")
    .excluding(&["split"]),
    OptionSpec::list(
        "tasks",
        "TASKS",
        "Only these tasks, separated by commas; `earnest suites` lists them [default: all]",
    )
    .under("Items"),
    OptionSpec::checked(
        "lengths",
        "LENGTHS",
        "Only these lengths: a number, an inclusive range, or a list of both, e.g. 5, 1..3 or 1,2,5-7; or `all`; or \
         `reference` for those that the authors test [default: all]",
        check_lengths,
    )
    .under("Items"),
    OptionSpec::integer("per-length", "N", "Items of each task at each length [default: 100]").under("Items"),
    OptionSpec::SEED,
    OptionSpec::choice(
        "split",
        "SPLIT",
        "Part of the data; parts share no question [default: test]",
        &["train", "valid", "test"],
    ),
    OptionSpec::scorer(
        "Scorer that decides what is right, of final, strict, paper and ref; all are stored [default: final for chat \
         prompts and endpoints, else strict]",
    ),
    OptionSpec::choice(
        "style",
        "STYLE",
        "Ask for the answer, or for following a rule that is given as a Python program (RF-CoT) [default: direct]",
        &["direct", "rule-following"],
    ),
    OptionSpec::integer(
        "shots",
        "N",
        "Worked examples before the question, each of another length: 0 to 8 [default: 0]",
    ),
    OptionSpec::checked(
        "budget",
        "BUDGET",
        "New tokens: generous (8 L + 32), 2xL as published (it cuts right answers), or a number [default: generous]",
        check_budget,
    ),
    OptionSpec::flag(
        "no-stop-at-newline",
        "Let raw completions go on after a line break, as the published evaluation did",
    ),
    OptionSpec::choice(
        "wording",
        "WORDING",
        "Spelling of the min question; the authors' program says `mininal` [default: corrected]",
        &["corrected", "reference"],
    ),
    OptionSpec::flag("reference", "Draw questions as the authors' program does, biases included"),
    OptionSpec::choice(
        "short-operand",
        "HOW",
        "Length of the shorter operand: at least half of the longer one's, or any [default: half]",
        &["half", "any"],
    ),
    OptionSpec::choice(
        "hard-floats",
        "HOW",
        "Decimals of the two floats of max_hard and min_hard: may differ in number, or equal [default: differ]",
        &["differ", "equal"],
    ),
];

/// Registration of the suite.
pub struct Registration;

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        Card {
            options: &OPTIONS,
            alike: &[QUESTIONS_VERSION],
            tables: &["exact_match", "digit_match", "dlength", "digits"],
            ..Card::new(
                "nupa",
                SUITE_VERSION,
                "NUPA",
                "Number Cookbook: Number Understanding of Language Models and How to Improve It (ICLR 2025)",
                "41 tasks in 53 variants on integers, floats, fractions and scientific notation of 1 to 100 digits",
            )
        }
    }

    fn tasks(&self) -> Vec<String> {
        TASKS.iter().map(|task| task.short_name()).collect()
    }

    fn items(&self) -> Option<usize> {
        NupaSuite::new(NupaOptions::default()).ok().map(|suite| suite.len())
    }

    fn task(&self, name: &str) -> Result<String, OptionError> {
        name.parse().map(|task: TaskId| task.to_string()).map_err(OptionError::from)
    }

    fn label(&self, task: &str) -> Option<String> {
        TASKS.into_iter().find(|known| known.to_string() == task).map(TaskId::short_name)
    }

    fn generator(&self) -> Option<&'static dyn Generator> {
        Some(&NupaGenerator)
    }

    fn first_look(&self, values: &OptionValues) -> Option<usize> {
        (!values.has_any(&["tasks", "lengths", "per-length", "questions"])).then_some(5_300)
    }

    fn configure(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        let mut options = options(values)?;
        if let Some(path) = values.path("questions") {
            given::read(&mut options, path, values.has("tasks"), values.has("per-length"), host)?;
            options.check()?;
        }
        Ok(Box::new(Chosen { options, scorer: values.scorer(self.card().name, &Scorer::NAMES)? }))
    }

    fn chosen(&self, options: &Value) -> Vec<String> {
        NupaOptions::from_json(options).map_or_else(|_| Vec::new(), |options| vec![options.scorer.name().to_owned()])
    }

    fn stored(&self, options: &Value, host: &dyn Host) -> Result<Suite, OptionError> {
        let mut options = NupaOptions::from_json(options).map_err(OptionError::unreadable)?;
        given::read_again(&mut options, host)?;
        Ok(Suite::new(NupaSuite::new(options).map_err(OptionError::unreadable)?))
    }
}

struct Chosen {
    options: NupaOptions,
    /// As asked for.
    scorer: Option<Scorer>,
}

impl Chosen {
    fn options(&self, channel: Channel) -> NupaOptions {
        let scorer = channel.scorer(self.scorer, Scorer::Final, Scorer::Strict);
        NupaOptions { adapter: adapter(channel.mode), scorer, ..self.options.clone() }
    }
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Suite, OptionError> {
        if channel.mode == Mode::Chat && !self.options.stop_at_newline {
            return Err(OptionError::usage(
                "the setting `no_stop_at_newline` concerns raw prompts, and these are chats, which end by themselves",
            )
            .help("leave it out, or ask with the setting `prompt = raw`"));
        }
        Ok(Suite::new(NupaSuite::new(self.options(channel))?))
    }

    fn given(&self, channel: Channel, questions: &[GivenQuestion]) -> Result<Option<Suite>, OptionError> {
        let id = |question: &GivenQuestion| match &question.b {
            Some(b) => format!("{}:{},{b}", question.task, question.a),
            None => format!("{}:{}", question.task, question.a),
        };
        let given = questions.iter().map(id).collect();
        let options = NupaOptions { given, questions: None, ..self.options(channel) };
        Ok(Some(Suite::new(NupaSuite::new(options)?)))
    }
}

/// Checks `--budget`.
fn check_budget(text: &str) -> Result<(), OptionError> {
    budget(text).map(drop)
}

/// A budget as a manifest spells it.
fn budget(text: &str) -> Result<Value, OptionError> {
    match text {
        "generous" => Ok(json!("generous")),
        "2xL" | "2xl" => Ok(json!("2xL")),
        _ => text
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_| OptionError::usage(format!("'{text}' is neither generous, 2xL nor a number of tokens"))),
    }
}

/// Options that are given, as a manifest spells them.
fn fields(values: &OptionValues) -> Result<Map<String, Value>, OptionError> {
    let mut fields = Map::new();
    for (field, option) in [
        ("split", "split"),
        ("prompt", "style"),
        ("wording", "wording"),
        ("short_operand", "short-operand"),
        ("hard_floats", "hard-floats"),
    ] {
        fields.extend(values.text(option)?.map(|text| (field.to_owned(), json!(text))));
    }
    fields.extend(values.parsed::<u64>("shots")?.map(|shots| ("shots".to_owned(), json!(shots))));
    if let Some(text) = values.text("budget")? {
        fields.insert("budget".into(), budget(text)?);
    }
    fields.insert("reference".into(), json!(values.has("reference")));
    fields.insert("stop_at_newline".into(), json!(!values.has("no-stop-at-newline")));
    Ok(fields)
}

/// Options of the suite, complete and checked but for the adapter, which depends on the checkpoint.
fn options(values: &OptionValues) -> Result<NupaOptions, OptionError> {
    let mut options = NupaOptions::from_json(&Value::Object(fields(values)?))?;
    options.order = ItemOrder::default();
    options.seed = values.seed;
    options.per_length = values.parsed("per-length")?.unwrap_or(options.per_length);
    options.lengths = lengths(values.parsed("lengths")?.as_ref());
    options.tasks = match values.list("tasks")? {
        Some(names) => tasks(&names)?,
        // Only some tasks have a rule; the others are not what `all` can mean here.
        None if options.style == PromptStyle::RuleFollowing => ruled_tasks(),
        None => options.tasks,
    };
    options.check()?;
    Ok(options)
}

/// Tasks of these names; `released` stands for those of the published data set.
///
/// # Errors
/// If there is no such task; the message names all.
pub fn tasks(names: &[impl AsRef<str>]) -> Result<Vec<TaskId>, NupaError> {
    let mut found = Vec::new();
    for name in names {
        match name.as_ref().trim() {
            "released" => found.extend(TASKS.into_iter().filter(|task| task.in_released_set())),
            name => found.push(name.parse()?),
        }
    }
    Ok(found)
}

/// Lengths of the suite as a user lists them.
pub fn lengths(lengths: Option<&LengthList>) -> Lengths {
    match lengths {
        None | Some(LengthList::All) => Lengths::All,
        Some(LengthList::Reference) => Lengths::Reference,
        Some(LengthList::Chosen(chosen)) => Lengths::Chosen(chosen.clone()),
    }
}

/// Adapter of a prompt mode.
pub fn adapter(mode: Mode) -> Adapter {
    match mode {
        Mode::Chat => Adapter::Chat,
        Mode::Raw => Adapter::Completion,
    }
}

/// Deciding scorer of prompts to an engine of this machine where none is named.
pub fn usual_scorer(mode: Mode) -> Scorer {
    Channel::local(mode).scorer(None, Scorer::Final, Scorer::Strict)
}

impl From<NupaError> for OptionError {
    fn from(error: NupaError) -> Self {
        match error {
            NupaError::Contradiction { option, problem } => {
                OptionError::usage(format!("setting `{}`: {problem}", option.replace('-', "_")))
            }
            other => OptionError::usage(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_reaches_the_suite() {
        let mut values = OptionValues::new(1, Vec::new());
        for (name, value) in [
            ("split", "valid"),
            ("style", "direct"),
            ("shots", "5"),
            ("budget", "2xL"),
            ("wording", "reference"),
            ("short-operand", "any"),
            ("hard-floats", "equal"),
        ] {
            values = values.with(name, value);
        }
        values.set("no-stop-at-newline", Vec::new());
        let found = NupaOptions::from_json(&Value::Object(fields(&values).unwrap())).unwrap().to_json();
        let defaults = NupaOptions { order: ItemOrder::One, ..NupaOptions::default() }.to_json();
        let changed = found.as_object().unwrap().iter().filter(|(name, value)| defaults[*name] != **value);
        let changed: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
        let expected = ["budget", "hard_floats", "short_operand", "shots", "split", "stop_at_newline", "wording"];
        assert_eq!(changed, expected);
        assert_eq!(options(&OptionValues::default()).unwrap(), NupaOptions::default());
    }

    #[test]
    fn budgets() {
        assert_eq!(budget("64"), Ok(json!(64)));
        assert!(check_budget("-1").is_err() && check_budget("3xL").is_err());
    }
}
