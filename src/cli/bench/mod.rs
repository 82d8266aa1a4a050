//! `earnest bench`: measurements of the engine.

mod agreement;
mod device;
mod engine;
mod golden;
mod kernels;
mod latency;
mod questions;

use clap::{Args, Subcommand};

use super::Exit;
use super::args::EngineArgs;
use super::error::CliError;
use super::model::DEFAULT_BATCH;
use super::printer::Printer;
use crate::bench::BenchError;

#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Prompts like an evaluation's through the whole engine: samples, prefill and decode tokens a second, memory
    Engine(engine::BenchEngineArgs),
    /// Decoding, prefill and an evaluation's prompts as a fraction of what the device's memory and arithmetic allow
    Device(device::BenchDeviceArgs),
    /// The engine against what transformers recorded for small checkpoints
    Golden(golden::BenchGoldenArgs),
    /// The engine against the same model computed in another way: on the CPU, batch-invariantly, without the prefix cache
    Agreement(agreement::BenchAgreementArgs),
    /// Single kernels of a GPU against what they are defined to compute
    Kernels(kernels::BenchKernelsArgs),
    /// Seconds a sample of direct answers and of rule following (RF-CoT) at several batch sizes, beside the paper's
    Latency(latency::LatencyArgs),
}

/// Runs a benchmark.
pub fn execute(args: &BenchArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match &args.what {
        BenchCommand::Engine(args) => engine::execute(args, quiet, printer),
        BenchCommand::Device(args) => device::execute(args, quiet, printer),
        BenchCommand::Golden(args) => golden::execute(args, printer),
        BenchCommand::Agreement(args) => agreement::execute(args, quiet, printer),
        BenchCommand::Kernels(args) => kernels::execute(args, printer),
        BenchCommand::Latency(args) => latency::execute(args, quiet, printer),
    }
}

/// The engine's options for measurements of so many sequences at once.
fn holding(args: &EngineArgs, largest: usize) -> Result<EngineArgs, CliError> {
    match args.max_batch {
        Some(most) if most < largest => {
            Err(CliError::usage(format!("--max-batch {most} is less than --batch {largest}"))
                .help("leave --max-batch out: it is raised to the largest --batch"))
        }
        given => Ok(EngineArgs { max_batch: Some(given.unwrap_or(DEFAULT_BATCH).max(largest)), ..args.clone() }),
    }
}

fn failure(error: BenchError) -> CliError {
    match error {
        BenchError::Rejected { .. } => CliError::new(Exit::Usage, error.to_string())
            .help("ask for fewer or shorter sequences (fewer new tokens, shorter --lengths), or use a model with a larger context"),
        BenchError::NeverTogether { .. } => CliError::new(Exit::Usage, error.to_string())
            .help("choose a smaller --batch, shorter --prompt-tokens, or more --kv-memory"),
        BenchError::Failed(..) | BenchError::Lost(_) | BenchError::Engine(_) => {
            CliError::new(Exit::Engine, error.to_string())
        }
    }
}
