//! Registration of GSM-Symbolic and of its small companion.
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::data::{self, Questions};
use super::generator::GsmGenerator;
use super::{GsmSymbolic, Options, Prompt, Scorer, Set, Source, TrailingSpace};
use crate::suite::Suite;
use crate::suite::registry::{
    BuiltIn, Card, Channel, Choice, Generator, Host, Mode, OptionError, OptionSpec, OptionValues, Programs, RowSamples,
};

const PROMPTS: [&str; 6] = ["gsm", "simple-nl", "structured-nl", "simple-code", "structured-code", "all"];

/// Questions of a template of our own in `gsm-mini`, as many as in the published sets.
const PER_TEMPLATE: usize = 50;

const SETS: OptionSpec = OptionSpec::list(
    "sets",
    "SETS",
    "Sets of questions, separated by commas: base (the originals), main (variants), p1 and p2 (harder variants) \
     [default: base,main]",
);

const INSTANCES: OptionSpec =
    OptionSpec::integer("instances", "N", "Only the first N questions of each template in each set [default: all]");

const TEMPLATES: OptionSpec = OptionSpec::checked(
    "templates",
    "TEMPLATES",
    "Only these templates, e.g. 3 or 0-9,42 [default: all]",
    check_templates,
);

const TRAILING_SPACE: OptionSpec = OptionSpec::choice(
    "trailing-space",
    "WHAT",
    "Final space of the study's text prompts: keep it, or trim it, which suits tokenizers better [default: keep]",
    &["keep", "trim"],
);

const PYTHON: OptionSpec = OptionSpec::path(
    "python",
    "FILE",
    "Run model-written Python with this CPython 3 instead of the embedded interpreter",
);

const SCORER: OptionSpec = OptionSpec::scorer(
    "Scorer that decides what is right, of final, study, study_strict, strict and flexible; all are stored [default: final \
     for chat prompts and endpoints, else study]",
);

const SYMBOLIC: [OptionSpec; 9] = [
    OptionSpec::PROMPT,
    OptionSpec::path(
        "data",
        "PATH",
        "The questions: a folder (Apple's repository, or a snapshot of the dataset apple/GSM-Symbolic) or a file [default: \
         what EARNEST_DATA names, else the dataset in the Hugging Face cache]",
    ),
    OptionSpec::text(
        "revision",
        "COMMIT",
        "The commit of the dataset apple/GSM-Symbolic in the Hugging Face cache [default: the only one there]",
    )
    .excluding(&["data"]),
    SETS,
    INSTANCES,
    TEMPLATES,
    TRAILING_SPACE,
    PYTHON,
    SCORER,
];

const MINI: [OptionSpec; 9] = [
    OptionSpec::PROMPT,
    SETS,
    INSTANCES,
    TEMPLATES,
    OptionSpec::integer("per-template", "N", "Questions drawn from each template [default: 50]"),
    OptionSpec::SEED,
    TRAILING_SPACE,
    PYTHON,
    SCORER,
];

/// Options that choose among the questions.
pub const CHOOSING: [&str; 4] = ["sets", "instances", "templates", "per-template"];

/// Registration of the published questions.
pub struct Symbolic;

/// Registration of our own templates.
pub struct Mini;

/// Card of both.
const CARD: Card = Card {
    prompts: &PROMPTS,
    // The study sends bare text to every model.
    mode: Some(Mode::Raw),
    examples_in_text: Prompt::EXAMPLES,
    ..Card::new("", GsmSymbolic::VERSION, "GSM-Symbolic", "", "")
};

impl BuiltIn for Symbolic {
    fn card(&self) -> Card {
        Card {
            name: "gsm-symbolic",
            paper: "Being Statistically Earnest: a re-evaluation of GSM-Symbolic",
            about: "100 GSM8K questions and 5,000 variants of them (read from your files), five prompts, text and Python answers",
            options: &SYMBOLIC,
            ..CARD
        }
    }

