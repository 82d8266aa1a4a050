//! Keys of a `config.json` that change nothing that a decoder computes.
//!
//! Those that any family may have are passed over in silence. Those that look like part of the maths, but that transformers 5.23 does
//! not read for the family, are recorded, so that the user is told.
use super::super::json_fields::Fields;
use super::family::Family;

/// Origin and purpose of the file.
const IDENTITY: &[&str] = &[
    "architectures",
    "model_type",
    "_name_or_path",
    "_model_name_or_path",
    "name_or_path",
    "_commit_hash",
    "transformers_version",
    "tokenizer_class",
    "auto_map",
    "is_llama_config",
    "for_llm_compressor",
    "model_name",
    "unsloth_version",
    "unsloth_fixed",
    "transformers.js_config",
];
/// Precision of the file; tensors declare their own.
const PRECISION: &[&str] = &["torch_dtype", "dtype"];
/// Initialisation, dropout and losses. `pretraining_tp` splits matrix products without changing their result.
const TRAINING: &[&str] = &[
    "initializer_range",
    "attention_dropout",
    "resid_pdrop",
    "embd_pdrop",
    "hidden_dropout",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "pretraining_tp",
    "embedding_dropout",
    "residual_dropout",
    "seq_aux",
    "aux_loss_alpha",
    "ep_size",
    "mamba_dropout",
];
/// Execution settings and outputs of other libraries.
const EXECUTION: &[&str] = &[
    "use_cache",
    "cache_implementation",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "chunk_size_feed_forward",
];
/// Token ids; [`super::super::generation`] reads the end-of-sequence ids, the tokenizer has the others.
const TOKENS: &[&str] =
    &["bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "decoder_start_token_id"];
/// Generation settings that older checkpoints keep here: sampling defaults, which do not change what the model computes.
const GENERATION: &[&str] = &[
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "max_length",
    "max_new_tokens",
    "min_length",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "length_penalty",
    "diversity_penalty",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
];
/// Classifier heads, in files shared with a classifier.
const LABELS: &[&str] = &["id2label", "label2id", "problem_type"];
/// Images, audio and video of multimodal checkpoints; only their text decoder is read.
const OTHER_INPUTS: &[&str] = &[
    "vision_config",
    "audio_config",
    "image_token_index",
    "image_token_id",
    "video_token_id",
    "video_token_index",
    "audio_token_id",
    "boi_token_index",
    "boi_token_id",
    "eoi_token_index",
    "eoi_token_id",
    "boa_token_id",
    "eoa_token_id",
    "eoa_token_index",
    "mm_tokens_per_image",
    "vision_soft_tokens_per_image",
    "audio_soft_tokens_per_image",
    "multimodal_projector_bias",
    "projector_hidden_act",
    "spatial_merge_size",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "vision_start_token_id",
    "vision_end_token_id",
];

/// Marks the keys that change nothing in a decoder's own object as known.
pub(in crate::checkpoint) fn ignore_in_decoder(f: &Fields, family: Family) {
    for list in [IDENTITY, PRECISION, TRAINING, EXECUTION, TOKENS, GENERATION, LABELS] {
        f.ignore(list);
    }
    f.ignore_aloud(unread(family));
}

/// Marks the keys that change nothing around a `text_config` as known.
pub(in crate::checkpoint) fn ignore_around_text(f: &Fields) {
    for list in [IDENTITY, PRECISION, TRAINING, EXECUTION, TOKENS, GENERATION, LABELS, OTHER_INPUTS] {
        f.ignore(list);
    }
}

/// Keys of published files that transformers does not read for the family.
fn unread(family: Family) -> &'static [&'static str] {
    match family {
        Family::Llama => &["activation", "rope_interleaved", "mlp_type"],
        Family::Qwen2 => &["use_mrope"],
        Family::Qwen3Moe => &["max_window_layers", "qkv_bias", "shared_expert_intermediate_size", "use_qk_norm"],
        Family::Phi3 => &["attention_bias", "full_attn_mod", "interpolate_factor", "lm_head_bias", "mlp_bias"],
        Family::SmolLm3 => &["max_window_layers"],
        Family::Cohere2 => &[
            "head_dim",
            "layer_switch",
            "order_of_interleaved_layers",
            "position_embedding_type",
            "rotary_pct",
            "use_embedding_sharing",
            "use_gated_activation",
            "use_parallel_block",
            "use_parallel_embedding",
        ],
        Family::HunyuanDense => &[
            "add_classification_head",
            "attention_head_dim",
            "cla_share_factor",
            "class_num",
            "dense_list",
            "enable_lm_head_fp32",
            "eod_token_id",
            "im_end_id",
            "im_newline_id",
            "im_start_id",
            "mask_init_id",
            "max_seqlen",
            "mlp_bias",
            "norm_type",
            "org_vocab_size",
            "pad_id",
            "pool_type",
            "position_embedding_xdrope",
            "routed_scaling_factor",
            "sep_id",
            "text_end_id",
            "text_start_id",
            "use_cla",
            "use_qk_norm",
            "use_rotary_pos_emb",
        ],
        Family::GraniteMoeHybrid => &[
            "init_method",
            "normalization_function",
            "mamba_chunk_size",
            "mamba_conv_bias",
            "mamba_d_conv",
            "mamba_d_head",
            "mamba_d_state",
            "mamba_expand",
            "mamba_n_groups",
            "mamba_n_heads",
            "mamba_proj_bias",
            "time_step_limit",
            "time_step_max",
            "time_step_min",
        ],
        Family::GptOss => &["experts_per_token", "initial_context_length"],
        Family::Glm4Moe => &["num_nextn_predict_layers", "num_mtp_layers"],
        Family::DeepseekV3 => &[
            "head_dim",
            "moe_layer_freq",
            "num_key_value_heads",
            "num_mtp_layers",
            "num_nextn_predict_layers",
            "scoring_func",
            "topk_method",
        ],
        Family::Gemma3 => &["attn_logit_softcapping"],
        Family::Gemma3n => &["altup_coef_clip", "hidden_act", "query_pre_attn_scalar"],
        Family::Gemma4 => &["expert_intermediate_size"],
        Family::Qwen35 => &[
            "attn_output_gate",
            "mamba_ssm_dtype",
            "mlp_only_layers",
            "mtp_num_hidden_layers",
            "mtp_use_dedicated_embeddings",
            "output_gate_type",
        ],
        Family::Qwen35Moe => &[
            "attn_output_gate",
            "decoder_sparse_step",
            "intermediate_size",
            "mamba_ssm_dtype",
            "mlp_only_layers",
            "mtp_num_hidden_layers",
            "mtp_use_dedicated_embeddings",
            "norm_topk_prob",
            "output_gate_type",
        ],
        Family::Starcoder2 => &[
            "activation_function",
            "layer_norm_epsilon",
            "mlp_type",
            "norm_type",
            "scale_attention_softmax_in_fp32",
            "scale_attn_weights",
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::CheckpointError;
    use super::super::config;
    use super::*;
    use serde_json::{Map, Value, json};
    use std::path::Path;

    /// A value of a key that is neither null nor false, small enough for a decoder of four layers.
    fn value(key: &str, model_type: &str) -> Value {
        let local = match model_type {
            "llama4_text" => "chunked_attention",
            "qwen3_5_text" | "qwen3_5_moe_text" => "linear_attention",
            _ => "sliding_attention",
        };
        let rope = match model_type {
            "phi3" => {
                json!({"type": "longrope", "short_factor": [1, 1, 1, 1, 1, 1], "long_factor": [1, 1, 1, 1, 1, 1]})
            }
            "hunyuan_v1_dense" => json!({"type": "dynamic", "alpha": 10.0, "factor": 1.0}),
            "gemma4_text" => json!({
                "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            }),
            "ministral3" => json!({
                "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 40,
                "llama_4_scaling_beta": 0.1,
            }),
            _ => json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 40}),
        };
        match key {
            "rope_scaling" | "rope_parameters" => rope,
            "hidden_act" | "hidden_activation"
                if matches!(model_type, "gpt_oss" | "qwen3_5_text" | "qwen3_5_moe_text") =>
            {
                json!("silu")
            }
            "hidden_act" | "hidden_activation" => json!("gelu_pytorch_tanh"),
            "layer_types" if model_type == "granitemoehybrid" => json!(vec!["attention"; 4]),
            "layer_types" => json!([local, "full_attention", local, "full_attention"]),
            "no_rope_layers" => json!([1, 1, 1, 0]),
            "activation_sparsity_pattern" => json!([0.5, 0.0, 0.0, 0.0]),
            "position_embedding_type" => json!("rope"),
            "sliding_window_pattern" | "interleave_moe_layer_step" | "num_hidden_layers" => json!(4),
            "hidden_size" | "vocab_size" | "intermediate_size" | "vocab_size_per_layer_input" => json!(96),
            "num_attention_heads" | "num_experts" | "num_local_experts" | "n_routed_experts" => json!(4),
            "head_dim" | "global_head_dim" | "qk_rope_head_dim" | "qk_nope_head_dim" | "v_head_dim" => json!(16),
            "num_key_value_heads" | "n_group" | "num_experts_per_tok" | "top_k_experts" | "num_kv_shared_layers" => {
                json!(2)
            }
            "max_position_embeddings" => json!(160),
            "original_max_position_embeddings" => json!(40),
            "rope_theta" | "rope_local_base_freq" => json!(1e4),
            "partial_rotary_factor" => json!(0.5),
            "mlp_only_layers" => json!([1]),
            "attention_multiplier" | "embedding_multiplier" | "residual_multiplier" | "logit_scale" => json!(0.5),
            "attn_scale" | "query_pre_attn_scalar" | "rms_norm_eps" | "layer_norm_eps" | "norm_epsilon" => json!(0.5),
            // A latent projection with biases is refused, rightly.
            "attention_bias" if model_type == "deepseek_v3" => json!(false),
            "use_bidirectional_attention" => json!("vision"),
            "enable_moe_block" => json!(false),
            "attention_bias" | "mlp_bias" | "use_bias" | "attention_k_eq_v" | "norm_topk_prob" => {
                json!(true)
            }
            "attn_temperature_tuning" | "tie_word_embeddings" | "use_double_wide_mlp" | "use_qk_norm" => json!(true),
            "use_sliding_window" => json!(true),
            "altup_correct_scale" => json!(true),
            "altup_active_idx" => json!(0),
            _ => json!(1),
        }
    }

    fn parse(map: &Map<String, Value>, allow: &[String]) -> Result<config::Read, CheckpointError> {
        config::parse(Path::new("config.json"), map, allow)
    }

    #[test]
    fn keys_of_published_models_of_supported_families_are_understood_or_named() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/config_keys.json");
        let list: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut opened = 0;
        for model in list["models"].as_array().unwrap() {
            let (name, model_type) = (model["model"].as_str().unwrap(), model["model_type"].as_str().unwrap());
            if Family::from_model_type(model_type).is_none() {
                assert!(model_type == "ernie4_5", "{name} is not supported");
                continue;
            }
            let strings =
                |key: &str| model[key].as_array().unwrap().iter().map(|k| k.as_str().unwrap()).collect::<Vec<_>>();
            let mut map = Map::from_iter([("model_type".to_owned(), json!(model_type))]);
            for key in strings("keys") {
                if key != "quantization_config" {
                    map.insert(key.to_owned(), value(key, model_type));
                }
            }
            // Sparse files have the class's number of layers.
            let layers = map.get("num_hidden_layers").and_then(Value::as_u64);
            assert!(layers.is_none_or(|n| n == 4));
            let read = parse(&map, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
            for key in strings("ignored_by_transformers") {
                let silent = [TRAINING, EXECUTION, TOKENS, IDENTITY].iter().any(|list| list.contains(&key));
                // A count of layers without experts is listed, but read by none.
                assert!(silent || read.passed.ignored.contains(key), "{name}: {key} is passed over in silence");
            }
            assert!(read.passed.allowed.is_empty());
            opened += 1;
        }
        assert_eq!(opened, 33, "of 34");
    }

    #[test]
    fn unknown_keys_are_refused_by_name_and_let_through_by_name() {
        let mut map = Map::from_iter([
            ("model_type".to_owned(), json!("llama")),
            ("hidden_twist".to_owned(), json!(3)),
            ("other_twist".to_owned(), json!(false)),
            ("activation".to_owned(), json!("swiglu")),
        ]);
        let error = parse(&map, &[]).err().unwrap().to_string();
        assert!(error.contains("`hidden_twist` is 3") && error.contains("`allow_config = hidden_twist`"), "{error}");
        let read = parse(&map, &["hidden_twist".to_owned(), "absent".to_owned()]).unwrap();
        assert_eq!(Vec::from_iter(read.passed.allowed), ["hidden_twist"]);
        assert_eq!(Vec::from_iter(read.passed.ignored), ["activation"]);
        // Within an object, by its whole name or its own.
        map.remove("hidden_twist");
        map.insert("rope_scaling".to_owned(), json!({"type": "linear", "factor": 2.0, "twist": 1}));
        let error = parse(&map, &[]).err().unwrap().to_string();
        assert!(error.contains("`allow_config = rope_scaling.twist`"), "{error}");
        for name in ["twist", "rope_scaling.twist"] {
            let read = parse(&map, &[name.to_owned()]).unwrap();
            assert_eq!(Vec::from_iter(read.passed.allowed), ["rope_scaling.twist"]);
        }
        // What is known can not be allowed away.
        map.insert("num_key_value_heads".to_owned(), json!(5));
        assert!(parse(&map, &["twist".to_owned(), "num_key_value_heads".to_owned()]).is_err());
    }
}
