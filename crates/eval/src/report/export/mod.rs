//! A run's rows in other tools' formats.

mod columns;
mod csv;
pub mod formula;
mod jsonl;
mod lm_eval;
mod parquet;
mod scores;
mod stored;

pub use columns::{Cell, Column, Columns, Kind};
pub use csv::{CsvTexts, write_csv};
pub use jsonl::write_jsonl;
pub(crate) use lm_eval::OWN;
pub use lm_eval::{LmEval, TaskSamples};
pub use parquet::write_parquet;
pub(crate) use parquet::{MANIFEST, write_notes};
