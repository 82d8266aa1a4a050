//! The families of `config.json` that are supported, and the defaults of their configuration classes.

/// Supported architectures, for messages.
pub(in crate::checkpoint) const SUPPORTED: [&str; 40] = [
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "MixtralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "GemmaForCausalLM",
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "PhiForCausalLM",
    "Phi3ForCausalLM",
    "SmolLM3ForCausalLM",
    "EarnestAlibiForCausalLM",
    "EarnestReversedAlibiForCausalLM",
    "Ministral3ForCausalLM",
    "Mistral3ForConditionalGeneration",
    "Qwen3MoeForCausalLM",
    "Gemma3nForCausalLM",
    "Gemma3nForConditionalGeneration",
    "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration",
    "Olmo2ForCausalLM",
    "Olmo3ForCausalLM",
    "GraniteForCausalLM",
    "GraniteMoeForCausalLM",
    "GraniteMoeHybridForCausalLM",
    "GptOssForCausalLM",
    "Glm4ForCausalLM",
    "Glm4MoeForCausalLM",
    "Cohere2ForCausalLM",
    "Exaone4ForCausalLM",
    "HunYuanDenseV1ForCausalLM",
    "Starcoder2ForCausalLM",
    "Llama4ForCausalLM",
    "Llama4ForConditionalGeneration",
    "DeepseekV3ForCausalLM",
    "Qwen3_5ForCausalLM",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForCausalLM",
    "Qwen3_5MoeForConditionalGeneration",
];

/// A family of checkpoints that share configuration fields and tensor names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum Family {
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
    Ministral3,
    Qwen3Moe,
    Gemma3n,
    Gemma4,
    Olmo2,
    Olmo3,
    Granite,
    GraniteMoe,
    GraniteMoeHybrid,
    GptOss,
    Glm4,
    Glm4Moe,
    Cohere2,
    Exaone4,
    HunyuanDense,
    Starcoder2,
    Llama4,
    DeepseekV3,
    Qwen35,
    Qwen35Moe,
    /// Llama with linear biases (ALiBi) instead of a rotary embedding. It has its own name, because other libraries would apply
    /// a rotary embedding to a Llama.
    EarnestAlibi,
    /// The same with the sign of the Number Cookbook's program.
    EarnestReversedAlibi,
}

/// Defaults of a configuration class of transformers 5.
pub(in crate::checkpoint) struct Defaults {
    pub(in crate::checkpoint) vocab_size: usize,
    pub(in crate::checkpoint) hidden_size: usize,
    pub(in crate::checkpoint) intermediate_size: usize,
    pub(in crate::checkpoint) num_layers: usize,
    pub(in crate::checkpoint) num_heads: usize,
    /// None for the number of query heads.
    pub(in crate::checkpoint) num_kv_heads: Option<usize>,
    /// None for hidden size over heads.
    pub(in crate::checkpoint) head_dim: Option<usize>,
    pub(in crate::checkpoint) max_positions: usize,
    pub(in crate::checkpoint) eps: f64,
}

