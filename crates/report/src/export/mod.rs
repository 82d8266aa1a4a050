//! A run's rows in other tools' formats.

mod columns;
mod csv;
mod jsonl;
mod lm_eval;
mod outcomes;
mod parquet;
mod scores;
mod stored;
#[cfg(test)]
mod tests_read_back;

pub use columns::{Cell, Column, Columns, Kind};
pub use csv::{CsvTexts, write_csv};
pub use jsonl::write_jsonl;
pub use lm_eval::{LmEval, TaskSamples};
pub use outcomes::Outcomes;
use parquet::write_notes;
pub use parquet::write_parquet;
