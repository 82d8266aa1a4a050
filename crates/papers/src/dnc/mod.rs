//! DNC: Tables 3 and 5 to 10 as printed, Table 12 recomputed, and stored runs compared with them.

#[cfg(feature = "train")]
pub mod defence;
pub mod published;
mod run;
mod tables;
mod text;

pub use run::{DncComparison, EvaluatedRun, Missing, RunRow, RunTable, RunUsed, compare};
pub use tables::{ComparedRow, ComparedTable, PublishedCell};
pub use text::render;
