//! Matrices of every format come back bit for bit.
use super::super::part::e4m3;
use super::*;
use crate::checkpoint::{BlockType, GroupedRow, Half};

pub(super) fn gptq_settings(bits: u32, group: i64, act_order: bool, format: Option<&str>) -> Value {
    let mut settings = json!({"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act_order, "sym": false,
        "damp_percent": 0.1, "true_sequential": true, "lm_head": false});
    if let Some(format) = format {
        settings["checkpoint_format"] = json!(format);
    }
    settings
}

/// GPTQ: words along the inputs, zero points along the outputs.
pub(super) fn gptq(
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
fn experts_of_a_mixture_are_read() {
    let sizes = json!({"hidden_size": 40, "intermediate_size": 36, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 3, "num_experts_per_tok": 2});
    let writer = |random: &mut Random, outputs, inputs| gptq(random, [outputs, inputs], 4, 16, true, 1);
    Folder::of(9, "MixtralForCausalLM", sizes.clone(), gptq_settings(4, 16, true, None), &writer).check();
    let settings = json!({"quant_method": "awq", "bits": 4, "group_size": 8, "version": "gemm", "zero_point": true});
    Folder::of(9, "MixtralForCausalLM", sizes, settings, &|r, o, i| awq(r, o, i, 8)).check();
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
pub(super) fn awq(random: &mut Random, outputs: usize, inputs: usize, group: usize) -> Packed {
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

pub(super) fn blocks(random: &mut Random, outputs: usize, inputs: usize, rows: usize, columns: usize) -> Packed {
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

pub(super) fn compressed(format: &str, weights: Value) -> Value {
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

/// 8-bit integers with a scale, and a zero point if `asymmetric`, for each row; `floats` stores the scales.
fn integers(
    random: &mut Random,
    [outputs, inputs]: [usize; 2],
    asymmetric: bool,
    floats: fn(&[usize], &[f32]) -> Stored,
) -> Packed {
    let numbers: Vec<i8> = (0..outputs * inputs).map(|_| random.below(256) as u8 as i8).collect();
    let scales: Vec<f32> = (0..outputs).map(|_| random.scale()).collect();
    let zeros: Vec<i8> = (0..outputs).map(|_| if asymmetric { random.below(256) as u8 as i8 } else { 0 }).collect();
    let weight = |(at, q): (usize, &i8)| (f32::from(*q) - f32::from(zeros[at / inputs])) * scales[at / inputs];
    let weights = numbers.iter().enumerate().map(weight).collect();
    let mut stored = vec![
        ("weight", (Dtype::I8, vec![outputs, inputs], bytes(&numbers, |v| v.to_le_bytes()))),
        ("weight_scale", floats(&[outputs, 1], &scales)),
    ];
    if asymmetric {
        stored.push(("weight_zero_point", (Dtype::I8, vec![outputs, 1], bytes(&zeros, |v| v.to_le_bytes()))));
    }
    Packed { stored, weights }
}

#[test]
fn compressed_integers_are_read() {
    for asymmetric in [false, true] {
        let writer = move |random: &mut Random, outputs, inputs| integers(random, [outputs, inputs], asymmetric, f32s);
        let weights = json!({"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": !asymmetric});
        Folder::new(19, compressed("int-quantized", weights), &writer).check();
    }
}

/// `pack-quantized`: words along the inputs, zero points along the outputs, both with half of the range added.
pub(super) fn packed(
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
pub(super) fn nf4(random: &mut Random, outputs: usize, inputs: usize, double: bool) -> Packed {
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

pub(super) fn nf4_settings(double: bool) -> Value {
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

/// Values of blocks by their definition: a scale, a zero point or none, and 32 codes; or a row with those of its groups.
fn values(kind: BlockType, blocks: &[u8], groups_of_inputs: &[u32]) -> Vec<f32> {
    let half = |half: Half, bytes: &[u8]| match half {
        Half::F16 => half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
        Half::Bf16 => half::bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
    };
    let one = |block: &[u8]| -> Vec<f32> {
        let integer = |scale: f32, zero: i32, code: u8| (i32::from(code) - zero) as f32 * scale;
        match kind {
            BlockType::Group4(float) => {
                let (scale, zero) = (half(float, block), i32::from(block[2]));
                let low = block[3..].iter().map(|byte| byte & 15);
                low.chain(block[3..].iter().map(|byte| byte >> 4)).map(|code| integer(scale, zero, code)).collect()
            }
            BlockType::Group8(float, less_one) => {
                let (scale, zero) = (half(float, block), i32::from(block[2]) + i32::from(less_one));
                block[3..].iter().map(|code| integer(scale, zero, *code)).collect()
            }
            BlockType::E4m3 => {
                let scale = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
                block[4..].iter().map(|code| e4m3(*code) * scale).collect()
            }
            BlockType::GroupedRow(row) => {
                let (codes, of_groups) = block.split_at(row.code_bytes());
                let number = |i: usize| f32::from_le_bytes(of_groups[4 * i..4 * i + 4].try_into().unwrap());
                let code = |i: usize| match row.wide {
                    true => codes[i],
                    false => codes[i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4) & 15,
                };
                let weight = |(i, group): (usize, &u32)| {
                    let group = *group as usize;
                    (f32::from(code(i)) - number(row.groups + group)) * number(group)
                };
                groups_of_inputs.iter().enumerate().map(weight).collect()
            }
            other => panic!("{other:?}"),
        }
    };
    blocks.chunks_exact(kind.size().1).flat_map(one).collect()
}

/// Checks that the matrices of layers are kept in blocks of this type whose values are those of the file, bit for bit.
fn check_blocks(what: &str, folder: &Folder, expected: Option<BlockType>) {
    check_blocks_of(what, folder, &|_| expected);
}

/// [`check_blocks`] with a type for each width.
fn check_blocks_of(what: &str, folder: &Folder, expected: &dyn Fn(usize) -> Option<BlockType>) {
    folder.check();
    let place = folder.write();
    let checkpoint = Checkpoint::open(place.path()).unwrap();
    for (parameter, shape) in checkpoint.config.parameters() {
        let is_quantised = matches!(parameter, Parameter::Layer(..)) && shape.len() == 2;
        let kind = checkpoint.block_type(parameter, &shape);
        assert_eq!(kind, expected(shape[shape.len() - 1]).filter(|_| is_quantised), "{what}: {parameter}");
        let Some(kind) = kind else { continue };
        let groups = checkpoint.groups_of_inputs(parameter, &shape);
        assert_eq!(groups.is_ok(), matches!(kind, BlockType::GroupedRow(_)), "{what}: {parameter}");
        let found = values(kind, &checkpoint.blocks(parameter, &shape).unwrap(), &groups.unwrap_or_default());
        let same = found.iter().map(|v| v.to_bits()).eq(folder.expected[&parameter].iter().map(|v| v.to_bits()));
        assert!(same, "{what}: {parameter} in {kind:?}");
    }
}

/// Sizes of a Llama whose rows are whole blocks.
pub(super) fn whole_blocks() -> Value {
    json!({"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16})
}

/// The same of a Phi-3, whose file has its projections on top of each other.
fn fused_blocks() -> Value {
    json!({"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0})
}

#[test]
fn matrices_of_whole_blocks_stay_as_they_are_stored() {
    let of = |settings: &Value, writer: &Writer<'_>| {
        Folder::of(31, "LlamaForCausalLM", whole_blocks(), settings.clone(), writer)
    };
    let four = Some(BlockType::Group4(Half::F16));
    for (bits, group, act_order, format, kind) in [
        (4, 32, false, None, four),
        (4, -1, false, Some("gptq_v2"), four),
        (2, 64, false, None, four),
        (8, 32, false, None, Some(BlockType::Group8(Half::F16, true))),
        (8, 32, false, Some("gptq_v2"), Some(BlockType::Group8(Half::F16, false))),
    ] {
        let less = u32::from(format != Some("gptq_v2"));
        let writer = move |random: &mut Random, outputs, inputs| {
            let size = if group < 0 { inputs } else { group as usize };
            gptq(random, [outputs, inputs], bits, size, act_order, less)
        };
        check_blocks(
            &format!("gptq {bits} {group}"),
            &of(&gptq_settings(bits, group, act_order, format), &writer),
            kind,
        );
    }
    for group in [32, 96, -1] {
        let settings =
            json!({"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": true});
        let writer = move |r: &mut Random, o, i| awq(r, o, i, if group < 0 { i } else { group as usize });
        check_blocks(&format!("awq {group}"), &of(&settings, &writer), four);
        check_blocks("fused", &Folder::of(5, "Phi3ForCausalLM", fused_blocks(), settings, &writer), four);
    }
    for (bits, group, asymmetric, order, kind) in [
        (4, 32, false, None, Some(BlockType::Group4(Half::Bf16))),
        (4, 64, true, Some("weight"), Some(BlockType::Group4(Half::Bf16))),
        (3, 32, true, None, Some(BlockType::Group4(Half::Bf16))),
        (8, 0, true, None, Some(BlockType::Group8(Half::Bf16, false))),
        (5, 32, false, None, Some(BlockType::Group8(Half::Bf16, false))),
    ] {
        let strategy = if group == 0 { "channel" } else { "group" };
        let size = if group == 0 { Value::Null } else { json!(group) };
        let weights = json!({"num_bits": bits, "type": "int", "strategy": strategy, "symmetric": !asymmetric,
            "group_size": size, "actorder": order});
        let writer = move |random: &mut Random, outputs, inputs: usize| {
            let group = if group == 0 { inputs } else { group as usize };
            packed(random, [outputs, inputs], bits, group, asymmetric, order == Some("group"))
        };
        check_blocks(&format!("packed {bits} {group}"), &of(&compressed("pack-quantized", weights), &writer), kind);
    }
    for (rows, columns, kind) in [(128, 128, Some(BlockType::E4m3)), (16, 32, Some(BlockType::E4m3)), (5, 40, None)] {
        let settings =
            json!({"quant_method": "fp8", "weight_block_size": [rows, columns], "activation_scheme": "dynamic"});
        check_blocks(&format!("fp8 {rows} {columns}"), &of(&settings, &|r, o, i| blocks(r, o, i, rows, columns)), kind);
    }
    let weights = json!({"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": false});
    let kind = Some(BlockType::Group8(Half::Bf16, false));
    let writer = |random: &mut Random, outputs, inputs| integers(random, [outputs, inputs], true, bf16s);
    check_blocks("integers", &of(&compressed("int-quantized", weights), &writer), kind);
    // One zero point a matrix, beyond what four bits can be.
    let weights = json!({"num_bits": 4, "type": "int", "strategy": "tensor", "symmetric": false});
    let writer = |random: &mut Random, outputs: usize, inputs: usize| {
        let mut one = packed(random, [outputs, inputs], 4, inputs, false, false);
        let (scale, zero) = (0.5f32, -100i8);
        let words = &one.stored[0].1.2;
        let code = |at: usize| i32::from(words[at / 2] >> (at % 2 * 4) & 15) - 8;
        one.weights = (0..outputs * inputs).map(|at| (code(at) - i32::from(zero)) as f32 * scale).collect();
        one.stored.retain(|(name, _)| *name != "weight_scale");
        one.stored.push(("weight_scale", bf16s(&[1], &[scale])));
        one.stored.push(("weight_zero_point", (Dtype::I8, vec![1], vec![zero as u8])));
        one
    };
    let row = |inputs| Some(BlockType::GroupedRow(GroupedRow { inputs, groups: 1, wide: false }));
    check_blocks_of("one zero", &of(&compressed("pack-quantized", weights), &writer), &row);
}

#[test]
fn matrices_whose_groups_are_no_blocks_are_kept_by_rows() {
    let of = |settings: &Value, writer: &Writer<'_>| {
        Folder::of(37, "LlamaForCausalLM", whole_blocks(), settings.clone(), writer)
    };
    let rows = |group: usize, wide: bool| {
        move |inputs: usize| Some(BlockType::GroupedRow(GroupedRow { inputs, groups: inputs.div_ceil(group), wide }))
    };
    // Inputs of a block in several groups; groups that end within a block, the last one shorter than the others.
    for (bits, group, act_order, format) in [
        (4, 32, true, None),
        (8, 32, true, Some("gptq_v2")),
        (2, 16, true, None),
        (4, 16, false, None),
        (8, 40, false, None),
        (4, 40, true, None),
    ] {
        let less = u32::from(format != Some("gptq_v2"));
        let writer =
            move |random: &mut Random, outputs, inputs| gptq(random, [outputs, inputs], bits, group, act_order, less);
        let (settings, what) =
            (gptq_settings(bits, group as i64, act_order, format), format!("gptq {bits} {group} {act_order}"));
        check_blocks_of(&what, &of(&settings, &writer), &rows(group, bits > 4));
        check_blocks_of(
            &what,
            &Folder::of(5, "Phi3ForCausalLM", fused_blocks(), settings, &writer),
            &rows(group, bits > 4),
        );
    }
    let settings = json!({"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": true});
    check_blocks_of("awq 16", &of(&settings, &|r: &mut Random, o, i| awq(r, o, i, 16)), &rows(16, false));
    let weights = json!({"num_bits": 4, "type": "int", "strategy": "group", "symmetric": false, "group_size": 32,
        "actorder": "group"});
    let writer = |r: &mut Random, o, i| packed(r, [o, i], 4, 32, true, true);
    check_blocks_of("packed", &of(&compressed("pack-quantized", weights), &writer), &rows(32, false));
    // Scales in f32, which a zero point times them would round.
    let weights = json!({"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": false});
    let writer = |random: &mut Random, outputs, inputs| integers(random, [outputs, inputs], true, f32s);
    check_blocks_of("f32", &of(&compressed("int-quantized", weights), &writer), &|inputs| rows(inputs, true)(inputs));
    let mixture = json!({"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 3, "num_experts_per_tok": 2});
    let writer = |random: &mut Random, outputs, inputs| gptq(random, [outputs, inputs], 4, 32, true, 1);
    let folder = Folder::of(9, "MixtralForCausalLM", mixture, gptq_settings(4, 32, true, None), &writer);
    let place = folder.write();
    let checkpoint = Checkpoint::open(place.path()).unwrap();
    for (parameter, shape) in checkpoint.config.parameters() {
        let Some(kind) = checkpoint.block_type(parameter, &shape) else { continue };
        assert_eq!(Some(kind), rows(32, false)(shape[1]), "{parameter}");
        let groups = checkpoint.groups_of_inputs(parameter, &shape).unwrap();
        let found = values(kind, &checkpoint.blocks(parameter, &shape).unwrap(), &groups);
        assert_eq!(found, folder.expected[&parameter], "{parameter}");
    }
    // Groups so small that their scales take more than f32 does.
    let writer = |random: &mut Random, outputs, inputs| gptq(random, [outputs, inputs], 4, 2, true, 1);
    check_blocks("tiny", &of(&gptq_settings(4, 2, true, None), &writer), None);
}
