//! Registration of DNC.
use serde_json::Value;

use super::data::Files;
use super::{
    Data, Dnc, Kind, Mode, Numbers, Options, PromptShape, QUESTIONS_VERSION, Scorer, Split, Target, VERSION, kinds,
};
use crate::suite::Suite;
use crate::suite::registry::{
    BuiltIn, Card, Channel, Choice, Host, Mode as PromptMode, OptionError, OptionSpec, OptionValues,
};

const PROMPTS: [&str; 5] = ["answer", "equation", "equation-answer", "cot", "all"];

const OPTIONS: [OptionSpec; 15] = [
    OptionSpec::path("data", "PATH", "Folder with the questions of ASDiv-a, DROP or TAT-QA (docs/dnc.md); required"),
    OptionSpec::choice(
        "dataset",
        "NAME",
        "Which data set of the folder [default: asdiv-a]",
        &["asdiv-a", "drop-num", "tatqa-a"],
    ),
    OptionSpec::list(
        "kinds",
        "KINDS",
        "Perturbations, separated by commas: language, type, noise, distribution, verbosity, extra, logic, order, \
         language-to-digits; `all` is the first eight [default: all]",
    ),
    OptionSpec::choice(
        "mode",
        "MODE",
        "Perturbations as intended, or bit for bit as the authors' program makes them [default: fixed]",
        &["fixed", "reference"],
    ),
    OptionSpec::choices(
        "splits",
        "PARTS",
        "Parts of the data to ask, separated by commas: train, valid, test [default: test]",
        &["train", "valid", "test"],
    ),
    OptionSpec::PROMPT,
    OptionSpec::choice(
        "numbers",
        "HOW",
        "Numbers in prompts as digits (token), or as [NUM1], [NUM2] whose values the model does not see [default: token]",
        &["token", "replace"],
    ),
    OptionSpec::integer(
        "demonstrations",
        "K",
        "Worked examples from the train part before each question: 0 to 16 [default: 0]",
    ),
    OptionSpec::integer(
        "demonstration-sets",
        "N",
        "Number of independent choices of the examples, to separate an effect from chance [default: 1]",
    ),
    OptionSpec::flag("defence", "Also ask with perturbed examples: adaptation from demonstrations"),
    OptionSpec::integer("draws", "N", "Independent draws of each random perturbation of a question [default: 1]"),
    OptionSpec::path(
        "annotations",
        "FILE",
        "File of Logic and Order annotations (docs/dnc.md) [default: one in the folder]",
    ),
    OptionSpec::choice(
        "malformed",
        "WHAT",
        "Rows of the data that cannot be read: refuse to run, or skip and count them [default: refuse]",
        &["refuse", "skip"],
    ),
    OptionSpec::SEED,
    OptionSpec::scorer(
        "Scorer that decides what is right, of final and the data set's own (answer, tatqa_em, eq_equivalent); all are \
         stored [default: final for chat prompts and endpoints, else the data set's own]",
    ),
];