impl Family {
    pub(in crate::checkpoint) fn from_architecture(name: &str) -> Option<Family> {
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
            "Ministral3ForCausalLM" => Family::Ministral3,
            "Qwen3MoeForCausalLM" => Family::Qwen3Moe,
            "Gemma3nForCausalLM" | "Gemma3nForConditionalGeneration" => Family::Gemma3n,
            "Gemma4ForCausalLM" | "Gemma4ForConditionalGeneration" => Family::Gemma4,
            "Olmo2ForCausalLM" => Family::Olmo2,
            "Olmo3ForCausalLM" => Family::Olmo3,
            "GraniteForCausalLM" => Family::Granite,
            "GraniteMoeForCausalLM" => Family::GraniteMoe,
            "GraniteMoeHybridForCausalLM" => Family::GraniteMoeHybrid,
            "GptOssForCausalLM" => Family::GptOss,
            "Glm4ForCausalLM" => Family::Glm4,
            "Glm4MoeForCausalLM" => Family::Glm4Moe,
            "Cohere2ForCausalLM" => Family::Cohere2,
            "Exaone4ForCausalLM" => Family::Exaone4,
            "HunYuanDenseV1ForCausalLM" => Family::HunyuanDense,
            "Starcoder2ForCausalLM" => Family::Starcoder2,
            "Llama4ForCausalLM" | "Llama4ForConditionalGeneration" => Family::Llama4,
            "DeepseekV3ForCausalLM" => Family::DeepseekV3,
            "Qwen3_5ForCausalLM" | "Qwen3_5ForConditionalGeneration" => Family::Qwen35,
            "Qwen3_5MoeForCausalLM" | "Qwen3_5MoeForConditionalGeneration" => Family::Qwen35Moe,
            "EarnestAlibiForCausalLM" => Family::EarnestAlibi,
            "EarnestReversedAlibiForCausalLM" => Family::EarnestReversedAlibi,
            _ => return None,
        })
    }

    pub(in crate::checkpoint) fn from_model_type(name: &str) -> Option<Family> {
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
            "ministral3" => Family::Ministral3,
            "qwen3_moe" => Family::Qwen3Moe,
            "gemma3n" | "gemma3n_text" => Family::Gemma3n,
            "gemma4" | "gemma4_text" => Family::Gemma4,
            "olmo2" => Family::Olmo2,
            "olmo3" => Family::Olmo3,
            "granite" => Family::Granite,
            "granitemoe" => Family::GraniteMoe,
            "granitemoehybrid" => Family::GraniteMoeHybrid,
            "gpt_oss" => Family::GptOss,
            "glm4" => Family::Glm4,
            "glm4_moe" => Family::Glm4Moe,
            "cohere2" => Family::Cohere2,
            "exaone4" => Family::Exaone4,
            "hunyuan_v1_dense" => Family::HunyuanDense,
            "starcoder2" => Family::Starcoder2,
            "llama4" | "llama4_text" => Family::Llama4,
            "deepseek_v3" => Family::DeepseekV3,
            "qwen3_5" | "qwen3_5_text" => Family::Qwen35,
            "qwen3_5_moe" | "qwen3_5_moe_text" => Family::Qwen35Moe,
            "earnest_alibi" => Family::EarnestAlibi,
            "earnest_reversed_alibi" => Family::EarnestReversedAlibi,
            _ => return None,
        })
    }

    /// The causal decoder's class name.
    pub(in crate::checkpoint) fn name(self) -> &'static str {
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
            Family::Ministral3 => "Ministral3ForCausalLM",
            Family::Qwen3Moe => "Qwen3MoeForCausalLM",
            Family::Gemma3n => "Gemma3nForCausalLM",
            Family::Gemma4 => "Gemma4ForCausalLM",
            Family::Olmo2 => "Olmo2ForCausalLM",
            Family::Olmo3 => "Olmo3ForCausalLM",
            Family::Granite => "GraniteForCausalLM",
            Family::GraniteMoe => "GraniteMoeForCausalLM",
            Family::GraniteMoeHybrid => "GraniteMoeHybridForCausalLM",
            Family::GptOss => "GptOssForCausalLM",
            Family::Glm4 => "Glm4ForCausalLM",
            Family::Glm4Moe => "Glm4MoeForCausalLM",
            Family::Cohere2 => "Cohere2ForCausalLM",
            Family::Exaone4 => "Exaone4ForCausalLM",
            Family::HunyuanDense => "HunYuanDenseV1ForCausalLM",
            Family::Starcoder2 => "Starcoder2ForCausalLM",
            Family::Llama4 => "Llama4ForCausalLM",
            Family::DeepseekV3 => "DeepseekV3ForCausalLM",
            Family::Qwen35 => "Qwen3_5ForCausalLM",
            Family::Qwen35Moe => "Qwen3_5MoeForCausalLM",
            Family::EarnestAlibi => "EarnestAlibiForCausalLM",
            Family::EarnestReversedAlibi => "EarnestReversedAlibiForCausalLM",
        }
    }

    /// True if the class has `attention_bias`; in others the field is rejected unless it is false.
    pub(in crate::checkpoint) fn has_attention_bias_field(self) -> bool {
        matches!(
            self,
            Family::Llama
                | Family::Qwen3
                | Family::Qwen3Moe
                | Family::Gemma
                | Family::Gemma2
                | Family::Gemma3
                | Family::Gemma3n
                | Family::Gemma4
                | Family::SmolLm3
                | Family::Olmo2
                | Family::Olmo3
                | Family::Granite
                | Family::GraniteMoe
                | Family::GraniteMoeHybrid
                | Family::GptOss
                | Family::Glm4
                | Family::Glm4Moe
                | Family::Cohere2
                | Family::Qwen35
                | Family::Qwen35Moe
                | Family::HunyuanDense
                | Family::Llama4
        )
    }

    /// True if a text decoder of this family may be part of a multimodal checkpoint.
    pub(in crate::checkpoint) fn has_text_config(self) -> bool {
        matches!(
            self,
            Family::Gemma3
                | Family::Gemma3n
                | Family::Gemma4
                | Family::Qwen35
                | Family::Qwen35Moe
                | Family::Llama4
                | Family::Mistral
                | Family::Ministral3
        )
    }

    /// True if most layers have linear attention, and the others gated attention.
    pub(in crate::checkpoint) fn has_linear_attention(self) -> bool {
        matches!(self, Family::Qwen35 | Family::Qwen35Moe)
    }

    /// True if a part of a head may be rotated.
    pub(in crate::checkpoint) fn rotates_partly(self) -> bool {
        matches!(self, Family::Phi | Family::Phi3 | Family::Glm4 | Family::Glm4Moe) || self.has_linear_attention()
    }

    /// True if queries and keys rotate neighbouring dimensions. DeepSeek-V3 has a key for it.
    pub(in crate::checkpoint) fn rotates_pairs(self) -> bool {
        matches!(self, Family::Glm4 | Family::Cohere2 | Family::Llama4)
    }

    /// True if the embedding is multiplied by the square root of its width.
    pub(in crate::checkpoint) fn scales_embedding(self) -> bool {
        matches!(self, Family::Gemma | Family::Gemma2 | Family::Gemma3 | Family::Gemma3n | Family::Gemma4)
    }

    /// True if the head is the embedding where the file does not say.
    pub(in crate::checkpoint) fn ties_by_default(self) -> bool {
        self.scales_embedding() || matches!(self, Family::SmolLm3 | Family::Cohere2 | Family::Starcoder2)
    }

    /// True if norm weights are stored as the difference from one.
    pub(in crate::checkpoint) fn norms_are_offsets(self) -> bool {
        matches!(self, Family::Gemma | Family::Gemma2 | Family::Gemma3) || self.has_linear_attention()
    }

    #[rustfmt::skip]
    pub(in crate::checkpoint) fn defaults(self) -> Defaults {
        let table = |vocab_size, hidden_size, intermediate_size, num_layers, num_heads, num_kv_heads, head_dim, max_positions, eps| Defaults {
            vocab_size, hidden_size, intermediate_size, num_layers, num_heads, num_kv_heads, head_dim, max_positions, eps,
        };
        match self {
            Family::Llama | Family::EarnestAlibi | Family::EarnestReversedAlibi => table(32_000, 4096, 11_008, 32, 32, None, None, 2048, 1e-6),
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
            Family::Ministral3 => table(131_072, 4096, 14_336, 34, 32, Some(8), Some(128), 262_144, 1e-5),
            Family::Qwen3Moe => table(151_936, 2048, 6144, 24, 32, Some(4), None, 32_768, 1e-6),
            Family::Gemma3n => table(262_400, 2048, 16_384, 35, 8, Some(2), Some(256), 32_768, 1e-6),
            Family::Gemma4 =>  table(262_144, 2304, 9216, 30, 8, Some(4), Some(256), 131_072, 1e-6),
            Family::Olmo2 | Family::Olmo3 => table(50_304, 4096, 11_008, 32, 32, None, None, 2048, 1e-5),
            Family::Granite | Family::GraniteMoe | Family::GraniteMoeHybrid => table(32_000, 4096, 11_008, 32, 32, None, None, 2048, 1e-6),
            Family::GptOss =>  table(201_088, 2880, 2880, 36, 64, Some(8), Some(64), 131_072, 1e-5),
            Family::Glm4 =>    table(151_552, 4096, 13_696, 40, 32, Some(2), Some(128), 131_072, 1.5625e-7),
            Family::Glm4Moe => table(151_552, 4096, 10_944, 46, 96, Some(8), None, 131_072, 1e-5),
            Family::Cohere2 => table(256_000, 8192, 22_528, 40, 64, None, None, 8192, 1e-5),
            Family::Exaone4 => table(102_400, 4096, 16_384, 32, 32, Some(32), None, 2048, 1e-5),
            Family::HunyuanDense => table(290_943, 4096, 11_008, 32, 32, None, None, 2048, 1e-5),
            Family::Starcoder2 => table(49_152, 3072, 12_288, 30, 24, Some(2), None, 4096, 1e-5),
            Family::Llama4 =>  table(202_048, 5120, 8192, 48, 40, Some(8), Some(128), 131_072, 1e-5),
            Family::DeepseekV3 => table(129_280, 7168, 18_432, 61, 128, Some(128), None, 4096, 1e-6),
            Family::Qwen35 =>  table(248_320, 4096, 12_288, 32, 16, Some(4), Some(256), 32_768, 1e-6),
            Family::Qwen35Moe => table(248_320, 2048, 512, 40, 16, Some(2), Some(256), 32_768, 1e-6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_page_lists_what_is_supported() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md")).unwrap();
        let (_, table) = page.split_once("| Family (`architectures`) |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let first = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split([' ', ',']));
        let listed: BTreeSet<String> = first
            .filter(|word| word.ends_with("ForCausalLM") || word.ends_with("ForConditionalGeneration"))
            .map(str::to_owned)
            .collect();
        assert_eq!(listed, SUPPORTED.into_iter().map(str::to_owned).collect());
        assert!(listed.iter().all(|name| Family::from_architecture(name).is_some() || name.starts_with("Mistral3")));
    }
}
