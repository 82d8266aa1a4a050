//! A run: which questions are asked how often, what is written, how it continues after an interruption.

mod clock;
mod error;
mod event;
mod folder;
mod generation;
mod host;
mod log;
mod manifest;
mod plan;
mod runner;
mod sample;
pub mod store;

pub use clock::timestamp;
pub use error::RunError;
pub use event::{Reporter, RunEvent, Stage};
pub use folder::{RunFolder, Standing};
pub use generation::{Generation, Room, ThinkingRequest};
pub use host::available_memory;
pub use log::{LogEnd, SampleLog};
pub use manifest::{
    EngineRecord, FileRecord, FirstPrompt, Host, MANIFEST_FORMAT, Manifest, ModelRecord, RunSettings, Status, Totals,
};
pub use plan::{Plan, PlannedSample};
pub use runner::{Ended, Runner};
pub use sample::{FailureKind, Generated, SAMPLE_FORMAT, Sample, SampleFailure, SampleKey};
