//! Stand-in for workers on systems without them.
use super::{CpuTime, Ended, Job};

/// No value: there are no workers here.
pub(super) enum Worker {}

/// False: no program can be a worker.
pub(super) fn available(_: &'static Job) -> bool {
    false
}

impl Worker {
    /// Refuses.
    pub(super) fn start(_: &'static Job, _: &[u8], _: u64) -> Result<Worker, Ended> {
        Err(Ended::new("could not begin: this system has no workers"))
    }

    /// Unreachable: the type has no value.
    pub(super) fn if_alive(self) -> Option<Worker> {
        match self {}
    }

    /// Unreachable: the type has no value.
    pub(super) fn ask(&mut self, _: &[u8], _: CpuTime) -> Result<Vec<u8>, Ended> {
        match *self {}
    }
}
