//! GGUF files of Gemma 3n and 4: metadata as llama.cpp's converter writes it for the reference checkpoints.
use crate::gguf_files::{Gguf, assert_same, convert, count, is_here, refusal, set, texts, windows};
use candle_core::quantized::gguf_file::Value;
use earnest_models::checkpoint::{Checkpoint, DecoderConfig, KeysValues, RopeScaling};

fn gemma4(name: &str) -> (Gguf, Checkpoint) {
    let (mut gguf, source) = convert(name, "gemma4");
    let c = &source.config;
    let last = c.layers.last().unwrap();
    let shared = c.layers.iter().filter(|l| matches!(l.keys_values, KeysValues::OfLayer(_))).count();
    let widths = Value::Array(c.layers.iter().map(|l| Value::I32(l.intermediate_size as i32)).collect());
    let heads = Value::Array(c.layers.iter().map(|l| Value::I32(l.num_kv_heads as i32)).collect());
    let keys = [
        ("feed_forward_length", widths),
        ("attention.head_count_kv", heads),
        ("attention.key_length", count(last.head_dim)),
        ("attention.value_length", count(last.head_dim)),
        ("attention.key_length_swa", count(c.head_dim)),
        ("attention.value_length_swa", count(c.head_dim)),
        ("rope.dimension_count", count(last.head_dim)),
        ("rope.dimension_count_swa", count(c.head_dim)),
        ("rope.freq_base_swa", Value::F32(1e4)),
        ("final_logit_softcapping", Value::F32(30.0)),
        ("attention.sliding_window", count(16)),
        ("attention.sliding_window_pattern", windows(c)),
        ("attention.shared_kv_layers", count(shared)),
        ("embedding_length_per_layer_input", count(c.layer_inputs.map_or(0, |inputs| inputs.width))),
    ];
    set(&mut gguf, "gemma4", keys);
    let RopeScaling::Proportional { rotated, .. } = c.ropes[0].scaling else { panic!() };
    let factors = (0..last.head_dim / 2).map(|i| if i < rotated { 1.0 } else { 1e30 }).collect();
    gguf.tensors.insert("rope_freqs.weight".into(), (vec![last.head_dim / 2], factors));
    (gguf, source)
}

#[test]
fn gemma4_comes_back() {
    let (mut gguf, source) = gemma4("gemma4-e2b");
    // The file does not name ids of images.
    let expected = DecoderConfig { placeholders: None, ..source.config.clone() };
    assert_same(&gguf, &source, expected.clone());
    // Keys of layers that use those of another may be there, other tensors not.
    gguf.tensors.insert("blk.5.attn_k.weight".into(), (vec![64, 64], vec![0.0; 4096]));
    assert_same(&gguf, &source, expected);
    gguf.set("gemma4.attention.shared_kv_layers", count(6));
    assert!(refusal(&gguf).contains("gemma4.attention.shared_kv_layers"));
    gguf.set("gemma4.attention.shared_kv_layers", count(3));
    gguf.metadata.remove("gemma4.attention.sliding_window_pattern");
    assert!(refusal(&gguf).contains("gemma4.attention.sliding_window_pattern"));
    if is_here("gemma4-moe") {
        let (gguf, source) = gemma4("gemma4-moe");
        assert!(source.config.layers.iter().any(|l| l.keys_values == KeysValues::OneProjection));
        assert_same(&gguf, &source, DecoderConfig { placeholders: None, ..source.config.clone() });
    }
}

#[test]
fn gemma4_has_its_own_vocabulary() {
    let (mut gguf, _) = gemma4("gemma4-e2b");
    let mut tokens: Vec<String> = ["<unk>", "<bos>", "<eos>"].map(String::from).to_vec();
    tokens.extend((0..256).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend(["▁", "a", "b", "ab", "▁ab"].map(String::from));
    let first = 3 + 256;
    while tokens.len() < 512 {
        tokens.push(format!("[{}]", tokens.len()));
    }
    let kinds = (0..512).map(|id| Value::I32([3, 3, 3].get(id).copied().unwrap_or(if id < first { 6 } else { 1 })));
    gguf.set("tokenizer.ggml.token_type", Value::Array(kinds.collect()));
    gguf.set("tokenizer.ggml.tokens", texts(tokens));
    gguf.set("tokenizer.ggml.merges", texts(["a b", "▁ ab"].map(String::from)));
    gguf.set("tokenizer.ggml.model", Value::String("gemma4".into()));
    gguf.set("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    gguf.metadata.remove("tokenizer.ggml.add_bos_token");
    gguf.metadata.remove("tokenizer.ggml.pre");
    let t = gguf.open().unwrap_or_else(|e| panic!("{e}")).tokenizer;
    let ab = first as u32 + 3;
    assert_eq!(t.encode("ab ab", true).unwrap(), [1, ab, ab + 1]);
    assert_eq!(t.encode("é", false).unwrap(), [3 + 0xC3, 3 + 0xA9]);
    assert_eq!(t.decode(&t.encode("ab  ab\né", true).unwrap(), true), "ab  ab\né");
}

#[test]
fn gemma3n_comes_back() {
    if !is_here("gemma3n-text") {
        return;
    }
    let (mut gguf, source) = convert("gemma3n-text", "gemma3n");
    let c = source.config.clone();
    let cutoffs = c.layers.iter().map(|l| Value::F32(l.gate_cutoff.unwrap_or(f32::NEG_INFINITY))).collect();
    let streams = c.streams.unwrap();
    let shared = c.layers.iter().filter(|l| matches!(l.keys_values, KeysValues::OfLayer(_))).count();
    let keys = [
        ("activation_sparsity_scale", Value::Array(cutoffs)),
        ("altup.active_idx", count(streams.active)),
        ("altup.num_inputs", count(streams.count)),
        ("embedding_length_per_layer_input", count(c.layer_inputs.unwrap().width)),
        ("attention.shared_kv_layers", count(shared)),
        ("attention.sliding_window", count(16)),
        ("attention.sliding_window_pattern", windows(&c)),
        ("rope.freq_base_swa", Value::F32(c.ropes[1].theta as f32)),
        ("final_logit_softcapping", Value::F32(30.0)),
    ];
    set(&mut gguf, "gemma3n", keys);
    assert_same(&gguf, &source, c);
    gguf.set("gemma3n.activation_sparsity_scale", Value::Array(vec![Value::F32(1.0), Value::F32(2.0)]));
    assert!(refusal(&gguf).contains("gemma3n.activation_sparsity_scale"));
}
