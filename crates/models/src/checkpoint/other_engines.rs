//! Engines that take checkpoints which the native one cannot run.

/// Text decoders of mistral.rs 0.8.1 that the native engine may lack, by architecture and `model_type`
/// (`NormalLoaderType::from_causal_lm_name` in `pipeline/loaders/normal_loaders.rs`).
const MISTRALRS: [(&str, &str); 11] = [
    ("DeepseekV2ForCausalLM", "deepseek_v2"),
    ("DeepseekV3ForCausalLM", "deepseek_v3"),
    ("Glm4ForCausalLM", "glm4"),
    ("Glm4MoeForCausalLM", "glm4_moe"),
    ("Glm4MoeLiteForCausalLM", "glm4_moe_lite"),
    ("GptOssForCausalLM", "gpt_oss"),
    ("GraniteMoeHybridForCausalLM", "granitemoehybrid"),
    ("PhiMoEForCausalLM", "phimoe"),
    ("Qwen3MoeForCausalLM", "qwen3_moe"),
    ("Qwen3NextForCausalLM", "qwen3_next"),
    ("Starcoder2ForCausalLM", "starcoder2"),
];

/// True if mistral.rs loads this architecture (or `model_type`), whose answers nobody here compared with a reference.
pub fn mistralrs_knows(architecture: &str) -> bool {
    MISTRALRS.iter().any(|(name, kind)| [*name, *kind].contains(&architecture))
}

/// Returns the next step for a model that the native engine cannot run: the commands for other engines. `model` is what `--model`
/// takes, `family` its architecture or `model_type`.
pub(crate) fn next_step(model: &str, family: &str) -> String {
    let endpoint = "serve it with another program (vLLM, SGLang, llama.cpp) and run with the setting `engine = openai` and the setting `base_url = URL`";
    match mistralrs_knows(family) {
        true => format!(
            "the setting `engine = mistralrs` with the setting `model = {model}` tries it with mistral.rs, which has this architecture (not verified by us); or {endpoint}"
        ),
        false => endpoint.to_owned(),
    }
}
