//! The command line as clap reads it: no I/O, no defaults that depend on the machine.
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{
    Arg, ArgMatches, Args, Command as Definition, CommandFactory, FromArgMatches, Id, Parser, Subcommand, ValueEnum,
};

use super::Exit;
use super::catalogue::{self, AskedSuite};
use super::dev::DevCommand;
use super::engine_choice::{PatienceArgs, TargetArgs};
use super::models::{HubArgs, WeightArgs};
use super::result_args::{
    CompareArgs, CompletionsArgs, ImportArgs, ManArgs, MergeArgs, RunsArgs, SamplesArgs, ScoreArgs,
};
use super::values::{ByteSize, Prompts};
use earnest_eval::model::DeviceChoice;
use earnest_eval::run::Shard;

/// Evaluates the numerical reasoning of open-weight language models: offline, exactly scored, with error bars.
#[derive(Debug, Parser)]
#[command(
    name = "earnest",
    version,
    propagate_version = true,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = concat!(
        "Examples:\n",
        "  earnest suites\n",
        "  earnest show arithmetic-bench --model models/SmolLM2-135M-Instruct.Q4_1.gguf --task add\n",
        "  earnest run arithmetic-bench --model models/SmolLM2-135M-Instruct.Q4_1.gguf --lengths 1..3 --per-length 2\n",
    ),
    after_long_help = long_help(),
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Show no progress; errors, warnings and results are printed
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

impl Cli {
    /// The arguments of this process.
    ///
    /// # Errors
    /// Clap's, which knows how it is printed.
    pub fn from_arguments() -> Result<Self, clap::Error> {
        Cli::from_arg_matches(&definition().try_get_matches()?)
    }
}

/// The commands and their options.
pub fn definition() -> Definition {
    // The former spelling of `dev` is read and not shown.
    let former = |bench: Definition| {
        let dev = DevCommand::augment_subcommands(Definition::new("dev"));
        dev.get_subcommands().fold(bench, |bench, moved| bench.mut_subcommand(moved.get_name(), |old| old.hide(true)))
    };
    Cli::command().mut_subcommands(|command| if command.get_name() == "bench" { former(command) } else { command })
}

fn long_help() -> String {
    format!(
        "Examples:
  earnest suites
  earnest show arithmetic-bench --model models/SmolLM2-135M-Instruct.Q4_1.gguf --task add
  earnest run arithmetic-bench --model models/SmolLM2-135M-Instruct.Q4_1.gguf --lengths 1..3 --per-length 2
  earnest runs list
  earnest samples 1f2e3d4c --failed --limit 3
  earnest compare 1f2e3d4c 5b6a7988

Environment variables:
  EARNEST_MODEL    the checkpoint, when --model is not given
  EARNEST_RESULTS  the results folder, when --results is not given
  EARNEST_MODELS_TOML
                   a list of models, when --models is not given
  EARNEST_CACHE    where digests of large files are kept [default: ~/.cache/earnest]
  EARNEST_DATA     where the data of stored runs lie now, if they were moved; also the questions of
                   gsm-symbolic, when --data is not given
  EARNEST_API_KEY, OPENAI_API_KEY
                   the key of an endpoint (--engine openai); it is sent there and written nowhere
  EARNEST_SERVE_KEY
                   the key that `earnest serve` asks of its clients
  EARNEST_MISTRALRS
                   the program earnest-mistralrs, if it is not in the PATH
  HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME
                   where the Hugging Face cache is
  HF_TOKEN, HF_TOKEN_PATH
                   a token for gated models; it is sent to the hub and printed nowhere
  HF_ENDPOINT      another hub than https://huggingface.co
  HF_HUB_OFFLINE   when 1, as --offline: nothing is fetched, and only endpoints on this machine are asked
  HTTPS_PROXY      a proxy for connections to the hub
  NO_COLOR         when set to anything, messages have no colours
  COLUMNS          the width of tables and texts where standard output is no terminal

{}

Results go to standard output, progress and messages to standard error.",
        Exit::HELP
    )
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask a model a suite's questions, score the answers, keep every sample
    Run(Box<RunArgs>),
    /// Continue an interrupted run from its manifest
    Resume(ResumeArgs),
    /// List, show, delete or verify the runs of a results folder
    Runs(RunsArgs),
    /// Read single samples: prompt, completion, what was extracted and why it was judged so
    Samples(SamplesArgs),
    /// Compare runs item by item: differences with intervals, p values, flips
    Compare(CompareArgs),
    /// Score stored completions again with today's rules and say what changed
    Score(ScoreArgs),
    /// Score completions that another engine generated and keep them as a run
    Import(ImportArgs),
    /// Join the parts of runs that were worked on with --shard, and results of other folders
    Merge(MergeArgs),
    /// List the suites, their tasks and options
    Suites(super::suites::SuitesArgs),
    /// Show the exact prompt of an item: text, token ids, BOS count, budget, expected answer
    Show(super::show::ShowArgs),
    /// Serve a model with OpenAI's protocol on this machine
    Serve(super::serve::ServeArgs),
    /// Statistics on any CSV file: mixed models, tests, sample sizes
    Stats(super::stats::StatsArgs),
    /// Write questions with exact answers as JSON lines: items, or training sets
    Generate(super::generate::GenerateArgs),
    /// Perturb any set of questions: numbers as words, with decimals, noise, distractors, another order
    Perturb(super::perturb::PerturbArgs),
    /// Up to how many digits the rule-following traces of NUPA fit a context window
    RfLengths(super::rf_lengths::RfLengthsArgs),
    /// List, fetch, verify and remove models by commit; check what quantisation does
    Models(super::models::ModelsArgs),
    /// Train small number models from scratch
    Train(super::train::TrainArgs),
    /// Measure the speed of the engine on this machine
    Bench(super::bench::BenchArgs),
    /// Check and measure the engine as its developers do
    Dev(super::dev::DevArgs),
    /// Show what this machine offers: CPU features, memory, CUDA, cache and results folders
    Doctor(super::doctor::DoctorArgs),
    /// Write runs as one HTML page: tables, plots, every sample, no network
    Report(super::report::ReportArgs),
    /// Write a run's samples as JSONL, CSV, Parquet or lm-eval results
    Export(super::export::ExportArgs),
    /// Hold runs against a paper's published tables and figures
    Reproduce(super::reproduce::ReproduceArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
}

/// `--seed`.
#[derive(Debug, Clone, Copy, Args)]
pub struct SeedArgs {
    /// Seed of the items and of sampling
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Items")]
    pub seed: u64,
}

/// Which model.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// The model: a name of `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = earnest_eval::model::BUILT_IN)]
    pub model: PathBuf,

    /// How prompts are written: `chat` with the checkpoint's chat template, `raw` as bare text, `auto` chat if there is a
    /// template; for suites with several prompts also which of them, e.g. `all` or `raw,simple-code` [default: auto]
    #[arg(long, value_name = "PROMPT")]
    pub prompt: Option<Prompts>,

    #[command(flatten)]
    pub hub: HubArgs,
}

