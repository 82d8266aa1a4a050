//! The tiny reference checkpoints, one per architecture, load and tokenise as in transformers.
use earnest_models::checkpoint::{BlockLayout, Checkpoint, Format, Norm, Parameter, Position, RopeScaling, Values};
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
    assert!(c.qkv_bias && !c.output_bias && !c.qk_norm);
    assert!(open("qwen3").config.qk_norm);

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
    assert_eq!((c.block, c.norm, c.ropes[0].dims), (BlockLayout::Parallel, Norm::Layer { eps: 1e-5 }, 8));

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
fn gemma_norms_come_as_factors() {
    let c = open("gemma");
    let Values::F32(norm) = c.tensor(Parameter::FinalNorm, &[64]).unwrap().values else { panic!() };
    // Stored values scatter around 0 with deviation 0.1.
    let mean = norm.iter().sum::<f32>() / 64.0;
    assert!((mean - 1.0).abs() < 0.1, "{mean}");
}

#[test]
fn prompts_tokenize_as_in_transformers() {
    for name in NAMES {
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
