//! GGUF files for tests, made from the reference checkpoints in the way llama.cpp's converter makes them.
use crate::gguf_layout::{file_values, tensor_name};
use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use earnest_models::checkpoint::{
    Checkpoint, CheckpointError, DecoderConfig, Format, LayerParameter, Parameter, Values,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The folder of a reference checkpoint.
fn golden(name: &str) -> PathBuf {
    let root = std::env::var_os("EARNEST_GOLDEN").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"));
    root.join("engine/checkpoints").join(name)
}

/// Content of a GGUF file.
#[derive(Default)]
pub(crate) struct Gguf {
    pub(crate) metadata: BTreeMap<String, Value>,
    /// Shape (outermost first) and values.
    pub(crate) tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    pub(crate) types: BTreeMap<String, GgmlDType>,
    /// Shape and blocks of tensors in MXFP4.
    pub(crate) mxfp4: BTreeMap<String, (Vec<usize>, Vec<u8>)>,
    /// Type, shape and blocks of tensors of types that candle lacks.
    pub(crate) raw: BTreeMap<String, (u32, Vec<usize>, Vec<u8>)>,
}

impl Gguf {
    pub(crate) fn write(&self, path: &Path) {
        let quantised = self.tensors.iter().map(|(name, (shape, values))| {
            let tensor = Tensor::from_vec(values.clone(), shape.as_slice(), &Device::Cpu).unwrap();
            let dtype = self.types.get(name).copied().unwrap_or(GgmlDType::F32);
            let bytes = QTensor::quantize(&tensor, dtype).unwrap().data().unwrap().into_owned();
            (name, shape, code(dtype), bytes)
        });
        let mxfp4 = self.mxfp4.iter().map(|(name, (shape, bytes))| (name, shape, 39, bytes.clone()));
        let raw = self.raw.iter().map(|(name, (code, shape, bytes))| (name, shape, *code, bytes.clone()));
        let raw = mxfp4.chain(raw);
        let (mut out, mut data, mut table) = (b"GGUF".to_vec(), Vec::new(), Vec::new());
        for (name, shape, code, bytes) in quantised.chain(raw) {
            put_text(&mut table, name);
            table.extend((shape.len() as u32).to_le_bytes());
            table.extend(shape.iter().rev().flat_map(|n| (*n as u64).to_le_bytes()));
            table.extend(u32::to_le_bytes(code));
            table.extend((data.len() as u64).to_le_bytes());
            data.extend(bytes);
            data.resize(data.len().next_multiple_of(32), 0);
        }
        out.extend(3u32.to_le_bytes());
        out.extend(((self.tensors.len() + self.mxfp4.len() + self.raw.len()) as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            put_text(&mut out, key);
            out.extend(kind(value).to_le_bytes());
            put_value(&mut out, value);
        }
        out.extend(table);
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(data);
        std::fs::write(path, out).unwrap();
    }

    pub(crate) fn open(&self) -> Result<Checkpoint, CheckpointError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        self.write(&path);
        Checkpoint::open(&path)
    }

    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.metadata.insert(key.to_string(), value);
    }
}

/// ggml's number of a type.
fn code(dtype: GgmlDType) -> u32 {
    use GgmlDType::*;
    match dtype {
        F32 => 0,
        F16 => 1,
        Q4_0 => 2,
        Q4_1 => 3,
        Q5_0 => 6,
        Q5_1 => 7,
        Q8_0 => 8,
        Q2K => 10,
        Q3K => 11,
        Q4K => 12,
        Q5K => 13,
        Q6K => 14,
        Q8K => 15,
        BF16 => 30,
        other => panic!("{other:?}"),
    }
}