/// `--thinking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThinkingArg {
    Auto,
    On,
    Off,
}

/// `--eos`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EosArg {
    All,
    Tokenizer,
}

/// `--thinking-text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThinkingTextArg {
    /// Only what comes after the thinking is judged
    Strip,
    /// Thinking is judged like the rest
    Keep,
}

/// How tokens are generated.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Generation")]
pub struct GenerationArgs {
    /// Sampling temperature; 0 is greedy, which makes runs comparable [default: 0]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub temperature: Option<f32>,

    /// Sample from the K most probable tokens; 0 is all [default: 0]
    #[arg(long, value_name = "K")]
    pub top_k: Option<usize>,

    /// Sample from the most probable tokens that together reach P [default: 1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub top_p: Option<f32>,

    /// Drop tokens less probable than this fraction of the most probable one [default: 0]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub min_p: Option<f32>,

    /// Divide the logits of tokens seen before; 1 changes nothing [default: 1]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub repetition_penalty: Option<f32>,

    /// Start from what the list of models recommends (`earnest models show NAME`), and where it says nothing from the checkpoint's
    /// generation_config; the options above override it
    #[arg(long)]
    pub recommended: bool,

    /// Most new tokens, instead of the suite's budget
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,

    /// Which tokens end a completion: all that the checkpoint names, or the tokenizer's own end-of-sequence token alone, as the
    /// GSM-Symbolic study did (models that end turns with another token then run on) [default: all]
    #[arg(long, value_name = "WHICH", value_enum)]
    pub eos: Option<EosArg>,

    /// Use the suite's larger budget for models that think first, and set the chat template's switch (enable_thinking) where it
    /// has one; auto leaves the switch alone and asks the template for the budget
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ThinkingArg::Auto)]
    pub thinking: ThinkingArg,

    /// Whether answers are looked for in the thinking too
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ThinkingTextArg::Strip)]
    pub thinking_text: ThinkingTextArg,
}

/// Limits of the engine, of which none changes an answer, and where it computes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Engine")]
pub struct EngineArgs {
    /// Most sequences computed together [default: chosen by the engine]
    #[arg(long, value_name = "N")]
    pub max_batch: Option<usize>,

    /// Memory for keys and values, e.g. 2GiB or 512MiB [default: chosen by the engine]
    #[arg(long, value_name = "SIZE")]
    pub kv_memory: Option<ByteSize>,

    /// CPU threads; more than there are cores are not used [default: all cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    /// Compute every prompt from its first token
    #[arg(long)]
    pub no_prefix_cache: bool,

    /// Where the native engine computes: auto (a GPU that is ready, else the CPU), cpu, cuda or cuda:N. Part of a run's settings: the
    /// two round differently [default: auto]
    #[arg(long, value_name = "DEVICE", env = "EARNEST_DEVICE", hide_env_values = true, value_parser = str::parse::<DeviceChoice>)]
    pub device: Option<DeviceChoice>,

