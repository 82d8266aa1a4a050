//! Quantised weights in memory, rounded activations, and keys and values in bf16: bits, neighbours and errors.
use std::path::{Path, PathBuf};

use earnest_engine::cpu::{CpuEngine, LoadError, Options};
use earnest_engine::{Completion, Engine, Event, Request, RequestId};
use earnest_models::checkpoint::{Checkpoint, Compute, ElementType, KvType, Quant, WeightFormat};

use crate::checkpoint_folder::{edit, with_tensors};
use crate::gguf_files::{Gguf, convert};

/// Among them mixtures. Their widths are no multiples of 256 and take other blocks than asked for; [`wide`] has the blocks of 256.
const NAMES: [&str; 6] = ["llama", "gemma2", "mixtral", "phi2", "qwen3-moe", "olmo3-yarn"];

/// A Llama with matrices of 256, 512 and 128 rows and columns, of the values of the reference checkpoint.
fn wide() -> tempfile::TempDir {
    let wider = |width: usize| match width {
        32 => 128,
        64 => 256,
        160 => 512,
        other => other,
    };
    let folder = with_tensors("llama", |tensors| {
        for (dtype, shape, bytes) in tensors.values_mut() {
            assert_eq!(dtype, "F32");
            let values: Vec<[u8; 4]> = bytes.chunks_exact(4).map(|value| value.try_into().unwrap()).collect();
            shape.iter_mut().for_each(|width| *width = wider(*width));
            let count = shape.iter().product();
            *bytes = (0..count).flat_map(|index: usize| values[index * 7919 % values.len()]).collect();
        }
    });
    edit(folder.path(), "config.json", |config| {
        for (key, value) in [("hidden_size", 256), ("intermediate_size", 512), ("head_dim", 64)] {
            config[key] = value.into();
        }
    });
    folder
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints").join(name)
}

fn options() -> Options {
    Options { threads: Some(2), kv_memory: Some(1 << 24), max_batch: 8, trace: true, ..Options::default() }
}

fn load(path: &Path, format: WeightFormat, options: Options) -> Result<CpuEngine, LoadError> {
    let mut checkpoint = Checkpoint::open(path).unwrap();
    checkpoint.set_weight_format(format);
    CpuEngine::load(&checkpoint, options)
}

/// Ids, tokens and hashes of logits of requests in this order, by id.
fn hashes(engine: &mut CpuEngine, requests: &[Request], order: &[usize]) -> Vec<(u64, Vec<u32>, Vec<u64>)> {
    order.iter().for_each(|&i| engine.submit(requests[i].clone()).unwrap());
    let mut done: Vec<Completion> = vec![];
    loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            break;
        }
        done.extend(events.into_iter().filter_map(|e| if let Event::Finished(c) = e { Some(*c) } else { None }));
    }
    let mut done: Vec<_> = done.into_iter().map(|c| (c.id.0, c.ids, c.logits_hashes.unwrap_or_default())).collect();
    done.sort();
    assert!(done.len() == order.len() && done.iter().all(|d| !d.2.is_empty()));
    done
}

fn requests(count: u64) -> Vec<Request> {
    let prompt =
        |i: u64| -> Vec<u32> { (0..20 + 7 * (i as u32 % 6)).map(|p| (p * p + i as u32 / 3) % 500 + 1).collect() };
    (0..count)
        .map(|i| Request { id: RequestId(i), ..Request::greedy(RequestId(i), prompt(i), 5 + i as usize % 9) })
        .collect()
}

/// The same values, dequantised to f32 at load.
fn dequantised(format: WeightFormat) -> WeightFormat {
    WeightFormat { dtype: Some(ElementType::F32), ..format }
}

/// Checks the bits, and that memory is saved; returns the names of the arithmetic, packed and dequantised.
fn same_bits(name: &str, path: &Path, format: WeightFormat) -> [String; 2] {
    let requests = requests(12);
    let order: Vec<usize> = (0..requests.len()).collect();
    let run = |format| {
        let mut engine = load(path, format, options()).unwrap();
        let card = engine.card();
        let together = hashes(&mut engine, &requests, &order);
        // A batch of one takes another kernel.
        let alone = hashes(&mut load(path, format, options()).unwrap(), &requests, &order[..1]);
        (together, alone, card.weight_bytes, card.weights_dtype)
    };
    let (packed, wide) = (run(format), run(dequantised(format)));
    assert!(packed.0 == wide.0 && packed.1 == wide.1, "{name} {format}: packing shows");
    assert!(packed.2 < wide.2, "{name} {format}: {} bytes, {} as f32", packed.2, wide.2);
    [packed.3, wide.3]
}

