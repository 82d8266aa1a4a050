//! What a sandbox is asked to be.
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`Pool`](super::Pool).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The worker: a program whose `main` begins with [`serve_if_worker`](super::serve_if_worker).
    pub program: PathBuf,
    /// A CPython 3 executable to run samples with instead of the embedded interpreter.
    pub python: Option<PathBuf>,
    /// Samples that may run at once.
    pub workers: usize,
    /// Time a sample may take by the clock.
    pub wall: Duration,
    /// Address space a sample may take beyond what the interpreter itself has, in bytes.
    pub memory: u64,
}

impl Settings {
    /// Time a sample may take unless said otherwise. Ordinary solutions take a millisecond.
    pub const WALL: Duration = Duration::from_secs(10);
    /// Memory a sample may take unless said otherwise.
    pub const MEMORY: u64 = 512 << 20;

    /// The default limits, a worker a core, and this program file.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Settings {
            program: program.into(),
            python: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            wall: Self::WALL,
            memory: Self::MEMORY,
        }
    }

    /// The default settings with the running program as the worker; its `main` must begin with
    /// [`serve_if_worker`](super::serve_if_worker).
    ///
    /// # Errors
    /// If the system does not say which file the running program is.
    pub fn of_this_program() -> std::io::Result<Self> {
        Ok(Self::new(std::env::current_exe()?))
    }
}
