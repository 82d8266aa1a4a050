//! Arguments of the commands that read or write stored results.
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use clap_complete::Shell;
use earnest_tasks::anatomy::ErrorClass;

use super::args::{ResultsArgs, SeedArgs, TableArgs};
use super::catalogue::SuiteCommand;
use super::figures::figure_file;
use super::log_args::ColumnsArgs;
use super::sandbox_args::{ConfinementArgs, StoredPythonArgs};
use super::values::Prompts;

#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RunsArgs {
    #[command(subcommand)]
    pub command: RunsCommand,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List the runs, the newest last, with status and accuracy
    List(ListArgs),
    /// Show a run: its results, and everything needed to repeat it
    Show(ShowRunArgs),
    /// Delete runs and their samples
    Delete(DeleteArgs),
    /// Check the file, every row and every score
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Intervals are those of the runs' own screens: the suite's over all samples, else robust to clusters of items."
)]
pub struct ListArgs {
    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ShowRunArgs {
    /// The run; a part of its name is enough
    #[arg(value_name = "RUN")]
    pub run: String,

    #[command(flatten)]
    pub table: TableArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The runs; a part of a name is enough
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,

    /// Delete; without this, only list what would be deleted
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub results: ResultsArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Only these runs [default: all]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,

    #[command(flatten)]
    pub confinement: ConfinementArgs,

    #[command(flatten)]
    pub python: StoredPythonArgs,

    #[command(flatten)]
    pub results: ResultsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest samples 1f2e3d4c --wrong --limit 3
  earnest samples 1f2e3d4c --task mul --reason truncated
  earnest samples 1f2e3d4c --disagree final,boundary
  earnest samples 1f2e3d4c --error carry
  earnest samples 1f2e3d4c --task add --covariate length=3 --wrong
  earnest samples 1f2e3d4c --item arithmetic-bench/1/add/003/000
  earnest samples 1f2e3d4c --json > samples.jsonl")]
pub struct SamplesArgs {
    /// The run; a part of its name is enough
    #[arg(value_name = "RUN")]
    pub run: String,

    /// Only samples that are not right: wrong answers and samples without an answer
    #[arg(long, alias = "failed", conflicts_with = "correct")]
    pub wrong: bool,

    /// Only samples that are right
    #[arg(long)]
    pub correct: bool,

    /// Only completions cut off by the token budget
    #[arg(long)]
    pub truncated: bool,

    /// Only this task (as for --item and --reason, a value that no sample has is an error)
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,

    /// Only this item
    #[arg(long, value_name = "ID")]
    pub item: Option<String>,

    /// Only samples scored wrong for this reason, e.g. wrong, empty, truncated
    #[arg(long, value_name = "REASON")]
    pub reason: Option<String>,

    /// Only samples whose completion contains this text
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub grep: Option<String>,

    /// Only samples whose question contains this text
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub question: Option<String>,

    /// Only samples with this value of a covariate, e.g. length=3 (may be given several times)
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub covariate: Vec<(String, String)>,

    /// Only samples that one of two scorers scores right and the other wrong, e.g. final,strict
    #[arg(long, value_name = "SCORER,SCORER", value_parser = two_scorers)]
    pub disagree: Option<[String; 2]>,

    /// Only wrong answers that a class of errors explains: truncated, refusal, no_number, unreduced, format, exponent, sign, operation,
    /// operand, carry, borrow, neighbour, shifted, order, dropped, repeated, zero, example, rounded, loop, mixed, kind, part, digit, digits,
    /// piece, close, short, long or other
    #[arg(long, value_name = "CLASS", conflicts_with = "correct")]
    pub error: Option<ErrorClass>,

    /// Show at most N samples [default: 10; all with --json]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Show long questions and completions in full, also on a terminal
    #[arg(long)]
    pub full: bool,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print the samples as JSON lines instead of cards
    #[arg(long)]
    pub json: bool,
}

/// A text that is no covariate with its value.
#[derive(Debug, thiserror::Error)]
#[error("give a name and its value, joined by =, e.g. length=3")]
struct NoCovariate;

/// Parses a covariate of `--covariate`.
fn name_and_value(text: &str) -> Result<(String, String), NoCovariate> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(NoCovariate),
    }
}

