//! GSM-Symbolic and its small companion at the command line.
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use super::gsm_data::{self, Questions};
use super::{Channel, Choice, Entry, Registered, Unusable, profile};
use crate::answer::gsm::{CodeOutcome, CodeRunner, Program};
use crate::cli::args::SuiteArgs;
use crate::cli::error::CliError;
use crate::cli::sandbox_args::SandboxArgs;
use crate::cli::values::Prompts;
use crate::prompt::{Mode, ModeRequest};
use crate::sandbox::Pool;
use crate::suite::Suite;
use crate::suite::gsm_symbolic::{GsmSymbolic, Options, Profile, Prompt, Set, Source, TrailingSpace};

const PROMPTS: [&str; 6] = ["gsm", "simple-nl", "structured-nl", "simple-code", "structured-code", "all"];

/// Questions of a template of our own in `gsm-mini`, as many as in the published sets.
const PER_TEMPLATE: usize = 50;

/// The published questions.
pub struct Symbolic;

/// Our own templates.
pub struct Mini;

/// Options of these suites. None of them has a default here: what is not given is the suite's own.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "GSM-Symbolic")]
pub struct GsmArgs {
    /// gsm-symbolic: the commit of the dataset apple/GSM-Symbolic in the Hugging Face cache [default: the one that is there]
    #[arg(long, value_name = "COMMIT", conflicts_with = "data")]
    pub revision: Option<String>,

    /// Sets of questions, separated by commas: base (the originals), main (variants), p1 and p2 (harder variants)
    /// [default: base,main]
    #[arg(long, value_name = "SETS", value_delimiter = ',')]
    pub sets: Option<Vec<String>>,

    /// Only the first N questions of each template in each set [default: all]
    #[arg(long, value_name = "N")]
    pub instances: Option<usize>,

    /// Only these templates, e.g. 3 or 0-9,42 [default: all]
    #[arg(long, value_name = "TEMPLATES")]
    pub templates: Option<Templates>,

    /// gsm-mini: questions drawn from each template [default: 50]
    #[arg(long, value_name = "N")]
    pub per_template: Option<usize>,

    /// The space that the study's text prompts end with: keep it, or trim it as tokenizers like it better [default: keep]
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["keep", "trim"]))]
    pub trailing_space: Option<String>,

    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

impl GsmArgs {
    /// Whether some of the questions are chosen.
    pub fn chooses(&self) -> bool {
        self.sets.is_some() || self.instances.is_some() || self.templates.is_some() || self.per_template.is_some()
    }
}

/// Numbers of templates: `3`, `0-9`, or a list of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates(pub Vec<u32>);

/// The largest number that is taken, so that a slip is an error instead of a memory problem.
const LARGEST_TEMPLATE: u32 = 9_999;

impl std::str::FromStr for Templates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut numbers = Vec::new();
        for part in text.split(',').map(str::trim) {
            let number = |text: &str| match text.trim().parse::<u32>() {
                Ok(number) if number <= LARGEST_TEMPLATE => Ok(number),
                _ => Err(format!("'{part}' is neither a template's number nor a range like 0-9")),
            };
            let (first, last) = match part.split_once("..").or_else(|| part.split_once('-')) {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(format!("{part} runs backwards: write {last}-{first}"));
            }
            numbers.extend(first..=last);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Templates(numbers))
    }
}

impl GsmArgs {
    /// The given options by name, to refuse them for another suite.
    fn given(&self, own_templates: bool) -> Vec<&'static str> {
        [
            self.sets.as_ref().map(|_| "--sets"),
            self.instances.map(|_| "--instances"),
            self.templates.as_ref().map(|_| "--templates"),
            (own_templates && self.per_template.is_some()).then_some("--per-template"),
            (!own_templates && self.revision.is_some()).then_some("--revision"),
            self.trailing_space.as_ref().map(|_| "--trailing-space"),
            self.sandbox.python.as_ref().map(|_| "--python"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Registered for Symbolic {
    fn name(&self) -> &'static str {
        "gsm-symbolic"
    }

    fn entry(&self) -> Result<Entry, CliError> {
        Ok(Entry {
            name: self.name(),
            version: GsmSymbolic::VERSION,
            paper: "Being Statistically Earnest: a re-evaluation of GSM-Symbolic",
            about: "100 GSM8K questions and 5,000 variants of them (--data), five prompts, text and Python answers",
            tasks: Prompt::ALL.iter().map(Prompt::to_string).collect(),
            items: Some(5_100),
            options: &[
                "--prompt",
                "--data",
                "--revision",
                "--sets",
                "--instances",
                "--templates",
                "--trailing-space",
                "--python",
                "--profile",
            ],
        })
    }

    fn given(&self, args: &SuiteArgs) -> Vec<&'static str> {
        let data = args.data.data.as_ref().map(|_| "--data");
        data.into_iter().chain(args.gsm.given(false)).collect()
    }

    fn prompts(&self) -> &'static [&'static str] {
        &PROMPTS
    }

