//! Memory estimates before a load, compared with the engine's memory after it.
use std::path::{Path, PathBuf};

use earnest_engine::Engine;
use earnest_engine::cpu::{CpuEngine, Options};
use earnest_models::checkpoint::{Checkpoint, Compute, ElementType, Quant, WeightFormat};

/// Bytes that the engine counts after a load.
fn held(checkpoint: &Checkpoint) -> u64 {
    let options = Options { kv_memory: Some(16 << 20), threads: Some(1), ..Options::default() };
    CpuEngine::load(checkpoint, options).unwrap_or_else(|error| panic!("{error}")).card().weight_bytes
}

fn assert_close(name: &str, format: WeightFormat, estimated: u64, held: u64) {
    let ratio = estimated as f64 / held as f64;
    // Panels are filled up to 16 output columns, those of bf16 to 32, which shows in the matrices of small experts.
    let least = if format.is_bf16() || format.quant.is_some() { 0.85 } else { 0.95 };
    assert!((least..1.05).contains(&ratio), "{name} {format}: {estimated} estimated, {held} held");
}

fn formats() -> [WeightFormat; 6] {
    [
        WeightFormat::default(),
        WeightFormat { dtype: Some(ElementType::Bf16), ..WeightFormat::default() },
        WeightFormat { quant: Some(Quant::Q8), ..WeightFormat::default() },
        WeightFormat { quant: Some(Quant::Nf4), dtype: Some(ElementType::F16), ..WeightFormat::default() },
        WeightFormat { compute: Some(Compute::Int8), ..WeightFormat::default() },
        WeightFormat { compute: Some(Compute::Bf16), ..WeightFormat::default() },
    ]
}

#[test]
fn golden_checkpoints_take_what_is_estimated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints");
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut checkpoint = Checkpoint::open(&entry.path()).unwrap();
        for format in formats() {
            checkpoint.set_weight_format(format);
            assert_close(&name, format, checkpoint.memory().weights, held(&checkpoint));
            let options = Options { kv_memory: Some(16 << 20), threads: Some(1), ..Options::default() };
            let card = CpuEngine::load(&checkpoint, options).unwrap_or_else(|error| panic!("{error}")).card();
            let kv = checkpoint.memory().kv_per_token * card.kv_tokens as u64;
            // Heads that are no multiple of sixteen wide are padded.
            assert!(kv <= card.kv_bytes && card.kv_bytes <= kv + kv / 2, "{name} {format}: {kv} of {}", card.kv_bytes);
            tried += 1;
        }
    }
    assert!(tried >= 40, "{tried}");
}

/// Memory of this process.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[test]
fn real_checkpoints_take_what_is_estimated() {
    let Some(models) = std::env::var_os("EARNEST_MODELS").map(PathBuf::from) else {
        eprintln!("skipped: EARNEST_MODELS is not set, so no real checkpoint is loaded");
        return;
    };
    for name in ["SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf", "smollm2-hf"] {
        let path = models.join(name);
        if !path.exists() {
            eprintln!("skipped: {} is not there", path.display());
            continue;
        }
        let checkpoint = Checkpoint::open(&path).unwrap();
        let estimate = checkpoint.memory().weights;
        let before = resident();
        let options = Options { kv_memory: Some(16 << 20), threads: Some(1), ..Options::default() };
        let engine = CpuEngine::load(&checkpoint, options).unwrap();
        assert_close(name, WeightFormat::default(), estimate, engine.card().weight_bytes);
        if let (Some(before), Some(after)) = (before, resident()) {
            eprintln!("{name}: {estimate} estimated, {} more in the process", after.saturating_sub(before));
        }
    }
}