fn assert_same_bits(name: &str, path: &Path, format: WeightFormat) {
    let [packed, wide] = same_bits(name, path, format);
    assert_eq!(packed, wide, "{name} {format}: the arithmetic is the same");
}

#[test]
fn packed_weights_have_the_bits_of_dequantised_ones() {
    let wide = wide();
    let places = NAMES.into_iter().map(|name| (name, golden(name))).chain([("wide", wide.path().to_owned())]);
    for (name, path) in places {
        for quant in [Quant::Q8, Quant::Q6k, Quant::Q5k, Quant::Q4k] {
            assert_same_bits(name, &path, WeightFormat { quant: Some(quant), ..WeightFormat::default() });
        }
    }
}

/// Types of llama.cpp that candle lacks: number, bytes of a block of how many weights, and where its 16-bit float is, unless it is an exponent.
const FURTHER: [(u32, usize, usize, bool); 8] = [
    (16, 66, 256, true),
    (17, 74, 256, true),
    (18, 98, 256, true),
    (20, 18, 32, true),
    (21, 110, 256, true),
    (22, 82, 256, true),
    (23, 136, 256, true),
    (39, 17, 32, false),
];

#[test]
fn iq_types_and_mxfp4_have_the_bits_of_dequantised_ones() {
    let folder = wide();
    let (plain, _) = convert(folder.path().to_str().unwrap(), "llama");
    for (code, size, weights, is_float) in FURTHER {
        let mut gguf = Gguf { metadata: plain.metadata.clone(), ..Gguf::default() };
        let mut random = u64::from(code);
        for (name, (shape, values)) in &plain.tensors {
            if shape.len() != 2 || !name.starts_with("blk.") {
                gguf.tensors.insert(name.clone(), (shape.clone(), values.clone()));
                continue;
            }
            let mut byte = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 40) as u8
            };
            let mut blocks: Vec<u8> = (0..values.len() / weights * size).map(|_| byte()).collect();
            for block in blocks.chunks_exact_mut(size) {
                // About 2^-9, of either sign; an exponent of about 2^-7.
                if is_float { block[1] = block[1] & 0x83 | 0x18 } else { block[0] = 119 + block[0] % 3 }
            }
            gguf.raw.insert(name.clone(), (code, shape.clone(), blocks));
        }
        let path = folder.path().join("m.gguf");
        gguf.write(&path);
        assert_same_bits(&format!("type {code}"), &path, WeightFormat::default());
        let a8 = WeightFormat { compute: Some(Compute::A8), ..WeightFormat::default() };
        let engine = load(&path, a8, options()).unwrap();
        assert!(
            engine.card().weight_bytes
                < load(&path, dequantised(a8), options()).map_or(u64::MAX, |e| e.card().weight_bytes)
        );
    }
}

#[test]
fn folders_of_published_quantisations_have_the_bits_of_dequantised_ones() {
    for name in
        ["llama-awq-gemm", "llama-gptq-desc-act", "llama-fp8-block128", "llama-fp8-compressed-tensors", "gpt-oss-mxfp4"]
    {
        // What is not quantised is of 16 bits in these files.
        same_bits(name, &golden(name), WeightFormat::default());
    }
}

/// Half a minute by itself: two real models are loaded and asked packed and dequantised, and real blocks are what no synthetic file has.
#[test]
fn real_files_have_the_bits_of_dequantised_ones() {
    let Some(models) = std::env::var_os("EARNEST_MODELS").map(PathBuf::from) else {
        eprintln!("skipped: EARNEST_MODELS is not set, so no real checkpoint is loaded");
        return;
    };
    for name in ["SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"] {
        let path = models.join(name);
        if !path.exists() {
            eprintln!("skipped: {} is not there", path.display());
            continue;
        }
        assert_same_bits(name, &path, WeightFormat::default());
    }
}

