//! Entry point of evaluations: settings in, a finished run in the store out.
//!
//! [`evaluate`] opens a model, finds or starts the run of its settings, generates the missing samples and stores them. It
//! prints nothing; a [`Reporter`] receives events. [`ModelSession`] keeps a model loaded for several runs.

mod begin;
mod detectable;
mod generation;
mod session;
mod settings;

pub use begin::free_name;
pub use generation::{EndOfSequence, GenerationSettings};
pub use session::{Evaluated, ModelSession};
pub use settings::{Decoding, EvaluationSettings, Questions, RunChoice};

use crate::EvalError;
use crate::run::{Reporter, RunEvent, Stage};

/// Evaluates a model on a suite: starts, continues or repeats a run and stores its rows.
///
/// # Errors
/// [`EvalError`]; [`EvalError::Interrupted`] and [`EvalError::TooManyFailures`] leave a run that can be continued.
pub fn evaluate(settings: &EvaluationSettings, reporter: &mut dyn Reporter) -> Result<Evaluated, EvalError> {
    settings.check()?;
    reporter.event(&RunEvent::Preparing(Stage::OpeningCheckpoint));
    let mut model = ModelSession::open(settings)?;
    for warning in model.warnings() {
        reporter.event(&RunEvent::Warning(warning));
    }
    model.evaluate(settings, reporter)
}
