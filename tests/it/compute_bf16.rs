//! `--compute bf16` end to end: the same answers on any number of threads and in any batch, and another model to every result.
use std::path::Path;

use crate::program::{code, document, earnest, only_run, stderr, stdout, timeless};

/// The built-in model's answers to twenty questions, from first to last, and the device that computed them.
fn answers(words: &[&str], amx: Option<&str>) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), words, amx);
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    let record = only_run(folder.path());
    let manifest = serde_json::to_value(&record.manifest).unwrap();
    assert_eq!(manifest["model"]["weights"]["compute"], "bf16", "{manifest}");
    let device = manifest["engine"]["card"]["devices"][0].as_str().unwrap().to_owned();
    let name = manifest["run"].as_str().unwrap();
    let shown = stdout(&earnest(folder.path()).args(["runs", "show", name]).output().unwrap());
    assert!(shown.contains("bf16-products"), "{shown}");
    let without_run = |line: String| {
        let mut row: serde_json::Value = serde_json::from_str(&line).unwrap();
        row.as_object_mut().unwrap().remove("run");
        row.to_string()
    };
    let mut rows: Vec<String> = timeless(folder.path(), &record).into_iter().map(without_run).collect();
    rows.sort();
    (rows, device)
}

fn run(folder: &Path, words: &[&str], amx: Option<&str>) -> std::process::Output {
    let mut command = earnest(folder);
    command.args(["-q", "run", "arithmetic-bench", "--limit", "20", "--compute", "bf16", "--json"]).args(words);
    command.env("EARNEST_CACHE", folder.join("cache")).env_remove("EARNEST_AMX");
    if let Some(value) = amx {
        command.env("EARNEST_AMX", value);
    }
    command.output().unwrap()
}

/// Half a minute by itself on CPUs without bf16, where its products are written out.
#[test]
fn threads_and_batches_do_not_show() {
    let (one, device) = answers(&["--threads", "1", "--max-batch", "1"], None);
    assert_eq!(one.len(), 20);
    assert!(device.contains("bf16"), "{device}");
    for words in [&["--threads", "1", "--max-batch", "20"], &["--threads", "2", "--max-batch", "7"]] {
        let (others, _) = answers(words, None);
        assert_eq!(one, others, "{words:?}");
    }
}

#[test]
fn the_kernels_without_amx_give_the_same_answers() {
    let (asked, device) = answers(&["--threads", "2"], None);
    if device.contains("without AMX") {
        eprintln!("not run: the comparison with AMX, because this machine is without it ({device})");
    }
    let (without, device) = answers(&["--threads", "2"], Some("off"));
    assert!(device.contains("without AMX: EARNEST_AMX is off"), "{device}");
    assert_eq!(asked, without);
}

#[test]
fn the_arithmetic_is_part_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let hash = |words: &[&str]| {
        let mut command = earnest(folder.path());
        command.args(["-q", "run", "arithmetic-bench", "--limit", "2", "--json"]).args(words);
        let output = command.env("EARNEST_CACHE", folder.path().join("cache")).output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let manifest = &document(&output)["manifest"];
        (manifest["run"].as_str().unwrap().to_owned(), manifest["model"]["name"].as_str().unwrap().to_owned())
    };
    let found = [hash(&[]), hash(&["--compute", "bf16"]), hash(&["--dtype", "bf16"]), hash(&["--compute", "int8"])];
    for (i, (run, name)) in found.iter().enumerate() {
        for (other_run, other_name) in &found[..i] {
            assert!(run != other_run && name != other_name, "{name} and {other_name}, {run}");
        }
    }
}