/// Parses the two scorers of `--disagree`.
fn two_scorers(text: &str) -> Result<[String; 2], String> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    match names[..] {
        [one, other] if !one.is_empty() && !other.is_empty() && one != other => Ok([one.to_owned(), other.to_owned()]),
        _ => Err("name two scorers, separated by a comma, e.g. final,strict".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest compare 1f2e3d4c 5b6a7988
  earnest compare lm-eval-results/model-a lm-eval-results/model-b --cluster template

The first run is the baseline; every other one is compared with it on the items that both answered. Files and folders of other \
tools' logs are compared where they lie, the logs of each model in them as one run; nothing is stored.")]
pub struct CompareArgs {
    /// The runs, the baseline first; a part of a name is enough. Or files and folders of logs of other tools
    #[arg(value_name = "RUN", num_args = 1.., required = true)]
    pub runs: Vec<String>,

    /// Compare by this scorer instead of each run's own
    #[arg(long = "scorer", alias = "primary", value_name = "NAME")]
    pub chosen: Option<String>,

    /// Field of the questions whose equal values make a cluster of items that are not independent [default: the stored
    /// clusters]
    #[arg(long, value_name = "FIELD")]
    pub cluster: Option<String>,

    /// Only this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,

    /// Draw the differences with their intervals into this file; its ending says the format: .svg, .pdf or .png
    #[arg(long, value_name = "FILE", alias = "svg", value_parser = figure_file)]
    pub figure: Option<PathBuf>,

    /// Expected answers for logs without scores (CSV, JSON lines, Parquet)
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    pub answers: Option<PathBuf>,

    /// Leave out what cannot be read, and say so
    #[arg(long, help_heading = "Logs")]
    pub keep_going: bool,

    /// List at most N items whose answer changed, for each comparison
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub flips: usize,

    /// Show every task, in the table and the figure, also of many those without a difference
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,

    #[command(flatten, next_help_heading = "Logs")]
    pub columns: ColumnsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest score 1f2e3d4c                          compares today's scores with the stored ones
  earnest score 1f2e3d4c --save --scorer final    stores a run scored by the final answer")]
pub struct ScoreArgs {
    /// The run; a part of its name is enough
    #[arg(value_name = "RUN")]
    pub run: String,

    /// List at most N samples whose score changed
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,

    /// Store the new scores as another run
    #[arg(long)]
    pub save: bool,

    /// Scorer that decides what is right, e.g. final [default: the run's own]. `final` reads the completions of another tool's log too
    #[arg(long = "scorer", aliases = ["rule", "profile", "reader"], value_name = "NAME")]
    pub chosen: Option<String>,

    #[command(flatten)]
    pub confinement: ConfinementArgs,

    #[command(flatten)]
    pub python: StoredPythonArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "earnest import <PATH>... [OPTIONS]
       earnest import <SUITE> [OPTIONS] --completions <FILE> --name <NAME>",
    after_help = "Examples:
  earnest import lm-eval-results                      logs of other tools; `earnest import PATH --help` lists the options
  earnest import arithmetic-bench --completions answers.jsonl --name my-model --lengths 1..3 --per-length 2

With a SUITE, a line of the file is {\"item\": ID, \"completion\": TEXT}, or with \"task\", \"a\" and \"b\" (the operands, as text) instead \
of \"item\". Optional: \"sample\" (0, 1, ... where an item has several completions), \"truncated\" (true if a token limit \
ended it)."
)]
pub struct ImportArgs {
    /// The completions, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub completions: PathBuf,

    /// Name of the model
    #[arg(long, value_name = "NAME")]
    pub name: String,

    /// Form of the prompts, raw (a text to continue) or chat, and which of the suite's prompts, if it has several, e.g.
    /// gsm,simple-code or all [default: raw and the suite's first]
    #[arg(long, value_name = "PROMPT", help_heading = "Items")]
    pub prompt: Option<Prompts>,

    #[command(flatten)]
    pub seed: SeedArgs,

    /// Only the first N items
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub limit: Option<usize>,

    #[command(flatten)]
    pub confinement: ConfinementArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,

    #[command(subcommand)]
    pub suite: SuiteCommand,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest merge                                    joins the parts in the results folder
  earnest merge node1/results node2/results --results all")]
pub struct MergeArgs {
    /// Other results folders whose runs are copied first
    #[arg(value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,

    #[command(flatten)]
    pub confinement: ConfinementArgs,

    #[command(flatten)]
    pub python: StoredPythonArgs,

    #[command(flatten)]
    pub results: ResultsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest completions bash > ~/.local/share/bash-completion/completions/earnest
  earnest completions zsh > ~/.zfunc/_earnest
  earnest completions fish > ~/.config/fish/completions/earnest.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest man | man -l -
  earnest man --dir ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write the pages of all commands to this folder instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
