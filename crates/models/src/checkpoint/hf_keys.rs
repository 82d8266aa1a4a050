//! Keys of a `config.json` that change nothing that a decoder computes.
//!
//! Those that any family may have are passed over in silence. Those that look like part of the maths, but that transformers 5.23 does
//! not read for the family, are recorded, so that the user is told.
use super::hf_family::Family;
use super::json_fields::Fields;

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
/// Token ids; [`super::generation`] reads the end-of-sequence ids, the tokenizer has the others.
const TOKENS: &[&str] = &["bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "decoder_start_token_id"];
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
pub(super) fn ignore_in_decoder(f: &Fields, family: Family) {
    for list in [IDENTITY, PRECISION, TRAINING, EXECUTION, TOKENS, GENERATION, LABELS] {
        f.ignore(list);
    }
    f.ignore_aloud(unread(family));
}

/// Marks the keys that change nothing around a `text_config` as known.
pub(super) fn ignore_around_text(f: &Fields) {
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
        Family::Phi3 => {
            &["attention_bias", "full_attn_mod", "interpolate_factor", "lm_head_bias", "mlp_bias"]
        }
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
        Family::Gemma3n => &["altup_coef_clip", "hidden_act", "query_pre_attn_scalar"],
        Family::Gemma4 => &["expert_intermediate_size"],
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
