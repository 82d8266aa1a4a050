//! Hugging Face folders: layouts that have to load, and everything that has to be refused with a clear message.
use earnest_models::checkpoint::{ChatMessage, Checkpoint, CheckpointError, LayerParameter, Parameter, Values};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn golden(name: &str) -> PathBuf {
    let root = std::env::var_os("EARNEST_GOLDEN").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"));
    root.join("engine/checkpoints").join(name)
}

/// A copy of a reference checkpoint that a test may spoil.
pub(crate) fn copy(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in
        ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    {
        std::fs::copy(golden(name).join(file), folder.path().join(file)).unwrap();
    }
    folder
}

pub(crate) fn edit(folder: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = folder.join(file);
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut value);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(path, value.to_string()).unwrap();
}

/// The reference checkpoint with changed configuration fields.
pub(crate) fn with_config(name: &str, fields: Value) -> TempDir {
    let folder = copy(name);
    edit(folder.path(), "config.json", |config| {
        for (key, value) in fields.as_object().unwrap() {
            config[key] = value.clone();
        }
    });
    folder
}

pub(crate) fn refusal(folder: &TempDir) -> CheckpointError {
    Checkpoint::open(folder.path()).expect_err("it has to be refused")
}

#[track_caller]
pub(crate) fn assert_says(error: &CheckpointError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// Name to element type, shape and bytes.
pub(crate) type Tensors = BTreeMap<String, (String, Vec<usize>, Vec<u8>)>;

fn read_tensors(path: &Path) -> Tensors {
    let bytes = std::fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json: Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let data = &bytes[8 + header..];
    let entries = json.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    entries
        .map(|(name, v)| {
            let offset = |i: usize| v["data_offsets"][i].as_u64().unwrap() as usize;
            let shape = v["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
            let dtype = v["dtype"].as_str().unwrap().to_string();
            (name.clone(), (dtype, shape, data[offset(0)..offset(1)].to_vec()))
        })
        .collect()
}

fn write_tensors(path: &Path, tensors: &Tensors) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, (dtype, shape, bytes)) in tensors {
        let end = data.len() + bytes.len();
        header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [data.len(), end]}));
        data.extend_from_slice(bytes);
    }
    let header = Value::Object(header).to_string();
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(&data);
    let _ = std::fs::remove_file(path);
    std::fs::write(path, out).unwrap();
}

/// The reference checkpoint with changed tensors.
pub(crate) fn with_tensors(name: &str, change: impl FnOnce(&mut Tensors)) -> TempDir {
    let folder = copy(name);
    let path = folder.path().join("model.safetensors");
    let mut tensors = read_tensors(&path);
    change(&mut tensors);
    write_tensors(&path, &tensors);
    folder
}

fn all_tensors(checkpoint: &Checkpoint) -> Vec<Values> {
    let parameters = checkpoint.config.parameters();
    parameters.into_iter().map(|(p, shape)| checkpoint.tensor(p, &shape).unwrap().values).collect()
}

#[test]
fn missing_files_are_named_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let error = Checkpoint::open(&folder.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, CheckpointError::FileMissing { .. }), "{error}");
    assert_says(&error, &["nowhere", "fetch"]);
    assert_says(&refusal(&folder), &["config.json", "is missing", "fetch"]);
    let folder = copy("llama");
    std::fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    assert_says(&refusal(&folder), &["tokenizer.json", "is missing"]);
    let folder = copy("llama");
    std::fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    assert_says(&refusal(&folder), &["model.safetensors", "index"]);
    std::fs::write(folder.path().join("pytorch_model.bin"), "x").unwrap();
    assert_says(&refusal(&folder), &["only safetensors and GGUF"]);
    std::fs::write(folder.path().join("m.gguf"), "x").unwrap();
    assert_says(&refusal(&folder), &["m.gguf", "name that file"]);
}

#[test]
fn optional_files_may_be_absent() {
    let folder = copy("llama");
    std::fs::remove_file(folder.path().join("generation_config.json")).unwrap();
    std::fs::remove_file(folder.path().join("tokenizer_config.json")).unwrap();
    let c = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(
        (c.generation.eos_ids.as_slice(), c.tokenizer.bos(), c.tokenizer.eos()),
        ([2].as_slice(), Some(1), None)
    );
    assert!(c.chat_template.is_none());
    let names: Vec<String> = c.files().iter().map(|f| f.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["config.json", "tokenizer.json", "model.safetensors"]);
}

