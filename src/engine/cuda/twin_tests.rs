//! The kernels against the CPU engine, on their twins.

use std::path::Path;

use super::engine::Cuda;
use super::options::Options;
use super::twin::{Twin, skipped};
use crate::checkpoint::{Checkpoint, ElementType, WeightFormat};
use crate::engine::native::{Native, Options as NativeOptions};

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

fn golden(name: &str) -> Checkpoint {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints").join(name);
    Checkpoint::open(&folder).unwrap()
}

fn options() -> Options {
    Options { max_batch: 8, token_budget: 96, kv_memory: Some(4 << 20), ..Options::default() }
}

fn twin(checkpoint: &Checkpoint, library: bool, order: i32, options: &Options) -> Cuda {
    let mut device = Twin::new();
    (device.library, device.order) = (library, order);
    Cuda::on(Box::new(device), checkpoint, options).unwrap()
}

/// Largest difference of two rows of logits.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}

#[test]
fn every_architecture_has_the_logits_of_the_cpu_engine() {
    if skipped() {
        return;
    }
    for name in NAMES {
        let mut checkpoint = golden(name);
        let prompt = checkpoint.tokenizer.encode("How many trees are left? 15 - 7 = 8, and 744 + 543 =", true).unwrap();
        for (dtype, tolerance) in [(None, 2e-4), (Some(ElementType::Bf16), 0.12)] {
            checkpoint.set_weight_format(WeightFormat { quant: None, dtype });
            let mut native = Native::load(&checkpoint, NativeOptions::default()).unwrap();
            let expected = native.logits_after(&prompt, 5).unwrap();
            let mut cuda = twin(&checkpoint, true, 0, &options());
            let got = cuda.logits_after(&prompt, 5).unwrap();
            let d = distance(&got, &expected);
            eprintln!("{name} {dtype:?} {d}");
            assert!(d < tolerance, "{name} {dtype:?}: {d}");
        }
    }
}
