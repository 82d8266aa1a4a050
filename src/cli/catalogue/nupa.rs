//! The NUPA suite at the command line: what only it understands, and how that becomes the suite's options.
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value, json};

use super::{Channel, Choice, Entry, GivenQuestion, Registered, Unusable, profile};
use crate::cli::args::SuiteArgs;
use crate::cli::error::CliError;
use crate::cli::values::{Lengths, Prompts};
use crate::prompt::Mode;
use crate::suite::Suite;
use crate::suite::nupa::{
    self, Adapter, NupaError, NupaOptions, NupaSuite, Profile, PromptStyle, TASKS, TaskId, ruled_tasks,
};

const NAME: &str = "nupa";

/// The suite's place in the catalogue.
pub struct Registration;

impl Registered for Registration {
    fn name(&self) -> &'static str {
        NAME
    }

    fn entry(&self) -> Result<Entry, CliError> {
        let suite = build(NupaOptions::default())?;
        Ok(Entry {
            name: NAME,
            version: suite.version(),
            paper: "Number Cookbook: Number Understanding of Language Models and How to Improve It (ICLR 2025)",
            about: "41 tasks in 53 variants on integers, floats, fractions and scientific notation of 1 to 100 digits",
            tasks: TASKS.iter().map(|task| task.short_name()).collect(),
            items: Some(suite.len()),
            options: &[
                "--tasks",
                "--lengths",
                "--per-length",
                "--seed",
                "--split",
                "--profile",
                "--style",
                "--shots",
                "--budget",
                "--no-stop-at-newline",
                "--wording",
                "--reference",
                "--short-operand",
                "--hard-floats",
            ],
        })
    }

    fn given(&self, args: &SuiteArgs) -> Vec<&'static str> {
        args.nupa.given()
    }

    fn task(&self, name: &str) -> Result<String, CliError> {
        name.parse().map(|task: TaskId| task.to_string()).map_err(refused)
    }

    fn choose(&self, args: &SuiteArgs, _: &Prompts) -> Result<Box<dyn Choice>, CliError> {
        Ok(Box::new(Chosen { options: options(args)?, profile: profile(NAME, args, &Profile::NAMES)? }))
    }

    fn primary(&self, options: &Value) -> Vec<&'static str> {
        NupaOptions::from_json(options).map_or_else(|_| Vec::new(), |options| vec![options.profile.name()])
    }

    fn stored(&self, options: &Value) -> Result<Box<dyn Suite>, Unusable> {
        let options = NupaOptions::from_json(options).map_err(|error| error.to_string())?;
        Ok(Box::new(NupaSuite::new(options).map_err(|error| error.to_string())?))
    }
}

struct Chosen {
    options: NupaOptions,
    /// As asked for.
    profile: Option<Profile>,
}

impl Chosen {
    fn options(&self, channel: Channel) -> NupaOptions {
        let profile = channel.profile(self.profile, Profile::Final, Profile::Strict);
        NupaOptions { adapter: adapter(channel.mode), profile, ..self.options.clone() }
    }
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Box<dyn Suite>, CliError> {
        if channel.mode == Mode::Chat && !self.options.stop_at_newline {
            return Err(CliError::usage(
                "--no-stop-at-newline concerns raw prompts, and these are chats, which end by themselves",
            )
            .help("leave the option out, or ask with --prompt raw"));
        }
        Ok(Box::new(build(self.options(channel))?))
    }

    fn given(&self, channel: Channel, questions: &[GivenQuestion]) -> Result<Option<Box<dyn Suite>>, CliError> {
        let id = |question: &GivenQuestion| match &question.b {
            Some(b) => format!("{}:{},{b}", question.task, question.a),
            None => format!("{}:{}", question.task, question.a),
        };
        let given = questions.iter().map(id).collect();
        Ok(Some(Box::new(build(NupaOptions { given, ..self.options(channel) })?)))
    }

    fn task(&self, name: &str) -> Result<String, CliError> {
        Registration.task(name)
    }
}

fn build(options: NupaOptions) -> Result<NupaSuite, CliError> {
    NupaSuite::new(options).map_err(refused)
}

/// Options of the NUPA suite. None of them has a default here: what is not given is the suite's own.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "NUPA")]
pub struct NupaArgs {
    /// Part of the data; parts share no question [default: test]
    #[arg(long, value_name = "SPLIT", value_parser = PossibleValuesParser::new(["train", "valid", "test"]))]
    pub split: Option<String>,

    /// Ask for the answer, or for following a rule that is given as a Python program (RF-CoT) [default: direct]
    #[arg(long, value_name = "STYLE", value_parser = PossibleValuesParser::new(["direct", "rule-following"]))]
    pub style: Option<String>,

    /// Worked examples before the question, each of another length: 0 to 8 [default: 0]
    #[arg(long, value_name = "N")]
    pub shots: Option<u32>,

    /// New tokens: generous (8 L + 32), 2xL as published (it cuts right answers), or a number [default: generous]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,

    /// Let raw completions go on after a line break, as the published evaluation did
    #[arg(long)]
    pub no_stop_at_newline: bool,

    /// Spelling of the min question; the authors' program says `mininal` [default: corrected]
    #[arg(long, value_name = "WORDING", value_parser = PossibleValuesParser::new(["corrected", "reference"]))]
    pub wording: Option<String>,

    /// Draw questions as the authors' program does, biases included
    #[arg(long)]
    pub reference: bool,

    /// Length of the shorter operand: at least half of the longer one's, or any [default: half]
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(["half", "any"]))]
    pub short_operand: Option<String>,

    /// Decimals of the two floats of max_hard and min_hard: may differ in number, or equal [default: differ]
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(["differ", "equal"]))]
    pub hard_floats: Option<String>,
}

