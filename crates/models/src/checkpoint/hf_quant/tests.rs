//! Folders of random quantised matrices, packed here in the way of the programs that write them, number by number.
use super::super::hf_family::Family;
use super::super::{Checkpoint, CheckpointError, DecoderConfig, Parameter, Values, hf_names};
use super::part::e4m3;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A stored tensor: type, shape, bytes.
type Stored = (Dtype, Vec<usize>, Vec<u8>);

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % limit
    }

    /// A positive number that bf16 and f16 hold exactly.
    fn scale(&mut self) -> f32 {
        (1 + self.below(127)) as f32 / 4096.0
    }
}

/// A matrix: what is stored beside its module's name, and the weights that this means, `[out, in]`.
struct Packed {
    stored: Vec<(&'static str, Stored)>,
    weights: Vec<f32>,
}

/// Writes a matrix of random numbers.
type Writer<'w> = dyn Fn(&mut Random, usize, usize) -> Packed + 'w;

struct Folder {
    config: Value,
    tensors: BTreeMap<String, Stored>,
    expected: HashMap<Parameter, Vec<f32>>,
}

fn bytes<T, const N: usize>(values: &[T], convert: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(convert).collect()
}

fn f32s(shape: &[usize], values: &[f32]) -> Stored {
    (Dtype::F32, shape.to_vec(), bytes(values, |v| v.to_le_bytes()))
}

fn f16s(shape: &[usize], values: &[f32]) -> Stored {
    (Dtype::F16, shape.to_vec(), bytes(values, |v| half::f16::from_f32(*v).to_le_bytes()))
}

fn bf16s(shape: &[usize], values: &[f32]) -> Stored {
    (Dtype::BF16, shape.to_vec(), bytes(values, |v| half::bf16::from_f32(*v).to_le_bytes()))
}

fn words(shape: &[usize], values: &[u32]) -> Stored {
    (Dtype::I32, shape.to_vec(), bytes(values, |v| v.to_le_bytes()))
}

impl Folder {
    /// A Llama of one layer whose widths are multiples of nothing useful, with its projections quantised.
    fn new(seed: u64, quantization: Value, writer: &Writer<'_>) -> Folder {
        let sizes = json!({"hidden_size": 40, "intermediate_size": 36, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 6});
        Folder::of(seed, "LlamaForCausalLM", sizes, quantization, writer)
    }

    fn of(seed: u64, architecture: &str, sizes: Value, quantization: Value, writer: &Writer<'_>) -> Folder {
        let mut config = json!({"architectures": [architecture], "num_hidden_layers": 1, "vocab_size": 512, "bos_token_id": 1,
            "eos_token_id": 2, "max_position_embeddings": 64, "tie_word_embeddings": false});
        let map = config.as_object_mut().unwrap();
        map.extend(sizes.as_object().unwrap().clone());
        map.insert("quantization_config".into(), quantization);
        let decoder = DecoderConfig::from_config_keys(Path::new("config.json"), map).unwrap();
        let family = Family::from_architecture(architecture).unwrap();
        let mut random = Random(seed);
        let mut folder = Folder { config, tensors: BTreeMap::new(), expected: HashMap::new() };
        let mut whole: HashMap<String, Vec<f32>> = HashMap::new();
        for (parameter, shape) in decoder.parameters() {
            let place = hf_names::places(family, &decoder, parameter, &shape).swap_remove(0);
            if !whole.contains_key(&place.tensor) {
                let weights = match (parameter, place.whole.as_slice()) {
                    (Parameter::Layer(..), &[outputs, inputs]) => {
                        let packed = writer(&mut random, outputs, inputs);
                        let module = place.tensor.strip_suffix(".weight").unwrap();
                        for (name, stored) in packed.stored {
                            folder.tensors.insert(format!("{module}.{name}"), stored);
                        }
                        packed.weights
                    }
                    (_, plain) => {
                        let values: Vec<f32> =
                            (0..plain.iter().product()).map(|_| random.scale() * 64.0 - 1.0).collect();
                        folder.tensors.insert(place.tensor.clone(), f32s(plain, &values));
                        values
                    }
                };
                whole.insert(place.tensor.clone(), weights);
            }
            let count: usize = shape.iter().product();
            folder.expected.insert(parameter, whole[&place.tensor][place.start..place.start + count].to_vec());
        }
        folder
    }