#[test]
fn bad_json_is_located() {
    let folder = copy("llama");
    std::fs::remove_file(folder.path().join("config.json")).unwrap();
    std::fs::write(folder.path().join("config.json"), "{\n\"a\": 1,\n}").unwrap();
    let error = refusal(&folder);
    assert!(matches!(error, CheckpointError::Json { line: 3, .. }), "{error}");
    std::fs::write(folder.path().join("config.json"), "[]").unwrap();
    assert_says(&refusal(&folder), &["config.json", "line 1"]);
}

#[test]
fn an_unknown_architecture_is_named_beside_the_nearest_ones() {
    let error = refusal(&with_config("llama", json!({"architectures": ["MambaForCausalLM"]})));
    assert_says(&error, &["MambaForCausalLM", "docs/models.md"]);
    let later = refusal(&with_config("llama", json!({"architectures": ["Llama9ForCausalLM"]})));
    assert_says(&later, &["Llama9ForCausalLM", "LlamaForCausalLM"]);
    let by_type = with_config("llama", json!({"architectures": null}));
    assert_eq!(Checkpoint::open(by_type.path()).unwrap().config.architecture, "LlamaForCausalLM");
    assert_says(&refusal(&with_config("llama", json!({"architectures": null, "model_type": null}))), &["none named"]);
}

#[test]
fn an_architecture_that_native_lacks_has_other_engines() {
    // Where mistral.rs has it, both ways are named.
    let folder = with_config("llama", json!({"architectures": ["PhiMoEForCausalLM"], "attention_sinks": 4}));
    let help = refusal(&folder).help().unwrap();
    let command = format!("`engine = mistralrs` with the setting `model = {}`", folder.path().display());
    for part in [&command, "not verified by us", "`engine = openai` and the setting `base_url = URL`"] {
        assert!(help.contains(part), "{part} is not in: {help}");
    }
    let help = refusal(&with_config("llama", json!({"architectures": ["MambaForCausalLM"]}))).help().unwrap();
    assert!(
        !help.contains("mistralrs") && help.contains("`engine = openai` and the setting `base_url = URL`"),
        "{help}"
    );
    // What both need is read: tokenizer, context and ids; the weights are only listed.
    let native = Checkpoint::open(copy("llama").path()).unwrap();
    let c = Checkpoint::open_for_mistralrs(folder.path(), &[]).unwrap();
    assert!(c.is_foreign() && !native.is_foreign());
    assert_eq!(
        (c.config.architecture.as_str(), c.config.vocab_size, c.config.max_positions),
        ("PhiMoEForCausalLM", 512, 512)
    );
    assert_eq!(c.generation, native.generation);
    assert_eq!(c.tokenizer.encode("12 + 30 =", true).unwrap(), native.tokenizer.encode("12 + 30 =", true).unwrap());
    assert!(c.files().iter().any(|file| file.ends_with("model.safetensors")));
    assert!(c.tensor(Parameter::Embedding, &[512, 64]).is_err());
    let mamba = with_config(
        "llama",
        json!({"architectures": ["MambaForCausalLM"], "vocab_size": null, "max_position_embeddings": null,
        "text_config": {"vocab_size": 512, "max_position_embeddings": 99, "eos_token_id": [2, 7]}}),
    );
    assert!(Checkpoint::open_for_mistralrs(mamba.path(), &[]).is_err());
    let c = Checkpoint::open_without_weights(mamba.path(), &[]).unwrap();
    assert_eq!((c.config.max_positions, c.generation.eos_ids.as_slice()), (99, [2, 7].as_slice()));
    std::fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    let error = Checkpoint::open_for_mistralrs(folder.path(), &[]).unwrap_err();
    assert!(matches!(error, CheckpointError::FileMissing { .. }), "{error}");
}

