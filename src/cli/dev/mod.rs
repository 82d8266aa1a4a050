//! `earnest dev`: checks and measurements of the engine for those who work on it.

mod agreement;
mod device;
mod golden;
mod kernels;

use clap::{Args, Subcommand};

use super::Exit;
use super::bench::{BenchModel, failure};
use super::error::CliError;
use super::printer::Printer;

#[derive(Debug, Args)]
pub struct DevArgs {
    #[command(subcommand)]
    pub what: DevCommand,
}

#[derive(Debug, Subcommand)]
pub enum DevCommand {
    /// Decoding, prefill and an evaluation's prompts as a fraction of what the device's memory and arithmetic allow
    Device(device::BenchDeviceArgs),
    /// The engine against what transformers recorded for small checkpoints
    Golden(golden::BenchGoldenArgs),
    /// The engine against the same model computed in another way: on the CPU, batch-invariantly, without the prefix cache
    Agreement(agreement::BenchAgreementArgs),
    /// Single kernels of a GPU against what they are defined to compute
    Kernels(kernels::BenchKernelsArgs),
}

/// Checks or measures.
pub fn execute(what: &DevCommand, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match what {
        DevCommand::Device(args) => device::execute(args, quiet, printer),
        DevCommand::Golden(args) => golden::execute(args, printer),
        DevCommand::Agreement(args) => agreement::execute(args, quiet, printer),
        DevCommand::Kernels(args) => kernels::execute(args, printer),
    }
}
