//! `earnest stats`: statistics on any CSV file, and on stored runs.

mod columns;
mod compare;
mod correlate;
mod default_model;
mod frame;
mod glmm;
mod holm;
mod ks;
mod mixed;
mod mixed_text;
mod model;
mod number_format;
mod one_intercept;
mod power;
mod run_columns;
mod source;

use std::io::Write;

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;

pub use compare::CompareArgs;
pub use correlate::CorrelateArgs;
pub use glmm::GlmmArgs;
pub use holm::HolmArgs;
pub use ks::KsArgs;
pub use power::PowerArgs;

/// Options of `earnest stats`.
#[derive(Debug, Clone, Args)]
pub struct StatsArgs {
    #[command(subcommand)]
    command: StatsCommand,
}

/// The statistic.
#[derive(Debug, Clone, Subcommand)]
enum StatsCommand {
    /// Fit a mixed-effects model: logistic or linear, from a formula or from columns
    Glmm(GlmmArgs),
    /// Run a two-sample Kolmogorov-Smirnov test
    Ks(KsArgs),
    /// Correlate two columns: Pearson's r and Spearman's rho, with intervals and p values
    Correlate(CorrelateArgs),
    /// Adjust p values by Holm-Bonferroni and by Benjamini-Hochberg
    Holm(HolmArgs),
    /// Compare two columns of paired outcomes, exactly where few are right
    Compare(CompareArgs),
    /// Compute a minimum detectable effect, or the sample size for an effect
    Power(PowerArgs),
}

/// Runs the command and writes its result; [`Exit::FailedSamples`] if the model has no usable estimates, with the reason in the
/// output.
pub fn run(args: &StatsArgs, output: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.command {
        StatsCommand::Glmm(args) => glmm::run(args, output),
        StatsCommand::Ks(args) => ks::run(args, output),
        StatsCommand::Correlate(args) => correlate::run(args, output),
        StatsCommand::Holm(args) => holm::run(args, output),
        StatsCommand::Compare(args) => compare::run(args, output),
        StatsCommand::Power(args) => power::run(args, output),
    }
}

/// Extracts the error of a stored run, which has its own exit code and next step.
pub(super) fn of_run(error: anyhow::Error) -> Result<CliError, anyhow::Error> {
    match error.downcast::<columns::ColumnError>() {
        Ok(columns::ColumnError::Run(error)) => Ok(*error),
        Ok(error) => Err(error.into()),
        Err(error) => Err(error),
    }
}