#[test]
fn fields_that_change_the_maths_are_refused_by_name() {
    let cases = [
        ("llama", json!({"attention_sinks": 4}), vec!["attention_sinks", "4", "not known"]),
        ("llama", json!({"quantization_config": {"bits": 4}}), vec!["quantization_config", "GGUF"]),
        (
            "llama",
            json!({"rope_scaling": {"type": "dynamic", "factor": 4.0}}),
            vec!["rope_scaling.type", "dynamic", "linear"],
        ),
        (
            "llama",
            json!({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}),
            vec!["rope_scaling.rope_type", "dynamic"],
        ),
        ("llama", json!({"rope_scaling": {"rope_type": "linear"}}), vec!["rope_scaling.factor", "absent"]),
        (
            "llama",
            json!({"rope_scaling": {"rope_type": "linear", "factor": 2.0, "mscale": 1.0}}),
            vec!["rope_scaling.mscale"],
        ),
        ("llama", json!({"partial_rotary_factor": 0.5}), vec!["partial_rotary_factor"]),
        ("llama", json!({"sliding_window": 16}), vec!["sliding_window"]),
        ("llama", json!({"hidden_act": "relu"}), vec!["hidden_act", "relu", "silu"]),
        ("llama", json!({"num_key_value_heads": 3}), vec!["num_key_value_heads", "3", "divide"]),
        ("llama", json!({"num_hidden_layers": 0}), vec!["num_hidden_layers"]),
        ("llama", json!({"num_hidden_layers": 1_000_000_000}), vec!["num_hidden_layers", "at most"]),
        ("llama", json!({"hidden_size": -1}), vec!["hidden_size"]),
        ("llama", json!({"hidden_size": 1e300}), vec!["hidden_size"]),
        ("llama", json!({"vocab_size": "512"}), vec!["vocab_size"]),
        ("llama", json!({"head_dim": 15}), vec!["head_dim", "15 dimensions", "even"]),
        ("llama", json!({"rope_theta": 0.0}), vec!["rope_theta", "positive"]),
        ("llama", json!({"rms_norm_eps": -1.0}), vec!["rms_norm_eps"]),
        ("llama", json!({"text_config": {}}), vec!["text_config"]),
        ("mistral-full", json!({"attention_bias": true}), vec!["attention_bias"]),
        (
            "mistral-full",
            json!({"layer_types": ["full_attention", "sliding_attention", "full_attention"]}),
            vec!["layer_types"],
        ),
        ("mixtral", json!({"num_experts_per_tok": 9}), vec!["num_experts_per_tok"]),
        ("qwen3", json!({"layer_types": ["full_attention"]}), vec!["layer_types", "1 entries for 3 layers"]),
        (
            "qwen3",
            json!({"layer_types": ["chunked_attention", "full_attention", "full_attention"]}),
            vec!["layer_types"],
        ),
        ("gemma", json!({"hidden_activation": "gelu"}), vec![]),
        ("gemma", json!({"hidden_activation": "silu"}), vec!["hidden_activation", "contradicts"]),
        ("gemma2", json!({"query_pre_attn_scalar": 0}), vec!["query_pre_attn_scalar"]),
        ("gemma2", json!({"attn_logit_softcapping": -1.0}), vec!["attn_logit_softcapping"]),
        ("gemma3-text", json!({"use_bidirectional_attention": true}), vec!["use_bidirectional_attention"]),
        ("phi2", json!({"qk_layernorm": true}), vec!["qk_layernorm"]),
        (
            "phi3-longrope",
            json!({"rope_scaling": {"type": "su", "short_factor": [1.0], "long_factor": [1.0]}}),
            vec!["short_factor", "8 positive"],
        ),
    ];
    for (name, change, words) in cases {
        let folder = with_config(name, change.clone());
        match Checkpoint::open(folder.path()) {
            Ok(_) => assert!(words.is_empty(), "{name} with {change} has to be refused"),
            Err(error) => {
                assert!(!words.is_empty(), "{name} with {change}: {error}");
                assert_says(&error, &words);
                assert_says(&error, &["config.json"]);
            }
        }
    }
}

#[test]
fn unknown_fields_that_are_off_do_not_matter() {
    let off = json!({"some_feature": false, "other_feature": null, "transformers.js_config": {"dtype": "q4"}, "head_dim": null});
    assert_eq!(Checkpoint::open(with_config("llama", off).path()).unwrap().config.head_dim, 16);
}

