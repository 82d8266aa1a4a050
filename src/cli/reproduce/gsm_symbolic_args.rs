//! Options of `earnest reproduce gsm-symbolic`.
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::compared::ComparedRuns;
use crate::cli::args::{EngineArgs, GenerationArgs, SeedArgs};
use crate::cli::catalogue;
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, WeightArgs};
use crate::cli::output::output_file;
use crate::cli::values::Prompts;
use earnest_eval::model::without_word;
use earnest_results::Shard;
use earnest_results::suites::ConfiguredSuite;
use earnest_tasks::suite::gsm_symbolic::Prompt;
use earnest_tasks::suite::registry::OptionValues;

/// Suites of the study, the published questions first.
pub(super) const SUITES: [&str; 2] = ["gsm-symbolic", "gsm-mini"];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce gsm-symbolic                                the study beside the stored runs
  earnest reproduce gsm-symbolic --tables -o study.html         Tables 2 to 15 for these runs, and the page
  earnest reproduce gsm-symbolic --with phi-2=RUN1,phi-2=RUN2   runs of any origin under one name
  earnest reproduce gsm-symbolic --plan
  earnest reproduce gsm-symbolic --plan --model model.gguf --measure   (hours on this machine)
  earnest reproduce gsm-symbolic --run --models paper --fetch --dry-run   (hours, disk and licences before anything starts)
  earnest reproduce gsm-symbolic --run --models small --fetch -o study.pdf
  earnest reproduce gsm-symbolic --run --models paper -o study.html
  earnest reproduce gsm-symbolic --run --models small --sets base,main,p1,p2
  earnest reproduce gsm-symbolic --run --models small --fresh ml-gsm-symbolic/templates/symbolic --instances 10
  earnest reproduce gsm-symbolic --run --data gsm-symbolic --with phi-2=models/phi-2,gemma-2b=models/gemma-2b
  earnest reproduce gsm-symbolic --run --suite gsm-mini --with mine=model.gguf --limit 200 --figures figures

With --run, the same command continues after an interruption at any point.")]
pub struct GsmSymbolicArgs {
    #[command(flatten)]
    pub compared: ComparedRuns,

    /// Print a plan of the runs to make instead: models, prompts, tokens, GPU hours
    #[arg(long, conflicts_with_all = ["runs", "figures", "run", "with"])]
    pub plan: bool,

    /// Run the study first: every model on the GSM prompt and, if its accuracy drops significantly, on the others; each model is
    /// loaded once
    #[arg(long, conflicts_with = "runs")]
    pub run: bool,

    /// With --run: models as NAME=MODEL, separated by commas; names as in the paper (`phi-2`), or any. Otherwise NAME=RUN joins runs of
    /// any origin under one name (FOLDER/RUN from another folder), and NAME=MODEL names the runs of the model at this path
    #[arg(long, value_name = "NAME=MODEL", value_delimiter = ',')]
    pub with: Vec<StudyModel>,

    /// Print Tables 2 to 15 beside the published values instead of a summary: for the models that were run, or for all of the paper
    #[arg(long, value_name = "MODELS", num_args = 0..=1, default_missing_value = "run", conflicts_with = "json")]
    pub tables: Option<WhichTables>,

    /// Write the study as one page too, HTML or PDF by its ending: all tables and figures with the published values beside ours. A PDF
    /// is printed by a Chromium or Chrome of this machine; EARNEST_BROWSER names another one
    #[arg(long, short, value_name = "FILE", conflicts_with = "plan", value_parser = output_file())]
    pub output: Option<PathBuf>,

    /// Suite of the runs
    #[arg(long, value_name = "SUITE", default_value = "gsm-symbolic", value_parser = SUITES)]
    pub suite: String,

    /// Prompts, separated by commas: gsm, simple-nl, structured-nl, simple-code, structured-code [default: all]
    #[arg(long, value_name = "PROMPTS", value_delimiter = ',')]
    pub prompts: Vec<Prompt>,

    /// With --run: models to evaluate: `paper` (the 20 of the study, by commit), `small` (the two files of
    /// scripts/fetch-models.sh in ./models or EARNEST_MODELS, else two of the list; they fit any machine), names of `earnest
    /// models list`, or a study file, whose models, engines, endpoints and weight formats are taken; separated by commas. Models that are
    /// not on this machine are named and left out
    #[arg(long, value_name = "MODELS", value_delimiter = ',', requires = "run")]
    pub models: Vec<String>,

    /// With --run: part of every run, e.g. 1/4; `earnest merge` joins the parts
    #[arg(long, value_name = "I/N", requires = "run", conflicts_with = "output")]
    pub shard: Option<Shard>,

