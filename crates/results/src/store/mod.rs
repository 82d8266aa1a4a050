//! The results of all runs of a folder in one SQLite file, `earnest.sqlite`.
//!
//! `<results>/earnest.sqlite`, with a write-ahead log, holds all runs of a folder; everything else is derived from it.
//!
//! * `runs`: a row a run, the `Manifest` as JSON beside the columns that lists need. `samples` and `texts`: a sample's two rows under
//!   one key, `run * 2^32 + index in the plan`. `samples` is narrow, so that a million samples are listed and summed without reading
//!   their texts; `(run, item, sample)` is unique. Readers never wait; writers wait for each other's transactions, which are short.
//! * `Store::outcomes` reads outcomes without texts; [`crate::Document::stored`] summarises them in step with the plan,
//!   sharing equal scores and keeping only what summaries use of every item. Walks, sums and
//!   exports need the same memory for a million rows as for a thousand; a screen needs about a kilobyte for every different item.
//! * `texts.seal` is a digest of a sample's columns, `samples.seal` one of its narrow row, `runs.seal` one of a run's row,
//!   `asked.seal` one of its link to a pack, made when they are written. They detect edited rows; they are no signatures. Everything
//!   that reads rows checks the seals of what it reads, and ends with [`crate::RunError::Edited`] where one does not fit or is missing.
//! * Triggers and views are refused when a file is opened: earnest makes none, and they could change what is read or written.
//! * `Store::examine` (`runs verify`) reads every row in step with the plan, compares its seal and scores its completion again; the
//!   columns of `runs` must be those of the manifest. `merge` examines what it is given and compares the rows that both sides have
//!   before it copies the first. Repeated merges are recognised: by settings and part, and parts by the whole run that has their rows.
//! * `packs` and `asked`: questions and prompts, 512 neighbouring items of a plan a pack, deflated. A prompt is a skeleton around the pieces of its
//!   item (`pack::skeleton`), so that a chat template and eight worked examples cost a number. A pack is named by the digest of its
//!   content, so that runs of one suite share them; it is written in the transaction of its first rows or before. Rows do not depend on packs.
//! * `runs.summary`: the `Document` of a finished run, dropped when the run is continued.
//! * Files without write permission are opened read-only; without a log beside the file nobody writes, and SQLite needs no index of it.
//! * A batch is a transaction: after a kill or on a full disk it is there or it is not.
//! * A run has one writer at a time: an advisory lock on `locks/<run>.lock`, which the system releases when the process
//!   ends. A run with status running and a free lock was killed.
//! * `RunSettings` is hashed: everything that determines a row, nothing else (threads, batch, memory, caches).
//!   Equal settings continue a run, different ones start a new one. Rows of two runs with equal settings are the same bytes in every
//!   column but four: the three timings, and `cached_tokens`, which counts prompt tokens from the prefix cache and so depends
//!   on earlier requests.
//! * A part (`--shard`) is a separate run with the whole run's settings and indices; `merge` merges finished parts.
//! * Failed samples have a row with `failure` and no score. Those marked retryable (a request larger than the KV cache, an engine
//!   that ran out of something) are generated again when the run is continued.
//!
//! Formats carry a version (`SCHEMA_VERSION` in `user_version`, `SAMPLE_FORMAT`, `MANIFEST_FORMAT`, `REPORT_FORMAT`, the `format` of an
//! event); another version is refused with [`crate::RunError::OtherFormat`], which names it.

mod aggregate;
mod database;
mod interrupter;
mod lock;
mod names;
mod outcome;
mod pack;
mod questions;
mod read;
mod row;
mod schema;
mod verify;
mod write;

pub use aggregate::{Aggregate, TaskAggregate};
pub use database::{PLAN_END, RunProgress, RunRecord, Store};
pub use interrupter::Interrupter;
pub use lock::RunLock;
pub use names::{LONGEST_NAME, NameProblem, check_name, did_you_mean};
pub use pack::{Entry, PACK_ITEMS, Pack};
pub use questions::{StoredItems, StoredQuestion, StoredQuestions};
pub use read::{Filter, Named, Samples};
pub(crate) use row::OtherSampleFormat;
pub(crate) use schema::APPLICATION_ID;
pub use schema::{FILE_NAME, SCHEMA_VERSION};
pub use write::{BULK_ROWS, SampleWriter};