#[test]
fn rounded_activations_and_bf16_caches_give_every_request_the_bits_it_has_alone() {
    let a8 = WeightFormat { quant: Some(Quant::Q4k), compute: Some(Compute::A8), ..WeightFormat::default() };
    let kv = WeightFormat { kv: Some(KvType::Bf16), ..WeightFormat::default() };
    for (name, format) in
        NAMES.into_iter().flat_map(|name| [(name, a8), (name, kv), (name, WeightFormat { kv: kv.kv, ..a8 })])
    {
        let requests = requests(24);
        let order: Vec<usize> = (0..requests.len()).collect();
        let run = |options: Options, order: &[usize]| {
            hashes(&mut load(&golden(name), format, options).unwrap(), &requests, order)
        };
        let together = run(options(), &order);
        let reversed: Vec<usize> = order.iter().rev().copied().collect();
        let other = Options { threads: Some(1), max_batch: 3, token_budget: 11, prefix_cache: false, ..options() };
        assert!(together == run(other, &reversed), "{name} {format}: batch, order, threads or cache show");
        let alone: Vec<_> = order.iter().flat_map(|&i| run(options(), &[i])).collect();
        assert!(together == alone, "{name} {format}: neighbours show");
    }
}

#[test]
fn rounded_activations_and_bf16_caches_stay_close_to_the_exact_logits() {
    for name in ["llama", "gemma2", "mixtral", "phi2", "qwen3"] {
        let quant = WeightFormat { quant: Some(Quant::Q8), ..WeightFormat::default() };
        let a8 = WeightFormat { compute: Some(Compute::A8), ..quant };
        let kv = WeightFormat { kv: Some(KvType::Bf16), ..WeightFormat::default() };
        for (exact, rounded, most, dtype) in [(quant, a8, 0.05, "a8"), (WeightFormat::default(), kv, 0.02, "f32")] {
            let checkpoint = Checkpoint::open(&golden(name)).unwrap();
            let prompt = checkpoint.tokenizer.encode("How many trees are left? 15 - 7 =", true).unwrap();
            let [mut exact, mut rounded] =
                [exact, rounded].map(|format| load(&golden(name), format, options()).unwrap());
            assert!(rounded.card().weights_dtype.contains(dtype), "{}", rounded.card().weights_dtype);
            let (a, b) = (exact.logits_after(&prompt, 1).unwrap(), rounded.logits_after(&prompt, 1).unwrap());
            let mean = a.iter().sum::<f32>() / a.len() as f32;
            let spread = a.iter().map(|x| (x - mean).powi(2)).sum::<f32>().sqrt();
            let error = a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum::<f32>().sqrt();
            assert!(
                error > 0.0 && error < most * spread,
                "{name} {dtype}: logits differ by {error}, their spread is {spread}"
            );
        }
        let [exact, half] = [None, Some(KvType::Bf16)].map(|kv| {
            load(&golden(name), WeightFormat { kv, ..WeightFormat::default() }, options()).unwrap().card().kv_tokens
        });
        assert!(half >= 2 * exact && half <= 2 * exact + 64, "{name}: {half} and {exact} positions in the same memory");
    }
}

#[test]
fn an_arithmetic_without_its_operands_is_refused() {
    let a8 = WeightFormat { compute: Some(Compute::A8), ..WeightFormat::default() };
    // With act order every input has a scale of its own.
    for name in ["llama", "llama-gptq-desc-act"] {
        let refused = load(&golden(name), a8, options()).err().unwrap();
        assert!(matches!(refused, LoadError::NoBlocks) && refused.to_string().contains("`quant`"), "{refused}");
    }
    let both = WeightFormat { compute: Some(Compute::Int8), kv: Some(KvType::Bf16), ..WeightFormat::default() };
    let refused = load(&golden("llama"), both, options()).err().unwrap();
    assert!(matches!(refused, LoadError::KvOfInt8) && refused.to_string().contains("`kv`"), "{refused}");
}

#[test]
fn names_of_formats_are_told_apart_and_old_ones_are_read() {
    let format = WeightFormat { compute: Some(Compute::A8), kv: Some(KvType::Bf16), ..WeightFormat::default() };
    assert_eq!(format.to_string(), "a8-kv-bf16");
    let json = serde_json::to_string(&format).unwrap();
    assert_eq!(json, r#"{"quant":null,"dtype":null,"compute":"a8.1","kv":"bf16"}"#);
    assert_eq!(serde_json::from_str::<WeightFormat>(&json).unwrap(), format);
    let old: WeightFormat = serde_json::from_str(r#"{"quant":"q4k","dtype":null}"#).unwrap();
    assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"quant":"q4k","dtype":null}"#, "hashes of stored runs");
}