/// GGUF's number of a value's type.
fn kind(value: &Value) -> u32 {
    match value {
        Value::U16(_) => 2,
        Value::U32(_) => 4,
        Value::I32(_) => 5,
        Value::F32(_) => 6,
        Value::Bool(_) => 7,
        Value::String(_) => 8,
        Value::Array(_) => 9,
        other => panic!("{other:?}"),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U16(n) => out.extend(n.to_le_bytes()),
        Value::U32(n) => out.extend(n.to_le_bytes()),
        Value::I32(n) => out.extend(n.to_le_bytes()),
        Value::F32(n) => out.extend(n.to_le_bytes()),
        Value::Bool(flag) => out.push(u8::from(*flag)),
        Value::String(text) => put_text(out, text),
        Value::Array(list) => {
            out.extend(list.first().map_or(8, kind).to_le_bytes());
            out.extend((list.len() as u64).to_le_bytes());
            list.iter().for_each(|value| put_value(out, value));
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn texts(list: impl IntoIterator<Item = String>) -> Value {
    Value::Array(list.into_iter().map(Value::String).collect())
}

/// The golden tokenizer: byte-level BPE that splits digits, called `smollm` in GGUF.
fn add_tokenizer(gguf: &mut Gguf, name: &str, rows: usize) {
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(golden(name).join("tokenizer.json")).unwrap()).unwrap();
    let mut tokens = vec![String::new(); rows];
    for (token, id) in json["model"]["vocab"].as_object().unwrap() {
        tokens[id.as_u64().unwrap() as usize] = token.clone();
    }
    for (id, token) in tokens.iter_mut().enumerate().filter(|(_, t)| t.is_empty()) {
        *token = format!("[PAD{id}]");
    }
    let padding = |token: &String| token.starts_with("[PAD");
    let types = tokens.iter().enumerate().map(|(id, t)| {
        if id < 3 {
            3
        } else if padding(t) {
            5
        } else {
            1
        }
    });
    gguf.set("tokenizer.ggml.token_type", Value::Array(types.map(Value::I32).collect()));
    gguf.set("tokenizer.ggml.tokens", texts(tokens));
    let merges = json["model"]["merges"].as_array().unwrap();
    let merge = |m: &serde_json::Value| format!("{} {}", m[0].as_str().unwrap(), m[1].as_str().unwrap());
    gguf.set("tokenizer.ggml.merges", texts(merges.iter().map(merge)));
    gguf.set("tokenizer.ggml.model", Value::String("gpt2".into()));
    gguf.set("tokenizer.ggml.pre", Value::String("smollm".into()));
    gguf.set("tokenizer.ggml.bos_token_id", Value::U32(1));
    gguf.set("tokenizer.ggml.eos_token_id", Value::U32(2));
    let adds_bos = json["post_processor"]["single"].as_array().unwrap().len() == 2;
    gguf.set("tokenizer.ggml.add_bos_token", Value::Bool(adds_bos));
}

/// The converter's row order for architectures that it moves to adjacent pairs: `reshape(heads, 2, dim / 2, width).swapaxes(1, 2)`.
pub(crate) fn permute(values: &[f32], heads: usize, width: usize) -> Vec<f32> {
    let dim = values.len() / heads / width;
    let row = |h: usize, i: usize, j: usize| (h * dim + j * dim / 2 + i) * width;
    let rows = (0..heads).flat_map(|h| (0..dim / 2).flat_map(move |i| (0..2).map(move |j| (h, i, j))));
    rows.flat_map(|(h, i, j)| values[row(h, i, j)..row(h, i, j) + width].to_vec()).collect()
}

/// Values in f32, which holds those of the other types.
fn widen(values: Values) -> Vec<f32> {
    match values {
        Values::F32(v) => v,
        Values::Bf16(v) => v.into_iter().map(|b| f32::from_bits(u32::from(b) << 16)).collect(),
        Values::F16(_) => panic!("no checkpoint of these tests has it"),
    }
}

/// Converts a reference checkpoint; architecture-specific keys are added by the tests.
pub(crate) fn convert(name: &str, arch: &str) -> (Gguf, Checkpoint) {
    let source = Checkpoint::open(&golden(name)).unwrap();
    let c = &source.config;
    let mut gguf = Gguf::default();
    gguf.set("general.architecture", Value::String(arch.into()));
    gguf.set("general.file_type", Value::U32(0));
    for (parameter, shape) in c.parameters() {
        let values = widen(source.tensor(parameter, &shape).unwrap().values);
        let width = shape.get(1).copied().unwrap_or(1);
        let values = file_values(c, arch, parameter, values, width);
        let tensor = tensor_name(c, arch, parameter);
        if let (Parameter::Layer(_, LayerParameter::KvUp), Some(latent)) = (parameter, c.latent) {
            // Keys of each head, transposed, and values.
            let (keys, all) = (latent.plain_dims * width, (latent.plain_dims + latent.value_dims) * width);
            let keys_of = |head: &[f32]| -> Vec<f32> {
                (0..width)
                    .flat_map(|r| head[..keys].iter().skip(r).step_by(width).copied().collect::<Vec<_>>())
                    .collect()
            };
            let parts = [
                ("attn_k_b", [c.num_heads, width, latent.plain_dims], values.chunks(all).flat_map(keys_of).collect()),
                (
                    "attn_v_b",
                    [c.num_heads, latent.value_dims, width],
                    values.chunks(all).flat_map(|head| head[keys..].to_vec()).collect::<Vec<f32>>(),
                ),
            ];
            for (name, shape, values) in parts {
                gguf.tensors.insert(tensor.replace("attn_kv_b", name), (shape.to_vec(), values));
            }
            continue;
        }
        // Parts of a fused tensor, experts and streams come in order and are stacked.
        let entry = gguf.tensors.entry(tensor.clone()).or_insert_with(|| (shape.clone(), Vec::new()));
        entry.1.extend(values);
        let (size, all) = (shape.iter().product::<usize>(), entry.1.len());
        if tensor.contains("_gate_up_exps") {
            entry.0 = vec![all / size / 2, 2 * shape[0], shape[1]];
        } else if tensor.contains("_gate_inp_shexp") {
            // As llama.cpp reads it.
            entry.0 = vec![all];
        } else if (tensor.contains("_exps") && !tensor.ends_with(".scale")) || tensor.starts_with("altup_") {
            entry.0 = [vec![all / size], shape.clone()].concat();
        } else {
            entry.0[0] = all / (size / shape[0]);
        }
    }
    let set = |gguf: &mut Gguf, key: &str, value: Value| gguf.set(&format!("{arch}.{key}"), value);
    let count = |n: usize| Value::U32(n as u32);
    set(&mut gguf, "block_count", count(c.layers.len()));
    set(&mut gguf, "context_length", count(c.max_positions));
    set(&mut gguf, "embedding_length", count(c.hidden_size));
    let dense = c.layers.iter().find(|layer| !layer.experts).map_or(c.intermediate_size, |l| l.intermediate_size);
    set(&mut gguf, "feed_forward_length", count(dense));
    set(&mut gguf, "attention.head_count", count(c.num_heads));
    set(&mut gguf, "attention.head_count_kv", count(c.num_kv_heads));
    set(&mut gguf, "attention.key_length", count(c.head_dim));
    set(&mut gguf, "attention.value_length", count(c.head_dim));
    set(&mut gguf, "rope.freq_base", Value::F32(c.ropes[0].theta as f32));
    set(&mut gguf, "rope.dimension_count", count(c.ropes[0].dims));
    let (key, eps) = match c.norm {
        earnest_models::checkpoint::Norm::Rms { eps } => ("attention.layer_norm_rms_epsilon", eps),
        earnest_models::checkpoint::Norm::Layer { eps, .. } => ("attention.layer_norm_epsilon", eps),
    };
    set(&mut gguf, key, Value::F32(eps));
    if let Some(experts) = c.experts {
        set(&mut gguf, "expert_count", count(experts.count));
        set(&mut gguf, "expert_used_count", count(experts.per_token));
        if arch != "llama" {
            set(&mut gguf, "expert_feed_forward_length", count(experts.intermediate_size));
        }
    }
    add_tokenizer(&mut gguf, name, c.vocab_size);
    (gguf, source)
}

/// The same model: configuration (as the test expects it), tensors and tokenizer.
pub(crate) fn assert_same(gguf: &Gguf, source: &Checkpoint, expected: DecoderConfig) {
    let c = gguf.open().unwrap_or_else(|e| panic!("{e}"));
    assert!(c.config.architecture.starts_with("gguf:"));
    assert_eq!(DecoderConfig { architecture: expected.architecture.clone(), ..c.config.clone() }, expected);
    let folder: TempDir = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    gguf.write(&path);
    let c = Checkpoint::open(&path).unwrap();
    for (parameter, shape) in source.config.parameters() {
        let (a, b) = (source.tensor(parameter, &shape).unwrap(), c.tensor(parameter, &shape).unwrap());
        if matches!(parameter, Parameter::Layer(_, LayerParameter::LinearDecayLog)) {
            // The file has its exponential.
            let close = widen(a.values).iter().zip(widen(b.values)).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(close, "{parameter}");
            continue;
        }
        assert_eq!((a.shape, widen(a.values)), (b.shape, widen(b.values)), "{parameter}");
    }
    for text in ["Add two numbers: 744 + 543 =", "a  12\n\n x", "", "<eos>é🦀"] {
        assert_eq!(c.tokenizer.encode(text, true).unwrap(), source.tokenizer.encode(text, true).unwrap(), "{text}");
    }
    assert_eq!(c.generation.eos_ids, [2]);
    let quantisation = if gguf.mxfp4.is_empty() { "F32" } else { "MXFP4_MOE" };
    assert_eq!(c.format, Format::Gguf { quantisation: quantisation.into() });
    assert_eq!(c.files(), [path]);
}

/// Keys of an architecture's section.
pub(crate) fn set(gguf: &mut Gguf, arch: &str, keys: impl IntoIterator<Item = (&'static str, Value)>) {
    for (key, value) in keys {
        gguf.set(&format!("{arch}.{key}"), value);
    }
}

pub(crate) fn count(n: usize) -> Value {
    Value::U32(n as u32)
}

pub(crate) fn flags(list: impl IntoIterator<Item = bool>) -> Value {
    Value::Array(list.into_iter().map(Value::Bool).collect())
}

pub(crate) fn windows(c: &DecoderConfig) -> Value {
    flags(c.layers.iter().map(|layer| layer.window.is_some()))
}

/// True if a checkpoint that is not in the repository is at hand.
pub(crate) fn is_here(name: &str) -> bool {
    let here = golden(name).is_dir();
    if !here {
        eprintln!("skipped: {name} is not there; set EARNEST_GOLDEN to the folder of all reference checkpoints");
    }
    here
}

pub(crate) fn refusal(gguf: &Gguf) -> String {
    gguf.open().expect_err("it has to be refused").to_string()
}
