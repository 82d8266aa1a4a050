//! Tiny checkpoints of every architecture against transformers: `engine/checkpoints/<name>/golden.json`, a row a prompt.
use std::collections::HashMap;
use std::fs;
use std::path::Path;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Completion, Engine, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;
use serde_json::{Map, Value};

use super::files;
use super::report::{FileReport, require_equal, require_fields, text};

/// Largest and mean deviation allowed for a logit, and the margin below which a greedy step may go either way.
const LARGEST: f64 = 1e-3;
const MEAN: f64 = 1e-4;
const MARGIN: f64 = 1e-4;

pub fn check(root: &Path) -> Vec<FileReport> {
    let folder = "engine/checkpoints";
    let path = root.join(folder);
    if path.symlink_metadata().is_err() {
        return vec![FileReport::absent(folder)];
    }
    let entries = match fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => return vec![FileReport::unreadable(folder, error)],
    };
    let mut names: Vec<String> = entries.iter().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names.iter().map(|name| checkpoint(root, &format!("{folder}/{name}"))).collect()
}

fn checkpoint(root: &Path, folder: &str) -> FileReport {
    let file = format!("{folder}/golden.json");
    if !files::is_there(&root.join(&file)) {
        return FileReport::absent(file);
    }
    let rows = match read(&root.join(&file)) {
        Ok(rows) => rows,
        Err(error) => return FileReport::unreadable(file, error),
    };
    let loaded = Checkpoint::open(&root.join(folder)).map_err(|e| e.to_string()).and_then(|c| {
        let native = CpuEngine::load(&c, Options::default()).map_err(|e| e.to_string())?;
        Ok((c, native))
    });
    let (checkpoint, mut native) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let failing = rows.iter().map(|_| Err(format!("the checkpoint does not load: {error}")));
            return FileReport::checked(file, failing);
        }
    };
    // All prompts together, as an evaluation would run them.
    let mut answers = generate(&mut native, &rows);
    let results: Vec<Result<(), String>> =
        rows.iter().enumerate().map(|(i, row)| prompt(&checkpoint, &mut native, row, answers.remove(&i))).collect();
    FileReport::checked(file, results)
}

fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = files::read(path).map_err(|e| e.to_string())?;
    let golden: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    match golden.get("prompts") {
        Some(Value::Array(rows)) => Ok(rows.clone()),
        _ => Err("there is no array `prompts`".to_owned()),
    }
}

/// Greedy continuations of all rows that can be submitted.
fn generate(native: &mut CpuEngine, rows: &[Value]) -> HashMap<usize, Completion> {
    for (i, row) in rows.iter().enumerate() {
        let (Ok(ids), Ok(greedy)) = (numbers(row, "ids"), numbers(row, "greedy")) else { continue };
        // A refusal shows as a missing answer.
        let _ = native.submit(Request::greedy(RequestId(i as u64), ids, greedy.len()));
    }
    let mut answers = HashMap::new();
    loop {
        let events = native.poll().expect("the engine runs");
        if events.is_empty() {
            return answers;
        }
        for event in events {
            if let Event::Finished(c) = event {
                answers.insert(c.id.0 as usize, *c);
            }
        }
    }
}

fn prompt(checkpoint: &Checkpoint, native: &mut CpuEngine, row: &Value, got: Option<Completion>) -> Result<(), String> {
    let row = row.as_object().ok_or("not a JSON object")?;
    require_fields(row, &["text", "ids", "logits_last", "logits_stats", "greedy", "margins", "greedy_text"])?;
    let value = Value::Object(row.clone());
    let ids = numbers(&value, "ids")?;
    require_equal(
        "token ids",
        checkpoint.tokenizer.encode(text(row, "text")?, true).map_err(|e| e.to_string())?,
        ids.clone(),
    )?;
    let greedy = numbers(&value, "greedy")?;
    let margins = floats(row, "margins")?;
    require_equal("number of margins", margins.len(), greedy.len())?;
    let logits = native.logits_after(&ids, greedy.len()).map_err(|e| e.to_string())?;
    compare_logits(row, &logits, margins.first().copied().unwrap_or(0.0))?;
    let got = got.ok_or("no completion")?;
    require_equal("number of tokens", got.ids.len(), greedy.len())?;
    for (step, ((ours, theirs), margin)) in got.ids.iter().zip(&greedy).zip(&margins).enumerate() {
        if ours != theirs {
            if *margin < MARGIN {
                return Ok(());
            }
            return Err(format!("greedy step {step}: computed {ours}, golden {theirs}, margin {margin}"));
        }
    }
    require_equal("decoded text", checkpoint.tokenizer.decode(&got.ids, false), text(row, "greedy_text")?.to_owned())
}

fn compare_logits(row: &Map<String, Value>, logits: &[f32], margin: f64) -> Result<(), String> {
    let listed = row["logits_last"].as_array().ok_or("`logits_last` is no array")?;
    if listed.is_empty() {
        return Err("`logits_last` is empty".to_owned());
    }
    let mut total = 0.0;
    for entry in listed {
        let id = entry.get(0).and_then(Value::as_u64).ok_or("an entry of `logits_last` has no id")?;
        let golden = entry.get(1).and_then(Value::as_f64).ok_or("an entry of `logits_last` has no value")?;
        let ours = f64::from(*logits.get(id as usize).ok_or_else(|| format!("id {id} is outside the vocabulary"))?);
        let error = (ours - golden).abs();
        if exceeds(error, LARGEST) {
            return Err(format!("logit of {id}: computed {ours}, golden {golden}"));
        }
        total += error;
    }
    let mean = total / listed.len() as f64;
    if exceeds(mean, MEAN) {
        return Err(format!("logits deviate by {mean} on average"));
    }
    let n = logits.len() as f64;
    let average = logits.iter().map(|&l| f64::from(l)).sum::<f64>() / n;
    let deviation = (logits.iter().map(|&l| (f64::from(l) - average).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let stats = &row["logits_stats"];
    for (name, ours) in [("mean", average), ("std", deviation)] {
        let golden = stats.get(name).and_then(Value::as_f64).ok_or_else(|| format!("`logits_stats` has no {name}"))?;
        if exceeds((ours - golden).abs(), LARGEST) {
            return Err(format!("{name} of the logits: computed {ours}, golden {golden}"));
        }
    }
    let largest = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(b.cmp(&a)));
    let golden = stats.get("argmax").and_then(Value::as_u64).ok_or("`logits_stats` has no argmax")?;
    if margin < MARGIN { Ok(()) } else { require_equal("largest logit", largest, Some(golden as usize)) }
}

/// True for values that are too large or NaN.
fn exceeds(deviation: f64, limit: f64) -> bool {
    deviation.is_nan() || deviation > limit
}

fn numbers(row: &Value, field: &str) -> Result<Vec<u32>, String> {
    let list = row.get(field).and_then(Value::as_array).ok_or_else(|| format!("`{field}` is missing or no array"))?;
    if list.is_empty() {
        return Err(format!("`{field}` is empty"));
    }
    let id = |v: &Value| v.as_u64().and_then(|v| u32::try_from(v).ok()).ok_or_else(|| format!("`{field}` holds {v}"));
    list.iter().map(id).collect()
}

fn floats(row: &Map<String, Value>, field: &str) -> Result<Vec<f64>, String> {
    let list = row[field].as_array().ok_or_else(|| format!("`{field}` is no array"))?;
    list.iter().map(|v| v.as_f64().ok_or_else(|| format!("`{field}` holds {v}"))).collect()
}
