//! Errors for people, and the exit codes of `earnest` that they end with.

use std::fmt;

use earnest_engine::bench::BenchError;
use earnest_engine::cpu::LoadError;
use earnest_engine::cuda::CudaError;
use earnest_models::checkpoint::CheckpointError;

/// Exit code of the program; the numbers are those of `earnest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything was within its tolerance.
    Success = 0,
    /// Invalid command line.
    Usage = 2,
    /// A checkpoint cannot be used.
    Model = 3,
    /// A file cannot be written.
    Output = 4,
    /// The device failed, or something was not within its tolerance.
    Engine = 5,
    /// Ctrl-C.
    Interrupted = 130,
}

/// An error with its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// True if a device does not compute a checkpoint's features at all.
    pub unsupported: bool,
    message: String,
}

impl Failure {
    /// An error in one sentence.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, unsupported: false, message: message.into() }
    }

    /// An invalid command line.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Failure {
        Failure::new(Exit::Model, error.to_string())
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        Failure::new(Exit::Model, error.to_string())
    }
}

impl From<CudaError> for Failure {
    fn from(error: CudaError) -> Failure {
        let exit = match error {
            CudaError::Checkpoint(_) | CudaError::NotFinite { .. } => Exit::Model,
            _ => Exit::Engine,
        };
        let unsupported =
            matches!(error, CudaError::Feature { .. } | CudaError::HeadTooWide(_) | CudaError::Width { .. });
        Failure { unsupported, ..Failure::new(exit, error.to_string()) }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        let exit = match &error {
            BenchError::Rejected { .. } | BenchError::NeverTogether { .. } => Exit::Usage,
            BenchError::Stopped => Exit::Interrupted,
            BenchError::InMode { error, .. } if matches!(**error, BenchError::Stopped) => Exit::Interrupted,
            _ => Exit::Engine,
        };
        Failure::new(exit, error.to_string())
    }
}
