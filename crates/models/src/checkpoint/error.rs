//! Errors of checkpoints.
use std::path::PathBuf;

/// Reasons why a checkpoint cannot be used. Messages name the file, the part of it and, if there is one, the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A required file is missing.
    #[error("{} is missing: {advice}", path.display())]
    FileMissing { path: PathBuf, advice: String },
    /// The operating system could not read a file.
    #[error("cannot read {}: {source}", path.display())]
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
    /// A field is missing, invalid or not supported.
    #[error("{}: field `{field}` is {value}: {reason}", path.display())]
    Field { path: PathBuf, field: String, value: String, reason: String },
    /// A field asks for what the decoder does not have, although its architecture is supported.
    #[error("{}: {what}", path.display())]
    Feature { path: PathBuf, what: String, architecture: String },
    /// The architecture is not supported.
    #[error("{}: architecture {found} is not supported; supported architectures: {supported}", path.display())]
    UnknownArchitecture { path: PathBuf, found: String, supported: String },
    /// A tensor that the configuration implies is missing.
    #[error("tensor {tensor} ({parameter}) is missing from {}: the checkpoint is incomplete, or its configuration describes another model", path.display())]
    TensorMissing { tensor: String, parameter: String, path: PathBuf },
    /// A tensor has another shape than the configuration implies.
    #[error("tensor {tensor} in {} has shape {found:?}, expected {expected:?}", path.display())]
    WrongShape { tensor: String, path: PathBuf, found: Vec<usize>, expected: Vec<usize> },
    /// A tensor's element type is not supported.
    #[error("tensor {tensor} in {} has element type {dtype}; {advice}", path.display())]
    ElementType { tensor: String, path: PathBuf, dtype: String, advice: String },
    /// The tokenizer cannot be built or does not fit the model.
    #[error("tokenizer of {}: {what}", path.display())]
    Tokenizer { path: PathBuf, what: String },
    /// A weight cannot be quantised at load.
    #[error("{parameter} cannot be quantised to {scheme}: {what}")]
    Quantise { parameter: String, scheme: &'static str, what: String },
    /// A weight exceeds the range of the requested type.
    #[error(
        "{parameter} has a weight of magnitude {largest}, which exceeds the largest f16 (65504): use --dtype bf16 or f32"
    )]
    Overflow { parameter: String, largest: f32 },
    /// A chat template is invalid, or raised an error for these messages.
    #[error("chat template {template}, line {line}: {message}")]
    Template { template: String, line: usize, message: String },
    /// A chat template asks for more than a template may: length, nesting, time, memory or output.
    #[error("chat template {template}: {what}")]
    TemplateLimit { template: String, what: String },
}

impl CheckpointError {
    /// Returns the next step for the user, where the message does not have it.
    pub fn help(&self) -> Option<String> {
        match self {
            CheckpointError::UnknownArchitecture { path, found, .. }
            | CheckpointError::Feature { path, architecture: found, .. } => {
                // mistral.rs takes folders only.
                let family = if path.ends_with("config.json") { found.as_str() } else { "" };
                let folder = path.parent().unwrap_or(path).display().to_string();
                Some(super::elsewhere::next_step(&folder, family))
            }
            _ => None,
        }
    }

    /// Wraps an I/O error; a missing file gets `advice`.
    pub(super) fn io(path: &std::path::Path, advice: &str, source: std::io::Error) -> CheckpointError {
        if source.kind() == std::io::ErrorKind::NotFound {
            CheckpointError::FileMissing { path: path.to_path_buf(), advice: advice.to_string() }
        } else {
            CheckpointError::Read { path: path.to_path_buf(), source }
        }
    }
}
