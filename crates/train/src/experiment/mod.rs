//! Experiments: grids of trainings from one file over the axes of section 3 of the Number Cookbook, with several seeds, and the
//! evaluation of every model by length.

mod cell;
mod error;
mod evaluation;
mod file;
mod memorisation;
mod results;
mod runner;

pub use cell::{CellChoice, GridCell, NumberStyle};
pub use error::{AxisError, EvaluationError, ExperimentError, ExperimentFileError, GridError, ResultsError};
pub use evaluation::{EVALUATION_FORMAT, Evaluation, LengthScore};
pub use file::Experiment;
pub use memorisation::{Memorisation, memorisation};
pub use results::{CurvePoint, CurveScore, ExperimentResults, Metric, ModelResult, RESULTS_FORMAT, SeedMean};
pub use runner::{
    CellEvent, CellState, EXPERIMENT_FILE, ExperimentOutcome, cell_folder, cell_state, events, run, seconds_per_step,
};