/// Registration of the suite.
pub struct Registration;

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        Card {
            options: &OPTIONS,
            prompts: &PROMPTS,
            alike: &[QUESTIONS_VERSION],
            ..Card::new(
                "dnc",
                VERSION,
                "DNC",
                "Towards Robust Numerical Question Answering: Diagnosing Numerical Capabilities of NLP Systems (EMNLP 2022)",
                "Eight perturbations of ASDiv-a, DROP or TAT-QA questions, attack and in-context defence, paired by question",
            )
        }
    }

    fn tasks(&self) -> Vec<String> {
        std::iter::once("original").chain(Kind::ALL.map(Kind::name)).map(str::to_owned).collect()
    }

    fn items(&self) -> Option<usize> {
        None
    }

    fn task(&self, name: &str) -> Result<String, OptionError> {
        match name {
            "original" => Ok(name.to_owned()),
            _ => name.parse().map(|kind: Kind| kind.name().to_owned()).map_err(OptionError::usage),
        }
    }

    fn configure(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        let mut options = options(values)?;
        options.check().map_err(OptionError::usage)?;
        let scorer = values.scorer(self.card().name, &options.scorers())?;
        let Some(folder) = values.path("data") else {
            return Err(OptionError::usage(
                "dnc asks questions of data that cannot be shipped: the setting `data = DIR` names their folder",
            )
            .help("docs/dnc.md tells where ASDiv-a, DROP and TAT-QA come from and describes the folder"));
        };
        let data = Files::find(&mut options, folder, values.path("annotations"), host)?;
        Ok(Box::new(Chosen { options, scorer, data }))
    }

    fn chosen(&self, options: &Value) -> Vec<String> {
        let scorers = read(options).map_or_else(|_| Vec::new(), |options| options.chosen());
        scorers.into_iter().map(str::to_owned).collect()
    }

    fn stored(&self, options: &Value, host: &dyn Host) -> Result<Suite, OptionError> {
        let options = read(options)?;
        let data = Files::again(&options, host)?;
        Ok(Suite::new(Dnc::new(options, data).map_err(OptionError::unreadable)?))
    }
}

fn read(options: &Value) -> Result<Options, OptionError> {
    serde_json::from_value(options.clone()).map_err(OptionError::unreadable)
}

struct Chosen {
    options: Options,
    /// As asked for.
    scorer: Option<Scorer>,
    data: Data,
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Suite, OptionError> {
        let answers = self.options.targets.iter().any(|target| target.has_answer());
        let last = if answers { Scorer::Final } else { Scorer::Own };
        let scorer = channel.scorer(self.scorer, last, Scorer::Own);
        let shape = match channel.mode {
            PromptMode::Chat => PromptShape::Chat,
            PromptMode::Raw => PromptShape::Raw,
        };
        let options = Options { shape, scorer, ..self.options.clone() };
        Ok(Suite::new(Dnc::new(options, self.data.clone()).map_err(OptionError::usage)?))
    }
}

fn options(values: &OptionValues) -> Result<Options, OptionError> {
    let mut options = Options { seed: values.seed, ..Options::default() };
    if let Some(name) = values.text("dataset")? {
        options.dataset = name.parse().map_err(OptionError::usage)?;
    }
    if let Some(names) = values.list("kinds")? {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        options.kinds = kinds(&names).map_err(OptionError::usage)?;
    }
    if let Some(names) = values.list("splits")? {
        options.splits = Split::ALL.into_iter().filter(|split| names.contains(&split.name())).collect();
    }
    let asked = |name: &str| values.prompts.iter().any(|prompt| prompt == name);
    if asked("all") {
        options.targets = Target::ALL.into_iter().filter(|target| target.applies_to(options.dataset)).collect();
    } else if !values.prompts.is_empty() {
        options.targets = Target::ALL.into_iter().filter(|target| asked(target.name())).collect();
    }
    if values.text("mode")? == Some("reference") {
        options.mode = Mode::Reference;
    }
    if values.text("numbers")? == Some("replace") {
        options.numbers = Numbers::Replace;
    }
    options.demonstrations = values.parsed("demonstrations")?.unwrap_or(options.demonstrations);
    options.demonstration_sets = values.parsed("demonstration-sets")?.unwrap_or(options.demonstration_sets);
    options.defence = values.has("defence");
    options.draws = values.parsed("draws")?.unwrap_or(options.draws);
    options.source.skip_malformed = values.text("malformed")? == Some("skip");
    if options.mode == Mode::Reference && u32::try_from(options.seed).is_err() {
        return Err(OptionError::usage(
            "the setting `mode = reference` seeds the generators of its day: the setting `seed` must be below 4294967296",
        ));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::dnc::Dataset;

    #[test]
    fn names_of_options_are_those_that_are_read() {
        for name in ["asdiv-a", "drop-num", "tatqa-a"] {
            assert_eq!(name.parse::<Dataset>().map(Dataset::name), Ok(name));
        }
        assert_eq!(Split::ALL.map(Split::name), ["train", "valid", "test"]);
    }
}
