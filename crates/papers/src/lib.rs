//! A paper's tables and figures beside ours. One file a paper turns runs into a [`Comparison`]; its text and its JSON are the
//! same for all.

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
