//! The families of `config.json` that are supported, and the defaults of their configuration classes.

/// Supported architectures, for messages.
pub(super) const SUPPORTED: &str = "LlamaForCausalLM, MistralForCausalLM, MixtralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, \
     GemmaForCausalLM, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3ForConditionalGeneration (its text decoder), PhiForCausalLM, \
     Phi3ForCausalLM, SmolLM3ForCausalLM, EarnestAlibiForCausalLM";

/// A family of checkpoints that share configuration fields and tensor names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Llama,
    Mistral,
    Mixtral,
    Qwen2,
    Qwen3,
    Gemma,
    Gemma2,
    Gemma3,
    Phi,
    Phi3,
    SmolLm3,
    /// Llama with linear biases (ALiBi) instead of a rotary embedding. It has its own name, because other libraries would apply
    /// a rotary embedding to a Llama.
    EarnestAlibi,
}

/// Defaults of a configuration class of transformers 5.
pub(super) struct Defaults {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) intermediate_size: usize,
    pub(super) num_layers: usize,
    pub(super) num_heads: usize,
    /// None for the number of query heads.
    pub(super) num_kv_heads: Option<usize>,
    /// None for hidden size over heads.
    pub(super) head_dim: Option<usize>,
    pub(super) max_positions: usize,
    pub(super) eps: f64,
}

impl Family {
    pub(super) fn from_architecture(name: &str) -> Option<Family> {
        Some(match name {
            "LlamaForCausalLM" => Family::Llama,
            "MistralForCausalLM" => Family::Mistral,
            "MixtralForCausalLM" => Family::Mixtral,
            "Qwen2ForCausalLM" => Family::Qwen2,
            "Qwen3ForCausalLM" => Family::Qwen3,
            "GemmaForCausalLM" => Family::Gemma,
            "Gemma2ForCausalLM" => Family::Gemma2,
            "Gemma3ForCausalLM" | "Gemma3ForConditionalGeneration" => Family::Gemma3,
            "PhiForCausalLM" => Family::Phi,
            "Phi3ForCausalLM" => Family::Phi3,
            "SmolLM3ForCausalLM" => Family::SmolLm3,
            "EarnestAlibiForCausalLM" => Family::EarnestAlibi,
            _ => return None,
        })
    }

    pub(super) fn from_model_type(name: &str) -> Option<Family> {
        Some(match name {
            "llama" => Family::Llama,
            "mistral" => Family::Mistral,
            "mixtral" => Family::Mixtral,
            "qwen2" => Family::Qwen2,
            "qwen3" => Family::Qwen3,
            "gemma" => Family::Gemma,
            "gemma2" => Family::Gemma2,
            "gemma3" | "gemma3_text" => Family::Gemma3,
            "phi" => Family::Phi,
            "phi3" => Family::Phi3,
            "smollm3" => Family::SmolLm3,
            "earnest_alibi" => Family::EarnestAlibi,
            _ => return None,
        })
    }

    /// The causal decoder's class name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Family::Llama => "LlamaForCausalLM",
            Family::Mistral => "MistralForCausalLM",
            Family::Mixtral => "MixtralForCausalLM",
            Family::Qwen2 => "Qwen2ForCausalLM",
            Family::Qwen3 => "Qwen3ForCausalLM",
            Family::Gemma => "GemmaForCausalLM",
            Family::Gemma2 => "Gemma2ForCausalLM",
            Family::Gemma3 => "Gemma3ForCausalLM",
            Family::Phi => "PhiForCausalLM",
            Family::Phi3 => "Phi3ForCausalLM",
            Family::SmolLm3 => "SmolLM3ForCausalLM",
            Family::EarnestAlibi => "EarnestAlibiForCausalLM",
        }
    }

    /// True if the class has `attention_bias`; in others the field is rejected unless it is false.
    pub(super) fn has_attention_bias_field(self) -> bool {
        matches!(
            self,
            Family::Llama | Family::Qwen3 | Family::Gemma | Family::Gemma2 | Family::Gemma3 | Family::SmolLm3
        )
    }

    /// True if norm weights are stored as the difference from one.
    pub(super) fn norms_are_offsets(self) -> bool {
        matches!(self, Family::Gemma | Family::Gemma2 | Family::Gemma3)
    }

    #[rustfmt::skip]
    pub(super) fn defaults(self) -> Defaults {
        let table = |vocab_size, hidden_size, intermediate_size, num_layers, num_heads, num_kv_heads, head_dim, max_positions, eps| Defaults {
            vocab_size, hidden_size, intermediate_size, num_layers, num_heads, num_kv_heads, head_dim, max_positions, eps,
        };
        match self {
            Family::Llama | Family::EarnestAlibi => table(32_000, 4096, 11_008, 32, 32, None, None, 2048, 1e-6),
            Family::Mistral => table(32_000, 4096, 14_336, 32, 32, Some(8), None, 131_072, 1e-6),
            Family::Mixtral => table(32_000, 4096, 14_336, 32, 32, Some(8), None, 131_072, 1e-5),
            Family::Qwen2 =>   table(151_936, 4096, 22_016, 32, 32, Some(32), None, 32_768, 1e-6),
            Family::Qwen3 =>   table(151_936, 4096, 22_016, 32, 32, Some(32), Some(128), 32_768, 1e-6),
            Family::Gemma =>   table(256_000, 3072, 24_576, 28, 16, Some(16), Some(256), 8192, 1e-6),
            Family::Gemma2 =>  table(256_000, 2304, 9216, 26, 8, Some(4), Some(256), 8192, 1e-6),
            Family::Gemma3 =>  table(262_208, 2304, 9216, 26, 8, Some(4), Some(256), 131_072, 1e-6),
            Family::Phi =>     table(51_200, 2048, 8192, 24, 32, None, None, 2048, 1e-5),
            Family::Phi3 =>    table(32_064, 3072, 8192, 32, 32, None, None, 4096, 1e-5),
            Family::SmolLm3 => table(128_256, 2048, 11_008, 36, 16, Some(4), None, 32_768, 1e-6),
        }
    }
}
