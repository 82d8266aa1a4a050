//! `earnest stats`: statistics on any CSV file, and on stored runs.

mod columns;
mod compare;
mod glmm;
mod holm;
mod ks;
mod model;
mod number_format;
mod power;
mod run_columns;
mod source;

use std::io::Write;

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;

pub use compare::CompareArgs;
pub use glmm::GlmmArgs;
pub use holm::HolmArgs;
pub use ks::KsArgs;
pub use power::PowerArgs;

/// Arguments of `earnest stats`.
#[derive(Debug, Clone, Args)]
pub struct StatsArgs {
    #[command(subcommand)]
    command: StatsCommand,
}

/// What to compute.
#[derive(Debug, Clone, Subcommand)]
enum StatsCommand {
    /// Mixed-effects logistic regression with one random intercept
    Glmm(GlmmArgs),
    /// Two-sample Kolmogorov-Smirnov test
    Ks(KsArgs),
    /// Holm-Bonferroni adjusted p values
    Holm(HolmArgs),
    /// Paired comparison of two columns: cluster-robust difference and McNemar's test
    Compare(CompareArgs),
    /// Minimum detectable effect, or the sample size an effect needs
    Power(PowerArgs),
}

/// Runs the command and writes its result. [`Exit::FailedSamples`] says that the input was read, but the model has no usable
/// numbers; the output says why.
pub fn run(args: &StatsArgs, output: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.command {
        StatsCommand::Glmm(args) => glmm::run(args, output),
        StatsCommand::Ks(args) => ks::run(args, output),
        StatsCommand::Holm(args) => holm::run(args, output),
        StatsCommand::Compare(args) => compare::run(args, output),
        StatsCommand::Power(args) => power::run(args, output),
    }
}

/// The error of a stored run, which has an exit code and a next step of its own, inside an error of a statistic.
pub(super) fn of_run(error: anyhow::Error) -> Result<CliError, anyhow::Error> {
    match error.downcast::<columns::ColumnError>() {
        Ok(columns::ColumnError::Run(error)) => Ok(*error),
        Ok(error) => Err(error.into()),
        Err(error) => Err(error),
    }
}
