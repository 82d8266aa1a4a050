//! Evaluation runs: prompts, samples, the results store, reports and comparisons.
//!
//! [`evaluate::evaluate`] is the entry point. [`import::import`], [`merge::merge`], [`rescore::rescore`] and [`perturb::perturb`] are
//! the other operations that write, [`study::execute`] runs several evaluations; [`runs`], [`samples`] and [`compare`] read what is stored, and [`preview::preview`] renders a
//! prompt.

pub mod compare;
mod error;
pub mod evaluate;
pub mod import;
pub mod logs;
pub mod merge;
pub mod model;
pub mod outcomes;
pub mod output;
pub mod perturb;
pub mod preview;
pub mod profile;
pub mod prompt;
mod rendered_again;
pub mod report;
pub mod rescore;
pub mod results;
pub mod run;
pub mod runs;
pub mod samples;
mod scorer_name;
mod stored_run;
pub mod study;
pub mod suites;
pub mod threads;

pub use error::{EvalError, Problem};
pub use evaluate::evaluate;
pub use stored_run::StoredRun;
