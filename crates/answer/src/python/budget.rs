//! Budget of an evaluation.
use super::error::PythonError;

/// Steps, elements and words of memory that are left.
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// Of one evaluation: milliseconds. Values within values need as many units as they are deep, for every level, so that no
    /// value is deep enough to exhaust the stack.
    pub(super) fn new() -> Self {
        Budget { left: 200_000 }
    }

    pub(super) fn spend(&mut self, units: u64) -> Result<(), PythonError> {
        self.left = self.left.checked_sub(units).ok_or(PythonError::Limit)?;
        Ok(())
    }
}
