//! Checkpoints that several models of a study share: each is opened once.
use std::sync::{Arc, Mutex, PoisonError, Weak};

use earnest_models::checkpoint::Checkpoint;

use crate::EvalError;

/// An opened checkpoint, as long as somebody uses it, or the reason why it cannot be opened.
#[derive(Debug, Clone, Default)]
pub(super) struct Opened(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Unopened,
    Open(Weak<Checkpoint>),
    Failed(EvalError),
}

impl Opened {
    /// Returns the checkpoint; opens it if nobody has it open.
    ///
    /// # Errors
    /// Those of `open`, which is not called again for a checkpoint that is unusable.
    pub(super) fn or_open(
        &self,
        open: impl FnOnce() -> Result<Checkpoint, EvalError>,
    ) -> Result<Arc<Checkpoint>, EvalError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Open(checkpoint) => {
                if let Some(checkpoint) = checkpoint.upgrade() {
                    return Ok(checkpoint);
                }
            }
            State::Failed(error) => {
                if let Some(error) = again(error) {
                    return Err(error);
                }
            }
            State::Unopened => {}
        }
        match open().map(Arc::new) {
            Ok(checkpoint) => {
                *state = State::Open(Arc::downgrade(&checkpoint));
                Ok(checkpoint)
            }
            Err(error) => {
                *state = again(&error).map_or(State::Unopened, State::Failed);
                Err(error)
            }
        }
    }
}

/// The same error of a checkpoint once more; none for errors of other kinds.
fn again(error: &EvalError) -> Option<EvalError> {
    match error {
        EvalError::Model(problem) => Some(EvalError::Model(problem.clone())),
        EvalError::Setting(problem) => Some(EvalError::Setting(problem.clone())),
        _ => None,
    }
}