    /// On a GPU, compute so that a request's bits do not depend on its batch; on the CPU they never do. Part of a run's settings
    #[arg(long)]
    pub batch_invariant: bool,

    /// Several GPUs for one model: not offered, start one program a GPU with --shard
    #[arg(long, value_name = "N,N", hide = true)]
    pub devices: Option<String>,
}

/// `--threads`: at least one.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a step needs at least 1 thread; leave it out for all cores".to_owned()),
        Ok(threads) => Ok(threads),
        Err(_) => Err(format!("{text} is no number of threads")),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest run nupa                                                asks the model inside this program
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
    /// The model: a name of `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file [default:
    /// earnest-abacus-1m, the model inside this program]
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, help_heading = "Model")]
    pub model: Option<PathBuf>,

    /// How prompts are written: `chat` with the checkpoint's chat template, `raw` as bare text, `auto` chat if there is a
    /// template; for suites with several prompts also which of them, e.g. `all` or `raw,simple-code` [default: auto]
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

    /// Ask only the first N items; the suite's order goes round over tasks and lengths, so any N is balanced
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub limit: Option<usize>,

    /// Ask every item K times
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "Items")]
    pub samples: u32,

    /// Work on one of N parts of the items only, e.g. 1/4; `earnest merge` joins the parts
    #[arg(long, value_name = "I/N", help_heading = "Items")]
    pub shard: Option<Shard>,

    #[command(flatten)]
    pub generation: GenerationArgs,

    /// Repeat the run instead of continuing or reporting it
    #[arg(long, help_heading = "Results")]
    pub new: bool,

    #[command(flatten)]
    pub session: SessionArgs,

    #[command(flatten)]
    pub from: FromArgs,

    #[command(subcommand)]
    pub suite: Option<AskedSuite>,
}

/// `--from`.
#[derive(Debug, Clone)]
pub struct FromArgs {
    pub run: Option<String>,
}

impl Args for FromArgs {
    /// Adds the option, which excludes all that the command has already but what a session may change.
    fn augment_args(command: Definition) -> Definition {
        let session = HubArgs::augment_args(SessionArgs::augment_args(Definition::new("")));
        let free = |arg: &&Arg| session.get_arguments().any(|own| own.get_id() == arg.get_id());
        // The model's files may have moved. That a GPU keeps requests apart is part of the run.
        let fixed = command.get_arguments().filter(|arg| !free(arg) && arg.get_id() != "model").map(Arg::get_id);
        let fixed: Vec<Id> = fixed.cloned().chain(["batch_invariant".into()]).collect();
        command.arg(
            Arg::new("from")
                .long("from")
                .value_name("RUN")
                .help(
                    "Repeat this run: its suite, options, model and generation settings, from its manifest. It is looked for \
                     in --results, then in the usual results folder; FOLDER/RUN names another one",
                )
                .conflicts_with_all(fixed),
        )
    }

    fn augment_args_for_update(command: Definition) -> Definition {
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

/// What `run` and `resume` share.
#[derive(Debug, Clone, Args)]
pub struct SessionArgs {
    #[command(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    pub patience: PatienceArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Add events as JSON lines to this file while the run works
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub events: Option<PathBuf>,

    /// Stop once more samples failed in this session than this fraction of all; 0 stops at the first failure. Repeating the command
    /// goes on behind the samples that failed for good
    #[arg(long, value_name = "FRACTION", help_heading = "Results")]
    pub fail_on_error: Option<f64>,

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
    /// The run; a part of its name is enough
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Where the checkpoint lies now, if it was moved
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub hub: HubArgs,

    #[command(flatten)]
    pub session: SessionArgs,
}

/// Where results are.
#[derive(Debug, Clone, Args)]
pub struct ResultsArgs {
    /// Folder of results
    #[arg(
        long = "results",
        value_name = "DIR",
        env = "EARNEST_RESULTS",
        hide_env_values = true,
        default_value = USUAL_RESULTS,
        help_heading = "Results"
    )]
    pub folder: PathBuf,
}

impl ResultsArgs {
    /// The folder where nothing else is said: EARNEST_RESULTS, or the default.
    pub fn usual() -> Self {
        let folder = std::env::var_os("EARNEST_RESULTS").filter(|value| !value.is_empty());
        ResultsArgs { folder: folder.map_or_else(|| USUAL_RESULTS.into(), PathBuf::from) }
    }
}

/// The results folder where none is named.
const USUAL_RESULTS: &str = "earnest-results";

/// Which table of a suite that has several.
#[derive(Debug, Clone, Default, Args)]
pub struct TableArgs {
    /// Which of the suite's tables to print, where it has several, or `all`; a finished run prints another one at once
    /// [default: the first]
    #[arg(long, value_name = "METRIC", value_parser = tables(), help_heading = "Results")]
    pub metric: Option<String>,
}

/// Names of tables.
fn tables() -> PossibleValuesParser {
    PossibleValuesParser::new(catalogue::tables().into_iter().chain(["all"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }
}
