//! The command line as clap reads it: no I/O, no defaults that depend on the machine.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::Exit;
use super::nupa_args::NupaArgs;
use super::result_args::{
    CompareArgs, CompletionsArgs, ImportArgs, ManArgs, MergeArgs, RunsArgs, SamplesArgs, ScoreArgs,
};
use super::values::{ByteSize, Lengths};
use crate::run::Shard;

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
  HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME
                   where `earnest doctor` looks for the Hugging Face cache
  NO_COLOR         when set to anything, messages have no colours

{}

Results go to standard output, progress and messages to standard error.",
        Exit::HELP
    )
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask a model a suite's questions, score the answers, keep every sample
    Run(RunArgs),
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
    Suites(SuitesArgs),
    /// Show the exact prompt of an item: text, token ids, BOS count, budget, expected answer
    Show(ShowArgs),
    /// Statistics on any CSV file: mixed models, tests, sample sizes
    Stats(super::stats::StatsArgs),
    /// Write questions with exact answers as JSON lines: items, or training sets
    Generate(super::generate::GenerateArgs),
    /// Up to how many digits the rule-following traces of NUPA fit a context window
    RfLengths(super::rf_lengths::RfLengthsArgs),
    /// Measure the speed of the engine on this machine
    Bench(BenchArgs),
    /// Show what this machine offers: CPU features, memory, CUDA, cache and results folders
    Doctor(DoctorArgs),
    /// Write runs as one HTML page: tables, plots, every sample, no network
    Report(ReportArgs),
    /// Write a run's samples as JSONL, CSV, Parquet or lm-eval results
    Export(ExportArgs),
    /// Hold runs against a paper's published tables and figures
    Reproduce(ReproduceArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
}

/// Which items.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Items")]
pub struct SuiteArgs {
    /// Only these tasks, separated by commas; `earnest suites` lists them [default: all]
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    pub tasks: Option<Vec<String>>,

    /// Only these lengths: a number, an inclusive range, or a list of both, e.g. 5, 1..3 or 1,2,5-7; or `all`; or
    /// `reference` for those that the authors of NUPA test [default: all]
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<Lengths>,

    /// Items of each task at each length [default: 10; nupa: 100]
    #[arg(long, value_name = "N")]
    pub per_length: Option<usize>,

    /// Item set of arithmetic-bench: 1 or 2 are independent draws, to see how far a score moves [default: 1]
    #[arg(long, value_name = "1|2")]
    pub set: Option<u8>,

    /// Seed of the items and of sampling
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub nupa: NupaArgs,
}

/// Which model.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// The checkpoint: a Hugging Face folder (config.json, safetensors, tokenizer.json) or a GGUF file
    #[arg(long, value_name = "PATH", env = "EARNEST_MODEL", hide_env_values = true)]
    pub model: PathBuf,

    /// How prompts are written: with the checkpoint's chat template, as bare text, or chat if there is a template
    #[arg(long, value_name = "MODE", value_enum, default_value_t = PromptArg::Auto)]
    pub prompt: PromptArg,
}

/// `--prompt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PromptArg {
    Auto,
    Chat,
    Raw,
}

/// `--thinking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThinkingArg {
    Auto,
    On,
    Off,
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

    /// Start from the checkpoint's own generation_config; the options above override it
    #[arg(long)]
    pub recommended: bool,

    /// Most new tokens, instead of the suite's budget
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,

    /// Use the suite's larger budget for models that think first; auto asks the chat template
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ThinkingArg::Auto)]
    pub thinking: ThinkingArg,
}

/// Limits of the engine. None of them changes an answer.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine (changes the speed, never an answer)")]
pub struct EngineArgs {
    /// Most sequences computed together [default: chosen by the engine]
    #[arg(long, value_name = "N")]
    pub max_batch: Option<usize>,

    /// Memory for keys and values, e.g. 2GiB or 512MiB [default: chosen by the engine]
    #[arg(long, value_name = "SIZE")]
    pub kv_memory: Option<ByteSize>,