    fn tasks(&self) -> Vec<String> {
        Prompt::ALL.iter().map(Prompt::to_string).collect()
    }

    fn samples_of_row(&self, row: &str) -> Option<RowSamples> {
        let (prompt, set) = row.split_once(' ')?;
        let is_row = self.tasks().iter().any(|task| task == prompt) && set.parse::<Set>().is_ok();
        is_row.then(|| RowSamples::part(prompt, "set", set))
    }

    fn items(&self) -> Option<usize> {
        Some(5_100)
    }

    fn generator(&self) -> Option<&'static dyn Generator> {
        Some(&GsmGenerator)
    }

    fn configure(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        configure(self.card().name, values, host, |options| {
            let location = data::locate(values.path("data"), values.text("revision")?, host)?;
            let questions = data::read(&location, &options.sets, host)?;
            options.source = Source::Files(questions.files.clone());
            Ok(Some(questions))
        })
    }

    fn chosen(&self, options: &Value) -> Vec<String> {
        chosen(options)
    }

    fn stored(&self, options: &Value, host: &dyn Host) -> Result<Suite, OptionError> {
        stored(options, host)
    }
}

impl BuiltIn for Mini {
    fn card(&self) -> Card {
        Card {
            name: "gsm-mini",
            title: "GSM-Mini",
            paper: "our own templates, in the language of GSM-Symbolic",
            about: "16 questions and 50 variants of each, without a download; prompts and scoring as gsm-symbolic",
            options: &MINI,
            ..CARD
        }
    }

    fn tasks(&self) -> Vec<String> {
        Symbolic.tasks()
    }

    fn samples_of_row(&self, row: &str) -> Option<RowSamples> {
        Symbolic.samples_of_row(row)
    }

    fn items(&self) -> Option<usize> {
        Some(16 * (1 + PER_TEMPLATE))
    }

    fn configure(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        configure(self.card().name, values, host, |options| {
            let per_template = values.parsed("per-template")?.unwrap_or(PER_TEMPLATE);
            options.source = Source::Own { per_template, seed: values.seed };
            Ok(None)
        })
    }

    fn chosen(&self, options: &Value) -> Vec<String> {
        chosen(options)
    }

    fn stored(&self, options: &Value, host: &dyn Host) -> Result<Suite, OptionError> {
        stored(options, host)
    }
}

/// Options as they were given, with the questions that `source` finds for them.
fn configure(
    suite: &str,
    values: &OptionValues,
    host: &dyn Host,
    source: impl FnOnce(&mut Options) -> Result<Option<Questions>, OptionError>,
) -> Result<Box<dyn Choice>, OptionError> {
    let mut options = Options::new(Source::Files(Vec::new()));
    if !values.prompts.is_empty() {
        options.prompts = prompts(&values.prompts)?;
    }
    if let Some(names) = values.list("sets")? {
        options.sets = names
            .iter()
            .map(|name| name.trim().parse::<Set>())
            .collect::<Result<_, _>>()
            .map_err(OptionError::usage)?;
        options.sets.sort_unstable();
        options.sets.dedup();
    }
    options.instances = values.parsed("instances")?;
    options.templates = values.parsed::<Templates>("templates")?.map(|templates| templates.0);
    if values.text("trailing-space")? == Some("trim") {
        options.trailing_space = TrailingSpace::Trim;
    }
    let python = values.path("python");
    if let (Some(python), false) = (python, options.asks_for_code()) {
        let message = format!("the setting `python = {}` runs functions, but no prompt asks for one", python.display());
        return Err(OptionError::usage(message).help("the setting `prompt = simple-code,structured-code` does"));
    }
    options.python = python.map(|python| python.display().to_string());
    let scorer = values.scorer(suite, &Scorer::NAMES)?;
    let questions = source(&mut options)?;
    options.check().map_err(OptionError::usage)?;
    Ok(Box::new(Chosen { options, scorer, questions, programs: host.programs(python) }))
}

