//! GGUF files of the families of 2025 and 2026: metadata as llama.cpp's converter writes it for the reference checkpoints.
use crate::gguf_files::{Gguf, assert_same, convert, count, flags, is_here, refusal, set, windows};
use candle_core::quantized::gguf_file::Value;
use earnest_models::checkpoint::{
    Activation, Checkpoint, DecoderConfig, LayerParameter, Parameter, Position, RopeScaling, Routing,
};

/// Frequencies of Llama 3.1's scaling divided by it, as the converter computes them.
fn divisors(theta: f64, dims: usize, factor: f64, original: f64) -> Vec<f32> {
    let one = |i: usize| {
        let length = 2.0 * std::f64::consts::PI * theta.powf(2.0 * i as f64 / dims as f64);
        if length < original / 4.0 {
            return 1.0;
        }
        if length > original {
            return factor as f32;
        }
        let smooth = (original / length - 1.0) / 3.0;
        (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
    };
    (0..dims / 2).map(one).collect()
}

fn yarn(gguf: &mut Gguf, arch: &str, factor: f32) {
    set(
        gguf,
        arch,
        [
            ("rope.scaling.type", Value::String("yarn".into())),
            ("rope.scaling.factor", Value::F32(factor)),
            ("rope.scaling.original_context_length", count(40)),
            ("rope.scaling.yarn_beta_fast", Value::F32(32.0)),
            ("rope.scaling.yarn_beta_slow", Value::F32(1.0)),
        ],
    );
}

/// GPT-OSS, with its experts in f32, and the configuration that is expected.
fn gpt_oss(name: &str) -> (Gguf, Checkpoint, DecoderConfig) {
    let (mut gguf, source) = convert(name, "gpt-oss");
    yarn(&mut gguf, "gpt-oss", 32.0);
    set(&mut gguf, "gpt-oss", [("attention.sliding_window", count(16))]);
    gguf.metadata.remove("gpt-oss.rope.dimension_count");
    // The published models have this limit, the file has no key for it.
    let activation = Activation::ClampedSwiglu { alpha: 1.702, limit: 7.0 };
    let expected = DecoderConfig { activation, ..source.config.clone() };
    (gguf, source, expected)
}

#[test]
fn gpt_oss_comes_back() {
    let (gguf, source, expected) = gpt_oss("gpt-oss-mxfp4");
    assert_same(&gguf, &source, expected);
    if is_here("gpt-oss-bf16") {
        let (gguf, source, expected) = gpt_oss("gpt-oss-bf16");
        assert_same(&gguf, &source, expected);
    }
}

/// Blocks of MXFP4 with these values, which it has.
fn mxfp4(values: &[f32]) -> Vec<u8> {
    let sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let block = |values: &[f32]| {
        let code = |v: f32, scale: f32| {
            let size = sizes.iter().position(|size| *size == v.abs() / scale)?;
            Some(size as u8 + if v < 0.0 { 8 } else { 0 })
        };
        let codes = |scale: f32| values.iter().map(|v| code(*v, scale)).collect::<Option<Vec<u8>>>();
        let fits = (0..=254u8).find_map(|e| Some((e, codes((f64::from(e) - 127.0).exp2() as f32)?)));
        let (exponent, codes) = fits.expect("a block of MXFP4");
        let mut bytes = vec![exponent];
        bytes.extend((0..16).map(|i| codes[i] | codes[i + 16] << 4));
        bytes
    };
    values.chunks(32).flat_map(block).collect()
}

#[test]
fn experts_in_mxfp4_come_back() {
    let (mut gguf, source, expected) = gpt_oss("gpt-oss-mxfp4");
    gguf.set("general.file_type", Value::U32(38));
    let names: Vec<String> = gguf.tensors.keys().filter(|name| name.contains("_exps.weight")).cloned().collect();
    assert_eq!(names.len(), 12);
    for name in &names {
        let (shape, values) = gguf.tensors.remove(name).unwrap();
        gguf.mxfp4.insert(name.clone(), (shape, mxfp4(&values)));
    }
    assert_same(&gguf, &source, expected);
    // Half of the experts, and a router without its bias.
    let (shape, blocks) = gguf.mxfp4[&names[0]].clone();
    let half = blocks[..blocks.len() / shape[0] * 2].to_vec();
    gguf.mxfp4.insert(names[0].clone(), ([&[2], &shape[1..]].concat(), half));
    let error = refusal(&gguf);
    assert!(error.contains(&names[0]) && error.contains("[2, ") && error.contains("[5, "), "{error}");
    gguf.mxfp4.insert(names[0].clone(), (shape, blocks));
    gguf.tensors.remove("blk.1.ffn_gate_inp.bias");
    let error = refusal(&gguf);
    assert!(error.contains("blk.1.ffn_gate_inp.bias") && error.contains("m.gguf"), "{error}");
}

#[test]
fn olmo3_comes_back() {
    let (mut gguf, source) = convert("olmo3-yarn", "olmo2");
    yarn(&mut gguf, "olmo2", 8.0);
    let attention_factor = 1.207_944_2f32;
    let more = [
        ("rope.scaling.yarn_attn_factor", Value::F32(attention_factor)),
        ("rope.freq_base_swa", Value::F32(source.config.ropes[0].theta as f32)),
        ("attention.sliding_window", count(16)),
        ("attention.sliding_window_pattern", windows(&source.config)),
    ];
    set(&mut gguf, "olmo2", more);
    for key in ["attention.key_length", "attention.value_length", "rope.dimension_count"] {
        gguf.metadata.remove(&format!("olmo2.{key}"));
    }
    let mut expected = source.config.clone();
    let RopeScaling::Yarn { attention_factor: own, .. } = &mut expected.ropes[0].scaling else { panic!() };
    assert!((*own - f64::from(attention_factor)).abs() < 1e-6);
    *own = f64::from(attention_factor);
    assert_same(&gguf, &source, expected);
    // The default is the same pattern.
    gguf.metadata.remove("olmo2.attention.sliding_window_pattern");
    assert_eq!(gguf.open().unwrap().config.layers, source.config.layers);
    gguf.set("olmo2.attention.sliding_window_pattern", flags([true, false]));
    assert!(refusal(&gguf).contains("olmo2.attention.sliding_window_pattern"));
}

#[test]
fn ministral3_comes_back() {
    if !is_here("ministral3") {
        return;
    }
    let (mut gguf, source) = convert("ministral3", "mistral3");
    yarn(&mut gguf, "mistral3", 16.0);
    let more =
        [("rope.scaling.yarn_log_multiplier", Value::F32(1.0)), ("attention.temperature_scale", Value::F32(0.5))];
    set(&mut gguf, "mistral3", more);
    assert_same(&gguf, &source, source.config.clone());
    gguf.set("mistral3.rope.scaling.yarn_ext_factor", Value::F32(0.5));
    assert!(refusal(&gguf).contains("mistral3.rope.scaling.yarn_ext_factor"));
    let (gguf, source) = convert("mistral-small-3.1", "mistral3");
    assert_same(&gguf, &source, source.config.clone());
}

#[test]
fn glm_comes_back() {
    if !is_here("glm4") {
        return;
    }
    let (mut gguf, source) = convert("glm4", "glm4");
    assert_same(&gguf, &source, source.config.clone());
    // With positions in images the converter puts the rows in order.
    gguf.set("glm4.rope.dimension_sections", Value::Array([2, 2, 2, 0].map(Value::I32).to_vec()));
    assert!(!gguf.open().unwrap().config.rotary_pairs && source.config.rotary_pairs);

    let (mut gguf, source) = convert("glm4.5-moe", "glm4moe");
    let Some(Routing::Sigmoid { scale, .. }) = source.config.experts.map(|e| e.routing) else { panic!() };
    let keys = [
        ("expert_group_count", count(1)),
        ("expert_group_used_count", count(1)),
        ("expert_shared_count", count(1)),
        ("leading_dense_block_count", count(1)),
        ("expert_gating_func", count(2)),
        ("expert_weights_scale", Value::F32(scale)),
        ("expert_weights_norm", Value::Bool(true)),
    ];
    set(&mut gguf, "glm4moe", keys);
    assert_same(&gguf, &source, source.config.clone());
    // A block that predicts further tokens.
    gguf.set("glm4moe.block_count", count(source.config.layers.len() + 1));
    gguf.set("glm4moe.nextn_predict_layers", count(1));
    let last = source.config.layers.len();
    gguf.tensors.insert(format!("blk.{last}.attn_norm.weight"), (vec![64], vec![1.0; 64]));
    assert!(refusal(&gguf).contains(&format!("blk.{last}.attn_norm.weight")));
    gguf.tensors.insert(format!("blk.{last}.nextn.eh_proj.weight"), (vec![64, 128], vec![0.0; 8192]));
    assert_same(&gguf, &source, source.config.clone());
    gguf.set("glm4moe.expert_gating_func", count(1));
    assert!(refusal(&gguf).contains("glm4moe.expert_gating_func"));
}

#[test]
fn families_without_positions_in_some_layers_come_back() {
    if !is_here("cohere2") {
        return;
    }
    let (mut gguf, source) = convert("cohere2", "cohere2");
    let keys = [
        ("logit_scale", Value::F32(source.config.logit_scale)),
        ("attention.sliding_window", count(16)),
        ("rope.scaling.type", Value::String("none".into())),
    ];
    set(&mut gguf, "cohere2", keys);
    assert_same(&gguf, &source, source.config.clone());

    let (mut gguf, source) = convert("exaone4-hybrid", "exaone4");
    let keys = [("attention.sliding_window", count(16)), ("attention.sliding_window_pattern", windows(&source.config))];
    set(&mut gguf, "exaone4", keys);
    gguf.metadata.remove("exaone4.rope.dimension_count");
    let factors = divisors(1e6, 24, 16.0, 64.0);
    gguf.tensors.insert("rope_freqs.weight".into(), (vec![12], factors.clone()));
    let mut expected = source.config.clone();
    expected.ropes[0].scaling = RopeScaling::Divisors(factors.into_iter().map(f64::from).collect());
    assert_same(&gguf, &source, expected);
    // Without a window, as the small model.
    gguf.metadata.retain(|key, _| !key.contains("sliding_window"));
    let layers = gguf.open().unwrap().config.layers;
    assert!(layers.iter().all(|l| l.window.is_none() && l.position == Position::Rotary(0)));
}

#[test]
fn granite_with_experts_comes_back() {
    if !is_here("granite3-moe") {
        return;
    }
    let (mut gguf, source) = convert("granite3-moe", "granitemoe");
    gguf.metadata.remove("granitemoe.expert_feed_forward_length");
    let c = source.config.clone();
    let scales = [
        ("embedding_scale", Value::F32(c.embedding_scale)),
        ("residual_scale", Value::F32(c.residual_scale)),
        ("logit_scale", Value::F32(1.0 / c.logit_scale)),
        ("attention.scale", Value::F32(c.attention_scale)),
    ];
    set(&mut gguf, "granitemoe", scales);
    assert_same(&gguf, &source, c);
}

#[test]
fn hunyuan_and_starcoder2_come_back() {
    if !is_here("hunyuan-dense") {
        return;
    }
    for (name, arch) in [("hunyuan-dense", "hunyuan-dense"), ("starcoder2", "starcoder2")] {
        let (gguf, source) = convert(name, arch);
        let mut expected = source.config.clone();
        // The file has the base in f32, and no window.
        expected.ropes[0].theta = f64::from(expected.ropes[0].theta as f32);
        expected.layers.iter_mut().for_each(|layer| layer.window = None);
        assert_same(&gguf, &source, expected);
    }
}

#[test]
fn llama4_comes_back() {
    if !is_here("llama4") {
        return;
    }
    let (mut gguf, source) = convert("llama4", "llama4");
    set(&mut gguf, "llama4", [("interleave_moe_layer_step", count(2))]);
    let factors = divisors(5e5, 24, 8.0, 64.0);
    gguf.tensors.insert("rope_freqs.weight".into(), (vec![12], factors.clone()));
    let mut expected = source.config.clone();
    expected.ropes[0].scaling = RopeScaling::Divisors(factors.into_iter().map(f64::from).collect());
    // The published models have these numbers, the file has no keys for them.
    expected.layers.iter_mut().for_each(|layer| layer.chunk = layer.chunk.map(|_| 8192));
    let growth = expected.query_growth.as_mut().unwrap();
    (growth.scale, growth.every) = (0.1, 8192.0);
    assert_same(&gguf, &source, expected);
    gguf.set("llama4.attention.sliding_window", count(0));
    assert!(refusal(&gguf).contains("llama4.attention.sliding_window"));
}

/// Metadata of linear attention.
fn linear_keys(c: &DecoderConfig) -> [(&'static str, Value); 8] {
    let linear = c.linear.unwrap();
    assert_ne!(linear.key_heads, linear.value_heads, "heads have to be reordered");
    [
        ("rope.dimension_sections", Value::Array([2, 1, 1, 0].map(Value::I32).to_vec())),
        ("ssm.conv_kernel", count(linear.kernel)),
        ("ssm.state_size", count(linear.key_dims)),
        ("ssm.group_count", count(linear.key_heads)),
        ("ssm.time_step_rank", count(linear.value_heads)),
        ("ssm.inner_size", count(linear.values())),
        ("attention.recurrent_layers", flags(c.layers.iter().map(|layer| layer.linear))),
        ("full_attention_interval", count(4)),
    ]
}

#[test]
fn qwen35_comes_back() {
    if !is_here("qwen3.5") {
        return;
    }
    let (mut gguf, source) = convert("qwen3.5", "qwen35");
    set(&mut gguf, "qwen35", linear_keys(&source.config));
    let expected = DecoderConfig { placeholders: None, ..source.config.clone() };
    assert_same(&gguf, &source, expected.clone());
    gguf.metadata.remove("qwen35.attention.recurrent_layers");
    assert_same(&gguf, &source, expected);
    gguf.set("qwen35.ssm.group_count", count(3));
    assert!(refusal(&gguf).contains("qwen35.ssm.group_count"));
}

#[test]
fn qwen35_with_experts_comes_back() {
    let (mut gguf, source) = convert("qwen3.5-moe", "qwen35moe");
    set(&mut gguf, "qwen35moe", linear_keys(&source.config));
    let shared = source.config.layers[0].intermediate_size;
    gguf.set("qwen35moe.expert_shared_feed_forward_length", count(shared));
    assert_same(&gguf, &source, source.config.clone());
    // The converter of today writes no width of dense blocks.
    gguf.metadata.remove("qwen35moe.feed_forward_length");
    assert_same(&gguf, &source, source.config.clone());
    // And writes the gate as a matrix of one row, which llama.cpp reads as a vector.
    let gate = "blk.1.ffn_gate_inp_shexp.weight";
    let (shape, mut values) = gguf.tensors.remove(gate).unwrap();
    assert_eq!(shape, [64]);
    let error = refusal(&gguf);
    assert!(error.contains(gate) && error.contains("m.gguf"), "{error}");
    gguf.tensors.insert(gate.into(), (vec![1, 64], values.clone()));
    assert_same(&gguf, &source, source.config.clone());
    values.truncate(32);
    gguf.tensors.insert(gate.into(), (vec![32], values));
    let error = refusal(&gguf);
    assert!(error.contains(gate) && error.contains("[32]") && error.contains("[1, 64]"), "{error}");
}

#[test]
fn deepseek_v3_comes_back() {
    if !is_here("deepseek-v3") {
        return;
    }
    let (mut gguf, source) = convert("deepseek-v3", "deepseek2");
    yarn(&mut gguf, "deepseek2", 40.0);
    let c = source.config.clone();
    let latent = c.latent.unwrap();
    let Some(Routing::Sigmoid { groups, kept, scale, normalised }) = c.experts.map(|e| e.routing) else { panic!() };
    let keys = [
        ("attention.head_count_kv", count(1)),
        ("attention.key_length", count(latent.kv_rank + latent.rotary_dims)),
        ("attention.value_length", count(latent.kv_rank)),
        ("attention.key_length_mla", count(latent.plain_dims + latent.rotary_dims)),
        ("attention.value_length_mla", count(latent.value_dims)),
        ("attention.q_lora_rank", count(latent.query_rank.unwrap())),
        ("attention.kv_lora_rank", count(latent.kv_rank)),
        ("rope.dimension_count", count(latent.rotary_dims)),
        ("rope.scaling.yarn_log_multiplier", Value::F32(0.1)),
        ("leading_dense_block_count", count(1)),
        ("expert_shared_count", count(1)),
        ("expert_group_count", count(groups)),
        ("expert_group_used_count", count(kept)),
        ("expert_gating_func", count(2)),
        ("expert_weights_scale", Value::F32(scale)),
        ("expert_weights_norm", Value::Bool(normalised)),
    ];
    set(&mut gguf, "deepseek2", keys);
    assert_same(&gguf, &source, c.clone());
    // Without the value half; then as one tensor, as the first files had it.
    for layer in 0..c.layers.len() {
        gguf.tensors.remove(&format!("blk.{layer}.attn_v_b.weight"));
    }
    assert!(refusal(&gguf).contains("blk.0.attn_v_b.weight"));
    for layer in 0..c.layers.len() {
        gguf.tensors.remove(&format!("blk.{layer}.attn_k_b.weight"));
        let shape = vec![c.num_heads * (latent.plain_dims + latent.value_dims), latent.kv_rank];
        let p = Parameter::Layer(layer, LayerParameter::KvUp);
        let earnest_models::checkpoint::Values::F32(values) = source.tensor(p, &shape).unwrap().values else {
            panic!()
        };
        gguf.tensors.insert(format!("blk.{layer}.attn_kv_b.weight"), (shape, values));
    }
    assert_same(&gguf, &source, c);
    gguf.metadata.remove("deepseek2.expert_gating_func");
    assert!(refusal(&gguf).contains("deepseek2.expert_gating_func"));
}
