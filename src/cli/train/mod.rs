//! `earnest train`: number models from scratch.

mod experiment;
mod number_model;
mod progress;

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
use crate::train::TrainError;

#[derive(Debug, Args)]
pub struct TrainArgs {
    #[command(subcommand)]
    pub what: TrainWhat,
}

#[derive(Debug, Subcommand)]
pub enum TrainWhat {
    /// A small decoder from scratch on an endless stream of number questions (Number Cookbook, section 3)
    NumberModel(Box<number_model::NumberModelArgs>),
    /// A grid of such trainings from a file: tokenizers, encodings, formats, sizes, several seeds each
    Experiment(experiment::ExperimentArgs),
}

/// Trains.
pub fn execute(args: &TrainArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match &args.what {
        TrainWhat::NumberModel(args) => number_model::execute(args, quiet, printer),
        TrainWhat::Experiment(args) => experiment::execute(args, quiet, printer),
    }
}

impl From<TrainError> for CliError {
    fn from(error: TrainError) -> Self {
        let exit = match &error {
            TrainError::Setting { .. } => Exit::Usage,
            TrainError::Architecture { .. } | TrainError::Checkpoint(_) => Exit::Model,
            TrainError::File { .. } | TrainError::Resume { .. } => Exit::Results,
            _ => Exit::Engine,
        };
        CliError::new(exit, error.to_string())
    }
}
