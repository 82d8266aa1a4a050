//! A run: which questions are asked how often, what is written, how it continues after an interruption.

mod asking;
mod clock;
mod code_runner;
mod error;
mod event;
mod generation;
mod host;
mod judge;
mod judging;
mod jsonl;
mod manifest;
mod plan;
mod runner;
mod sample;
pub mod store;

pub use clock::timestamp;
pub use error::RunError;
pub use event::{Reporter, RunEvent, Stage};
pub use generation::{Generation, Room, ThinkingRequest};
pub use host::available_memory;
pub use jsonl::{ReadEnd, read_jsonl, write_jsonl};
pub use judge::{SIDE_BY_SIDE, Stored, judge, judge_all};
pub(crate) use manifest::shown;
pub use manifest::{
    EndpointSettings, EngineRecord, FileRecord, FirstPrompt, Host, IMPORT_ENGINE, MANIFEST_FORMAT, Manifest,
    ModelRecord, Pinned, RunSettings, SettingChange, Status, Totals,
};
pub use plan::{Plan, PlannedSample, Shard};
pub use runner::{Ended, Runner};
pub use sample::{FailureKind, Generated, SAMPLE_FORMAT, Sample, SampleFailure, SampleKey};
