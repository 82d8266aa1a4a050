//! Memory for all requests in flight together.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;

/// Granularity of the budget, in bytes.
const UNIT: usize = 1 << 10;

/// Longest wait for other requests to end.
const PATIENCE: Duration = Duration::from_secs(5);

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

    /// Takes bytes, waiting a little for requests that end.
    ///
    /// # Errors
    /// 413 if they exceed the whole budget, 429 if others hold it for too long.
    pub async fn take(&self, bytes: usize) -> Result<Grant, ApiError> {
        let units = bytes.div_ceil(UNIT);
        let Some(units) = u32::try_from(units).ok().filter(|_| units <= self.units) else {
            let message = format!(
                "the request needs about {} MiB of memory, all requests together have {} MiB: make it smaller, or start the server with a larger --request-memory",
                bytes.div_ceil(1 << 20),
                self.total() >> 20
            );
            return Err(ApiError::transport(413, message));
        };
        let granted = tokio::time::timeout(PATIENCE, Arc::clone(&self.free).acquire_many_owned(units)).await;
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