    fn choose(&self, args: &SuiteArgs, prompts: &Prompts) -> Result<Box<dyn Choice>, CliError> {
        choose(self.name(), args, prompts, |options| {
            let location = gsm_data::locate(args.data.data.as_deref(), args.gsm.revision.as_deref())?;
            let questions = gsm_data::read(&location, &options.sets)?;
            options.source = Source::Files(questions.files.clone());
            Ok(Some(questions))
        })
    }

    fn primary(&self, options: &Value) -> Vec<&'static str> {
        primary(options)
    }

    fn stored(&self, options: &Value) -> Result<Box<dyn Suite>, Unusable> {
        Ok(stored(options)?)
    }
}

impl Registered for Mini {
    fn name(&self) -> &'static str {
        "gsm-mini"
    }

    fn entry(&self) -> Result<Entry, CliError> {
        Ok(Entry {
            name: self.name(),
            version: GsmSymbolic::VERSION,
            paper: "our own templates, in the language of GSM-Symbolic",
            about: "16 questions and 50 variants of each, without a download; prompts and scoring as gsm-symbolic",
            tasks: Prompt::ALL.iter().map(Prompt::to_string).collect(),
            items: Some(16 * (1 + PER_TEMPLATE)),
            options: &[
                "--prompt",
                "--sets",
                "--instances",
                "--templates",
                "--per-template",
                "--seed",
                "--trailing-space",
                "--python",
                "--profile",
            ],
        })
    }

    fn given(&self, args: &SuiteArgs) -> Vec<&'static str> {
        args.gsm.given(true)
    }

    fn prompts(&self) -> &'static [&'static str] {
        &PROMPTS
    }

    fn choose(&self, args: &SuiteArgs, prompts: &Prompts) -> Result<Box<dyn Choice>, CliError> {
        choose(self.name(), args, prompts, |options| {
            options.source =
                Source::Own { per_template: args.gsm.per_template.unwrap_or(PER_TEMPLATE), seed: args.seed };
            Ok(None)
        })
    }

    fn primary(&self, options: &Value) -> Vec<&'static str> {
        primary(options)
    }

    fn stored(&self, options: &Value) -> Result<Box<dyn Suite>, Unusable> {
        Ok(stored(options)?)
    }
}

