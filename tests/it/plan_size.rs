//! Plans beyond the bound: refused with the option or row and the bound, before memory is used.
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::program::*;

/// Runs the program with 2 GiB of address space, which a plan of this size would exceed many times.
fn bounded(folder: &Path, words: &[&str]) -> Output {
    let start = Instant::now();
    let script = format!("ulimit -v 2097152; exec {} \"$@\"", env!("CARGO_BIN_EXE_earnest"));
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).args(words).current_dir(folder).env_remove("EARNEST_RESULTS");
    let output = command.output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(60), "{words:?}");
    output
}

fn refused(folder: &Path, words: &[&str], named: &str) {
    let output = bounded(folder, words);
    assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains(named), "{words:?}: no {named:?} in {said}");
    assert!(said.contains("at most 10000000") || said.contains("is not in 0..=10000000"), "{words:?}: {said}");
    assert!(!folder.join("earnest-results").exists(), "{words:?}");
}

#[test]
fn options_beyond_the_bound_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny();
    let run = |suite: &'static str| ["run", suite, "--model", model.to_str().unwrap(), "--threads", "1"];
    let huge = "1000000000000";
    for (suite, words, named) in [
        ("arithmetic-bench", &["--samples", "4000000000"][..], "--samples 4000000000 makes 4000000000 samples"),
        ("arithmetic-bench", &["--samples", "1000"], "--samples 1000 with 16000 items makes 16000000 samples"),
        ("arithmetic-bench", &["--per-length", huge], "'1000000000000' for '--per-length <N>'"),
        ("arithmetic-bench", &["--per-length", "10000000"], "--per-length 10000000 makes 16000000000 samples"),
        ("arithmetic-bench", &["--limit", huge], "--limit 1000000000000"),
        ("nupa", &["--per-length", huge], "'1000000000000' for '--per-length <N>'"),
        ("nupa", &["--per-length", "10000000"], "--per-length 10000000 makes"),
        ("nupa", &["--limit", huge], "--limit 1000000000000"),
        ("gsm-mini", &["--samples", "4000000000"], "--samples 4000000000"),
        ("questions.jsonl", &["--samples", "4000000000"], "--samples 4000000000"),
    ] {
        std::fs::write(folder.path().join("questions.jsonl"), "{\"question\": \"1+1=?\", \"answer\": 2}\n").unwrap();
        refused(folder.path(), &[&run(suite)[..], words].concat(), named);
    }
    refused(
        folder.path(),
        &["generate", "nupa", "--split", "train", "--per-length", huge],
        "'1000000000000' for '--per-length <N>'",
    );
    let text = "name = \"s\"\n[models.m]\nmodel = \"built-in\"\n[tasks.t]\nsuite = \"nupa\"\nsamples = 4000000000\n";
    std::fs::write(folder.path().join("study.toml"), text).unwrap();
    let study = bounded(folder.path(), &["study", "study.toml", "--dry-run"]);
    assert!(code(&study) == 2 && stderr(&study).contains("4000000000"), "{}", stderr(&study));
}

#[test]
fn rows_of_imports_beyond_the_bound_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let item = "arithmetic-bench/1/add/001/000";
    std::fs::write(
        folder.path().join("c.jsonl"),
        format!(
            "{}\n{}\n",
            serde_json::json!({"item": item, "completion": "1"}),
            serde_json::json!({"item": item, "completion": "1", "sample": 1_000_000_000})
        ),
    )
    .unwrap();
    let import = ["import", "arithmetic-bench", "--completions", "c.jsonl", "--name", "m"];
    refused(folder.path(), &import, "c.jsonl line 2: \"sample\": 1000000000 with 16000 items makes");
    refused(
        folder.path(),
        &[&import[..], &["--limit", "1"]].concat(),
        "c.jsonl line 2: \"sample\": 1000000000 with 1 items",
    );

    // A log of another tool whose rows name such a repeat.
    std::fs::write(folder.path().join("t.csv"), "q,text,right,epoch\n1,x,1,0\n1,y,0,1000000000\n").unwrap();
    let table = ["import", "t.csv", "--columns", "id=q,completion=text,score=right,epoch=epoch", "--model-name", "m"];
    let output = bounded(folder.path(), &table);
    let said = stderr(&output);
    assert!(code(&output) != 0 && said.contains("repeat 1000000001, but the log has 2 samples"), "{said}");
}
