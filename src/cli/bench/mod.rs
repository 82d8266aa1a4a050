//! `earnest bench`: measurements of the engine.

mod engine;
mod latency;
mod questions;

use earnest_eval::model::{BUILT_IN, DEFAULT_BATCH, EngineSettings, LocatedModel};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::models::{HubArgs, WeightArgs, locate, open};
use super::printer::Printer;
use earnest_engine::bench::BenchError;
use earnest_models::checkpoint::Checkpoint;

/// The model of a measurement.
#[derive(Debug, Clone, Args)]
pub struct BenchModel {
    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long = "model", value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = BUILT_IN)]
    pub path: PathBuf,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub hub: HubArgs,
}

impl BenchModel {
    /// Locates the checkpoint.
    pub(super) fn locate(&self, printer: Printer) -> Result<LocatedModel, CliError> {
        locate(&self.path, &self.hub, self.weights.into(), printer)
    }

    /// Opens the checkpoint.
    pub(super) fn open(&self, printer: Printer) -> Result<Checkpoint, CliError> {
        open(&self.locate(printer)?, printer)
    }
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure the whole engine on an evaluation's prompts: samples, prefill and decode tokens per second, memory
    Engine(engine::BenchEngineArgs),
    /// Measure seconds per sample of direct answers and rule following (RF-CoT) by batch size, beside the paper's
    Latency(latency::LatencyArgs),
}

/// Runs a benchmark.
pub fn execute(args: &BenchArgs, printer: Printer) -> Result<Exit, CliError> {
    match &args.what {
        BenchCommand::Engine(args) => engine::execute(args, printer),
        BenchCommand::Latency(args) => latency::execute(args, printer),
    }
}

/// The engine's settings with room for batches of this size.
fn with_batch(settings: EngineSettings, largest: usize) -> Result<EngineSettings, CliError> {
    match settings.max_batch {
        Some(most) if most < largest => {
            Err(CliError::usage(format!("--max-batch {most} is less than --batch {largest}"))
                .help("leave --max-batch out; it is then raised to the largest --batch"))
        }
        given => Ok(EngineSettings { max_batch: Some(given.unwrap_or(DEFAULT_BATCH).max(largest)), ..settings }),
    }
}

pub(super) fn failure(error: BenchError) -> CliError {
    match error {
        BenchError::Rejected { .. } => CliError::new(Exit::Usage, error.to_string()).help(
            "use fewer or shorter sequences (fewer new tokens, shorter --lengths), or a model with a larger context",
        ),
        BenchError::NeverTogether { .. } => CliError::new(Exit::Usage, error.to_string())
            .help("choose a smaller --batch, shorter --prompt-tokens, or more --kv-memory"),
        BenchError::InMode { error, .. } => failure(*error),
        BenchError::Stopped => CliError::new(Exit::Interrupted, error.to_string())
            .help("the measurements so far are printed; the same command measures everything again"),
        BenchError::Failed(..) | BenchError::Lost(_) | BenchError::Engine(_) => {
            CliError::new(Exit::Engine, error.to_string())
        }
    }
}
