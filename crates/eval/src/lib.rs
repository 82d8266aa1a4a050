//! Evaluation runs: prompts, sessions of an engine, studies, imports, merging and scoring again.
//!
//! [`evaluate::evaluate`] is the entry point. [`import::import`], [`merge::merge`], [`rescore::rescore`] and [`perturb::perturb`] are
//! the other operations that write, [`study::execute`] runs several evaluations; [`samples`] reads what is stored, and [`preview::preview`] renders a
//! prompt. Stored runs themselves are of `earnest-results`, comparisons and reports of `earnest-report`.

mod error;
pub mod evaluate;
pub mod import;
pub mod merge;
pub mod model;
pub mod perturb;
pub mod preview;
pub mod prompt;
mod rendered_again;
pub mod rescore;
pub mod run;
pub mod samples;
pub mod study;
pub mod threads;

pub use error::EvalError;
pub use evaluate::evaluate;
pub use rendered_again::PromptRenderer;
