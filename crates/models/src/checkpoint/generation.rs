//! Generation defaults of a checkpoint: end-of-sequence ids and recommended sampling.
use super::gguf::file::GgufFile;
use super::json_fields::{self, Fields};
use super::{CheckpointError, Tokenizer};
use std::collections::BTreeSet;
use std::path::Path;

/// End-of-sequence ids and recommended sampling settings; `None` if the checkpoint does not have the setting.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GenerationDefaults {
    /// Ids that end a generation: those of config.json, generation_config.json, the tokenizer and GGUF metadata; sorted, unique,
    /// never empty.
    pub eos_ids: Vec<u32>,
    /// True to sample, false for greedy decoding.
    pub do_sample: Option<bool>,
    /// Divisor of the logits.
    pub temperature: Option<f32>,
    /// Number of most likely tokens to keep.
    pub top_k: Option<usize>,
    /// Probability of the smallest set of most likely tokens to keep.
    pub top_p: Option<f32>,
    /// Smallest probability to keep, as a share of the most likely token's.
    pub min_p: Option<f32>,
    /// Divisor of positive and factor of negative logits of tokens that have occurred.
    pub repetition_penalty: Option<f32>,
}

impl GenerationDefaults {
    /// Reads `generation_config.json`, if there is one. Unknown fields are ignored, because none changes what the model computes.
    pub(super) fn from_folder(folder: &Path, config_eos: &[u32]) -> Result<GenerationDefaults, CheckpointError> {
        let path = folder.join("generation_config.json");
        let mut eos: BTreeSet<u32> = config_eos.iter().copied().collect();
        let Some(map) = json_fields::read_optional_object(&path)? else {
            return Ok(GenerationDefaults { eos_ids: eos.into_iter().collect(), ..Default::default() });
        };
        let f = Fields::new(&path, "", &map);
        eos.extend(f.token_ids("eos_token_id")?);
        let single = |key: &str| f.number(key).map(|v| v.map(|v| v as f32));
        Ok(GenerationDefaults {
            eos_ids: eos.into_iter().collect(),
            do_sample: f.flag("do_sample")?,
            temperature: single("temperature")?,
            top_k: f.size("top_k")?,
            top_p: single("top_p")?,
            min_p: single("min_p")?,
            repetition_penalty: single("repetition_penalty")?,
        })
    }

    /// Reads the ids that end a text (`eos`), a turn (`eot`) or a message (`eom`), and `general.sampling.*`.
    pub(super) fn from_gguf(file: &GgufFile) -> GenerationDefaults {
        let ids = ["eos", "eot", "eom"].map(|name| file.token_id(&format!("tokenizer.ggml.{name}_token_id")));
        let number = |name: &str| file.number(&format!("general.sampling.{name}"));
        GenerationDefaults {
            eos_ids: ids.into_iter().flatten().collect(),
            do_sample: None,
            temperature: number("temp").map(|v| v as f32),
            top_k: number("top_k").filter(|v| *v >= 0.0).map(|v| v as usize),
            top_p: number("top_p").map(|v| v as f32),
            min_p: number("min_p").map(|v| v as f32),
            repetition_penalty: number("penalty_repeat").map(|v| v as f32),
        }
    }

    /// Adds the tokenizer's end-of-sequence token and checks that the model has an embedding for every id.
    pub(super) fn complete(
        mut self,
        source: &Path,
        tokenizer: &Tokenizer,
        vocab_size: usize,
    ) -> Result<GenerationDefaults, CheckpointError> {
        let fail = |what: String| CheckpointError::Tokenizer { path: source.to_path_buf(), what };
        self.eos_ids.extend(tokenizer.eos());
        self.eos_ids.sort_unstable();
        self.eos_ids.dedup();
        if self.eos_ids.is_empty() {
            return Err(fail(
                "no end-of-sequence token is defined; add `eos_token_id` to generation_config.json".into(),
            ));
        }
        if let Some(id) = self.eos_ids.iter().find(|id| **id as usize >= vocab_size) {
            return Err(fail(format!("end-of-sequence id {id} is outside the model's vocabulary of {vocab_size}")));
        }
        if let Some(id) = tokenizer.bos().filter(|id| *id as usize >= vocab_size) {
            return Err(fail(format!("BOS id {id} is outside the model's vocabulary of {vocab_size}")));
        }
        Ok(self)
    }
}
