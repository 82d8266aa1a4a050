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
    #[error("{}: architecture {found} is not supported{}; docs/models.md lists those that are", path.display(), of_near(near))]
    UnknownArchitecture { path: PathBuf, found: String, near: Vec<&'static str> },
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
    /// A GGUF file does not say how texts are split before merging, or in a way that is not known.
    #[error("{}: {what}", path.display())]
    PreTokenizer { path: PathBuf, what: String, example: &'static str },
    /// The keys that are to be let through are wrong for every checkpoint.
    #[error(transparent)]
    Allowed(#[from] super::AllowError),
    /// A weight cannot be quantised at load.
    #[error("{parameter} cannot be quantised to {scheme}: {what}")]
    Quantise { parameter: String, scheme: &'static str, what: String },
    /// A weight exceeds the range of the requested type.
    #[error(
        "{parameter} has a weight of magnitude {largest}, which exceeds the largest f16 (65504): use the setting `dtype = bf16` or f32"
    )]
    Overflow { parameter: String, largest: f32 },
    /// A chat template is invalid, or raised an error for these messages.
    #[error("chat template {template}, line {line}: {message}")]
    Template { template: String, line: usize, message: String },
    /// A chat template asks for more than a template may: length, nesting, time, memory or output.
    #[error("chat template {template}: {what}")]
    TemplateLimit { template: String, what: String },
}

/// Returns a sentence's part on the supported architectures of similar names.
fn of_near(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!(", the nearest that are: {}", near.join(", ")) }
}

/// Returns the supported architectures whose names are most like that of one that is not, at most three.
pub(super) fn nearest(found: &str, supported: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    const AT_MOST: usize = 3;
    // What all names share would make all of them alike.
    let own = |name: &str| {
        let own = name.split("For").next().unwrap_or(name);
        own.to_lowercase().replace(['_', '-', '.'], "")
    };
    let wanted = own(found);
    let likeness = |name: &str| {
        let name = own(name);
        let shared = wanted.chars().zip(name.chars()).take_while(|(one, other)| one == other).count();
        (shared >= 4.min(wanted.chars().count())).then(|| strsim::normalized_levenshtein(&wanted, &name))
    };
    let mut alike: Vec<(f64, &str)> = supported.filter_map(|name| Some((likeness(name)?, name))).collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    alike.into_iter().take(AT_MOST).map(|(_, name)| name).collect()
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
                Some(super::other_engines::next_step(&folder, family))
            }
            CheckpointError::PreTokenizer { example, .. } => Some(format!(
                "name the one that the model was trained with, as its publisher's tokenizer or a newer GGUF file of it has it, e.g. \
                 the setting `allow_config = tokenizer.ggml.pre={example}`; the manifest records it, and a model with another one is another model"
            )),
            CheckpointError::Allowed(error) => Some(error.help()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_architecture_is_answered_by_the_nearest_ones() {
        let known = [
            "Qwen2ForCausalLM",
            "Qwen3ForCausalLM",
            "Qwen3MoeForCausalLM",
            "Gemma4ForConditionalGeneration",
            "PhiForCausalLM",
        ];
        let near = |found: &str| nearest(found, known.into_iter());
        assert_eq!(near("Qwen3NextForCausalLM"), ["Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Qwen2ForCausalLM"]);
        assert_eq!(near("Gemma5ForCausalLM"), ["Gemma4ForConditionalGeneration"]);
        assert!(near("MambaForCausalLM").is_empty());
        assert!(near("(none named)").is_empty());
        let error = |found: &str| CheckpointError::UnknownArchitecture {
            path: "m/config.json".into(),
            found: found.to_owned(),
            near: near(found),
        };
        let text = error("Qwen3NextForCausalLM").to_string();
        assert!(text.contains("nearest that are: Qwen3ForCausalLM") && text.len() < 250, "{text}");
        let text = error("MambaForCausalLM").to_string();
        assert_eq!(
            text,
            "m/config.json: architecture MambaForCausalLM is not supported; docs/models.md lists those that are"
        );
    }
}
