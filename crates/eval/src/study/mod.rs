//! Studies: models x tasks x prompts, executed in an order that loads every model once.
//!
//! A [`StudyDefinition`] is read from a file or made in code. [`StudyPlan::new`] checks all of it and orders its runs,
//! [`Estimate::new`] counts what they cost, and [`execute`] makes those that are missing.

mod alike;
mod definition;
mod estimate;
mod execute;
mod file;
mod mistake;
mod options;
mod outcome;
mod plan;
mod toml_table;

pub use definition::{
    Adjustment, CompareDefinition, Dimension, MixedModelDefinition, ModelDefinition, ModelReference, StudyDefinition,
    TaskDefinition,
};
pub use earnest_stats::mixed::Formula;
pub use estimate::{Estimate, RunEstimate};
pub use execute::{Condition, Decision, Sessions, Watcher, execute};
pub use mistake::{Mistake, Place, StudyError};
pub use outcome::{RunEnd, StudyOutcome};
pub use plan::{PlannedRun, StudyPlan, StudySettings, hub_of};
