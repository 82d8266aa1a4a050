//! `earnest train`: number models from scratch, adapters of loaded checkpoints.

mod experiment;
mod lora;
mod memory;
mod merge;
mod next;
mod number_model;
pub(super) mod progress;
mod rate;

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
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
pub fn execute(args: &TrainArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match &args.what {
        TrainWhat::NumberModel(args) => number_model::execute(args, quiet, printer),
        TrainWhat::Lora(args) => lora::execute(args, quiet, printer),
        TrainWhat::Merge(args) => merge::execute(args, quiet, printer),
        TrainWhat::Experiment(args) => experiment::execute(args, quiet, printer),
        TrainWhat::Memory(args) => memory::execute(args, quiet, printer),
    }
}

/// Parameters from which a part of a batch gains by several threads.
const LARGE: usize = 20_000_000;

/// Chooses the threads of every part of a batch, unless `RAYON_NUM_THREADS` does: one for small models, all cores' share for large
/// ones. candle splits each operation among its threads and spins while it waits, which takes small models most of their time and is worse on a
/// busy machine. Results are the same.
pub(super) fn choose_threads(parts: usize, parameters: usize) {
    keep_freed_memory();
    const VARIABLE: &str = "RAYON_NUM_THREADS";
    if std::env::var_os(VARIABLE).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if parameters < LARGE { 1 } else { (cores / parts).max(1) };
        // SAFETY: the program's other threads are those for data, which wait for work: nobody reads the environment meanwhile.
        unsafe { std::env::set_var(VARIABLE, threads.to_string()) };
    }
}

/// Keeps the memory that tensors free for the next ones. Otherwise the allocator returns it to the system after every step and the system
/// clears it again, a tenth of the time of a small model.
fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: changes settings of the allocator; a value that it rejects leaves them as they are.
    unsafe {
        // The largest threshold that the allocator accepts.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 64 << 20);
    }
}

/// Warns of a peak learning rate that is never reached.
pub(super) fn warn_of_warm_up(printer: Printer, warm_up: u64, peak: f64, reached: Option<f64>) {
    if let Some(reached) = reached {
        printer.warning(&format!(
            "the warm-up of {warm_up} steps is longer than the training: the learning rate ends at {reached:.2e} instead of reaching \
             {peak:.2e}; choose a smaller --warm-up"
        ));
    }
}

impl From<TrainError> for CliError {
    fn from(error: TrainError) -> Self {
        let exit = match &error {
            TrainError::Setting { .. } => Exit::Usage,
            TrainError::Architecture { .. } | TrainError::Checkpoint(_) => Exit::Model,
            TrainError::File { .. } | TrainError::Resume { .. } | TrainError::Busy { .. } => Exit::Results,
            _ => Exit::Engine,
        };
        CliError::new(exit, error.to_string())
    }
}
