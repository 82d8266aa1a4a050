//! Architectures of GGUF files (`general.architecture`).
use super::super::CheckpointError;
use super::super::error::nearest;
use super::file::GgufFile;

/// A supported architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum GgufArchitecture {
    /// Llama, SmolLM2, Mistral, Mixtral.
    Llama,
    Llama4,
    /// Mistral Small 3.1 and later, Ministral 3.
    Mistral3,
    Qwen2,
    Qwen3,
    Qwen3Moe,
    Qwen35,
    Qwen35Moe,
    Gemma,
    Gemma2,
    Gemma3,
    Gemma3n,
    Gemma4,
    Phi2,
    Phi3,
    SmolLm3,
    Granite,
    GraniteMoe,
    /// OLMo 2; OLMo 3 has the same name and a sliding window.
    Olmo2,
    GptOss,
    Glm4,
    /// GLM-4.5 to 4.7.
    Glm4Moe,
    Cohere2,
    Exaone4,
    HunyuanDense,
    Starcoder2,
    /// DeepSeek-V3 and what shares its attention and routing.
    DeepSeek2,
}

use GgufArchitecture::*;

const NAMES: [(&str, GgufArchitecture); 27] = [
    ("llama", Llama),
    ("llama4", Llama4),
    ("mistral3", Mistral3),
    ("qwen2", Qwen2),
    ("qwen3", Qwen3),
    ("qwen3moe", Qwen3Moe),
    ("qwen35", Qwen35),
    ("qwen35moe", Qwen35Moe),
    ("gemma", Gemma),
    ("gemma2", Gemma2),
    ("gemma3", Gemma3),
    ("gemma3n", Gemma3n),
    ("gemma4", Gemma4),
    ("phi2", Phi2),
    ("phi3", Phi3),
    ("smollm3", SmolLm3),
    ("granite", Granite),
    ("granitemoe", GraniteMoe),
    ("olmo2", Olmo2),
    ("gpt-oss", GptOss),
    ("glm4", Glm4),
    ("glm4moe", Glm4Moe),
    ("cohere2", Cohere2),
    ("exaone4", Exaone4),
    ("hunyuan-dense", HunyuanDense),
    ("starcoder2", Starcoder2),
    ("deepseek2", DeepSeek2),
];

impl GgufArchitecture {
    pub(in crate::checkpoint) fn of(file: &GgufFile) -> Result<GgufArchitecture, CheckpointError> {
        let found = file.text("general.architecture").unwrap_or("(none named)");
        let known = NAMES.iter().find(|(name, _)| *name == found).map(|(_, arch)| *arch);
        known.ok_or_else(|| CheckpointError::UnknownArchitecture {
            path: file.path.clone(),
            found: found.to_string(),
            near: nearest(found, NAMES.into_iter().map(|(name, _)| name)),
        })
    }

    pub(in crate::checkpoint) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, arch)| *arch == self).map_or("", |(name, _)| name)
    }

    /// True if the converter reorders the rows of queries and keys of half-split checkpoints to adjacent pairs.
    pub(in crate::checkpoint) fn is_reordered(self) -> bool {
        matches!(self, Llama | Mistral3 | SmolLm3 | Granite | GraniteMoe)
    }

    /// True if the checkpoint itself rotates adjacent pairs.
    pub(in crate::checkpoint) fn has_pairs(self) -> bool {
        matches!(self, Glm4 | Cohere2 | Llama4 | DeepSeek2)
    }

    /// True if YaRN is supported.
    pub(in crate::checkpoint) fn has_yarn(self) -> bool {
        matches!(self, Qwen2 | Qwen3 | Qwen3Moe | GptOss | Mistral3 | Olmo2 | Glm4 | Glm4Moe | DeepSeek2)
            || self.has_linear_attention()
    }

    /// True if most layers have linear attention, and the others gated attention.
    pub(in crate::checkpoint) fn has_linear_attention(self) -> bool {
        matches!(self, Qwen35 | Qwen35Moe)
    }

    /// True if a part of a head may be rotated.
    pub(in crate::checkpoint) fn rotates_partly(self) -> bool {
        matches!(self, Phi2 | Phi3 | Glm4 | Glm4Moe) || self.has_linear_attention()
    }

    pub(in crate::checkpoint) fn is_gemma(self) -> bool {
        matches!(self, Gemma | Gemma2 | Gemma3 | Gemma3n | Gemma4)
    }

    /// True if norms subtract the mean.
    pub(in crate::checkpoint) fn has_layer_norm(self) -> bool {
        matches!(self, Phi2 | Starcoder2 | Cohere2)
    }

    /// True if the norm before the feed-forward block is named after attention.
    pub(in crate::checkpoint) fn names_norm_after_attention(self) -> bool {
        matches!(self, GptOss | Glm4Moe) || self.has_linear_attention()
    }

    /// True if gate and up projection are stacked in the tensor named up.
    pub(in crate::checkpoint) fn stacks_gate_in_up(self) -> bool {
        matches!(self, Phi3 | Glm4)
    }
}
