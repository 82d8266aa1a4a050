//! The command line as clap reads it: no I/O, no defaults that depend on the machine.

mod device_list;
mod options;
mod run;
mod target;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Command as Definition, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::Exit;
use super::catalogue::suite_first;
use super::left_out;
use super::log_args::ImportLogsArgs;
use super::result_args::{
    CompareArgs, CompletionsArgs, ImportArgs, ManArgs, MergeArgs, RunsArgs, SamplesArgs, ScoreArgs,
};
use super::run_part::RunPartArgs;

pub use device_list::{DeviceList, device_name};
pub use options::{EngineArgs, GenerationArgs, ModelArgs, ResultsArgs, SeedArgs, TableArgs, thinking, threads};
pub use run::{ResumeArgs, RunArgs, SessionArgs};
pub use target::{TargetArgs, TrafficArgs};

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

    /// Hide progress; errors, warnings and results are still printed
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

impl Cli {
    /// Parses the arguments of this process.
    ///
    /// # Errors
    /// Clap's own error, which prints itself.
    pub fn from_arguments() -> Result<Self, clap::Error> {
        let definition = definition();
        let given: Vec<OsString> = std::env::args_os().collect();
        let words = suite_first(given.clone(), &definition);
        let matches = definition.try_get_matches_from(&words).map_err(|error| of_file(error, &given, &words))?;
        Cli::from_arg_matches(&matches)
    }
}

/// Gives an error the usage of the words that the user wrote, where a file of questions stands in the place of a suite.
fn of_file(mut error: clap::Error, given: &[OsString], words: &[OsString]) -> clap::Error {
    let Some(at) = words.windows(2).position(|pair| pair == ["task", "--file"]) else { return error };
    if let Some(file) = words.get(at + 2).filter(|_| !given.contains(&words[at + 1]))
        && error.get(ContextKind::Usage).is_some()
    {
        let command = words[..at].iter().filter(|word| !word.to_string_lossy().starts_with('-'));
        let command: Vec<_> = command.skip(1).map(|word| word.to_string_lossy()).collect();
        let usage = format!("Usage: earnest {} {} [OPTIONS]", command.join(" "), file.to_string_lossy());
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.into()));
    }
    error
}

/// The commands and their options.
pub fn definition() -> Definition {
    Cli::command().mut_subcommands(|command| match command.get_name() {
        "run" => command.mut_arg("devices", |devices| devices.hide(false)),
        "resume" => command.mut_arg("allow_python", |option| option.hide(false)),
        name => match left_out::about(name) {
            Some(about) => command.about(about),
            None => command,
        },
    })
}

