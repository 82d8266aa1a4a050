//! `earnest reproduce`: a paper's tables beside stored runs, one module per paper.

mod arithmetic_bench;
mod compared;
pub(super) mod device;
mod dnc;
#[cfg(feature = "train")]
mod dnc_defence;
mod nupa;
#[cfg(feature = "train")]
mod nupa_section_3;
mod gsm_symbolic;
mod gsm_symbolic_args;
mod gsm_symbolic_collected;
mod gsm_symbolic_cost;
mod gsm_symbolic_fetch;
mod gsm_symbolic_fresh;
mod gsm_symbolic_runs;
mod gsm_symbolic_small;

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    #[command(subcommand)]
    pub paper: Paper,
}

#[derive(Debug, Subcommand)]
pub enum Paper {
    /// Arithmetic-Bench: Tables 4 to 6 and Figure 1
    ArithmeticBench(arithmetic_bench::ArithmeticBenchArgs),
    /// DNC: Tables 3 and 5 to 10, and Table 12 recomputed; --run --experiment trains the defence
    Dnc(Box<dnc::DncArgs>),
    /// NUPA Test: Tables 3, 7 to 10, 19, Figures 2, 5 to 8; --section 3: trained models, Tables 12 to 18
    Nupa(nupa::NupaArgs),
    /// The GSM-Symbolic re-evaluation: Tables 2 to 15, Figures 1 to 11; --run executes it
    GsmSymbolic(Box<gsm_symbolic_args::GsmSymbolicArgs>),
}

/// Compares runs with a paper.
pub fn execute(args: &ReproduceArgs, printer: Printer) -> Result<Exit, CliError> {
    match &args.paper {
        Paper::ArithmeticBench(args) => arithmetic_bench::execute(args, printer),
        Paper::Dnc(args) => dnc::execute(args, printer),
        Paper::Nupa(args) => nupa::execute(args, printer),
        Paper::GsmSymbolic(args) => gsm_symbolic::execute(args, printer),
    }
}