#[test]
fn windows_follow_the_fields() {
    let windows = |name: &str, fields: Value| -> Vec<Option<usize>> {
        let folder = with_config(name, fields);
        Checkpoint::open(folder.path()).unwrap().config.layers.iter().map(|l| l.window).collect()
    };
    let on = json!({"use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1});
    assert_eq!(windows("qwen2", on), [None, Some(8), Some(8)]);
    assert_eq!(windows("phi3", json!({"sliding_window": 2047})), [Some(2047); 3]);
    let pattern = json!({"layer_types": null, "sliding_window_pattern": 3, "_sliding_window_pattern": 3});
    assert_eq!(windows("gemma3-text", pattern), [Some(16), Some(16), None, Some(16), Some(16), None]);
    let declared = json!({"layer_types": ["full_attention", "full_attention", "sliding_attention", "full_attention"]});
    assert_eq!(windows("gemma2", declared), [None, None, Some(16), None]);
}

#[test]
fn the_text_decoder_of_gemma3_with_vision_loads() {
    let plain = Checkpoint::open(&golden("gemma3-text")).unwrap();
    for (prefix, name) in [("language_model.model.", "published"), ("model.language_model.", "transformers 5")] {
        let folder = with_tensors("gemma3-text", |tensors| {
            *tensors = std::mem::take(tensors).into_iter().map(|(k, v)| (k.replacen("model.", prefix, 1), v)).collect();
            tensors.insert("vision_tower.x".into(), ("F64".into(), vec![1], vec![0; 8]));
        });
        edit(folder.path(), "config.json", |config| {
            let mut text = config.take();
            for key in ["architectures", "eos_token_id", "dtype"] {
                text.as_object_mut().unwrap().remove(key);
            }
            *config = json!({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "eos_token_id": [2, 1],
                "text_config": text, "vision_config": {"hidden_size": 8}, "mm_tokens_per_image": 256});
        });
        let c = Checkpoint::open(folder.path()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(c.config, plain.config, "{name}");
        assert_eq!(c.generation.eos_ids, [1, 2]);
        assert_eq!(all_tensors(&c), all_tensors(&plain), "{name}");
    }
}

#[test]
fn shards_read_like_one_file() {
    let plain = Checkpoint::open(&golden("llama")).unwrap();
    let folder = copy("llama");
    let path = folder.path();
    let tensors = read_tensors(&path.join("model.safetensors"));
    std::fs::remove_file(path.join("model.safetensors")).unwrap();
    let mut shards = [Tensors::new(), Tensors::new()];
    let mut map = serde_json::Map::new();
    for (i, (name, tensor)) in tensors.into_iter().enumerate() {
        map.insert(name.clone(), json!(format!("model-{}.safetensors", i % 2)));
        shards[i % 2].insert(name, tensor);
    }
    for (i, shard) in shards.iter().enumerate() {
        write_tensors(&path.join(format!("model-{i}.safetensors")), shard);
    }
    let index = path.join("model.safetensors.index.json");
    std::fs::write(&index, json!({"metadata": {}, "weight_map": map.clone()}).to_string()).unwrap();
    let c = Checkpoint::open(path).unwrap();
    assert_eq!(all_tensors(&c), all_tensors(&plain));
    assert_eq!(c.files().len(), 4 + 3);

    // A tensor that the index promises and its shard lacks.
    map.insert("model.extra".into(), json!("model-0.safetensors"));
    std::fs::write(&index, json!({"weight_map": map.clone()}).to_string()).unwrap();
    assert_says(&refusal(&folder), &["model.extra", "model-0.safetensors", "index"]);
    // A name that leads out of the folder.
    map.insert("model.extra".into(), json!("../model-0.safetensors"));
    std::fs::write(&index, json!({"weight_map": map.clone()}).to_string()).unwrap();
    assert_says(&refusal(&folder), &["model.extra", "not a file of this folder"]);
    map.remove("model.extra");
    std::fs::write(&index, json!({"weight_map": map}).to_string()).unwrap();
    // A missing shard.
    std::fs::remove_file(path.join("model-1.safetensors")).unwrap();
    let error = refusal(&folder);
    assert!(matches!(error, CheckpointError::FileMissing { .. }), "{error}");
    assert_says(&error, &["model-1.safetensors", "index.json"]);
    std::fs::write(&index, "{}").unwrap();
    assert_says(&refusal(&folder), &["weight_map"]);
}

#[test]
fn damaged_weights_are_refused() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let error = refusal(&with_tensors("llama", |t| drop(t.remove(name))));
    assert!(matches!(error, CheckpointError::TensorMissing { .. }), "{error}");
    assert_says(&error, &[name, "layer 1 Up", "model.safetensors"]);

    let error = refusal(&with_tensors("llama", |t| t.get_mut(name).unwrap().1 = vec![64, 160]));
    assert_says(&error, &[name, "[64, 160]", "[160, 64]", "model.safetensors"]);

    let folder = with_tensors("llama", |t| {
        let tensor = t.get_mut(name).unwrap();
        tensor.0 = "F64".into();
        tensor.2 = vec![0; 160 * 64 * 8];
    });
    assert_says(&refusal(&folder), &[name, "F64", "BF16", "model.safetensors"]);

    let folder = copy("llama");
    let path = folder.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for (length, words) in [(bytes.len() - 1, "ends at byte"), (100, "header"), (5, "5 bytes")] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = refusal(&folder);
        assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
        assert_says(&error, &["model.safetensors", words]);
    }
    let mut huge = bytes.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&path, &huge).unwrap();
    assert_says(&refusal(&folder), &["exceeds the format's limit"]);
    let lies = |shape: &str, end: u64| {
        let header =
            format!("{{\"model.norm.weight\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":[0,{end}]}}}}");
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&[0; 256]);
        std::fs::write(&path, out).unwrap();
        refusal(&folder)
    };
    // Sizes whose product overflows, and sizes that disagree with the bytes.
    assert!(matches!(lies("[4294967296,4294967296,4294967296]", 256), CheckpointError::Malformed { .. }));
    assert!(matches!(lies("[63]", 256), CheckpointError::Malformed { .. }));
    assert!(matches!(lies("[1000]", 4000), CheckpointError::Truncated { .. }));
    std::fs::write(&path, "\u{8}\0\0\0\0\0\0\0not json").unwrap();
    assert_says(&refusal(&folder), &["header is invalid"]);
}

