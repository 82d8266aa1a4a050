//! Stored runs: settings, manifests, plans and samples, the folder that holds them, their documents, their scores, and the suites that they are of.
//!
//! [`folder`] opens a results folder, [`store`] is the file in it, [`StoredRun`] a run by name and [`Document`] its results.

mod clock;
mod cluster_order;
mod code_runner;
mod decision;
mod document;
mod error;
mod event;
mod exported;
mod filter;
pub mod folder;
pub mod formula;
mod generation;
mod host;
mod jsonl;
mod kept;
mod label;
mod log_card;
mod log_document;
mod manifest;
mod notice;
mod number;
mod offered;
mod origin;
mod outcome;
pub mod outcomes;
pub mod output;
mod plan;
mod prompt_mode;
mod rate;
mod rows;
mod rows_error;
mod run_error;
pub mod runs;
mod sample;
mod scorer_name;
pub mod scores;
mod scoring;
mod setting_words;
pub mod store;
mod stored_run;
pub mod suites;
mod until;

pub use clock::timestamp;
pub use cluster_order::by_cluster;
pub use code_runner::SandboxRunner;
pub use decision::{Decision, Reason, estimate_text};
pub use document::{Document, FailureGroup, REPORT_FORMAT};
pub use earnest_rows::Problem;
pub use error::ResultsError;
pub use event::{Budgets, Ended, Expected, Reporter, RunEvent, Stage};
pub use exported::{MANIFEST, OWN};
pub use filter::{check_filter, no_texts};
pub use generation::{Generation, Room, ThinkingRequest};
pub use host::available_memory;
pub use jsonl::write_jsonl;
pub use label::{in_words, labels, own_labels};
pub use log_card::{LogCard, LogNames, LogStatus, Reported, Tool, card_of, started};
pub use log_document::LogSums;
pub use manifest::{
    EndpointSettings, EngineRecord, FileRecord, FirstPrompt, Host, IMPORT_ENGINE, MANIFEST_FORMAT, Manifest,
    ModelRecord, Pinned, RunSettings, SettingChange, Status, Totals, collect_changes, shown,
};
pub use notice::{
    ComparisonNotice, FilesNotice, Level, LogNotice, ModelNotice, Notice, Repetition, RunNotice, Teller, Told,
};
pub use number::{ends, fixed, p_decimals, with_commas};
pub use offered::{quoted, results_option};
pub use origin::Origin;
pub use outcome::Outcome;
pub use plan::{Plan, PlannedSample, Shard, ShardError};
pub use prompt_mode::{Mode, ModeRequest, SystemPlace};
pub use rate::Rate;
pub use rows::{Row, Rows, StoredRows, WithoutTexts, without_texts};
pub use rows_error::RowsError;
pub use run_error::RunError;
pub use sample::{FailureKind, Generated, SAMPLE_FORMAT, Sample, SampleFailure};
pub use scorer_name::{Parts, named};
pub use scoring::{SIDE_BY_SIDE, Stored, score_completion, score_completions, scoring_threads};
pub use stored_run::StoredRun;
pub use until::{Until, UntilError};
