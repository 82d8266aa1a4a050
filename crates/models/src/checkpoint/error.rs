//! What can be wrong with a checkpoint.
use std::path::PathBuf;

/// Why a checkpoint can not be used. Every message names the file, the thing in it and, where there is one, the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file that must be there is not.
    #[error("{} is missing: {advice}", path.display())]
    FileMissing { path: PathBuf, advice: String },
    /// The operating system could not read a file.
    #[error("can not read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A file ends before the data that it declares.
    #[error("{} is truncated: {what}; fetch it again", path.display())]
    Truncated { path: PathBuf, what: String },
    /// A file does not follow its own format.
    #[error("{} is malformed: {what}", path.display())]
    Malformed { path: PathBuf, what: String },
    /// A file is not valid JSON, or not of the expected shape.
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Json { path: PathBuf, line: usize, column: usize, message: String },
    /// A field has a value that is missing, invalid or not supported.
    #[error("{}: field `{field}` is {value}: {reason}", path.display())]
    Field { path: PathBuf, field: String, value: String, reason: String },
    /// The architecture is not one that the decoder can be configured for.
    #[error("{}: architecture {found} is not supported; supported are {supported}", path.display())]
    UnknownArchitecture { path: PathBuf, found: String, supported: String },
    /// A tensor that the configuration implies is in no file.
    #[error("tensor {tensor} ({parameter}) is missing from {}; the checkpoint is incomplete or its configuration describes another model", path.display())]
    TensorMissing { tensor: String, parameter: String, path: PathBuf },
    /// A tensor has another shape than the configuration implies.
    #[error("tensor {tensor} in {} has shape {found:?}, but {expected:?} is needed", path.display())]
    WrongShape { tensor: String, path: PathBuf, found: Vec<usize>, expected: Vec<usize> },
    /// A tensor's element type is not one that can be read.
    #[error("tensor {tensor} in {} has element type {dtype}; {advice}", path.display())]
    ElementType { tensor: String, path: PathBuf, dtype: String, advice: String },
    /// The tokenizer can not be built, or lacks what a run needs.
    #[error("tokenizer of {}: {what}", path.display())]
    Tokenizer { path: PathBuf, what: String },
    /// A weight can not be quantised at load.
    #[error("{parameter} can not be quantised to {scheme}: {what}")]
    Quantise { parameter: String, scheme: &'static str, what: String },
    /// A weight is beyond the largest number of the type that was asked for.
    #[error(
        "{parameter} has a weight of magnitude {largest}, beyond the 65504 that f16 reaches: use --dtype bf16 or f32"
    )]
    Overflow { parameter: String, largest: f32 },
    /// A chat template has an error, or raised one for these messages.
    #[error("chat template {template}, line {line}: {message}")]
    Template { template: String, line: usize, message: String },
}

impl CheckpointError {
    /// Classifies an operating-system error: a missing file gets advice, everything else its cause.
    pub(super) fn io(path: &std::path::Path, advice: &str, source: std::io::Error) -> CheckpointError {
        if source.kind() == std::io::ErrorKind::NotFound {
            CheckpointError::FileMissing { path: path.to_path_buf(), advice: advice.to_string() }
        } else {
            CheckpointError::Read { path: path.to_path_buf(), source }
        }
    }
}
