//! Contract of the golden subject of logs: every value of a run, its samples and its pairs counts.
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::golden_subjects::report::FileReport;
use crate::golden_subjects::{files, logs};

/// Fields that a log of ours does not keep, and words of the file's maker.
const NOT_CHECKED: [&str; 6] = ["n_error_retries", "unscored", "original", "over", "code", "param"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/logs")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A golden folder with the runs of a tool that a pair needs.
struct Vectors {
    folder: tempfile::TempDir,
    tool: &'static str,
    expected: Value,
}

impl Vectors {
    fn new(tool: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&golden().join(tool), &folder.path().join("logs").join(tool));
        let text = files::read(&golden().join(tool).join("expected.json")).unwrap();
        let mut expected: Value = serde_json::from_str(&text).unwrap();
        // The last pair is of the smallest logs.
        let pair = expected["paired"].as_array().unwrap().last().unwrap().clone();
        let files = ["a", "b"].map(|side| pair[side].clone());
        let of = |run: &Value| {
            ["file", "samples_file", "details_file", "output"].iter().any(|name| files.contains(&run[*name]))
        };
        expected["runs"].as_array_mut().unwrap().retain(of);
        expected["paired"] = Value::from(vec![pair]);
        Vectors { folder, tool, expected }
    }

    fn report(&self, expected: &Value) -> FileReport {
        fs::write(self.file("expected.json"), expected.to_string()).unwrap();
        logs::tool(self.folder.path(), self.tool)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(self.tool).join(name)
    }
}