/// Options as the command line says, with the questions that `source` finds for them.
fn choose(
    suite: &str,
    args: &SuiteArgs,
    prompts: &Prompts,
    source: impl FnOnce(&mut Options) -> Result<Option<Questions>, CliError>,
) -> Result<Box<dyn Choice>, CliError> {
    let foreign = [
        args.tasks.as_ref().map(|_| "--tasks"),
        args.lengths.as_ref().map(|_| "--lengths"),
        args.per_length.map(|_| "--per-length"),
        args.set.map(|_| "--set"),
    ];
    if let Some(option) = foreign.into_iter().flatten().next() {
        return Err(CliError::usage(format!("{suite} has no {option}"))
            .help("--prompt chooses its prompts, --sets, --instances and --templates its questions"));
    }
    let mut options = Options::new(Source::Files(Vec::new()));
    if !prompts.names.is_empty() {
        options.prompts = Vec::new();
        for name in &prompts.names {
            let named = if name == "all" { Ok(Prompt::ALL.to_vec()) } else { name.parse().map(|prompt| vec![prompt]) };
            options.prompts.extend(
                named.map_err(|error: crate::suite::gsm_symbolic::UnknownPrompt| CliError::usage(error.to_string()))?,
            );
        }
        // `all,gsm` is all.
        options.prompts.sort_unstable();
        options.prompts.dedup();
    }
    if let Some(names) = &args.gsm.sets {
        let set = |name: &String| name.trim().parse::<Set>().map_err(|error| CliError::usage(error.to_string()));
        options.sets = names.iter().map(set).collect::<Result<_, _>>()?;
        options.sets.sort_unstable();
        options.sets.dedup();
    }
    options.instances = args.gsm.instances;
    options.templates = args.gsm.templates.as_ref().map(|templates| templates.0.clone());
    if args.gsm.trailing_space.as_deref() == Some("trim") {
        options.trailing_space = TrailingSpace::Trim;
    }
    let sandbox = args.gsm.sandbox.clone();
    if let (Some(python), false) = (&sandbox.python, options.asks_for_code()) {
        let message = format!("--python {} runs functions, but no prompt asks for one", python.display());
        return Err(CliError::usage(message).help("--prompt simple-code,structured-code do"));
    }
    options.python = sandbox.python.as_ref().map(|python| python.display().to_string());
    let profile = profile(suite, args, &Profile::NAMES)?;
    let questions = source(&mut options)?;
    options.check().map_err(|error| CliError::usage(error.to_string()))?;
    Ok(Box::new(Chosen { options, profile, questions, sandbox }))
}

struct Chosen {
    options: Options,
    /// As asked for.
    profile: Option<Profile>,
    /// None: our own templates.
    questions: Option<Questions>,
    sandbox: SandboxArgs,
}

impl Choice for Chosen {
    /// The study sends bare text to every model.
    fn default_mode(&self) -> ModeRequest {
        ModeRequest::Raw
    }

    fn suite(&self, channel: Channel) -> Result<Box<dyn Suite>, CliError> {
        let profile = channel.profile(self.profile, Profile::Final, Profile::Study);
        let options = Options { chat: channel.mode == Mode::Chat, profile, ..self.options.clone() };
        let runner = Sandbox::new(self.sandbox.clone());
        if options.asks_for_code() {
            // Better now than after the first hour.
            runner.start()?;
        }
        let suite = match &self.questions {
            Some(questions) => GsmSymbolic::from_rows(options, questions.rows.clone(), Arc::new(runner)),
            None => GsmSymbolic::own(options, Arc::new(runner)),
        };
        Ok(Box::new(suite.map_err(|error| CliError::usage(error.to_string()))?))
    }
}

fn primary(options: &Value) -> Vec<&'static str> {
    serde_json::from_value(options.clone()).map_or_else(|_| Vec::new(), |options: Options| vec![options.profile.name()])
}

fn stored(options: &Value) -> Result<Box<dyn Suite>, String> {
    let options: Options = serde_json::from_value(options.clone()).map_err(|error| error.to_string())?;
    let runner = Arc::new(Sandbox::new(SandboxArgs { python: options.python.as_ref().map(PathBuf::from) }));
    let suite = match &options.source {
        Source::Files(files) => {
            let rows = gsm_data::read_again(files, &options.sets)?;
            GsmSymbolic::from_rows(options, rows, runner)
        }
        Source::Own { .. } => GsmSymbolic::own(options, runner),
    };
    Ok(Box::new(suite.map_err(|error| error.to_string())?))
}

/// The sandbox, started when the first function is to be run: most commands on stored runs run none.
struct Sandbox {
    args: SandboxArgs,
    pool: OnceLock<Result<Pool, String>>,
}

impl Sandbox {
    fn new(args: SandboxArgs) -> Self {
        Sandbox { args, pool: OnceLock::new() }
    }

    fn start(&self) -> Result<(), CliError> {
        let pool = self.args.pool()?;
        // Only a pool that was started in between would be there already.
        let _ = self.pool.set(Ok(pool));
        Ok(())
    }
}

impl CodeRunner for Sandbox {
    fn run(&self, program: &Program) -> CodeOutcome {
        match self.pool.get_or_init(|| self.args.pool().map_err(|error| error.message)) {
            Ok(pool) => CodeRunner::run(pool, program),
            Err(reason) => CodeOutcome::Unavailable(reason.clone()),
        }
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
