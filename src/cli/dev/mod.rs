//! `earnest dev`: checks and measurements for development of the engine.

mod agreement;
mod device;
mod golden;
mod kernels;
mod profile;

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
    /// Measure decode, prefill and an evaluation's prompts against the device's peak memory bandwidth and arithmetic
    Device(device::BenchDeviceArgs),
    /// Compare the engine with recordings of transformers on small checkpoints
    Golden(golden::BenchGoldenArgs),
    /// Compare the engine with itself in another configuration: on the CPU, batch-invariant, or without the prefix cache
    Agreement(agreement::BenchAgreementArgs),
    /// Measure the device time of every GPU kernel, library product and copy, by shape, against measured peaks
    GpuProfile(Box<profile::GpuProfileArgs>),
    /// Check single GPU kernels against their definitions
    Kernels(kernels::BenchKernelsArgs),
}

/// Checks or measures.
pub fn execute(what: &DevCommand, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match what {
        DevCommand::Device(args) => device::execute(args, quiet, printer),
        DevCommand::Golden(args) => golden::execute(args, printer),
        DevCommand::Agreement(args) => agreement::execute(args, quiet, printer),
        DevCommand::GpuProfile(args) => profile::execute(args, quiet, printer),
        DevCommand::Kernels(args) => kernels::execute(args, printer),
    }
}
