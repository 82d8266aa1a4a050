//! Memory of the samples between the thread that reads them and the one that writes them.
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Log, LogError, LogSample, Refused};

/// Samples that go from one thread to the next at once.
const BATCH: usize = 512;
/// Bytes of their memory from which on fewer go at once.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes of all samples that were read and are not written. A larger one goes alone.
const MOST: usize = 64 << 20;

/// Budget that the threads of an import share.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    used: Mutex<usize>,
    given_back: Condvar,
}

/// Bytes of one sample, which are given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    budget: &'a InFlight,
    bytes: usize,
}

impl InFlight {
    fn used(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, mut used: MutexGuard<'_, usize>, bytes: usize) -> Held<'_> {
        *used = used.saturating_add(bytes);
        Held { budget: self, bytes }
    }

    /// Takes the bytes of a sample, if there is room.
    pub fn try_take(&self, bytes: usize) -> Option<Held<'_>> {
        let used = self.used();
        has_room(*used, bytes).then(|| self.hold(used, bytes))
    }

    /// Takes them as soon as there is room. The caller holds none itself, or nobody gives them back.
    pub fn take(&self, bytes: usize) -> Held<'_> {
        let used = self.given_back.wait_while(self.used(), |used| !has_room(*used, bytes));
        self.hold(used.unwrap_or_else(PoisonError::into_inner), bytes)
    }
}

fn has_room(used: usize, bytes: usize) -> bool {
    used == 0 || used.saturating_add(bytes) <= MOST
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut used = self.budget.used();
        *used = used.saturating_sub(self.bytes);
        self.budget.given_back.notify_all();
    }
}

/// Reads the log's samples and sends them on in batches.
pub(super) fn send_samples<'b>(
    log: &Log,
    budget: &'b InFlight,
    to: SyncSender<Vec<(LogSample, Held<'b>)>>,
) -> Result<Refused, LogError> {
    let gone = |_| LogError::Gone;
    let (mut batch, mut bytes) = (Vec::with_capacity(BATCH), 0);
    let refused = log.samples(&mut |sample| {
        let memory = sample.memory();
        let held = match budget.try_take(memory) {
            Some(held) => held,
            None => {
                // What waits here is given back only after it was sent.
                bytes = 0;
                to.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).map_err(gone)?;
                budget.take(memory)
            }
        };
        bytes += memory;
        batch.push((sample, held));
        if batch.len() < BATCH && bytes < BATCH_BYTES {
            return Ok(());
        }
        bytes = 0;
        to.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).map_err(gone)
    })?;
    to.send(batch).map_err(gone)?;
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_wait_for_room_and_a_large_one_goes_alone() {
        let budget = InFlight::default();
        let first = budget.try_take(MOST - 1).unwrap();
        let second = budget.try_take(1).unwrap();
        assert!(budget.try_take(1).is_none());
        drop(first);
        drop(budget.try_take(MOST - 1).unwrap());
        std::thread::scope(|scope| {
            let large = scope.spawn(|| budget.take(2 * MOST).bytes);
            drop(second);
            assert_eq!(large.join().unwrap(), 2 * MOST);
        });
        assert_eq!(*budget.used(), 0);
    }
}
