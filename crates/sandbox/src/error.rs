//! Errors of the sandbox itself; whatever a program does is an [`Outcome`](super::Outcome), never an error.
use std::io;
use std::path::PathBuf;

/// Failure to set up a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The worker executable could not be started.
    #[error("cannot start the sandbox's worker {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// The executable is not a worker, or it exited before it was ready.
    #[error("{} failed as the sandbox's worker: {reason}", program.display())]
    NotAWorker { program: PathBuf, reason: String },
    /// The interpreter given with `--python` is not usable.
    #[error("cannot use the Python interpreter {}: {reason}", python.display())]
    Python { python: PathBuf, reason: String },
    /// The test program returned another value than 1764.
    #[error("the sandbox failed its self-check: a program that returns 1764 ended with {outcome}")]
    SelfCheck { outcome: String },
}

impl SandboxError {
    /// Hint for the user: the next step.
    pub fn help(&self) -> Option<String> {
        match self {
            SandboxError::Python { .. } => Some(
                "pass a CPython 3 executable to --python, or omit the option to use the embedded interpreter".into(),
            ),
            SandboxError::SelfCheck { .. } | SandboxError::NotAWorker { .. } => {
                Some("`earnest doctor` shows what the sandbox can use here".into())
            }
            SandboxError::Start { .. } => None,
        }
    }
}
