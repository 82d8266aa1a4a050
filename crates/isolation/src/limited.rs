//! Work within limits, wherever it is done.
use std::fmt::{self, Debug};
use std::sync::{Mutex, PoisonError};

#[cfg(not(unix))]
use super::nowhere as process;
#[cfg(unix)]
use super::process;
use super::{Answerer, CpuTime, Ended, Job};

/// A job within limits: in a worker where the program can be one, which is started for the first request and again if it was killed
/// while it was idle; else in the program itself.
pub struct Limited {
    job: &'static Job,
    settings: Vec<u8>,
    place: Place,
}

enum Place {
    Process { memory: u64, worker: Mutex<Option<process::Worker>> },
    Here(Mutex<Option<Answerer>>),
}

impl Limited {
    /// Keeps a job; its worker has so many bytes of memory.
    pub fn new(job: &'static Job, settings: Vec<u8>, memory: u64) -> Limited {
        if !Limited::has_process(job) {
            return Limited::here(job, settings);
        }
        Limited { job, settings, place: Place::Process { memory, worker: Mutex::new(None) } }
    }

    /// Keeps a job for this program itself.
    pub fn here(job: &'static Job, settings: Vec<u8>) -> Limited {
        Limited { job, settings, place: Place::Here(Mutex::new(None)) }
    }

    /// True if this program can be a worker for the job.
    pub fn has_process(job: &'static Job) -> bool {
        process::available(job)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// What the work did to its process. The next request gets a new one.
    pub fn ask(&self, request: &[u8], time: CpuTime) -> Result<Vec<u8>, Ended> {
        // A poisoned lock is usable: at worst there is nothing in it.
        match &self.place {
            Place::Here(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(kept.get_or_insert_with(|| (self.job.begin)(&self.settings))(request))
            }
            Place::Process { memory, worker: kept } => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                // A worker that was killed while it was idle, from outside, says nothing about the work.
                let mut worker = match kept.take().and_then(process::Worker::if_alive) {
                    Some(worker) => worker,
                    None => process::Worker::start(self.job, &self.settings, *memory)?,
                };
                let answer = worker.ask(request, time)?;
                *kept = Some(worker);
                Ok(answer)
            }
        }
    }
}

impl Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limited").field("job", &self.job.name).finish_non_exhaustive()
    }
}
