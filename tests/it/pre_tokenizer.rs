//! GGUF files that do not say how texts are split, and how `earnest models show` says what weights are held as.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use earnest_eval::run::store::Store;

use crate::gguf_files::convert;

fn earnest(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS"] {
        command.env_remove(name);
    }
    command.current_dir(folder).args(words).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file without `tokenizer.ggml.pre`.
fn silent(folder: &Path) -> PathBuf {
    let mut gguf = convert("llama", "llama").0;
    gguf.metadata.remove("tokenizer.ggml.pre");
    let path = folder.join("silent.gguf");
    gguf.write(&path);
    path
}

const ASK: [&str; 12] =
    ["run", "nupa", "--limit", "2", "--max-tokens", "2", "--threads", "1", "--results", "r", "--model", "silent.gguf"];

#[test]
fn a_run_names_the_pre_tokenizer_records_it_and_is_repeated_with_it() {
    let folder = tempfile::tempdir().unwrap();
    silent(folder.path());
    let refused = earnest(folder.path(), &ASK);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    for part in
        ["silent.gguf", "tokenizer.ggml.pre is missing", "smollm", "help: ", "--allow-config tokenizer.ggml.pre="]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    for name in ["smollm", "llama-bpe"] {
        let option = format!("tokenizer.ggml.pre={name}");
        let run = earnest(folder.path(), &[&ASK[..], &["--allow-config", &option]].concat());
        assert!(run.status.success(), "{}", stderr(&run));
        assert!(stderr(&run).contains(&format!("{name} is used, as --allow-config says")), "{}", stderr(&run));
    }
    // Other tokens, another run; both know their own.
    let store = Store::open(&folder.path().join("r")).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let manifest = &run.manifest;
        let name = manifest.settings.pre_tokenizer.clone().unwrap();
        assert_eq!(manifest.model.allowed_config, [format!("tokenizer.ggml.pre={name}")]);
    }
    let again = earnest(folder.path(), &["run", "--from", &runs[0].manifest.run, "--results", "r"]);
    assert!(again.status.success(), "{}", stderr(&again));
    let alike = store.runs().unwrap().iter().filter(|run| run.manifest.settings == runs[0].manifest.settings).count();
    assert_eq!(alike, 2);
}

#[test]
fn every_command_that_opens_a_model_takes_the_name() {
    let folder = tempfile::tempdir().unwrap();
    silent(folder.path());
    let commands: [&[&str]; 2] =
        [&["show", "nupa", "--model", "silent.gguf", "--prompt", "raw"], &["models", "show", "silent.gguf"]];
    for words in commands {
        let refused = earnest(folder.path(), words);
        assert!(stderr(&refused).contains("tokenizer.ggml.pre is missing"), "{words:?}: {}", stderr(&refused));
        let named = earnest(folder.path(), &[words, &["--allow-config", "tokenizer.ggml.pre=smollm"][..]].concat());
        assert!(named.status.success(), "{words:?}: {}", stderr(&named));
        assert!(stderr(&named).contains("smollm is used"), "{words:?}: {}", stderr(&named));
    }
    // What has nothing to name is refused.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/engine/checkpoints/llama");
    for (option, reason) in
        [("tokenizer.ggml.pre=smollm", "only a GGUF file"), ("tokenizer.ggml.pre", "the name is missing")]
    {
        let refused = earnest(folder.path(), &["models", "show", golden, "--allow-config", option]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(option) && stderr(&refused).contains(reason), "{}", stderr(&refused));
    }
}

#[test]
fn models_show_says_what_weights_are_held_as() {
    let folder = tempfile::tempdir().unwrap();
    let (mut gguf, _) = convert("llama", "llama");
    gguf.write(&folder.path().join("plain.gguf"));
    gguf.set("general.file_type", Value::U32(7));
    let names: Vec<String> = gguf.tensors.keys().filter(|name| name.contains("ffn_")).cloned().collect();
    for name in names.into_iter().filter(|name| !name.contains("norm")) {
        gguf.types.insert(name, GgmlDType::Q8_0);
    }
    gguf.write(&folder.path().join("packed.gguf"));
    let golden = |name: &str| format!("{}/tests/golden/engine/checkpoints/{name}", env!("CARGO_MANIFEST_DIR"));
    for (model, held) in [
        ("plain.gguf".to_owned(), "in these files' type"),
        ("packed.gguf".to_owned(), "packed as in the file"),
        (golden("llama-awq-gemm"), "widened to f32"),
        (golden("gpt-oss-mxfp4"), "MXFP4 widened to bf16"),
    ] {
        let shown = earnest(folder.path(), &["models", "show", &model]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(text.contains(held), "{model}: {text}{}", stderr(&shown));
    }
}
