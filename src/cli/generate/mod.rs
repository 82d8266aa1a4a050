//! `earnest generate`: items and training sets as JSON lines. One file a suite.

mod gsm_symbolic;
mod nupa;

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;

#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    pub suite: GenerateSuite,
}

#[derive(Debug, Subcommand)]
pub enum GenerateSuite {
    /// The NUPA Test: questions, or rules with their traces, with numbers plain, reversed, padded or hinted
    Nupa(nupa::GenerateNupaArgs),
    /// Word problems from GSM-Symbolic's templates, or from our own: fresh variants with exact answers
    #[command(name = "gsm-symbolic")]
    GsmSymbolic(gsm_symbolic::GenerateGsmArgs),
}

/// Generates.
pub fn execute(args: &GenerateArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match &args.suite {
        GenerateSuite::Nupa(args) => nupa::execute(args, quiet, printer),
        GenerateSuite::GsmSymbolic(args) => gsm_symbolic::execute(args, quiet, printer),
    }
}
