//! `earnest stats`: statistics on any CSV file.

mod columns;
mod compare;
mod glmm;
mod holm;
mod ks;
mod number_format;
mod power;

use std::io::Write;

use clap::{Args, Subcommand};

pub use columns::ColumnError;
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

/// Everything was computed.
pub const EXIT_COMPUTED: u8 = 0;
/// The input was read, but the model has no usable numbers; the output says why.
pub const EXIT_NO_NUMBERS: u8 = 3;

/// Runs the command, writes its result and returns the exit code ([`EXIT_COMPUTED`] or [`EXIT_NO_NUMBERS`]).
pub fn run(args: &StatsArgs, output: &mut dyn Write) -> anyhow::Result<u8> {
    match &args.command {
        StatsCommand::Glmm(args) => glmm::run(args, output),
        StatsCommand::Ks(args) => ks::run(args, output),
        StatsCommand::Holm(args) => holm::run(args, output),
        StatsCommand::Compare(args) => compare::run(args, output),
        StatsCommand::Power(args) => power::run(args, output),
    }
}
