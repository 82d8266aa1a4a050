//! Generation defaults of checkpoints: sampling and stop tokens.
use earnest_engine::Sampling;
use earnest_models::checkpoint::Checkpoint;
use earnest_models::hub::Decoding;

use super::LocatedModel;

/// Generation defaults of a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointDefaults {
    pub recommended: Sampling,
    pub stop_ids: Vec<u32>,
    /// End-of-sequence token of the tokenizer.
    pub tokenizer_eos: Option<u32>,
    /// True if the chat template opens a thinking block.
    pub thinks: bool,
}

impl Default for CheckpointDefaults {
    /// Greedy, no stop tokens.
    fn default() -> Self {
        CheckpointDefaults { recommended: Sampling::GREEDY, stop_ids: Vec::new(), tokenizer_eos: None, thinks: false }
    }
}

/// Returns the generation defaults of a checkpoint: greedy unless it enables sampling. Recommendations of the list of models
/// take precedence.
pub fn checkpoint_defaults(located: &LocatedModel, checkpoint: &Checkpoint) -> CheckpointDefaults {
    let defaults = &checkpoint.generation;
    let recommended = recommended_by_files(checkpoint);
    CheckpointDefaults {
        recommended: located.decoding.map_or(recommended.clone(), |listed| overridden(listed, &recommended)),
        stop_ids: defaults.eos_ids.clone(),
        tokenizer_eos: checkpoint.tokenizer.eos(),
        thinks: checkpoint.chat_template.as_ref().is_some_and(|template| template.thinks()),
    }
}

/// Returns the sampling that a checkpoint's own files recommend: greedy unless they enable sampling.
pub fn recommended_by_files(checkpoint: &Checkpoint) -> Sampling {
    let defaults = &checkpoint.generation;
    let penalty = defaults.repetition_penalty.unwrap_or(1.0);
    // Missing fields default as in transformers' GenerationConfig (temperature 1, top-k 50, top-p 1).
    if defaults.do_sample == Some(true) {
        Sampling {
            temperature: defaults.temperature.unwrap_or(1.0),
            top_k: defaults.top_k.unwrap_or(50),
            top_p: defaults.top_p.unwrap_or(1.0),
            min_p: defaults.min_p.unwrap_or(0.0),
            repetition_penalty: penalty,
        }
    } else {
        Sampling { repetition_penalty: penalty, ..Sampling::GREEDY }
    }
}

/// Overrides a checkpoint's sampling with the list's.
fn overridden(listed: Decoding, checkpoint: &Sampling) -> Sampling {
    Sampling {
        temperature: listed.temperature,
        top_k: listed.top_k.unwrap_or(checkpoint.top_k),
        top_p: listed.top_p.unwrap_or(checkpoint.top_p),
        min_p: checkpoint.min_p,
        repetition_penalty: listed.repetition_penalty.unwrap_or(checkpoint.repetition_penalty),
    }
}
