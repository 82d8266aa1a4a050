//! Runs: plan, generation, scoring and storage of samples, and continuation after an interruption.

mod of_items;
mod clock;
mod code_runner;
mod decision;
mod error;
mod event;
mod exported;
mod flights;
pub mod formula;
mod gathering;
mod generation;
mod host;
mod jsonl;
mod label;
mod log_card;
mod manifest;
mod outcome;
mod packing;
mod plan;
mod prompt_queue;
mod rate;
mod runner;
mod sample;
mod scorers;
mod scoring;
mod setting_words;
pub mod store;
mod until;

pub use clock::timestamp;
pub use code_runner::SandboxRunner;
pub(crate) use decision::estimate_text;
pub use decision::{Decider, Decision, Reason};
pub use error::RunError;
pub use event::{Budgets, Expected, Reporter, RunEvent, Stage};
pub use exported::{MANIFEST, OWN};
pub use generation::{Generation, Room, ThinkingRequest};
pub use host::available_memory;
pub use jsonl::{ReadEnd, read_jsonl, write_jsonl};
pub use label::labels;
pub use log_card::{LogCard, LogNames, LogStatus, Reported, Tool, card_of};
pub(crate) use manifest::collect_changes;
pub use manifest::shown;
pub use manifest::{
    EndpointSettings, EngineRecord, FileRecord, FirstPrompt, Host, IMPORT_ENGINE, MANIFEST_FORMAT, Manifest,
    ModelRecord, Pinned, RunSettings, SettingChange, Status, Totals,
};
pub use of_items::{OfItems, by_cluster};
pub use outcome::Outcome;
pub use plan::{Plan, PlannedSample, Shard, ShardError};
pub use rate::Rate;
pub use runner::{Ended, Runner};
pub use sample::{FailureKind, Generated, SAMPLE_FORMAT, Sample, SampleFailure, SampleKey};
pub use scoring::{SIDE_BY_SIDE, Stored, score_completion, score_completions};
pub use until::{Until, UntilError};