#[test]
fn a_file_that_shrinks_after_opening_is_an_error() {
    let folder = copy("llama");
    let c = Checkpoint::open(folder.path()).unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(c.tensor(Parameter::Embedding, &[512, 64]), Err(CheckpointError::FileMissing { .. })));
    std::fs::write(&path, [0; 5000]).unwrap();
    assert!(matches!(c.tensor(Parameter::Embedding, &[512, 64]), Err(CheckpointError::Truncated { .. })));
}

#[test]
fn another_shape_than_the_checkpoints_is_an_error() {
    let c = Checkpoint::open(&golden("phi3")).unwrap();
    let query = Parameter::Layer(0, LayerParameter::Query);
    assert_says(&c.tensor(query, &[1 << 40, 64]).unwrap_err(), &["layer 0 Query", "[64, 64]"]);
    assert!(c.tensor(Parameter::Layer(3, LayerParameter::Query), &[64, 64]).is_err());
    assert!(!c.has(Parameter::Layer(0, LayerParameter::QueryBias)) && c.has(query));
    assert!(!Checkpoint::open(&golden("qwen2")).unwrap().has(Parameter::Head), "the head is tied");
}

#[test]
fn half_precision_is_kept() {
    let short = |f: fn(f32) -> u16, dtype: &str| {
        with_tensors("gemma", |tensors| {
            for (element, _, bytes) in tensors.values_mut() {
                *element = dtype.to_string();
                let values = bytes.chunks_exact(4).map(|b| f(f32::from_le_bytes(b.try_into().unwrap())));
                *bytes = values.flat_map(u16::to_le_bytes).collect();
            }
        })
    };
    let original = Checkpoint::open(&golden("gemma")).unwrap();
    let embedding = |c: &Checkpoint| c.tensor(Parameter::Embedding, &[512, 64]).unwrap().values;
    let norm = |c: &Checkpoint| c.tensor(Parameter::FinalNorm, &[64]).unwrap().values;
    let (Values::F32(full), Values::F32(full_norm)) = (embedding(&original), norm(&original)) else { panic!() };

    let folder = short(|v| half::bf16::from_f32(v).to_bits(), "BF16");
    let c = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(embedding(&c), Values::Bf16(full.iter().map(|v| half::bf16::from_f32(*v).to_bits()).collect()));
    // Norms are sums with one, which f32 holds more exactly than bf16 would.
    let expected: Vec<f32> = full_norm.iter().map(|v| 1.0 + half::bf16::from_f32(v - 1.0).to_f32()).collect();
    let Values::F32(got) = norm(&c) else { panic!() };
    assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3), "{got:?}");

    let folder = short(|v| half::f16::from_f32(v).to_bits(), "F16");
    let c = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(embedding(&c), Values::F16(full.iter().map(|v| half::f16::from_f32(*v).to_bits()).collect()));
}