    fn write(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        std::fs::copy(golden.join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
        std::fs::write(folder.path().join("config.json"), self.config.to_string()).unwrap();
        let views = self.tensors.iter().map(|(name, (dtype, shape, bytes))| {
            (name.clone(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        let file = folder.path().join("model.safetensors");
        std::fs::write(file, safetensors::serialize(views, None).unwrap()).unwrap();
        folder
    }

    /// Checks that every weight comes back, bit for bit.
    fn check(&self) -> Checkpoint {
        let folder = self.write();
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        for (parameter, shape) in checkpoint.config.parameters() {
            let Values::F32(found) = checkpoint.tensor(parameter, &shape).unwrap().values else {
                panic!("{parameter}")
            };
            let same = found.iter().map(|v| v.to_bits()).eq(self.expected[&parameter].iter().map(|v| v.to_bits()));
            assert!(same && found.iter().any(|v| *v != 0.0), "{parameter}");
        }
        checkpoint
    }

    /// Returns the first error of opening and reading all tensors.
    fn refusal(&self) -> CheckpointError {
        let folder = self.write();
        let opened = Checkpoint::open(folder.path()).and_then(|checkpoint| {
            checkpoint.config.parameters().into_iter().try_for_each(|(p, shape)| checkpoint.tensor(p, &shape).map(drop))
        });
        opened.unwrap_err()
    }

    /// The tensor of the one layer whose name ends so.
    fn tensor(&mut self, ending: &str) -> &mut Stored {
        let name =
            self.tensors.keys().find(|name| name.contains("layers.0") && name.ends_with(ending)).unwrap().clone();
        self.tensors.get_mut(&name).unwrap()
    }
}

fn gptq_settings(bits: u32, group: i64, act_order: bool, format: Option<&str>) -> Value {
    let mut settings = json!({"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act_order, "sym": false,
        "damp_percent": 0.1, "true_sequential": true, "lm_head": false});
    if let Some(format) = format {
        settings["checkpoint_format"] = json!(format);
    }
    settings
}

/// GPTQ: words along the inputs, zero points along the outputs.
fn gptq(
    random: &mut Random,
    [outputs, inputs]: [usize; 2],
    bits: u32,
    group: usize,
    shuffled: bool,
    less: u32,
) -> Packed {
    let per_word = (32 / bits) as usize;
    let groups = inputs.div_ceil(group);
    let mut indices: Vec<u32> = (0..inputs).map(|i| (i / group) as u32).collect();
    if shuffled {
        (1..inputs).rev().for_each(|i| indices.swap(i, random.below(i as u32 + 1) as usize));
    }
    let scales: Vec<f32> = (0..groups * outputs).map(|_| random.scale()).collect();
    let zeros: Vec<u32> = (0..groups * outputs).map(|_| less + random.below((1 << bits) - less)).collect();
    let mut qweight = vec![0u32; inputs.div_ceil(per_word) * outputs];
    let mut qzeros = vec![0u32; groups * outputs.div_ceil(per_word)];
    let mut weights = vec![0f32; outputs * inputs];
    for o in 0..outputs {
        for i in 0..inputs {
            let q = random.below(1 << bits);
            let g = indices[i] as usize;
            qweight[i / per_word * outputs + o] |= q << (bits as usize * (i % per_word));
            weights[o * inputs + i] = scales[g * outputs + o] * (q as f32 - zeros[g * outputs + o] as f32);
        }
        for g in 0..groups {
            let stored = zeros[g * outputs + o] - less;
            qzeros[g * outputs.div_ceil(per_word) + o / per_word] |= stored << (bits as usize * (o % per_word));
        }
    }
    let stored = vec![
        ("qweight", words(&[inputs.div_ceil(per_word), outputs], &qweight)),
        ("qzeros", words(&[groups, outputs.div_ceil(per_word)], &qzeros)),
        ("scales", f16s(&[groups, outputs], &scales)),
        ("g_idx", words(&[inputs], &indices)),
    ];
    Packed { stored, weights }
}

#[test]
fn gptq_of_all_widths_and_groups_is_read() {
    for (bits, group, act_order, format) in [
        (4, 16, false, None),
        (4, 16, true, Some("gptq")),
        (4, -1, false, Some("gptq_v2")),
        (8, 8, true, None),
        (8, 128, false, Some("gptq_v2")),
        (2, 32, true, Some("gptq_v2")),
    ] {
        let less = u32::from(format != Some("gptq_v2"));
        let writer = move |random: &mut Random, outputs, inputs| {
            let size = if group < 0 { inputs } else { group as usize };
            gptq(random, [outputs, inputs], bits, size, act_order, less)
        };
        let checkpoint = Folder::new(7, gptq_settings(bits, group, act_order, format), &writer).check();
        let name = checkpoint.quantisation().unwrap();
        assert!(name.starts_with(&format!("gptq {bits}-bit, ")) && name.ends_with("act order") == act_order, "{name}");
        assert!(checkpoint.is_quantised() && !checkpoint.quantises_activations());
    }
}

#[test]
fn parts_of_fused_matrices_are_read() {
    let sizes = json!({"hidden_size": 48, "intermediate_size": 100, "num_attention_heads": 6, "num_key_value_heads": 3,
        "pad_token_id": 0});
    let writer = |random: &mut Random, outputs, inputs| gptq(random, [outputs, inputs], 4, 16, true, 1);
    Folder::of(3, "Phi3ForCausalLM", sizes.clone(), gptq_settings(4, 16, true, None), &writer).check();
    let settings = json!({"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": true});
    Folder::of(3, "Phi3ForCausalLM", sizes.clone(), settings, &|r, o, i| awq(r, o, i, 16)).check();
    let settings = json!({"quant_method": "fp8", "weight_block_size": [32, 20], "activation_scheme": "dynamic"});
    Folder::of(3, "Phi3ForCausalLM", sizes, settings, &|r, o, i| blocks(r, o, i, 32, 20)).check();
}

#[test]
fn empty_biases_of_gptq_are_ignored_and_others_are_not() {
    let writer = |random: &mut Random, outputs, inputs| {
        let mut packed = gptq(random, [outputs, inputs], 4, 16, false, 1);
        // As the oldest files have it.
        packed.stored.retain(|(name, _)| *name != "g_idx");
        packed.stored.push(("bias", f16s(&[outputs], &vec![0.0; outputs])));
        packed
    };
    let mut folder = Folder::new(5, gptq_settings(4, 16, false, None), &writer);
    folder.check();
    folder.tensor("up_proj.bias").2[1] = 0x3c;
    let error = folder.refusal().to_string();
    assert!(error.contains("layers.0.mlp.up_proj.bias") && error.contains("model.safetensors"), "{error}");
}

/// AWQ: words along the outputs, in the order 0, 2, 4, 6, 1, 3, 5, 7.
fn awq(random: &mut Random, outputs: usize, inputs: usize, group: usize) -> Packed {
    let (groups, across) = (inputs.div_ceil(group), outputs.div_ceil(8));
    let scales: Vec<f32> = (0..groups * outputs).map(|_| random.scale()).collect();
    let zeros: Vec<u32> = (0..groups * outputs).map(|_| random.below(16)).collect();
    let numbers: Vec<u32> = (0..inputs * outputs).map(|_| random.below(16)).collect();
    let pack = |rows: usize, numbers: &[u32]| {
        let mut packed = vec![0u32; rows * across];
        for row in 0..rows {
            for word in 0..across {
                for (nibble, offset) in [0, 2, 4, 6, 1, 3, 5, 7].into_iter().enumerate() {
                    let column = 8 * word + offset;
                    if column < outputs {
                        packed[row * across + word] |= numbers[row * outputs + column] << (4 * nibble);
                    }
                }
            }
        }
        packed
    };
    let mut weights = vec![0f32; outputs * inputs];
    for (at, weight) in weights.iter_mut().enumerate() {
        let (o, i) = (at / inputs, at % inputs);
        let shared = i / group * outputs + o;
        *weight = (numbers[i * outputs + o] as f32 - zeros[shared] as f32) * scales[shared];
    }
    let stored = vec![
        ("qweight", words(&[inputs, across], &pack(inputs, &numbers))),
        ("qzeros", words(&[groups, across], &pack(groups, &zeros))),
        ("scales", f16s(&[groups, outputs], &scales)),
    ];
    Packed { stored, weights }
}

#[test]
fn awq_is_read() {
    for (group, key) in [(8, "bits"), (32, "w_bit"), (-1, "bits")] {
        let settings = json!({"quant_method": "awq", key: 4, "group_size": group, "version": "GEMM", "modules_to_not_convert": null});
        let writer = |r: &mut Random, o, i| awq(r, o, i, if group < 0 { i } else { group as usize });
        let checkpoint = Folder::new(11, settings, &writer).check();
        assert!(checkpoint.quantisation().unwrap().starts_with("awq 4-bit"));
    }
}

/// Finite codes of E4M3.
fn codes(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).map(|_| (random.below(2) * 128 + random.below(127)) as u8).collect()
}

fn blocks(random: &mut Random, outputs: usize, inputs: usize, rows: usize, columns: usize) -> Packed {
    let codes = codes(random, outputs * inputs);
    let across = inputs.div_ceil(columns);
    let scales: Vec<f32> = (0..outputs.div_ceil(rows) * across).map(|_| random.scale()).collect();
    let weight = |(at, code): (usize, &u8)| {
        let (o, i) = (at / inputs, at % inputs);
        e4m3(*code) * scales[o / rows * across + i / columns]
    };
    let weights = codes.iter().enumerate().map(weight).collect();
    let stored = vec![
        ("weight", (Dtype::F8_E4M3, vec![outputs, inputs], codes)),
        ("weight_scale_inv", f32s(&[outputs.div_ceil(rows), across], &scales)),
    ];
    Packed { stored, weights }
}

#[test]
fn fp8_with_scales_of_blocks_and_matrices_is_read() {
    for (rows, columns) in [(128, 128), (16, 16), (5, 7)] {
        let settings = json!({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [rows, columns],
            "activation_scheme": "dynamic", "modules_to_not_convert": ["lm_head"]});
        let checkpoint = Folder::new(13, settings, &|r, o, i| blocks(r, o, i, rows, columns)).check();
        assert!(checkpoint.quantises_activations());
    }
    // One scale, static activations: the scales of activations and of the cache are not used.
    let writer = |random: &mut Random, outputs: usize, inputs: usize| {
        let mut packed = blocks(random, outputs, inputs, outputs, inputs);
        let scale = packed.stored.pop().unwrap().1;
        packed.stored.push(("weight_scale", (Dtype::F32, vec![], scale.2)));
        packed.stored.push(("input_scale", f32s(&[], &[0.5])));
        packed
    };
    let settings = json!({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]});
    let mut folder = Folder::new(13, settings, &writer);
    folder.tensors.insert("model.layers.0.self_attn.k_scale".into(), f32s(&[], &[1.0]));
    folder.check();
}

fn compressed(format: &str, weights: Value) -> Value {
    json!({"quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head"], "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null, "output_activations": null,
        "weights": weights}}, "kv_cache_scheme": null, "sparsity_config": {}, "transform_config": {}, "version": "0.12"})
}

#[test]
fn compressed_floats_are_read() {
    let settings = |strategy: &str| {
        let weights = json!({"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": true, "dynamic": false,
            "group_size": null, "actorder": null, "block_structure": [16, 16], "observer": "minmax", "observer_kwargs": {}});
        compressed("float-quantized", weights)
    };
    let writer = |rows: usize, columns: usize, shape: fn(usize) -> Vec<usize>| {
        move |random: &mut Random, outputs: usize, inputs: usize| {
            let (rows, columns) = (rows.min(outputs), columns.min(inputs));
            let mut packed = blocks(random, outputs, inputs, rows, columns);
            let (_, found, bytes) = packed.stored.pop().unwrap().1;
            let shape = if columns < inputs { found } else { shape(outputs) };
            let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            packed.stored.push(("weight_scale", bf16s(&shape, &values)));
            packed
        }
    };
    Folder::new(17, settings("channel"), &writer(1, 999, |outputs| vec![outputs, 1])).check();
    Folder::new(17, settings("tensor"), &writer(999, 999, |_| vec![1])).check();
    Folder::new(17, settings("block"), &writer(16, 16, |_| vec![])).check();
}

#[test]
fn compressed_integers_are_read() {
    for asymmetric in [false, true] {
        let writer = move |random: &mut Random, outputs: usize, inputs: usize| {
            let numbers: Vec<i8> = (0..outputs * inputs).map(|_| random.below(256) as u8 as i8).collect();
            let scales: Vec<f32> = (0..outputs).map(|_| random.scale()).collect();
            let zeros: Vec<i8> =
                (0..outputs).map(|_| if asymmetric { random.below(256) as u8 as i8 } else { 0 }).collect();
            let weight = |(at, q): (usize, &i8)| (f32::from(*q) - f32::from(zeros[at / inputs])) * scales[at / inputs];
            let weights = numbers.iter().enumerate().map(weight).collect();
            let mut stored = vec![
                ("weight", (Dtype::I8, vec![outputs, inputs], bytes(&numbers, |v| v.to_le_bytes()))),
                ("weight_scale", f32s(&[outputs, 1], &scales)),
            ];
            if asymmetric {
                stored.push(("weight_zero_point", (Dtype::I8, vec![outputs, 1], bytes(&zeros, |v| v.to_le_bytes()))));
            }
            Packed { stored, weights }
        };
        let weights = json!({"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": !asymmetric});
        Folder::new(19, compressed("int-quantized", weights), &writer).check();
    }
}

/// `pack-quantized`: words along the inputs, zero points along the outputs, both with half of the range added.
fn packed(
    random: &mut Random,
    [outputs, inputs]: [usize; 2],
    bits: u32,
    group: usize,
    asymmetric: bool,
    order: bool,
) -> Packed {
    let per_word = (32 / bits) as usize;
    let (across, groups, half) = (inputs.div_ceil(per_word), inputs.div_ceil(group), 1i32 << (bits - 1));
    let mut indices: Vec<u32> = (0..inputs).map(|i| (i / group) as u32).collect();
    if order {
        (1..inputs).rev().for_each(|i| indices.swap(i, random.below(i as u32 + 1) as usize));
    }
    let scales: Vec<f32> = (0..outputs * groups).map(|_| random.scale()).collect();
    let mut zero = || if asymmetric { random.below(1 << bits) as i32 - half } else { 0 };
    let zeros: Vec<i32> = (0..outputs * groups).map(|_| zero()).collect();
    let mut weight_packed = vec![0u32; outputs * across];
    let mut zero_packed = vec![0u32; outputs.div_ceil(per_word) * groups];
    let mut weights = vec![0f32; outputs * inputs];
    for o in 0..outputs {
        for i in 0..inputs {
            let q = random.below(1 << bits) as i32 - half;
            let g = o * groups + indices[i] as usize;
            weight_packed[o * across + i / per_word] |= ((q + half) as u32) << (bits as usize * (i % per_word));
            weights[o * inputs + i] = (q - zeros[g]) as f32 * scales[g];
        }
        for g in 0..groups {
            let stored = (zeros[o * groups + g] + half) as u32;
            zero_packed[o / per_word * groups + g] |= stored << (bits as usize * (o % per_word));
        }
    }
    let shape = bytes(&[outputs as i64, inputs as i64], |v| v.to_le_bytes());
    let mut stored = vec![
        ("weight_packed", words(&[outputs, across], &weight_packed)),
        ("weight_shape", (Dtype::I64, vec![2], shape)),
        ("weight_scale", bf16s(&[outputs, groups], &scales)),
    ];
    if asymmetric {
        stored.push(("weight_zero_point", words(&[outputs.div_ceil(per_word), groups], &zero_packed)));
    }
    if order {
        stored.push(("weight_g_idx", words(&[inputs], &indices)));
    }
    Packed { stored, weights }
}

#[test]
fn packed_integers_are_read() {
    for (bits, group, asymmetric, order) in [
        (4, 16, false, None),
        (4, 16, true, Some("weight")),
        (8, 0, true, None),
        (4, 8, true, Some("group")),
        (3, 16, false, None),
    ] {
        let strategy = if group == 0 { "channel" } else { "group" };
        let size = if group == 0 { Value::Null } else { json!(group) };
        let weights = json!({"num_bits": bits, "type": "int", "strategy": strategy, "symmetric": !asymmetric,
            "group_size": size, "actorder": order});
        let writer = move |random: &mut Random, outputs, inputs: usize| {
            let group = if group == 0 { inputs } else { group as usize };
            packed(random, [outputs, inputs], bits, group, asymmetric, order == Some("group"))
        };
        let checkpoint = Folder::new(23, compressed("pack-quantized", weights), &writer).check();
        assert!(!checkpoint.quantises_activations());
    }
}

/// NF4: bytes of two weights, the first in the high bits; the tables are stored.
fn nf4(random: &mut Random, outputs: usize, inputs: usize, double: bool) -> Packed {
    let count = outputs * inputs;
    let levels: Vec<f32> = (0..16).map(|level| (level as f32 - 7.5) / 7.5).collect();
    let numbers: Vec<u32> = (0..count).map(|_| random.below(16)).collect();
    let blocks = count.div_ceil(64);
    let (nested_levels, offset) = ((0..256).map(|level| level as f32 / 256.0 - 0.5).collect::<Vec<f32>>(), 0.625f32);
    let nested: Vec<f32> = (0..blocks.div_ceil(256)).map(|_| random.scale()).collect();
    let codes: Vec<u8> = (0..blocks).map(|_| random.below(256) as u8).collect();
    let scales: Vec<f32> = match double {
        true => (0..blocks).map(|b| nested_levels[usize::from(codes[b])] * nested[b / 256] + offset).collect(),
        false => (0..blocks).map(|_| random.scale()).collect(),
    };
    let weights = (0..count).map(|at| levels[numbers[at] as usize] * scales[at / 64]).collect();
    let mut packed = vec![0u8; count.div_ceil(2)];
    for (at, number) in numbers.iter().enumerate() {
        packed[at / 2] |= (*number as u8) << (4 * (1 - at % 2));
    }
    let mut state = json!({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [outputs, inputs]});
    if double {
        let more = json!({"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": offset});
        state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    }
    let state = state.to_string().into_bytes();
    let mut stored = vec![
        ("weight", (Dtype::U8, vec![packed.len(), 1], packed)),
        ("weight.quant_map", f32s(&[16], &levels)),
        ("weight.quant_state.bitsandbytes__nf4", (Dtype::U8, vec![state.len()], state)),
    ];
    stored.push(match double {
        true => ("weight.absmax", (Dtype::U8, vec![blocks], codes)),
        false => ("weight.absmax", f32s(&[blocks], &scales)),
    });
    if double {
        stored.push(("weight.nested_absmax", f32s(&[nested.len()], &nested)));
        stored.push(("weight.nested_quant_map", f32s(&[256], &nested_levels)));
    }
    Packed { stored, weights }
}

fn nf4_settings(double: bool) -> Value {
    json!({"quant_method": "bitsandbytes", "load_in_4bit": true, "load_in_8bit": false, "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": double, "bnb_4bit_compute_dtype": "bfloat16", "bnb_4bit_quant_storage": "uint8",
        "_load_in_4bit": true, "_load_in_8bit": false, "llm_int8_threshold": 6.0, "llm_int8_skip_modules": null})
}

#[test]
fn stored_nf4_is_read() {
    for double in [false, true] {
        Folder::new(29, nf4_settings(double), &|r, o, i| nf4(r, o, i, double)).check();
    }
    // More than 256 blocks, an odd width.
    let sizes = json!({"hidden_size": 130, "intermediate_size": 251, "num_attention_heads": 5, "pad_token_id": 0});
    Folder::of(31, "Phi3ForCausalLM", sizes, nf4_settings(true), &|r, o, i| nf4(r, o, i, true)).check();
}

#[test]
fn damaged_parts_are_named_with_their_file() {
    let gptq4 = || {
        let writer = |random: &mut Random, outputs, inputs| gptq(random, [outputs, inputs], 4, 16, true, 1);
        Folder::new(37, gptq_settings(4, 16, true, None), &writer)
    };
    let fp8 = || {
        let settings = json!({"quant_method": "fp8", "weight_block_size": [16, 16]});
        Folder::new(37, settings, &|r, o, i| blocks(r, o, i, 16, 16))
    };
    let pack4 = || {
        let weights = json!({"num_bits": 4, "type": "int", "strategy": "group", "symmetric": false, "group_size": 16});
        let writer = |random: &mut Random, outputs, inputs| packed(random, [outputs, inputs], 4, 16, true, false);
        Folder::new(37, compressed("pack-quantized", weights), &writer)
    };
    let bnb = || Folder::new(37, nf4_settings(true), &|r, o, i| nf4(r, o, i, true));
    let refused = |mut folder: Folder, ending: &str, change: &dyn Fn(&mut Stored), expected: &[&str]| {
        change(folder.tensor(ending));
        let error = folder.refusal().to_string();
        for part in [&[ending, "model.safetensors"], expected].concat() {
            assert!(error.contains(part), "{ending}: {part} is not in: {error}");
        }
    };
    let missing = |mut folder: Folder, ending: &str| {
        let name = folder.tensors.keys().find(|name| name.ends_with(ending)).unwrap().clone();
        folder.tensors.remove(&name);
        let error = folder.refusal().to_string();
        assert!(error.contains(&name) && error.contains("missing") && error.contains("model.safetensors"), "{error}");
    };
    for ending in ["k_proj.qzeros", "k_proj.scales", "k_proj.g_idx", "up_proj.qweight"] {
        // Without its words, the others have no place or the matrix is missing.
        missing(gptq4(), ending);
        refused(gptq4(), ending, &|(_, shape, _)| shape.push(1), &["has shape"]);
        refused(
            gptq4(),
            ending,
            &|(dtype, shape, bytes)| {
                *dtype = Dtype::U8;
                bytes.truncate(shape.iter().product());
            },
            &["U8"],
        );
    }
    let number = |at: usize, value: f32| {
        move |(dtype, _, bytes): &mut Stored| match dtype {
            Dtype::F16 => bytes[2 * at..2 * at + 2].copy_from_slice(&half::f16::from_f32(value).to_le_bytes()),
            Dtype::BF16 => bytes[2 * at..2 * at + 2].copy_from_slice(&half::bf16::from_f32(value).to_le_bytes()),
            _ => bytes[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes()),
        }
    };
    refused(gptq4(), "k_proj.scales", &number(5, f32::NAN), &["value 5", "NaN"]);
    refused(fp8(), "q_proj.weight_scale_inv", &number(1, f32::INFINITY), &["value 1", "inf"]);
    refused(pack4(), "o_proj.weight_scale", &number(2, f32::NEG_INFINITY), &["value 2", "-inf"]);
    refused(bnb(), "q_proj.weight.nested_absmax", &number(0, f32::NAN), &["value 0", "NaN"]);
    refused(
        gptq4(),
        "k_proj.scales",
        &|(_, shape, bytes)| {
            shape[0] = 0;
            bytes.clear();
        },
        &["shape [0, 12]", "[3, 12]"],
    );
    let index = |value: i32| move |(_, _, bytes): &mut Stored| bytes[12..16].copy_from_slice(&value.to_le_bytes());
    refused(gptq4(), "up_proj.g_idx", &index(3), &["column 3", "group 3", "3 groups"]);
    refused(gptq4(), "up_proj.g_idx", &index(-1), &["column 3", "group -1"]);
    missing(fp8(), "v_proj.weight_scale_inv");
    refused(fp8(), "v_proj.weight_scale_inv", &|(_, shape, _)| shape.reverse(), &["has shape [3, 1], expected [1, 3]"]);
    refused(fp8(), "v_proj.weight", &|(dtype, _, _)| *dtype = Dtype::F8_E5M2, &["F8_E5M2", "fp8 e4m3"]);
    missing(pack4(), "v_proj.weight_zero_point");
    missing(pack4(), "v_proj.weight_shape");
    refused(pack4(), "v_proj.weight_shape", &|(_, _, bytes)| bytes[0] += 1, &["[13, 40]", "[12, 40]"]);
    missing(bnb(), "v_proj.weight.quant_map");
    refused(
        bnb(),
        "v_proj.weight",
        &|(_, shape, bytes)| {
            shape[0] -= 1;
            bytes.pop();
        },
        &["239 bytes", "240"],
    );
    refused(
        bnb(),
        "v_proj.weight.absmax",
        &|(_, shape, bytes)| {
            shape[0] -= 1;
            bytes.pop();
        },
        &["7 scales, expected 8"],
    );
    refused(
        bnb(),
        "v_proj.weight.quant_state.bitsandbytes__nf4",
        &|(_, _, bytes)| bytes[0] = b'x',
        &["does not describe"],
    );
}

#[test]
fn formats_that_are_not_read_are_refused_with_a_way_out() {
    let plain = |quantization: Value| {
        let mut config = json!({"architectures": ["LlamaForCausalLM"]});
        config["quantization_config"] = quantization;
        let map = config.as_object().unwrap().clone();
        DecoderConfig::from_config_keys(Path::new("config.json"), &map).unwrap_err().to_string()
    };
    let weights = |more: Value| {
        let mut weights = json!({"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true});
        weights.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        weights
    };
    let with = |key: &str, value: Value| {
        let mut settings = compressed("float-quantized", weights(json!({})));
        settings[key] = value;
        settings
    };
    let two = json!({"a": {"weights": weights(json!({}))}, "b": {"weights": weights(json!({"strategy": "tensor"}))}});
    for (settings, parts) in [
        (json!({"quant_method": "hqq"}), ["quantization_config.quant_method", "hqq"]),
        (json!({"quant_method": "mxfp4"}), ["mxfp4", "compressed-tensors"]),
        (json!({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"}), ["version", "gemv"]),
        (json!({"quant_method": "awq", "bits": 8, "group_size": 128}), ["bits", "8"]),
        (json!({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": false}), ["zero_point", "false"]),
        (gptq_settings(3, 128, false, None), ["bits", "3"]),
        (gptq_settings(4, 128, false, Some("marlin")), ["checkpoint_format", "marlin"]),
        (json!({"quant_method": "bitsandbytes", "load_in_8bit": true}), ["load_in_8bit", "nf4"]),
        (
            json!({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "fp4"}),
            ["bnb_4bit_quant_type", "fp4"],
        ),
        (json!({"quant_method": "fp8", "fmt": "e5m2"}), ["fmt", "e5m2"]),
        (compressed("nvfp4-pack-quantized", weights(json!({}))), ["format", "nvfp4-pack-quantized"]),
        (compressed("marlin-24", weights(json!({}))), ["format", "marlin-24"]),
        (compressed("float-quantized", weights(json!({"num_bits": 4}))), ["weights.num_bits", "4"]),
        (with("transform_config", json!({"config_groups": {"u": {}}})), ["transform_config", "activations"]),
        (with("sparsity_config", json!({"format": "sparse-24-bitmask"})), ["sparsity_config.format", "sparse-24"]),
        (with("config_groups", two), ["config_groups", "different schemes"]),
    ] {
        let error = plain(settings);
        let way = ["use the original checkpoint or a GGUF file", "--engine openai"];
        for part in parts.iter().chain(&way) {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
    for (settings, part) in [
        (json!({"quant_method": "gptq", "bits": 4}), "group_size"),
        (json!({"quant_method": "gptq", "bits": 4, "group_size": 0}), "group_size"),
        (json!({"quant_method": "fp8", "weight_block_size": [128]}), "weight_block_size"),
        (json!({"quant_method": "fp8", "weight_block_size": [0, 128]}), "weight_block_size"),
        (json!({"quant_method": "fp8", "online_rotation": true}), "online_rotation"),
        (with("config_groups", json!({})), "no group"),
        (json!("gptq"), "must be an object"),
    ] {
        let error = plain(settings);
        assert!(error.contains(part) && error.contains("quantization_config"), "{part} is not in: {error}");
    }
}
