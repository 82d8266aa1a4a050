//! `earnest-dev`: checks and measurements for the engine's developers. It has the engine and nothing else, so that it is small enough to be taken to a
//! machine with a GPU.

mod agreement;
mod assemble;
mod device;
mod failure;
mod golden;
mod kernels;
mod options;
mod output;
mod profile;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

#[derive(Debug, Parser)]
#[command(
    name = "earnest-dev",
    version,
    about = "Checks and measures earnest's engine: against definitions, recordings, itself, and a device's peaks",
    after_help = "Exit codes: 0 all within tolerance, 2 invalid command line, 3 a checkpoint cannot be used, 4 a file cannot be
written, 5 the device failed or something is beyond its tolerance, 130 interrupted."
)]
struct Command {
    #[command(subcommand)]
    what: Instrument,
}

#[derive(Debug, Subcommand)]
enum Instrument {
    /// Check single GPU kernels against their definitions
    Kernels(kernels::KernelsArgs),
    /// Compare the engine with recordings of transformers on small checkpoints
    Golden(golden::GoldenArgs),
    /// Compare the engine with itself in another configuration: on the CPU, batch-invariant, or without the prefix cache
    Agreement(agreement::AgreementArgs),
    /// Compile the GPU kernels without a GPU and print the assembler's report
    Assemble(assemble::AssembleArgs),
    /// Measure decode, prefill and an evaluation's prompts against the device's peak memory bandwidth and arithmetic
    Device(device::DeviceArgs),
    /// Measure the device time of every GPU kernel, library product and copy, by shape, against measured peaks
    Profile(Box<profile::ProfileArgs>),
}

fn main() -> ExitCode {
    // Tokenizers of folders are tried in a worker of this program.
    earnest_models::serve_if_worker();
    let ended = match Command::parse().what {
        Instrument::Kernels(args) => kernels::execute(&args),
        Instrument::Golden(args) => golden::execute(&args),
        Instrument::Agreement(args) => agreement::execute(&args),
        Instrument::Assemble(args) => assemble::execute(&args),
        Instrument::Device(args) => device::execute(&args),
        Instrument::Profile(args) => profile::execute(&args),
    };
    let exit = ended.unwrap_or_else(|failure: Failure| {
        eprintln!("error: {failure}");
        failure.exit
    });
    (exit as u8).into()
}