    /// CPU threads; more than there are cores are not used [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Compute every prompt from its first token
    #[arg(long)]
    pub no_prefix_cache: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest run arithmetic-bench --model model.gguf --lengths 1..3 --per-length 2
  earnest run arithmetic-bench --model ./Qwen2.5-1.5B-Instruct --tasks add,mul --limit 200 --json
  earnest run arithmetic-bench --model model.gguf --recommended --samples 4 --kv-memory 2GiB
  earnest run arithmetic-bench --model model.gguf --shard 1/4     one of four parts; `earnest merge` joins them
  earnest run --from arithmetic-bench-model-1f2e3d4c              repeats a run from its manifest
  earnest run nupa --model model.gguf --tasks add_Integer,max:Float --lengths 1-20 --per-length 20
  earnest run nupa --model model.gguf --limit 1060 --metric digit_match

A run is named after its settings and the content of the model's files. The same command continues an interrupted \
run and reports a finished one.")]
pub struct RunArgs {
    /// The suite
    #[arg(value_name = "SUITE", value_parser = super::catalogue::names(), required_unless_present = "from")]
    pub suite: Option<String>,

    /// Repeat this run: its suite, options, model and generation settings, from its manifest
    #[arg(long, value_name = "RUN", conflicts_with_all = FIXED_BY_FROM)]
    pub from: Option<String>,

    /// The checkpoint: a Hugging Face folder (config.json, safetensors, tokenizer.json) or a GGUF file
    #[arg(
        long,
        value_name = "PATH",
        env = "EARNEST_MODEL",
        hide_env_values = true,
        required_unless_present = "from",
        help_heading = "Model"
    )]
    pub model: Option<PathBuf>,

    /// How prompts are written: with the checkpoint's chat template, as bare text, or chat if there is a template
    #[arg(long, value_name = "MODE", value_enum, default_value_t = PromptArg::Auto, help_heading = "Model")]
    pub prompt: PromptArg,

    #[command(flatten)]
    pub items: SuiteArgs,

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
}

/// What `--from` takes from the manifest.
const FIXED_BY_FROM: [&str; 29] = [
    "suite",
    "prompt",
    "tasks",
    "lengths",
    "per_length",
    "set",
    "seed",
    "limit",
    "samples",
    "shard",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "recommended",
    "max_tokens",
    "thinking",
    "split",
    "profile",
    "style",
    "shots",
    "budget",
    "no_stop_at_newline",
    "wording",
    "reference",
    "short_operand",
    "hard_floats",
    "new",
];

/// What `run` and `resume` share.
#[derive(Debug, Clone, Args)]
pub struct SessionArgs {
    #[command(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Write events as JSON lines to this file while the run works
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub events: Option<PathBuf>,

    /// Stop once more than this fraction of all samples failed; 0 stops at the first failure
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
    #[arg(long, value_name = "PATH", help_heading = "Model")]
    pub model: Option<PathBuf>,

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
        default_value = "earnest-results",
        help_heading = "Results"
    )]
    pub folder: PathBuf,
}

/// Which table of a suite that has several.
#[derive(Debug, Clone, Copy, Args)]
pub struct TableArgs {
    /// Which of the suite's tables to print; a finished run prints another one at once
    #[arg(long, value_name = "METRIC", value_enum, default_value_t = MetricArg::ExactMatch, help_heading = "NUPA")]
    pub metric: MetricArg,
}

/// `--metric`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MetricArg {
    ExactMatch,
    DigitMatch,
    Dlength,
    /// Up to how many digits a model copes
    Digits,
    All,
}

#[derive(Debug, Args)]
pub struct SuitesArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest show arithmetic-bench --model model.gguf
  earnest show arithmetic-bench --model model.gguf --task rev --lengths 5
  earnest show arithmetic-bench --model model.gguf --prompt raw --json
  earnest show nupa --model model.gguf --task sig_Float --shots 5")]
pub struct ShowArgs {
    /// The suite
    #[arg(value_name = "SUITE", value_parser = super::catalogue::names())]
    pub suite: String,

    #[command(flatten)]
    pub model: ModelArgs,

    /// The first item of this task
    #[arg(long, value_name = "TASK", conflicts_with = "item")]
    pub task: Option<String>,

    /// The item with this id, as `earnest samples` shows it
    #[arg(long, value_name = "ID")]
    pub item: Option<String>,

