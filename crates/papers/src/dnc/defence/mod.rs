//! The paper's trained defence: models trained on clean and on perturbed questions, asked the same questions.
//!
//! A [`DefenceExperiment`] is read from a file; [`run`] trains, merges and asks what is missing and writes [`DefenceResults`], from
//! which [`DefenceTables`] has the Defense rows of Tables 3, 9 and 10 with paired intervals.

mod asking;
mod error;
mod file;
mod pairs;
mod results;
mod runner;
mod tables;
mod text;
mod training;

pub use asking::letter;
pub use error::{DefenceError, ExperimentProblem, ResultsProblem};
pub use file::{DefenceExperiment, TrainedModel};
pub use results::{DEFENCE_FORMAT, DefenceResults, ModelOutcomes, RESULTS_FILE, ScorerOutcomes};
pub use runner::{DefenceEnd, DefenceEvent, DefenceSettings, run};
pub use tables::{DefenceEffect, DefenceTables};
pub use text::render_defence;