#[test]
fn stacked_experts_read_like_single_ones() {
    let plain = Checkpoint::open(&golden("mixtral")).unwrap();
    let folder = with_tensors("mixtral", |tensors| {
        let take = |tensors: &mut Tensors, layer: usize, e: usize, w: &str| {
            tensors.remove(&format!("model.layers.{layer}.block_sparse_moe.experts.{e}.{w}.weight")).unwrap().2
        };
        for layer in 0..3 {
            let (mut gate_up, mut down) = (Vec::new(), Vec::new());
            for e in 0..4 {
                gate_up.extend(take(tensors, layer, e, "w1"));
                gate_up.extend(take(tensors, layer, e, "w3"));
                down.extend(take(tensors, layer, e, "w2"));
            }
            let name = |n: &str| format!("model.layers.{layer}.mlp.{n}");
            tensors.insert(name("experts.gate_up_proj"), ("F32".into(), vec![4, 320, 64], gate_up));
            tensors.insert(name("experts.down_proj"), ("F32".into(), vec![4, 64, 160], down));
            let router = tensors.remove(&format!("model.layers.{layer}.block_sparse_moe.gate.weight")).unwrap();
            tensors.insert(name("gate.weight"), router);
        }
    });
    assert_eq!(all_tensors(&Checkpoint::open(folder.path()).unwrap()), all_tensors(&plain));
}

