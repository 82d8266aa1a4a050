//! Damaged parts, and formats that are not read.
use super::formats::*;
use super::*;

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
    let rows = || {
        let writer = |random: &mut Random, outputs, inputs| gptq(random, [outputs, inputs], 4, 16, true, 1);
        Folder::of(37, "LlamaForCausalLM", whole_blocks(), gptq_settings(4, 16, true, None), &writer)
    };
    refused(rows(), "up_proj.g_idx", &index(4), &["column 3", "group 4", "4 groups"]);
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
        let way = ["use the original checkpoint or a GGUF file", "`engine = openai`"];
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