/// `--budget`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Budget {
    Named(&'static str),
    Tokens(u64),
}

impl std::str::FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "generous" => Ok(Budget::Named("generous")),
            "2xL" | "2xl" => Ok(Budget::Named("2xL")),
            _ => text
                .parse()
                .map(Budget::Tokens)
                .map_err(|_| format!("'{text}' is neither generous, 2xL nor a number of tokens")),
        }
    }
}

impl NupaArgs {
    /// The given options by name, to refuse them for another suite.
    pub fn given(&self) -> Vec<&'static str> {
        let text = |name, value: &Option<String>| value.is_some().then_some(name);
        [
            text("--split", &self.split),
            text("--style", &self.style),
            self.shots.map(|_| "--shots"),
            self.budget.as_ref().map(|_| "--budget"),
            self.no_stop_at_newline.then_some("--no-stop-at-newline"),
            text("--wording", &self.wording),
            self.reference.then_some("--reference"),
            text("--short-operand", &self.short_operand),
            text("--hard-floats", &self.hard_floats),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The fields that are given, as a manifest spells them.
    fn fields(&self) -> Map<String, Value> {
        let texts = [
            ("split", &self.split),
            ("prompt", &self.style),
            ("wording", &self.wording),
            ("short_operand", &self.short_operand),
            ("hard_floats", &self.hard_floats),
        ];
        let mut fields: Map<String, Value> =
            texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?)))).collect();
        if let Some(shots) = self.shots {
            fields.insert("shots".into(), json!(shots));
        }
        match &self.budget {
            Some(Budget::Named(name)) => fields.insert("budget".into(), json!(name)),
            Some(Budget::Tokens(tokens)) => fields.insert("budget".into(), json!(tokens)),
            None => None,
        };
        fields.insert("reference".into(), json!(self.reference));
        fields.insert("stop_at_newline".into(), json!(!self.no_stop_at_newline));
        fields
    }
}

/// The suite's options, complete and checked but for the adapter, which depends on the checkpoint.
pub fn options(args: &SuiteArgs) -> Result<NupaOptions, CliError> {
    let mut options = NupaOptions::from_json(&Value::Object(args.nupa.fields())).map_err(refused)?;
    options.seed = args.seed;
    options.per_length = args.per_length.unwrap_or(options.per_length);
    options.lengths = lengths(args.lengths.as_ref());
    options.tasks = match &args.tasks {
        Some(names) => tasks(names)?,
        // Only some tasks have a rule; the others are not what `all` can mean here.
        None if options.style == PromptStyle::RuleFollowing => ruled_tasks(),
        None => options.tasks,
    };
    options.check().map_err(refused)?;
    Ok(options)
}

/// The tasks of these names; `released` stands for those of the published data set.
pub fn tasks(names: &[String]) -> Result<Vec<TaskId>, CliError> {
    let mut found = Vec::new();
    for name in names {
        match name.trim() {
            "released" => found.extend(TASKS.into_iter().filter(|task| task.in_released_set())),
            name => found.push(name.parse().map_err(refused)?),
        }
    }
    Ok(found)
}

/// The suite's lengths.
pub fn lengths(lengths: Option<&Lengths>) -> nupa::Lengths {
    match lengths {
        None | Some(Lengths::All) => nupa::Lengths::All,
        Some(Lengths::Reference) => nupa::Lengths::Reference,
        Some(Lengths::Chosen(chosen)) => nupa::Lengths::Chosen(chosen.clone()),
    }
}

/// To whom the question is put in this prompt mode.
pub fn adapter(mode: Mode) -> Adapter {
    match mode {
        Mode::Chat => Adapter::Chat,
        Mode::Raw => Adapter::Completion,
    }
}

/// The primary profile of prompts to an engine of this machine where none is named.
pub fn usual_profile(mode: Mode) -> Profile {
    Channel::local(mode).profile(None, Profile::Final, Profile::Strict)
}

/// An error of the suite as one of the command line.
pub fn refused(error: NupaError) -> CliError {
    match error {
        NupaError::Contradiction { option, problem } => CliError::usage(format!("--{option}: {problem}")),
        other => CliError::usage(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_reaches_the_suite() {
        let args = NupaArgs {
            split: Some("valid".into()),
            style: Some("direct".into()),
            shots: Some(5),
            budget: Some("2xL".parse().unwrap()),
            no_stop_at_newline: true,
            wording: Some("reference".into()),
            reference: false,
            short_operand: Some("any".into()),
            hard_floats: Some("equal".into()),
        };
        let options = NupaOptions::from_json(&Value::Object(args.fields())).unwrap();
        let defaults = NupaOptions::default().to_json();
        let found = options.to_json();
        let changed = found.as_object().unwrap().iter().filter(|(name, value)| defaults[*name] != **value);
        let changed: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
        let expected = ["budget", "hard_floats", "short_operand", "shots", "split", "stop_at_newline", "wording"];
        assert_eq!(changed, expected);
        assert_eq!(args.given().len(), 8);
        assert!(NupaArgs::default().given().is_empty());
        let untouched = NupaOptions::from_json(&Value::Object(NupaArgs::default().fields())).unwrap();
        assert_eq!(untouched, NupaOptions::default());
    }

    #[test]
    fn budgets() {
        assert_eq!("64".parse(), Ok(Budget::Tokens(64)));
        assert!("-1".parse::<Budget>().is_err() && "3xL".parse::<Budget>().is_err());
    }
}
