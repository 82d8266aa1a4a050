//! What keeps a sandbox from working at all; what a program does is never an error but an [`Outcome`](super::Outcome).
use std::io;
use std::path::PathBuf;

/// The sandbox cannot run programs.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The worker's program could not be started.
    #[error("cannot start the sandbox's worker {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// What was started is not a worker, or it ended before it was ready.
    #[error("{} does not work as the sandbox's worker: {reason}", program.display())]
    NotAWorker { program: PathBuf, reason: String },
    /// The interpreter of `--python` could not be examined.
    #[error("cannot use the Python interpreter {}: {reason}", python.display())]
    Python { python: PathBuf, reason: String },
    /// A program whose result is known has another one.
    #[error("the sandbox does not compute: a program that returns 1764 gave {outcome}")]
    SelfCheck { outcome: String },
}

impl SandboxError {
    /// The next step, for the user.
    pub fn help(&self) -> Option<String> {
        match self {
            SandboxError::Python { .. } => {
                Some("name a CPython 3 executable with --python, or leave it away for the embedded interpreter".into())
            }
            SandboxError::SelfCheck { .. } | SandboxError::NotAWorker { .. } => {
                Some("`earnest doctor` shows what the sandbox can use here".into())
            }
            SandboxError::Start { .. } => None,
        }
    }
}
