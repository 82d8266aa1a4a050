//! Experiments: grids of trainings from one file over the axes of section 3 of the Number Cookbook, with several seeds, and the
//! evaluation of every model by length.

mod cell;
mod error;
mod evaluation;
mod file;
mod memory;
mod results;
mod runner;

pub use cell::{CellChoice, GridCell, NumberStyle};
pub use error::{AxisError, EvaluationError, ExperimentError, ExperimentFileError, GridError, ResultsError};
pub use evaluation::{EVALUATION_FORMAT, Evaluation, LengthScore};
pub use file::Experiment;
pub use memory::{Memory, memories};
pub use results::{CurvePoint, CurveScore, ExperimentResults, Measured, ModelResult, RESULTS_FORMAT, SeedMean};
pub use runner::{CellEvent, CellState, EXPERIMENT_FILE, Gathered, cell_folder, cell_state, events, run};
