//! `earnest train`: number models from scratch, adapters of loaded checkpoints.

mod experiment;
mod lora;
mod memory;
mod merge;
mod next;
mod number_model;
pub(super) mod progress;
mod rate;
mod shared_args;
mod threads;

pub(super) use threads::{choose_threads, warn_of_warm_up};

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
use earnest_tasks::suite::registry::OptionError;
use earnest_train::TrainError;

#[derive(Debug, Args)]
pub struct TrainArgs {
    #[command(subcommand)]
    pub what: TrainWhat,
}

#[derive(Debug, Subcommand)]
pub enum TrainWhat {
    /// Train a small decoder from scratch on an endless stream of number questions (Number Cookbook, section 3)
    NumberModel(Box<number_model::NumberModelArgs>),
    /// Train low-rank adapters (LoRA) of a checkpoint: NUPA questions, rule following, or your own pairs
    Lora(Box<lora::LoraArgs>),
    /// Merge a checkpoint and its adapters into an ordinary Hugging Face folder
    Merge(Box<merge::MergeArgs>),
    /// Train a grid of number models from a file: tokenizers, encodings, formats, sizes, several seeds each
    Experiment(experiment::ExperimentArgs),
    /// Train small perceptrons to memorise digits of pi and e, and the multiplication table (Arithmetic-Bench, A.4 and A.5)
    Memory(memory::MemoryArgs),
}

/// Trains.
pub fn execute(args: &TrainArgs, printer: Printer) -> Result<Exit, CliError> {
    match &args.what {
        TrainWhat::NumberModel(args) => number_model::execute(args, printer),
        TrainWhat::Lora(args) => lora::execute(args, printer),
        TrainWhat::Merge(args) => merge::execute(args, printer),
        TrainWhat::Experiment(args) => experiment::execute(args, printer),
        TrainWhat::Memory(args) => memory::execute(args, printer),
    }
}

impl From<TrainError> for CliError {
    fn from(error: TrainError) -> Self {
        let exit = match &error {
            TrainError::Setting { .. } | TrainError::Pairs(_) => Exit::Usage,
            TrainError::Architecture { .. } | TrainError::Checkpoint(_) => Exit::Model,
            TrainError::File { .. } | TrainError::Resume { .. } | TrainError::Busy { .. } => Exit::Results,
            _ => Exit::Engine,
        };
        let said = CliError::new(exit, error.to_string());
        match error {
            TrainError::Pairs(OptionError { help: Some(help), .. }) => said.help(help),
            _ => said,
        }
    }
}