fn long_help() -> String {
    format!(
        "Examples:
  earnest suites
  earnest show arithmetic-bench --model models/SmolLM2-135M-Instruct.Q4_1.gguf --task add
  earnest run arithmetic-bench --model models/SmolLM2-135M-Instruct.Q4_1.gguf --lengths 1..3 --per-length 2
  earnest runs list
  earnest samples 1f2e3d4c --wrong --limit 3
  earnest compare 1f2e3d4c 5b6a7988

Environment variables:
  EARNEST_MODEL    checkpoint, if --model is not given
  EARNEST_RESULTS  results folder, if --results is not given
  EARNEST_DEVICE   device, if --device is not given
  EARNEST_MODELS_TOML
                   list of models, if --models is not given
  EARNEST_CACHE    folder for digests of large files [default: ~/.cache/earnest]
  EARNEST_DATA     new folder of the data of stored runs, if they were moved; also the questions of
                   gsm-symbolic, if --data is not given
  EARNEST_API_KEY, OPENAI_API_KEY
                   key of an endpoint (--engine openai); sent there and stored nowhere
  EARNEST_SERVE_KEY
                   key that `earnest serve` requires of its clients
  EARNEST_BROWSER  Chromium or Chrome that prints pages as PDF, if none is in PATH
  EARNEST_MISTRALRS
                   path of the program earnest-mistralrs, if it is not in PATH
  HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME
                   location of the Hugging Face cache
  HF_TOKEN, HF_TOKEN_PATH
                   token for gated models; sent to the hub and printed nowhere
  HF_ENDPOINT      hub to use instead of https://huggingface.co
  HF_HUB_OFFLINE   1 is the same as --offline: no downloads, and only endpoints on this machine
  HTTPS_PROXY      proxy for connections to the hub
  NO_COLOR         any value turns colours in messages off
  COLUMNS          width of tables and text if standard output is not a terminal

{}

Results go to standard output, progress and messages to standard error.",
        Exit::HELP
    )
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Evaluate a model on a suite: ask its questions, score the answers, keep every sample
    Run(Box<RunArgs>),
    /// Measure up to how many digits a model can do what, in minutes, and how it fails
    Profile(Box<super::profile::ProfileArgs>),
    /// Evaluate several models on several tasks as a study file says, and compare them
    Study(Box<super::study::StudyArgs>),
    /// Continue an interrupted run from its manifest
    Resume(ResumeArgs),
    /// List, show, delete or verify the runs of a results folder
    Runs(RunsArgs),
    /// Show single samples: prompt, completion, extracted answer and the reason for its score
    Samples(SamplesArgs),
    /// Look at runs in a browser: leaderboard, samples, comparisons
    View(super::view::ViewArgs),
    /// Compare runs item by item: differences with intervals, p values, flips
    Compare(CompareArgs),
    /// Score stored completions again with the current scorers and list the changes
    Score(ScoreArgs),
    /// Store logs of other evaluation tools as runs, or score another engine's completions
    Import(ImportArgs),
    /// Store logs of other evaluation tools as runs
    #[command(hide = true)]
    ImportLogs(ImportLogsArgs),
    /// Evaluate a part of a run by settings that `run --devices` wrote
    #[command(hide = true)]
    RunPart(RunPartArgs),
    /// Merge the parts of runs started with --shard, and results of other folders
    Merge(MergeArgs),
    /// List the suites, their tasks and options
    Suites(super::suites::SuitesArgs),
    /// Write and check task files, for questions of your own
    Tasks(super::tasks::TasksArgs),
    /// Show the exact prompt of an item: text, token ids, BOS count, budget, expected answer
    Show(super::show::ShowArgs),
    /// Serve a model on this machine over OpenAI's HTTP API
    Serve(super::serve::ServeArgs),
    /// Statistics on any CSV file: mixed models, tests, sample sizes
    Stats(super::stats::StatsArgs),
    /// Write questions with exact answers as JSON lines: items or training sets
    Generate(super::generate::GenerateArgs),
    /// Perturb any set of questions: numbers as words or decimals, noise, distractors, reordering
    Perturb(super::perturb::PerturbArgs),
    /// Find the longest numbers whose NUPA rule-following traces fit a context window
    RfLengths(super::rf_lengths::RfLengthsArgs),
    /// List, fetch, verify and remove models by commit; measure the effect of quantisation
    Models(super::models::ModelsArgs),
    /// Fetch the data sets that suites ask
    Data(super::data::DataArgs),
    /// Train small number models from scratch, or adapters of checkpoints
    Train(super::train::TrainArgs),
    /// Measure the engine's speed on this machine
    Bench(super::bench::BenchArgs),
    /// Show this machine's CPU features, memory, CUDA devices, sandbox and folders
    Doctor(super::doctor::DoctorArgs),
    /// Write runs as one self-contained HTML page: tables, plots, every sample
    Report(super::report::ReportArgs),
    /// Write a run's samples as JSONL, CSV, Parquet or lm-eval results
    Export(super::export::ExportArgs),
    /// Compare runs with a paper's published tables and figures
    Reproduce(super::reproduce::ReproduceArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }
}