    /// With --run: engine of models that no study file describes
    #[arg(long = "engine", value_name = "ENGINE", default_value = "native", value_parser = ["native", "mistralrs"], requires = "run")]
    pub engine_name: String,

    /// With --run: models to evaluate on the other four prompts: `significant`, as in the study, or `all`
    #[arg(long, value_name = "WHICH", default_value = "significant", value_parser = ["significant", "all"], requires = "run")]
    pub select: String,

    /// Model whose tokenizer counts the plan's prompt tokens
    #[arg(long, value_name = "PATH", requires = "plan")]
    pub model: Option<PathBuf>,

    /// Measure rates on this machine for the hours: with --plan that of --model (or EARNEST_MODEL), with --run those of models without
    /// earlier runs
    #[arg(long, conflicts_with = "runs")]
    pub measure: bool,

    /// With --run: print the runs with their cost, and what is missing, and stop
    #[arg(long, requires = "run")]
    pub dry_run: bool,

    /// With --run: fetch first what is missing of the questions and of the models of --models, at their commits; a model of the list
    /// without one is pinned to the hub's current commit. With --dry-run nothing is fetched
    #[arg(long, requires = "run", conflicts_with = "offline")]
    pub fetch: bool,

    /// With --run: draw fresh questions from the templates in this folder, those of `earnest generate gsm-symbolic --templates`, or from our
    /// `own`; --seed and --instances choose
    #[arg(long, value_name = "DIR", requires = "run", help_heading = "Items")]
    pub fresh: Option<PathBuf>,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub seed: SeedArgs,

    #[command(flatten)]
    pub items: StudyItems,

    /// With --run: maximum number of items per prompt
    #[arg(long, value_name = "N", requires = "run", help_heading = "Items")]
    pub limit: Option<usize>,

    #[command(flatten)]
    pub generation: GenerationArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Connect to this machine only; an endpoint must be local
    #[arg(long, help_heading = "Model")]
    pub offline: bool,

    /// Unknown key of config.json to let through, or tokenizer.ggml.pre=NAME
    #[arg(long, value_name = "KEY", help_heading = "Model")]
    pub allow_config: Vec<String>,
}

/// `--tables`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WhichTables {
    /// Models that were run
    Run,
    /// Also the paper's other models
    All,
}

/// Options of the study's suites.
#[derive(Debug, Clone)]
pub struct StudyItems(pub OptionValues);

impl Args for StudyItems {
    fn augment_args(command: Command) -> Command {
        catalogue::with_options_of(&SUITES, command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for StudyItems {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(StudyItems(catalogue::given_options_of(&SUITES, matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GsmSymbolicArgs {
    /// The suite with these options and one prompt.
    pub(super) fn choose(&self, prompt: Prompt, options: &OptionValues) -> Result<ConfiguredSuite, CliError> {
        let prompts = Prompts { mode: None, names: vec![prompt.to_string()] };
        catalogue::choose(&self.suite, options, self.seed.seed, &prompts)
    }

    /// The list of models, which EARNEST_MODELS_TOML extends: --models chooses among them here.
    pub(super) fn hub(&self) -> HubArgs {
        let models = std::env::var_os("EARNEST_MODELS_TOML").filter(|file| !file.is_empty()).map(PathBuf::from);
        HubArgs { models, offline: self.offline, allow_config: self.allow_config.clone() }
    }

    /// The prompts, in the paper's order.
    pub(super) fn chosen_prompts(&self) -> Vec<Prompt> {
        let every = Prompt::ALL.into_iter();
        every.filter(|prompt| self.prompts.is_empty() || self.prompts.contains(prompt)).collect()
    }
}

/// A model of the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyModel {
    /// Name in the tables.
    pub name: String,
    pub path: PathBuf,
}

/// `NAME=PATH`
impl std::str::FromStr for StudyModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.trim().is_empty() && !path.trim().is_empty() => {
                let model = without_word(Path::new(path.trim()));
                Ok(StudyModel { name: name.trim().to_owned(), path: model.to_owned() })
            }
            _ => Err(format!("'{text}' is not NAME=MODEL, e.g. phi-2=models/phi-2")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_names_and_paths() {
        let model: StudyModel = "phi-2=/models/a=b".parse().unwrap();
        assert_eq!((model.name.as_str(), model.path), ("phi-2", PathBuf::from("/models/a=b")));
        assert_eq!("a=built-in".parse::<StudyModel>().unwrap().path, PathBuf::from(earnest_eval::model::BUILT_IN));
        for wrong in ["phi-2", "=path", "phi-2=", ""] {
            assert!(wrong.parse::<StudyModel>().is_err(), "{wrong}");
        }
    }
}
