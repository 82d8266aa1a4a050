//! DNC: Tables 3 and 5 to 10 as printed, Table 12 computed again, and runs beside them.

mod beside;
mod ours;
mod text;

pub use beside::{ComparedRow, ComparedTable, PublishedCell};
pub use ours::{DncComparison, Missing, OurRow, OurTable, Ours, RunUsed, compare};
pub use text::render;
