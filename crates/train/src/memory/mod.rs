//! Memory of small perceptrons: bits a parameter, and forgetting (Arithmetic-Bench, 3.1, A.4 and A.5).

mod facts;
mod file;
mod network;
#[cfg(test)]
mod page;
mod recipe;
mod results;
mod runner;

pub use facts::{Source, UnknownSource};
pub use file::{MemoryExperimentError, MemoryFile, MemoryFileError};
pub use recipe::{CycleRecall, Ending, Recipe};
pub use results::{
    KindResults, KindSettings, MEMORY_FORMAT, MemoryModel, MemoryResults, MemoryResultsError, PhaseResult, Search,
    SourceRecall, Stored, Trial,
};
pub use runner::{MemoryEvent, gather, run, train_model};