/// Paths of the plain values in a value.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !NOT_CHECKED.contains(&name.as_str())) {
                leaves(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(values) => {
            // The first of many samples stands for all.
            for (index, value) in values.iter().enumerate().take(if at.ends_with("/samples") { 1 } else { 9 }) {
                leaves(value, &format!("{at}/{index}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

fn spoilt(value: &Value) -> Value {
    match value {
        Value::Bool(value) => (!value).into(),
        Value::Number(number) => (number.as_f64().unwrap() + 1.0).into(),
        Value::String(text) => format!("{text}x").into(),
        _ => "x".into(),
    }
}

fn every_spoilt_value_fails(tool: &'static str) {
    let vectors = Vectors::new(tool);
    let whole = vectors.report(&vectors.expected);
    assert!(whole.passes(), "{tool}: {:?}", whole.failures());
    let mut paths = Vec::new();
    leaves(&vectors.expected["runs"][0], "/runs/0", &mut paths);
    leaves(&vectors.expected["paired"], "/paired", &mut paths);
    assert!(paths.len() > 20, "{tool}: {paths:?}");
    for path in paths {
        let mut expected = vectors.expected.clone();
        let value = expected.pointer_mut(&path).unwrap();
        // Nothing is said of what is null in a pair.
        if value.is_null() && path.starts_with("/paired") {
            continue;
        }
        *value = spoilt(value);
        assert!(!vectors.report(&expected).passes(), "{tool}: {path} may be anything");
    }
    for field in ["samples", "reported"] {
        let mut expected = vectors.expected.clone();
        if let Some(Value::Array(list)) = expected["runs"][0].get_mut(field) {
            list.pop();
            assert!(!vectors.report(&expected).passes(), "{tool}: {field} may lack one");
        }
    }
    assert!(!vectors.report(&serde_json::json!({"tool": vectors.expected["tool"], "runs": []})).passes());
    assert!(!vectors.report(&Value::Null).passes());
}

#[test]
fn every_value_of_lm_eval_counts() {
    every_spoilt_value_fails("lm-eval");
}

#[test]
fn every_value_of_inspect_counts() {
    every_spoilt_value_fails("inspect");
}

#[test]
fn every_part_of_an_inspect_score_counts() {
    let folder = tempfile::tempdir().unwrap();
    let sample = |id: u32, grades: Value| {
        serde_json::json!({"id": id, "epoch": 1, "input": "q", "target": "a", "messages": [], "metadata": {},
            "output": {"choices": [{"message": {"role": "assistant", "content": "b"}}]}, "scores": {"grades": {"value": grades, "answer": "b"}}})
    };
    let samples = [
        sample(1, serde_json::json!({"form": "C", "value": 0.25, "note": "fine"})),
        sample(2, serde_json::json!({"form": false, "value": "I", "note": null})),
    ];
    let log =
        serde_json::json!({"version": 2, "status": "success", "eval": {"model": "m", "task": "t"}, "samples": samples});
    let row = |id: u32, value: &Value, numbers: Value| {
        serde_json::json!({"id": id, "epoch": 1, "target": "a", "completion": "b", "stop_reason": null, "error": null,
            "scores": {"grades": {"value": value, "as_float": numbers, "answer": "b"}}})
    };
    let value = |at: usize| &samples[at]["scores"]["grades"]["value"];
    let rows = [
        row(1, value(0), serde_json::json!({"form": 1.0, "value": 0.25, "note": 0.0})),
        row(2, value(1), serde_json::json!({"form": 0.0, "value": 0.0, "note": null})),
    ];
    let expected = serde_json::json!({"tool": "inspect", "runs": [{"file": "log.json", "status": "success", "model": "m", "task": "t",
        "reported": [], "samples": rows}], "paired": []});
    let of = folder.path().join("logs/inspect");
    fs::create_dir_all(&of).unwrap();
    fs::write(of.join("log.json"), log.to_string()).unwrap();
    let report = |expected: &Value| {
        fs::write(of.join("expected.json"), expected.to_string()).unwrap();
        logs::tool(folder.path(), "inspect")
    };
    assert!(report(&expected).passes(), "{:?}", report(&expected).failures());
    let numbers = |sample: usize| format!("/runs/0/samples/{sample}/scores/grades/as_float");
    for (sample, part, other) in
        [(0, "form", 0.0), (0, "value", 0.5), (0, "note", 1.0), (1, "form", 1.0), (1, "value", 1.0)]
    {
        let mut spoilt = expected.clone();
        *spoilt.pointer_mut(&format!("{}/{part}", numbers(sample))).unwrap() = other.into();
        assert!(!report(&spoilt).passes(), "{part} of sample {sample} may be anything");
    }
    for spoilt_parts in [
        serde_json::json!({"form": 1.0, "note": 0.0}),
        serde_json::json!({"form": 1.0, "value": 0.25, "note": 0.0, "more": 1.0}),
    ] {
        let mut spoilt = expected.clone();
        *spoilt.pointer_mut(&numbers(0)).unwrap() = spoilt_parts;
        assert!(!report(&spoilt).passes());
    }
}

#[test]
fn every_value_of_lighteval_counts() {
    every_spoilt_value_fails("lighteval");
}

#[test]
fn every_value_of_batches_counts() {
    every_spoilt_value_fails("openai-batch");
}

#[test]
fn spoilt_logs_fail() {
    for (tool, name, from, to) in [
        ("lm-eval", "samples_file", "\"acc\": 1.0", "\"acc\": 0.0"),
        ("lm-eval", "samples_file", "\"acc\": 1.0", "\"acc\": NaN"),
        ("lm-eval", "results_file", "\"acc,none\": 0.7", "\"acc,none\": 0.71"),
        ("openai-batch", "output", "\"text\": \" 18\"", "\"text\": \" 81\""),
        ("openai-batch", "output", "\"custom_id\": \"add-0-base\"", "\"custom_id\": \"add-0\""),
    ] {
        let vectors = Vectors::new(tool);
        let file = vectors.file(vectors.expected["runs"][0][name].as_str().unwrap());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let report = vectors.report(&vectors.expected);
        assert!(!report.passes(), "{tool}: {from} -> {to}");
        fs::remove_file(&file).unwrap();
        let report = vectors.report(&vectors.expected);
        assert!(!report.passes() && report.total() > 20, "{tool}: without {name}");
    }
    assert!(logs::tool(Path::new("no/such/folder"), "lm-eval").is_absent());
}
