//! Grids of trainings from one file: what section 3 of the Number Cookbook varies, several seeds each, and how every model does
//! by length.

mod cell;
mod evaluation;
mod file;
mod memory;
mod results;
mod runner;

pub use cell::{CellChoice, GridCell, NumberStyle};
pub use evaluation::{EVALUATION_FORMAT, Evaluation, LengthScore};
pub use file::{Experiment, ExperimentError};
pub use memory::{Memory, memories};
pub use results::{CoursePoint, CourseScore, ExperimentResults, Measured, ModelResult, RESULTS_FORMAT, SeedMean};
pub use runner::{CellEvent, CellState, EXPERIMENT_FILE, Gathered, cell_folder, cell_state, events, run};
