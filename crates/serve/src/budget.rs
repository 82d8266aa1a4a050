//! Memory for all requests in flight together.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;

/// Granularity of the budget, in bytes.
const UNIT: usize = 1 << 10;

/// Longest wait for other requests to end before a request is worked on, and once all but its answer is done.
pub(crate) const AT_FIRST: Duration = Duration::from_secs(5);
pub(crate) const AT_LAST: Duration = Duration::from_secs(60);

/// A budget of bytes. What it grants is an estimate of what a request makes the server hold, made before it does.
pub(crate) struct Budget {
    free: Arc<Semaphore>,
    units: usize,
}

/// Bytes granted to a request, until it is dropped.
pub(crate) type Grant = OwnedSemaphorePermit;

impl Budget {
    pub fn new(bytes: usize) -> Budget {
        let units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Budget { free: Arc::new(Semaphore::new(units)), units }
    }

    /// Checks that a request could have so many bytes, if it were alone.
    ///
    /// # Errors
    /// 413.
    pub fn check(&self, bytes: usize) -> Result<(), ApiError> {
        if bytes.div_ceil(UNIT) <= self.units {
            return Ok(());
        }
        let message = format!(
            "the request could need {} MiB of memory, all requests together have {} MiB: ask for less at once, or start the server with a larger setting `request_memory`",
            bytes.div_ceil(1 << 20),
            self.total() >> 20
        );
        Err(ApiError::transport(413, message))
    }

    /// Takes bytes, waiting so long for requests that end.
    ///
    /// # Errors
    /// 413 if they exceed the whole budget, 429 if others hold it for longer.
    pub async fn take(&self, bytes: usize, patience: Duration) -> Result<Grant, ApiError> {
        self.check(bytes)?;
        let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| ApiError::out_of_memory(bytes))?;
        let granted = tokio::time::timeout(patience, Arc::clone(&self.free).acquire_many_owned(units)).await;
        match granted {
            Ok(Ok(grant)) => Ok(grant),
            // The semaphore is never closed, so only the wait can have ended.
            Ok(Err(_)) | Err(_) => Err(ApiError::out_of_memory(bytes)),
        }
    }

    /// Bytes in all.
    pub fn total(&self) -> usize {
        self.units * UNIT
    }

    /// Bytes granted now.
    pub fn used(&self) -> usize {
        self.units.saturating_sub(self.free.available_permits()) * UNIT
    }
}
