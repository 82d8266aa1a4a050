//! Errors of the sandbox itself; whatever a program does is an [`Outcome`](super::Outcome), never an error.
use std::io;
use std::path::PathBuf;

use super::Missing;

/// Failure to set up a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The worker executable could not be started.
    #[error("cannot start the sandbox's worker {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// The executable is not a worker, or it exited before it was ready.
    #[error("{} failed as the sandbox's worker: {reason}", program.display())]
    NotAWorker { program: PathBuf, reason: String },
    /// This system cannot confine programs, so none is run.
    #[error("model-written Python is not run, because it cannot be confined here: missing {}", listed(missing))]
    Unconfined { missing: Vec<Missing> },
    /// The worker in the user's isolation is of another version.
    #[error("the worker that '{command}' starts is earnest {found}, not {}", env!("CARGO_PKG_VERSION"))]
    OtherVersion { command: String, found: String },
    /// The interpreter given with `--python` is not usable.
    #[error("cannot use the Python interpreter {}: {reason}", python.display())]
    Python { python: PathBuf, reason: String },
    /// No interpreter was named, and this build has none.
    #[error(
        "model-written Python is not run: this earnest was built without its feature `python`, the embedded interpreter"
    )]
    NoInterpreter,
    /// The test program returned another value than 1764.
    #[error("the sandbox failed its self-check: a program that returns 1764 ended with {outcome}")]
    SelfCheck { outcome: String },
}

impl SandboxError {
    /// Hint for the user: the next step.
    pub fn help(&self) -> Option<String> {
        match self {
            SandboxError::Python { .. } if cfg!(feature = "python") => Some(
                "pass a CPython 3 executable to the setting `python`, or leave it out to use the embedded interpreter".into(),
            ),
            SandboxError::Python { .. } => Some("pass a CPython 3 executable to the setting `python`".into()),
            SandboxError::NoInterpreter => Some(
                "use an earnest with that feature; `gsm-symbolic` and `gsm-mini` also take a CPython 3 executable, the setting `python`"
                    .into(),
            ),
            SandboxError::SelfCheck { .. } | SandboxError::NotAWorker { .. } => {
                Some("`earnest doctor` shows what the sandbox can use here".into())
            }
            SandboxError::Unconfined { .. } => Some(
                "the setting `sandbox_command` runs it in an isolation of yours, such as bubblewrap or a container (docs/sandbox.md); \
                 the setting `unconfined` runs it with what is left: it may then read and delete files, use the network and see the \
                 environment of other processes"
                    .into(),
            ),
            SandboxError::OtherVersion { .. } => Some("install this version of earnest there".into()),
            SandboxError::Start { .. } => None,
        }
    }
}

fn listed(missing: &[Missing]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
