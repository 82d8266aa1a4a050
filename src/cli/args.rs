//! The command line as clap reads it: no I/O, no defaults that depend on the machine.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::Exit;
use super::nupa_args::NupaArgs;
use super::values::{ByteSize, Lengths};

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

    /// CPU threads [default: all]
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
  earnest run nupa --model model.gguf --tasks add_Integer,max:Float --lengths 1-20 --per-length 20
  earnest run nupa --model model.gguf --limit 1060 --metric digit_match

A run is named after its settings and the content of the model's files. The same command continues an interrupted \
run and reports a finished one.")]
pub struct RunArgs {
    /// The suite
    #[arg(value_name = "SUITE", value_parser = super::catalogue::names())]
    pub suite: String,

    #[command(flatten)]
    pub model: ModelArgs,

    #[command(flatten)]
    pub items: SuiteArgs,

    /// Ask only the first N items; the suite's order goes round over tasks and lengths, so any N is balanced
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub limit: Option<usize>,

    /// Ask every item K times
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "Items")]
    pub samples: u32,

    #[command(flatten)]
    pub generation: GenerationArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Folder for results
    #[arg(
        long,
        value_name = "DIR",
        env = "EARNEST_RESULTS",
        hide_env_values = true,
        default_value = "earnest-results",
        help_heading = "Results"
    )]
    pub results: PathBuf,

    /// Repeat the run in a folder of its own instead of continuing or reporting it
    #[arg(long, help_heading = "Results")]
    pub new: bool,

    /// Print one JSON document instead of the table
    #[arg(long, help_heading = "Results")]
    pub json: bool,

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

    /// The item with this id, as in samples.jsonl
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
    /// The results folder to check
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
