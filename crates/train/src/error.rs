//! What can go wrong in training.
use std::path::PathBuf;

use earnest_models::checkpoint::CheckpointError;

/// Why a model can not be trained.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A setting, or a combination of settings, that makes no sense.
    #[error("{setting}: {problem}")]
    Setting {
        /// Its name on the command line and in experiment files.
        setting: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The checkpoint's architecture has parts that can not be differentiated here.
    #[error(
        "{architecture} can not be trained: {part} is not supported; Llama, Mistral, Qwen 2 and 3, SmolLM3 and Gemma checkpoints can be"
    )]
    Architecture {
        /// The architecture's name.
        architecture: String,
        /// The part.
        part: &'static str,
    },
    /// A tensor operation failed, for want of memory for instance.
    #[error("a tensor operation failed: {0}")]
    Tensor(#[from] candle_core::Error),
    /// The loss is no number any more.
    #[error("the loss is {loss} at step {step}: the learning rate is too high, or the checkpoint is damaged")]
    Diverged {
        /// The step, from 1.
        step: u64,
        /// What was computed instead of a loss.
        loss: f32,
    },
    /// The checkpoint that is trained on can not be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A file could not be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// Another process trains in the folder.
    #[error("{} is in the hands of another training; wait until it ends, or stop it", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A file of an interrupted training does not fit, or is damaged.
    #[error("{} can not be resumed from: {problem}", path.display())]
    Resume {
        /// The file or folder.
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
}