/// Prompts of these names; `all,gsm` is all.
fn prompts(names: &[String]) -> Result<Vec<Prompt>, OptionError> {
    let mut prompts = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => prompts.extend(Prompt::ALL),
            name => prompts.push(name.parse::<Prompt>().map_err(OptionError::usage)?),
        }
    }
    prompts.sort_unstable();
    prompts.dedup();
    Ok(prompts)
}

struct Chosen {
    options: Options,
    /// As asked for.
    scorer: Option<Scorer>,
    /// None: our own templates.
    questions: Option<Questions>,
    programs: Arc<dyn Programs>,
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Suite, OptionError> {
        let scorer = channel.scorer(self.scorer, Scorer::Final, Scorer::Study);
        let options = Options { chat: channel.mode == Mode::Chat, scorer, ..self.options.clone() };
        if options.asks_for_code() {
            // Better now than after the first hour.
            self.programs.start()?;
        }
        let runner = Arc::clone(&self.programs);
        let suite = match &self.questions {
            Some(questions) => GsmSymbolic::from_rows(options, questions.rows.clone(), runner),
            None => GsmSymbolic::own(options, runner),
        };
        Ok(Suite::new(suite.map_err(OptionError::usage)?))
    }
}

fn read(options: &Value) -> Result<Options, OptionError> {
    serde_json::from_value(options.clone()).map_err(OptionError::unreadable)
}

fn chosen(options: &Value) -> Vec<String> {
    read(options).map_or_else(|_| Vec::new(), |options| vec![options.scorer.name().to_owned()])
}

fn stored(options: &Value, host: &dyn Host) -> Result<Suite, OptionError> {
    let options = read(options)?;
    let runner = host.programs(options.python.as_ref().map(PathBuf::from).as_deref());
    let suite = match &options.source {
        Source::Files(files) => {
            let rows = data::read_again(files, &options.sets, host)?;
            GsmSymbolic::from_rows(options, rows, runner)
        }
        Source::Own { .. } => GsmSymbolic::own(options, runner),
    };
    Ok(Suite::new(suite.map_err(OptionError::unreadable)?))
}

/// Numbers of templates: `3`, `0-9`, or a list of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates(pub Vec<u32>);

/// Checks `--templates`.
pub(super) fn check_templates(text: &str) -> Result<(), OptionError> {
    text.parse::<Templates>().map(drop).map_err(OptionError::usage)
}

/// Reason for a text not being [`Templates`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplatesError {
    #[error("'{0}' is neither a template's number nor a range like 0-9")]
    NotARange(String),
    #[error("{part} runs backwards: write {last}-{first}")]
    Backwards { part: String, first: u32, last: u32 },
}

/// Largest number accepted, so that a slip is an error instead of a memory problem.
const LARGEST_TEMPLATE: u32 = 9_999;

impl std::str::FromStr for Templates {
    type Err = TemplatesError;

    fn from_str(text: &str) -> Result<Self, TemplatesError> {
        let mut numbers = Vec::new();
        for part in text.split(',').map(str::trim) {
            let number = |text: &str| match text.trim().parse::<u32>() {
                Ok(number) if number <= LARGEST_TEMPLATE => Ok(number),
                _ => Err(TemplatesError::NotARange(part.to_owned())),
            };
            let (first, last) = match part.split_once("..").or_else(|| part.split_once('-')) {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(TemplatesError::Backwards { part: part.to_owned(), first, last });
            }
            numbers.extend(first..=last);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Templates(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_numbers_and_ranges() {
        let read = |text: &str| text.parse::<Templates>().map(|templates| templates.0);
        assert_eq!(read("0-2, 7,1"), Ok(vec![0, 1, 2, 7]));
        assert_eq!(read("42"), Ok(vec![42]));
        for wrong in ["", "a", "3-1", "-1", "1-", "0-4000000000", "1,,2"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
