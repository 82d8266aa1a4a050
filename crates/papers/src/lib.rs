//! Comparisons of published tables and figures with stored runs: one module per paper.
//!
//! A module reads the rows of runs, computes the paper's quantities from them and puts both side by side, as a document that
//! serialises to JSON and renders as text. Papers whose comparison is a plain table share [`Comparison`] and [`render`].
//! `examples/published_table.rs` prints a published table.

pub mod arithmetic_bench;
pub mod gsm_symbolic;
mod comparison;
pub mod dnc;
pub mod nupa;
mod plan;
mod text;

pub use comparison::{
    COMPARISON_FORMAT, ComparedCell, ComparedCurve, ComparedTable, Comparison, CurvePoint, Published, PublishedRow,
    PublishedTable, Reading, RunUsed, difference, model_key,
};
pub use plan::{Plan, PlanRow};
pub use text::{render, render_plan};
