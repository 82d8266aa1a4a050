//! Settings of a sandbox.
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`Pool`](super::Pool).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Worker executable: a program whose `main` begins with [`serve_if_worker`](super::serve_if_worker).
    pub program: PathBuf,
    /// CPython 3 executable that runs samples; `None` for the embedded interpreter.
    pub python: Option<PathBuf>,
    /// Maximum number of samples that run concurrently.
    pub workers: usize,
    /// Wall-clock limit of a sample.
    pub wall: Duration,
    /// Address space of a sample beyond the interpreter's own, in bytes.
    pub memory: u64,
}

impl Settings {
    /// Default wall-clock limit. Ordinary solutions take a millisecond.
    pub const WALL: Duration = Duration::from_secs(10);
    /// Default memory limit, in bytes.
    pub const MEMORY: u64 = 512 << 20;

    /// Returns the default limits, one worker per core, and this worker executable.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Settings {
            program: program.into(),
            python: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            wall: Self::WALL,
            memory: Self::MEMORY,
        }
    }

    /// Returns the default settings with the running program as the worker; its `main` must begin with
    /// [`serve_if_worker`](super::serve_if_worker).
    ///
    /// # Errors
    /// If the path of the running program cannot be determined.
    pub fn of_this_program() -> std::io::Result<Self> {
        Ok(Self::new(std::env::current_exe()?))
    }
}
