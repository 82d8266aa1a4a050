//! Results of a study: accuracies, paired differences and mixed models of its runs.

mod analysis;
mod mixed_model;

pub use analysis::{Coordinates, Family, PairedDifference, RunResult, StudyResults};
pub use mixed_model::{MixedModel, MixedModelResult};
