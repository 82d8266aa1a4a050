//! `earnest run` and `earnest resume` as clap reads them.
use crate::cli::output::output_file;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Id};

use super::options::{EngineArgs, GenerationArgs, ResultsArgs, SeedArgs, TableArgs};
use super::target::{TargetArgs, TrafficArgs};
use crate::cli::catalogue::SuiteCommand;
use crate::cli::models::{HubArgs, WeightArgs};
use crate::cli::sandbox_args::ConfinementArgs;
use crate::cli::values::Prompts;
use earnest_results::{Shard, Until};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest run nupa                                                evaluates the model inside this program
  earnest run questions.jsonl --model model.gguf                  your own questions, or a task file (`earnest tasks new NAME`)
  earnest run arithmetic-bench --model model.gguf --lengths 1..3 --per-length 2
  earnest run arithmetic-bench --model ./Qwen2.5-1.5B-Instruct --tasks add,mul --limit 200 --json
  earnest run arithmetic-bench --model model.gguf --recommended --samples 4 --kv-memory 2GiB
  earnest run arithmetic-bench --model model.gguf --shard 1/4     one of four parts; `earnest merge` joins them
  earnest run --from arithmetic-bench-model-1f2e3d4c              repeats a run from its manifest
  earnest run nupa --model model.gguf --tasks add_Integer,max:Float --lengths 1-20 --per-length 20
  earnest run nupa --model model.gguf --limit 1060 --metric digit_match
  earnest run gsm-mini --model model.gguf --prompt all --limit 100
  earnest run gsm-symbolic --model model.gguf --data gsm-symbolic --prompt gsm,simple-code
  earnest run dnc --data DIR --model model.gguf --kinds all --limit 900
  earnest run nupa --engine openai --base-url http://127.0.0.1:8000/v1 --tokenizer ./Qwen2.5-7B-Instruct --limit 1060

A run is named after its settings and the content of the model's files. The same command continues an interrupted \
run and reports a finished one.")]
pub struct RunArgs {
    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file [default:
    /// earnest-abacus-1.4m, the model inside this program]
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, help_heading = "Model")]
    pub model: Option<PathBuf>,

    /// Prompt format: `chat` uses the checkpoint's chat template, `raw` plain text, `auto` chat if there is a template, and
    /// with `profile` whichever is best; for suites with several prompts also their names, e.g. `all` or `raw,simple-code` [default: auto]
    #[arg(long, value_name = "PROMPT", help_heading = "Model")]
    pub prompt: Option<Prompts>,

    #[command(flatten)]
    pub target: TargetArgs,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub hub: HubArgs,

    #[command(flatten)]
    pub seed: SeedArgs,

    /// Maximum number of items; the first ones are a small picture of all of them: every task, with its lengths in their proportions
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub limit: Option<usize>,

    /// Completions per item
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "Items")]
    pub samples: u32,

    /// Part of the items to run, e.g. 1/4 for the first of four; `earnest merge` joins the parts
    #[arg(long, value_name = "I/N", help_heading = "Items")]
    pub shard: Option<Shard>,

    /// Condition on which the run ends before all items are asked: 'difference to RUN decided', where RUN is a finished run of the
    /// same questions, or 'difference to RUN decided, or within 2 points'. Whole clusters of items are asked in random order
    #[arg(long, value_name = "CONDITION", conflicts_with = "shard", help_heading = "Items")]
    pub until: Option<Until>,

    #[command(flatten)]
    pub generation: GenerationArgs,

    /// Start a new run instead of continuing or reporting an earlier one
    #[arg(long, help_heading = "Results")]
    pub new: bool,

    #[command(flatten)]
    pub session: SessionArgs,

    #[command(flatten)]
    pub from: FromArgs,

    #[command(subcommand)]
    pub suite: Option<SuiteCommand>,
}

/// `--from`.
#[derive(Debug, Clone)]
pub struct FromArgs {
    pub run: Option<String>,
}

impl Args for FromArgs {
    /// Adds the option, which excludes all earlier options of the command except those that a session may change.
    fn augment_args(command: Command) -> Command {
        let session = HubArgs::augment_args(SessionArgs::augment_args(Command::new("")));
        let free = |arg: &&Arg| session.get_arguments().any(|own| own.get_id() == arg.get_id());
        // The model's files may have moved. Batch invariance is part of the run.
        let fixed = command.get_arguments().filter(|arg| !free(arg) && arg.get_id() != "model").map(Arg::get_id);
        let fixed: Vec<Id> = fixed.cloned().chain(["batch_invariant", "cuda_variant"].map(Id::from)).collect();
        command.arg(
            Arg::new("from")
                .long("from")
                .value_name("RUN")
                .help(
                    "Run to repeat: its suite, options, model and generation settings are read from its manifest. It is looked \
                     up in --results, then in the default results folder; FOLDER/RUN names another one",
                )
                .conflicts_with_all(fixed),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FromArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(FromArgs { run: matches.get_one::<String>("from").cloned() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Options of a session, shared by `run` and `resume`.
#[derive(Debug, Clone, Args)]
pub struct SessionArgs {
    #[command(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    pub traffic: TrafficArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// File to append the run's events to, as JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Results", value_parser = output_file())]
    pub events: Option<PathBuf>,

    /// Largest fraction of all samples that may fail in this session before it stops; 0 stops at the first failure. Repeating
    /// the command continues after the samples that failed for good
    #[arg(long, value_name = "FRACTION", help_heading = "Results")]
    pub fail_on_error: Option<f64>,

    #[command(flatten)]
    pub confinement: ConfinementArgs,

    /// Permit the interpreter FILE where a stored run names it (its --python): such a run may be somebody else's
    // Shown by `resume`: the help of a suite has no stored run, and no room.
    #[arg(long, value_name = "FILE", help_heading = "Model-written Python", hide = true)]
    pub allow_python: Option<PathBuf>,

    #[command(flatten)]
    pub table: TableArgs,

    /// Print one JSON document instead of the table
    #[arg(long, help_heading = "Results")]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest resume                      the only unfinished run, or the newest of them
  earnest resume 1f2e3d4c             the run with this part in its name")]
pub struct ResumeArgs {
    /// Run, by name or part of a name
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// New path of the checkpoint, if it was moved
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub hub: HubArgs,

    #[command(flatten)]
    pub session: SessionArgs,
}
