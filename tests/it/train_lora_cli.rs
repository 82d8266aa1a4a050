//! `earnest train lora` and `earnest train merge`, end to end: an outcome, a kill and `--resume`, a merged folder that
//! other commands accept, and refusals.
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SMALL: [&str; 18] = [
    "--tasks",
    "length_Integer",
    "--lengths",
    "1-2",
    "--beyond",
    "3",
    "--rank",
    "2",
    "--batch",
    "4",
    "--steps",
    "9",
    "--validate-every",
    "3",
    "--validation",
    "2",
    "--dropout",
    "0.1",
];

fn llama() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama")
}

fn earnest(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).args(words).stdin(Stdio::null()).env_remove("EARNEST_MODEL");
    command
}

fn train(folder: &Path, words: &[&str]) -> Output {
    earnest(folder, &[&["train", "lora", "--model", llama().to_str().unwrap()], words].concat()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_training_ends_with_adapters_and_a_merged_model() {
    let place = tempfile::tempdir().unwrap();
    let words = [&["--out", "tuned", "--merge", "merged", "--json"], &SMALL[..]].concat();
    let output = train(place.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("validation at step 9"), "{}", stderr(&output));
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&outcome["steps"], &outcome["before"]["step"]), (&9.into(), &0.into()));
    let cells = outcome["validation"]["cells"].as_array().unwrap();
    assert!(cells.iter().any(|cell| cell["length"] == 3 && cell["learnt"] == false));
    let shown =
        earnest(place.path(), &["show", "nupa", "--model", "merged", "--task", "add_Integer"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    // The same merge, later.
    let model = llama();
    let merge = |words: &[&str]| {
        let all = [&["train", "merge", "--model", model.to_str().unwrap()], words].concat();
        earnest(place.path(), &all).output().unwrap()
    };
    let later = merge(&["--adapter", "tuned", "--out", "later"]);
    assert_eq!(later.status.code(), Some(0), "{}", stderr(&later));
    let text = String::from_utf8_lossy(&later.stdout).into_owned();
    assert!(text.contains("LlamaForCausalLM, adapters merged into 21 matrices"), "{text}");
    let weights = |name: &str| std::fs::read(place.path().join(name).join("model.safetensors")).unwrap();
    assert_eq!(weights("later"), weights("merged"));
    // Without adapters it is the base.
    let alone = merge(&["--out", "alone"]);
    assert_eq!(alone.status.code(), Some(0), "{}", stderr(&alone));
    assert_ne!(weights("alone"), weights("merged"));
    // What is there is not overwritten.
    assert_eq!(merge(&["--out", "alone"]).status.code(), Some(4));
    let again = train(place.path(), &words);
    assert_eq!(again.status.code(), Some(4));
    let again = train(place.path(), &[&["--out", "tuned"], &SMALL[..]].concat());
    assert!(stderr(&again).contains("another folder"), "{}", stderr(&again));
    let resumed = earnest(place.path(), &["train", "lora", "--out", "tuned", "--resume"]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(4));
    // Beside the paper's Table 18; a folder of another kind is named.
    let beside = |folder: &str| {
        let words = ["reproduce", "nupa", "--section", "3", "--json", "--fine-tuned", folder];
        earnest(place.path(), &words).output().unwrap()
    };
    let found = beside("tuned");
    assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let ours = &found["fine_tuned"][0];
    assert_eq!((&ours["variant"], &ours["task"], &ours["seed"]), (&"FT".into(), &"length_Integer".into(), &1.into()));
    let best = outcome["validation"]["cells"].as_array().unwrap();
    for (length, cell) in ours["lengths"].as_array().unwrap().iter().zip(best) {
        assert_eq!((&length["length"], &length["exact"]), (&cell["length"], &cell["exact"]));
    }
    assert_eq!(found["fine_tuned"].as_array().unwrap().len(), 1, "ours are not beside one's own");
    let other = beside("merged");
    assert_eq!(other.status.code(), Some(4));
    assert!(
        stderr(&other).contains("--fine-tuned merged") && stderr(&other).contains("train lora"),
        "{}",
        stderr(&other)
    );
}

#[cfg(unix)]
#[test]
fn a_killed_training_resumes_to_the_same_adapters() {
    let place = tempfile::tempdir().unwrap();
    let mut words = SMALL.to_vec();
    words[11] = "60";
    let whole = train(place.path(), &[&["--out", "whole"], &words[..]].concat());
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    let model = llama();
    let all = [&["train", "lora", "--model", model.to_str().unwrap(), "--out", "broken"], &words[..]].concat();
    let mut child = earnest(place.path(), &all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let state = place.path().join("broken/state.json");
    while !state.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(state.exists(), "it was killed in time");
    let resumed = earnest(place.path(), &["train", "lora", "--out", "broken", "--resume"]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert!(stderr(&resumed).contains("continuing after step"), "{}", stderr(&resumed));
    let read = |name: &str, file: &str| std::fs::read(place.path().join(name).join(file)).unwrap();
    assert_eq!(read("whole", "adapter_model.safetensors"), read("broken", "adapter_model.safetensors"));
    let losses = |name: &str| -> Vec<(u64, f64)> {
        let text = String::from_utf8(read(name, "log.jsonl")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let steps = events.filter(|event| event["event"] == "step");
        steps.map(|event| (event["step"].as_u64().unwrap(), event["loss"].as_f64().unwrap())).collect()
    };
    assert_eq!(losses("whole").len(), 60);
    assert_eq!(losses("whole"), losses("broken"));
}

#[test]
fn wrong_command_lines_exit_with_2_and_leave_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    for (words, named) in [
        (&["--tasks", "addd_Integer"][..], "addd"),
        (&["--targets", "q_proj,lm_head"], "lm_head"),
        (&["--style", "rule-following", "--tasks", "count_Integer"], "count"),
        (&["--style", "rule-following", "--zero-padding"], "plain numbers"),
        (&["--lengths", "1-4", "--beyond", "4"], "length 4"),
        (&["--batch", "2", "--parts", "3"], "pieces"),
        (&["--dropout", "1"], "below 1"),
        (&["--pairs", "none.jsonl"], "none.jsonl"),
        (&["--pairs", "none.jsonl", "--tasks", "add_Integer"], "--tasks"),
        (&["--held-out", "0.5"], "--pairs"),
        (&["--resume", "--steps", "5"], "--steps"),
        (&["--prompt", "chat"], "chat template"),
        (&["--context", "100000"], "positions"),
    ] {
        let output = train(place.path(), &[&["--out", "tuned"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{words:?}: {}", stderr(&output));
        assert!(!place.path().join("tuned/adapter_model.safetensors").exists());
    }
    let mixtral = llama().with_file_name("mixtral");
    let output = earnest(place.path(), &["train", "lora", "--model", mixtral.to_str().unwrap(), "--out", "tuned"]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("MixtralForCausalLM"), "{}", stderr(&output));
}