#[test]
fn qwen35_with_experts_loads_as_it_is_published() {
    let plain = Checkpoint::open(&golden("qwen3.5-moe")).unwrap();
    let folder = with_tensors("qwen3.5-moe", |tensors| {
        for layer in 0..4 {
            let mut take = |expert: usize, matrix: &str| {
                let name = format!("model.layers.{layer}.mlp.experts.{expert}.{matrix}_proj.weight");
                tensors.remove(&name).unwrap().2
            };
            let (mut gate_up, mut down) = (Vec::new(), Vec::new());
            for expert in 0..6 {
                gate_up.extend([take(expert, "gate"), take(expert, "up")].concat());
                down.extend(take(expert, "down"));
            }
            let name = |matrix: &str| format!("model.layers.{layer}.mlp.experts.{matrix}_proj");
            tensors.insert(name("gate_up"), ("F32".into(), vec![6, 48, 64], gate_up));
            tensors.insert(name("down"), ("F32".into(), vec![6, 64, 24], down));
        }
        let renamed = |name: String| match name.strip_prefix("model.") {
            Some(rest) => format!("model.language_model.{rest}"),
            None => name,
        };
        *tensors = std::mem::take(tensors).into_iter().map(|(name, tensor)| (renamed(name), tensor)).collect();
        // The block that predicts several tokens, and the image encoder, of which a text needs nothing.
        for name in ["mtp.fc.weight", "mtp.layers.0.mlp.experts.down_proj", "model.visual.blocks.0.attn.qkv.weight"] {
            tensors.insert(name.into(), ("F32".into(), vec![1], vec![0; 4]));
        }
    });
    edit(folder.path(), "config.json", |config| {
        let mut text = config.take();
        text.as_object_mut().unwrap().remove("architectures");
        text["rope_parameters"]["mrope_section"] = json!([2, 1, 1]);
        text["rope_parameters"]["mrope_interleaved"] = json!(true);
        let keys = json!({"attn_output_gate": true, "full_attention_interval": 2, "mamba_ssm_dtype": "float32", "mlp_only_layers": [],
            "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false});
        text.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        *config = json!({"architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe",
            "image_token_id": 500, "video_token_id": 501, "vision_start_token_id": 502, "vision_end_token_id": 503,
            "tie_word_embeddings": false, "text_config": text, "vision_config": {"model_type": "qwen3_5_moe", "depth": 2}});
    });
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let mut expected = plain.config.clone();
    expected.architecture = checkpoint.config.architecture.clone();
    assert_eq!(checkpoint.config, expected);
    assert_eq!(all_tensors(&checkpoint), all_tensors(&plain));
}

#[test]
fn tokenizers_that_do_not_fit_are_refused() {
    let error = refusal(&with_config("llama", json!({"vocab_size": 300})));
    assert!(matches!(error, CheckpointError::Tokenizer { .. }), "{error}");
    assert_says(&error, &["300 entries", "different models"]);
    assert_says(&refusal(&with_config("llama", json!({"eos_token_id": 512}))), &["512", "end-of-sequence"]);
    assert_says(&refusal(&with_config("llama", json!({"eos_token_id": "</s>"}))), &["eos_token_id", "token id"]);

    let folder = with_config("llama", json!({"eos_token_id": null}));
    edit(folder.path(), "generation_config.json", |c| c["eos_token_id"] = Value::Null);
    edit(folder.path(), "tokenizer_config.json", |c| c["eos_token"] = Value::Null);
    assert_says(&refusal(&folder), &["no end-of-sequence token", "generation_config.json"]);
    edit(folder.path(), "tokenizer_config.json", |c| c["eos_token"] = json!({"content": "<eos>"}));
    assert_eq!(Checkpoint::open(folder.path()).unwrap().generation.eos_ids, [2]);
    edit(folder.path(), "tokenizer_config.json", |c| c["eos_token"] = json!("<|end|>"));
    assert_says(&refusal(&folder), &["eos_token", "<|end|>", "not in the vocabulary"]);

    let folder = copy("llama");
    edit(folder.path(), "tokenizer.json", |t| {
        t["decoder"] = json!({"type": "WordPiece", "prefix": "##", "cleanup": true})
    });
    assert_says(&refusal(&folder), &["tokenizer.json", "WordPiece"]);
    std::fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    assert_says(&refusal(&folder), &["tokenizer.json"]);
}

#[test]
fn generation_settings_come_from_all_files() {
    let folder = with_config("llama", json!({"eos_token_id": [7, 2]}));
    edit(folder.path(), "generation_config.json", |c| {
        *c = json!({"eos_token_id": [9, 7], "do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.1,
            "repetition_penalty": 1.1, "unknown_setting": {"x": 1}});
    });
    let g = Checkpoint::open(folder.path()).unwrap().generation;
    assert_eq!(g.eos_ids, [2, 7, 9]);
    assert_eq!((g.do_sample, g.temperature, g.top_k), (Some(true), Some(0.6), Some(20)));
    assert_eq!((g.top_p, g.min_p, g.repetition_penalty), (Some(0.95), Some(0.1), Some(1.1)));
}

#[test]
fn bos_follows_the_settings() {
    let ids = |name: &str, setting: Option<bool>| {
        let folder = copy(name);
        edit(folder.path(), "tokenizer_config.json", |c| c["add_bos_token"] = json!(setting));
        let c = Checkpoint::open(folder.path()).unwrap();
        (c.tokenizer.encode("7", true).unwrap(), c.tokenizer.encode("7", false).unwrap())
    };
    assert_eq!(ids("llama", None), (vec![1, 25], vec![25]));
    assert_eq!(ids("llama", Some(true)), (vec![1, 25], vec![25]));
    assert_eq!(ids("llama", Some(false)), (vec![25], vec![25]));
    assert_eq!(ids("qwen2", Some(true)), (vec![1, 25], vec![25]));
    let folder = copy("llama");
    edit(folder.path(), "tokenizer_config.json", |c| c["add_eos_token"] = json!(true));
    let c = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(c.tokenizer.encode("<eos>7", true).unwrap(), [1, 2, 25, 2], "written special tokens are recognised");
    assert_eq!(c.tokenizer.decode(&[1, 2, 25, 2], true), "7");
    assert_eq!(c.tokenizer.decode(&[1, 25, 9999], false), "<bos>7");
    assert!(c.tokenizer.is_special(1) && !c.tokenizer.is_special(25) && !c.tokenizer.is_special(9999));
    assert_eq!((c.tokenizer.token(25).as_deref(), c.tokenizer.token(9999)), (Some("7"), None));
}

#[test]
fn added_tokens_without_an_embedding_are_refused_when_used() {
    // The model has exactly as many rows as the tokenizer had tokens.
    let rows = Checkpoint::open(&golden("llama")).unwrap().tokenizer.vocab_size();
    let folder = with_tensors("llama", |tensors| {
        for name in ["model.embed_tokens.weight", "lm_head.weight"] {
            let (_, shape, bytes) = tensors.get_mut(name).unwrap();
            *shape = vec![rows, 64];
            bytes.truncate(rows * 64 * 4);
        }
    });
    edit(folder.path(), "config.json", |c| c["vocab_size"] = json!(rows));
    edit(folder.path(), "tokenizer.json", |t| {
        let image = json!({"id": rows, "content": "<image>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true});
        t["added_tokens"].as_array_mut().unwrap().push(image);
    });
    let c = Checkpoint::open(folder.path()).unwrap();
    assert_says(&c.tokenizer.encode("a <image>", true).unwrap_err(), &["<image>", &rows.to_string()]);
    assert!(c.tokenizer.encode("a image", true).is_ok());
}

#[test]
fn chat_templates_are_found_where_they_are() {
    let folder = copy("llama");
    let render = || {
        let c = Checkpoint::open(folder.path()).unwrap();
        c.chat_template.map(|t| t.render(&[ChatMessage::new("user", "Hi")], true))
    };
    assert!(render().is_none());
    let set = |value: Value| edit(folder.path(), "tokenizer_config.json", |c| c["chat_template"] = value);
    set(json!("{{ bos_token }}{{ messages[0].content }}"));
    assert_eq!(render().unwrap().unwrap(), "<bos>Hi");
    set(json!([{"name": "tool_use", "template": "x"}, {"name": "default", "template": "D"}]));
    assert_eq!(render().unwrap().unwrap(), "D");
    std::fs::write(folder.path().join("chat_template.jinja"), "J{% if add_generation_prompt %}!{% endif %}").unwrap();
    assert_eq!(render().unwrap().unwrap(), "J!");
    std::fs::write(folder.path().join("chat_template.jinja"), "a\n{{ raise_exception('no') }}").unwrap();
    assert_says(&render().unwrap().unwrap_err(), &["chat_template.jinja", "line 2", "no"]);
    std::fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
    set(json!([{"name": "tool_use", "template": "x"}]));
    assert_says(&refusal(&folder), &["chat_template", "default"]);
}

/// A small SentencePiece vocabulary as `tokenizer.json` has it, in Llama 2's or Gemma's manner.
fn sentencepiece(prefix: bool) -> Value {
    let mut vocab = serde_json::Map::new();
    for token in ["<unk>", "<s>", "</s>"] {
        vocab.insert(token.into(), json!(vocab.len()));
    }
    for byte in 0..256 {
        vocab.insert(format!("<0x{byte:02X}>"), json!(vocab.len()));
    }
    for token in ["▁", "a", "b", "▁a", "ab", "▁ab", "1", "▁▁", "é", "€"] {
        vocab.insert(token.into(), json!(vocab.len()));
    }
    let replace = |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let mut normalizers = vec![replace(" ", "▁")];
    let mut decoders = vec![replace("▁", " "), json!({"type": "ByteFallback"}), json!({"type": "Fuse"})];
    if prefix {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let special = |id: u32, text: &str| {
        json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true})
    };
    json!({"version": "1.0", "truncation": null, "padding": null, "pre_tokenizer": null, "post_processor": null,
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab,
            "merges": [["▁", "a"], ["a", "b"], ["▁a", "b"], ["▁", "▁"]]}})
}

/// Streams ids in three ways and compares with `decode` and with the `tokenizers` crate.
fn check_streams(folder: &Path, exact: bool) {
    let checkpoint = Checkpoint::open(folder).unwrap();
    let tokenizer = &checkpoint.tokenizer;
    let reference = tokenizers::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    let mut state = 7u64;
    for round in 0..600 {
        let mut ids = Vec::new();
        for _ in 0..round % 23 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ids.push((state >> 33) as u32 % (tokenizer.vocab_size() as u32 + 2));
        }
        let mut stream = tokenizer.stream();
        let mut text: String = ids.iter().map(|id| stream.push(*id).to_string()).collect();
        text.push_str(stream.finish());
        assert_eq!(text, tokenizer.decode(&ids, true), "{ids:?}");
        let expected = reference.decode(&ids, true).unwrap();
        // The crate turns a whole run of byte tokens into U+FFFD if any of them is wrong; here only the wrong ones do.
        if exact || !expected.contains('\u{FFFD}') {
            assert_eq!(text, expected, "{ids:?}");
        }
        if exact {
            assert_eq!(tokenizer.decode(&ids, false), reference.decode(&ids, false).unwrap(), "{ids:?}");
        }
    }
}

#[test]
fn streaming_equals_decoding() {
    for name in ["llama", "qwen2", "phi3"] {
        check_streams(&golden(name), true);
    }
    for prefix in [true, false] {
        let folder = copy("llama");
        std::fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), sentencepiece(prefix).to_string()).unwrap();
        edit(folder.path(), "tokenizer_config.json", |c| {
            *c = json!({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true});
        });
        check_streams(folder.path(), false);
        let t = Checkpoint::open(folder.path()).unwrap().tokenizer;
        for text in ["ab  ab", " ab", "é€🦀\n", "", "a b 1 1"] {
            assert_eq!(t.decode(&t.encode(text, true).unwrap(), true), text, "prefix {prefix}");
        }
    }
    // No decoder: tokens joined by spaces; metaspace in its three manners.
    for decoder in [Value::Null, json!("always"), json!("first"), json!("never")] {
        let folder = copy("llama");
        let mut tokenizer = sentencepiece(false);
        tokenizer["decoder"] = match decoder {
            Value::Null => Value::Null,
            scheme => json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true}),
        };
        std::fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
        edit(folder.path(), "tokenizer_config.json", |c| *c = json!({"bos_token": "<s>", "eos_token": "</s>"}));
        check_streams(folder.path(), true);
    }
}
