//! Errors of training.
use std::path::PathBuf;

use earnest_models::checkpoint::CheckpointError;
use earnest_tasks::suite::registry::OptionError;

/// Reason why a model cannot be trained.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// Invalid setting, or combination of settings.
    #[error("{setting}: {problem}")]
    Setting {
        /// Name on the command line and in experiment files.
        setting: &'static str,
        /// The problem and a valid alternative.
        problem: String,
    },
    /// A file of pairs that cannot be read.
    #[error("pairs: {0}")]
    Pairs(OptionError),
    /// The checkpoint's architecture has parts that cannot be differentiated.
    #[error(
        "{architecture} cannot be trained: {part} is not supported; Llama, Mistral, Qwen 2 and 3, SmolLM3 and Gemma checkpoints are"
    )]
    Architecture {
        /// Name of the architecture.
        architecture: String,
        /// Unsupported part.
        part: &'static str,
    },
    /// A tensor operation failed, for instance for lack of memory.
    #[error("a tensor operation failed: {0}")]
    Tensor(#[from] candle_core::Error),
    /// The loss is not finite.
    #[error("the loss is {loss} at step {step}: lower the learning rate, or check that the checkpoint is intact")]
    Diverged {
        /// The step, from 1.
        step: u64,
        /// Value of the loss: an infinity or NaN.
        loss: f32,
    },
    /// The checkpoint that is adapted cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The folder is locked by another training.
    #[error("{} is locked by another training; wait until it ends, or stop it", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A file of an earlier training is damaged or belongs to another training.
    #[error("{} cannot be used: {problem}", path.display())]
    Resume {
        /// The file or folder.
        path: PathBuf,
        /// The mismatch or damage.
        problem: String,
    },
}

impl TrainError {
    /// The error of a thread that the system did not start.
    pub(crate) fn thread(error: &std::io::Error) -> Self {
        let problem = format!("a thread could not be started ({error}): use fewer, or allow more memory or processes");
        TrainError::Setting { setting: "threads", problem }
    }
}
