//! `earnest stats`: statistics on any CSV file, and on stored runs.

mod columns;
mod compare;
mod correlate;
mod default_model;
mod failed;
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

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;

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

/// Runs the command; [`Exit::FailedSamples`] if the model has no usable estimates, with the reason in the result.
pub fn execute(args: &StatsArgs, printer: Printer) -> Result<Exit, CliError> {
    let exit = match &args.command {
        StatsCommand::Glmm(args) => glmm::run(args, printer),
        StatsCommand::Ks(args) => ks::run(args, printer),
        StatsCommand::Correlate(args) => correlate::run(args, printer),
        StatsCommand::Holm(args) => holm::run(args, printer),
        StatsCommand::Compare(args) => compare::run(args, printer),
        StatsCommand::Power(args) => power::run(args, printer),
    }?;
    if exit == Exit::FailedSamples {
        printer.warning("there is no usable estimate, so the exit code is 1; the result says why");
    }
    Ok(exit)
}
