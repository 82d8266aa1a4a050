//! Evaluation runs: prompts, samples, the results store, reports and comparisons.
//!
//! [`evaluate::evaluate`] is the entry point.

mod error;
pub mod evaluate;
pub mod model;
pub mod prompt;
pub mod report;
pub mod run;
pub mod suites;

pub use error::{EvalError, Problem};
pub use evaluate::evaluate;
