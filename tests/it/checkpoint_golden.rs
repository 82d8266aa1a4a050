//! The tiny reference checkpoints, one per architecture, load and tokenise as in transformers.
use earnest_models::checkpoint::{
    BlockLayout, Checkpoint, Format, KeysValues, LayerParameter, Norm, Parameter, Position, QkNorm, RopeScaling,
    Routing, Values,
};
use std::path::PathBuf;

const NAMES: [&str; 14] = [
    "llama",
    "llama-mha-tied-headdim",
    "llama31-ropescaling",
    "mistral-sliding",
    "mistral-full",
    "mixtral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3-text",
    "phi2",
    "phi3",
    "phi3-longrope",
];

const RECENT: [&str; 6] = ["qwen3-moe", "smollm3", "phi4-mini", "gpt-oss-mxfp4", "gemma4-e2b", "olmo3-yarn"];

fn golden() -> PathBuf {
    // The committed copy: `EARNEST_GOLDEN` may name a folder that holds other vectors.
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine")
}

fn open(name: &str) -> Checkpoint {
    Checkpoint::open(&golden().join("checkpoints").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn every_architecture_opens_and_every_tensor_reads() {
    for name in NAMES {
        let c = open(name);
        assert_eq!(c.format, Format::Safetensors);
        assert_eq!((c.config.vocab_size, c.config.hidden_size, c.config.intermediate_size), (512, 64, 160), "{name}");
        assert_eq!(c.generation.eos_ids, [2], "{name}");
        let mut count = 0;
        for (parameter, shape) in c.config.parameters() {
            let tensor = c.tensor(parameter, &shape).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(tensor.shape, shape, "{name}: {parameter}");
            let Values::F32(values) = tensor.values else { panic!("{name}: {parameter} is not f32") };
            assert_eq!(values.len(), shape.iter().product::<usize>(), "{name}: {parameter}");
            assert!(values.iter().all(|v| v.is_finite()), "{name}: {parameter}");
            count += values.len() as u64;
        }
        // The files hold nothing else, so every element has been read exactly once.
        let weights = golden().join("checkpoints").join(name).join("model.safetensors");
        let bytes = std::fs::read(weights).unwrap();
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert_eq!(count * 4, bytes.len() as u64 - 8 - header, "{name}");
        assert_eq!(count, c.config.parameter_count(), "{name}");
    }
}

#[test]
fn configurations_say_what_the_architectures_compute() {
    let c = open("llama-mha-tied-headdim").config;
    assert!(c.qkv_bias && c.output_bias && !c.mlp_bias && c.tied_embeddings);
    assert_eq!((c.head_dim, c.num_heads, c.num_kv_heads), (24, 4, 4));

    let c = open("llama31-ropescaling").config;
    let llama3 =
        RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_max_positions: 64 };
    assert_eq!((c.ropes[0].theta, &c.ropes[0].scaling), (500_000.0, &llama3));

    let window = |name: &str| open(name).config.layers.iter().map(|l| l.window).collect::<Vec<_>>();
    assert_eq!(window("mistral-sliding"), [Some(16); 3]);
    assert_eq!(window("mistral-full"), [None; 3]);
    assert_eq!(window("qwen2"), [None; 3]);
    assert_eq!(window("gemma2"), [Some(16), None, Some(16), None]);
    assert_eq!(window("gemma3-text"), [Some(16), Some(16), Some(16), Some(16), Some(16), None]);

    let c = open("mixtral").config;
    assert_eq!(c.experts.map(|e| (e.count, e.per_token)), Some((4, 2)));
    assert_eq!((c.ropes[0].theta, c.norm), (1e6, Norm::Rms { eps: 1e-5 }));

    let c = open("qwen2").config;
    assert!(c.qkv_bias && !c.output_bias && c.qk_norm == QkNorm::None);
    assert_eq!(open("qwen3").config.qk_norm, QkNorm::Head);

    let c = open("gemma").config;
    assert_eq!((c.embedding_scale, c.block), (8.0, BlockLayout::PreNorm));
    assert_eq!(c.activation, earnest_models::checkpoint::Activation::GeluTanh);
    let c = open("gemma2").config;
    assert_eq!((c.attention_softcap, c.final_softcap, c.block), (Some(50.0), Some(30.0), BlockLayout::Sandwich));
    assert_eq!(c.attention_scale, 48f32.powf(-0.5));
    let c = open("gemma3-text").config;
    let theta = |position| match position {
        Position::Rotary(rope) => c.ropes[rope].theta,
        other => panic!("{other:?}"),
    };
    let thetas: Vec<f64> = c.layers.iter().map(|l| theta(l.position)).collect();
    assert_eq!(thetas, [1e4, 1e4, 1e4, 1e4, 1e4, 1e6]);
    assert_eq!((c.attention_softcap, c.final_softcap), (None, None));

    let c = open("phi2").config;
    assert!(c.head_bias && c.qkv_bias && c.output_bias && c.mlp_bias && !c.gated);
    assert_eq!((c.block, c.norm, c.ropes[0].dims), (BlockLayout::Parallel, Norm::Layer { eps: 1e-5, bias: true }, 8));

    let c = open("phi3-longrope").config;
    let RopeScaling::LongRope { short, long, original_max_positions, attention_factor } = &c.ropes[0].scaling else {
        panic!("{:?}", c.ropes)
    };
    assert_eq!((short.len(), long[7], *original_max_positions), (8, 4.5, 100));
    let expected = (1.0 + (512f64 / 100.0).ln() / 100f64.ln()).sqrt();
    assert!((attention_factor - expected).abs() < 1e-12);
    assert_eq!(open("phi3").config.ropes[0].scaling, RopeScaling::None);
}

#[test]
fn configurations_of_recent_architectures_say_what_they_compute() {
    let c = open("smollm3").config;
    assert!(c.tied_embeddings, "by default");
    assert_eq!(c.layers.iter().map(|l| l.position != Position::None).collect::<Vec<_>>(), [true, true, true, false]);

    let c = open("qwen3-moe").config;
    let experts = c.experts.unwrap();
    assert_eq!((experts.count, experts.per_token, experts.intermediate_size), (6, 2, 24));
    assert_eq!(experts.routing, Routing::Softmax { normalised: true });
    assert!(c.layers.iter().all(|l| l.experts && l.intermediate_size == 0));

    let c = open("phi4-mini").config;
    assert_eq!((c.ropes[0].dims, c.head_dim, c.tied_embeddings), (12, 16, true));

    let c = open("olmo3-yarn").config;
    assert_eq!((c.block, c.qk_norm), (BlockLayout::PostNorm, QkNorm::Width));
    assert!(matches!(c.ropes[0].scaling, RopeScaling::Yarn { factor: 8.0, .. }));
    assert_eq!(c.ropes[1].scaling, RopeScaling::None);
    let positions: Vec<Position> = c.layers.iter().map(|l| l.position).collect();
    assert_eq!(positions, [1, 1, 1, 0].map(Position::Rotary));

    let c = open("gpt-oss-mxfp4").config;
    assert!(c.sinks && c.qkv_bias && c.output_bias && c.experts.is_some_and(|e| e.router_bias && e.bias));
    assert_eq!(c.recent_feature(), Some("a clamped SwiGLU"));
    assert_eq!(c.layers.iter().map(|l| l.window).collect::<Vec<_>>(), [Some(16), None, Some(16), None]);

    let c = open("gemma4-e2b").config;
    assert_eq!(c.layers.iter().map(|l| l.head_dim).collect::<Vec<_>>(), [16, 16, 32, 16, 16, 32]);
    assert_eq!(c.layers.iter().map(|l| l.intermediate_size).collect::<Vec<_>>(), [96, 96, 96, 192, 192, 192]);
    let shared: Vec<KeysValues> = c.layers.iter().skip(3).map(|l| l.keys_values).collect();
    assert_eq!(shared, [1, 1, 2].map(KeysValues::OfLayer));
    assert_eq!((c.embedded_id(500), c.embedded_id(499)), (0, 499));
    // Only the first three layers have keys and values of their own.
    assert_eq!(Checkpoint::memory(&open("gemma4-e2b")).kv_per_token, 2 * 4 * 2 * (16 + 16 + 32));
}

#[test]
fn experts_in_blocks_are_their_values() {
    // `(nibble, scale)` of the first block of the first expert's down projection, by hand.
    let c = open("gpt-oss-mxfp4");
    let file = golden().join("checkpoints/gpt-oss-mxfp4/model.safetensors");
    let bytes = std::fs::read(file).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let start = |name: &str| {
        let tensor = &json[format!("model.layers.0.mlp.experts.{name}")];
        8 + header + tensor["data_offsets"][0].as_u64().unwrap() as usize
    };
    let (blocks, scales) = (start("down_proj_blocks"), start("down_proj_scales"));
    let down = Parameter::Layer(0, LayerParameter::ExpertDown(0));
    let Values::Bf16(values) = c.tensor(down, &[64, 32]).unwrap().values else { panic!() };
    let table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    for row in [0, 1, 63] {
        let scale = 2f32.powi(i32::from(bytes[scales + row]) - 127);
        for i in 0..32 {
            let byte = bytes[blocks + row * 16 + i / 2];
            let code = if i % 2 == 0 { byte & 15 } else { byte >> 4 };
            let size = table[usize::from(code & 7)] * scale;
            let value = f32::from_bits(u32::from(values[row * 32 + i]) << 16);
            assert_eq!(value, if code < 8 { size } else { -size }, "{row} {i}");
        }
    }
}

#[test]
fn gemma_norms_come_as_factors() {
    let c = open("gemma");
    let Values::F32(norm) = c.tensor(Parameter::FinalNorm, &[64]).unwrap().values else { panic!() };
    // Stored values scatter around 0 with deviation 0.1.
    let mean = norm.iter().sum::<f32>() / 64.0;
    assert!((mean - 1.0).abs() < 0.1, "{mean}");
}

#[test]
fn prompts_tokenize_as_in_transformers() {
    for name in NAMES.into_iter().chain(RECENT) {
        let c = open(name);
        let text = std::fs::read_to_string(golden().join("checkpoints").join(name).join("golden.json")).unwrap();
        let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
        for prompt in golden["prompts"].as_array().unwrap() {
            let ids = |key: &str| -> Vec<u32> {
                prompt[key].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
            };
            let encoded = c.tokenizer.encode(prompt["text"].as_str().unwrap(), true).unwrap();
            assert_eq!(encoded, ids("ids"), "{name}: {}", prompt["text"]);
            let greedy = prompt["greedy_text"].as_str().unwrap();
            assert_eq!(c.tokenizer.decode(&ids("greedy"), false), greedy, "{name}");
        }
    }
}
