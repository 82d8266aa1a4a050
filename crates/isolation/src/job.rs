//! Jobs of a worker: how they begin, how long they may take, how they end.
use std::fmt;

/// Answers requests, one after the other.
pub type Answerer = Box<dyn FnMut(&[u8]) -> Vec<u8> + Send>;

/// Work that a worker can do.
pub struct Job {
    /// Its name, an argument of the worker's process.
    pub name: &'static str,
    /// Begins the work with its settings, and does none of it: only requests have a limit of time.
    pub begin: fn(settings: &[u8]) -> Answerer,
}

/// Processor time that an answer may take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuTime {
    /// For this answer alone.
    Each(u64),
    /// For all answers of the worker so far and this one together.
    InAll(u64),
}

impl CpuTime {
    /// Number of seconds.
    pub fn seconds(self) -> u64 {
        match self {
            CpuTime::Each(seconds) | CpuTime::InAll(seconds) => seconds,
        }
    }
}

/// The end of a worker, or of its patience: the end of a sentence about the work, e.g. `needs more than 1024 MiB of memory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub words: String,
    /// True if it took too long.
    pub by_time: bool,
}

impl Ended {
    /// An end for another reason than time.
    pub fn new(words: impl Into<String>) -> Ended {
        Ended { words: words.into(), by_time: false }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}