    #[command(flatten)]
    pub items: SuiteArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Prompts like an evaluation's through the whole engine: samples, prefill and decode tokens a second, memory
    Engine(BenchEngineArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Workloads:
  few-shot   64 word problems after eight worked examples (about 950 tokens, nearly all shared), 64 new tokens each
  zero-shot  128 questions on numbers with a line of instructions (about 55 tokens), 24 new tokens each
End-of-sequence tokens are ignored, so that every engine does the same work; loading is not counted; the prefix cache
is empty at the start of each repetition.

Examples:
  earnest bench engine --model model.gguf
  earnest bench engine --model model.gguf --workload zero-shot --prompts 32 --repeat 5 --json
  earnest bench engine --model model.gguf --dump prompts.json      (for benches/peers/transformers_bench.py)")]
pub struct BenchEngineArgs {
    /// The checkpoint: a Hugging Face folder (config.json, safetensors, tokenizer.json) or a GGUF file
    #[arg(long, value_name = "PATH", env = "EARNEST_MODEL", hide_env_values = true)]
    pub model: PathBuf,

    /// Only this workload [default: both]
    #[arg(long, value_name = "NAME", value_enum)]
    pub workload: Option<WorkloadArg>,

    /// Number of prompts [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub prompts: Option<u32>,

    /// Tokens to generate for each prompt [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub new_tokens: Option<u32>,

    /// Repetitions of each workload; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Write the prompts (text and token ids) to this file, for measuring other engines on them
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `--workload`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    FewShot,
    ZeroShot,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest report arithmetic-bench-SmolLM2 -o report.html
  earnest report RUN1 RUN2 -o report.html --svg figures")]
pub struct ReportArgs {
    /// The runs, by name or by a beginning of it that only one run has; differences are to the first
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,

    /// The page
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,

    /// Write every figure as a file of its own into this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,

    /// Folder for results
    #[arg(
        long,
        value_name = "DIR",
        env = "EARNEST_RESULTS",
        hide_env_values = true,
        default_value = "earnest-results"
    )]
    pub results: PathBuf,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object a line, everything that is stored
    Jsonl,
    /// One row a sample, RFC 4180
    Csv,
    /// One row a sample, gzip, the manifest in the metadata
    Parquet,
    /// Results JSON and samples in the schema of lm-evaluation-harness, in a folder
    LmEval,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest export RUN --format parquet -o samples.parquet
  earnest export RUN --format csv -o - | head
  earnest export RUN --format lm-eval -o lm-eval-results")]
pub struct ExportArgs {
    /// The run, by name or by a beginning of it that only one run has
    #[arg(value_name = "RUN")]
    pub run: String,

    /// The format
    #[arg(long, short, value_name = "FORMAT", value_enum)]
    pub format: ExportFormat,

    /// The file, - for standard output; for lm-eval a folder
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

    /// Folder for results
    #[arg(
        long,
        value_name = "DIR",
        env = "EARNEST_RESULTS",
        hide_env_values = true,
        default_value = "earnest-results"
    )]
    pub results: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce arithmetic-bench
  earnest reproduce arithmetic-bench RUN --json
  earnest reproduce arithmetic-bench --plan --model model.gguf")]
pub struct ReproduceArgs {
    /// The paper, by its suite
    #[arg(value_name = "SUITE", value_parser = ["arithmetic-bench"])]
    pub suite: String,

    /// The runs, by name or by a beginning of it that only one run has [default: all of the suite]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,

    /// Show what must be run instead: prompts, tokens, commands
    #[arg(long, conflicts_with_all = ["runs", "svg"])]
    pub plan: bool,

    /// Count the plan's prompt tokens with this checkpoint
    #[arg(long, value_name = "PATH", requires = "plan")]
    pub model: Option<PathBuf>,

    /// How that checkpoint's prompts are written
    #[arg(long, value_name = "MODE", value_enum, default_value_t = PromptArg::Auto, requires = "model")]
    pub prompt: PromptArg,

    /// Write the figures of our runs into this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,

    /// Folder for results
    #[arg(
        long,
        value_name = "DIR",
        env = "EARNEST_RESULTS",
        hide_env_values = true,
        default_value = "earnest-results"
    )]
    pub results: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
