//! Real checkpoints against transformers. `EARNEST_MODELS` names the folder that `scripts/fetch-models.sh` fills; without
//! it these tests say that they were skipped.
use std::path::PathBuf;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;
use serde_json::Value;

/// Margin between the two best logits below which a greedy step may go either way.
const MARGIN: f64 = 1e-3;

fn model(file: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("EARNEST_MODELS") else {
        eprintln!("skipped: EARNEST_MODELS is not set, so {file} is not tested");
        return None;
    };
    Some(PathBuf::from(folder).join(file))
}

fn ids(row: &Value, field: &str) -> Vec<u32> {
    row[field].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

/// Runs all prompts of a golden file together and compares every greedy continuation.
fn compare(file: &str, golden: &str) {
    let Some(path) = model(file) else { return };
    let checkpoint = Checkpoint::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let mut engine = CpuEngine::load(&checkpoint, Options { kv_memory: Some(1 << 30), ..Options::default() }).unwrap();
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine").join(golden);
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    assert!(!rows.is_empty());
    for (i, row) in rows.iter().enumerate() {
        // Tokenisation has its own tests in checkpoint_models.rs.
        engine.submit(Request::greedy(RequestId(i as u64), ids(row, "ids"), ids(row, "greedy").len())).unwrap();
    }
    let mut finished = 0;
    let mut exact = 0;
    loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            break;
        }
        for event in events {
            let Event::Finished(completion) = event else { continue };
            finished += 1;
            let row = &rows[completion.id.0 as usize];
            let (ours, theirs) = (&completion.ids, ids(row, "greedy"));
            assert_eq!(ours.len(), theirs.len());
            match ours.iter().zip(&theirs).position(|(a, b)| a != b) {
                None => {
                    exact += 1;
                    assert_eq!(checkpoint.tokenizer.decode(ours, true), row["text"].as_str().unwrap());
                }
                Some(step) => {
                    let margin = row["margins"][step].as_f64().unwrap();
                    assert!(
                        margin < MARGIN,
                        "prompt {} leaves transformers at step {step}, margin {margin}",
                        completion.id.0
                    );
                }
            }
        }
    }
    assert_eq!(finished, rows.len());
    eprintln!("{file}: {exact} of {finished} continuations are identical to transformers'");
}

/// Half a minute by itself, as the next one: texts of transformers, which only the whole model gives.
#[test]
fn smollm2_continues_as_in_transformers() {
    compare("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2_135m_greedy.json");
}

#[test]
fn gemma3_continues_as_in_transformers() {
    compare("gemma-3-270m-q4_k_m.gguf", "gemma3_270m_greedy.json");
}
