//! GGUF files that do not say how texts are split, and how `earnest models show` says what weights are held as.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use earnest_results::store::Store;

use crate::checkpoint_gguf::add_merged;
use crate::gguf_files::convert;
use crate::program::{copy_of_tiny, edit_json};

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
        assert!(stderr(&run).contains(&format!("{name} is used, as allow-config says")), "{}", stderr(&run));
    }
    // Other tokens, another run; both know their own.
    let store = Store::open(&folder.path().join("r")).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let manifest = &run.manifest;
        let name = manifest.settings.pre_tokenizer.clone().unwrap();
        assert_eq!(manifest.model.allowed_config, [format!("tokenizer.ggml.pre={name}")]);
        let shown = earnest(folder.path(), &["runs", "show", &manifest.run, "--results", "r"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains(&format!("\ntokenizer pre-tokenizer {name}\n")), "{shown}");
        assert!(shown.contains(&format!("\nallowed   tokenizer.ggml.pre={name}\n")), "{shown}");
    }
    let other = ["run", "--from", &runs[0].manifest.run, "--results", "r", "--allow-config", "tokenizer.ggml.pre=dbrx"];
    let refused = earnest(folder.path(), &other);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(flat(&refused).contains("pre=dbrx: the run was made with") && flat(&refused).contains("leave it out"));
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
    // What has nothing to name, and slips, are refused with the next step.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/engine/checkpoints/llama");
    for (option, reason, help) in [
        ("tokenizer.ggml.pre=smollm", "only a GGUF file", "leave it out"),
        ("tokenizer.ggml.pre", "the name is missing", "tokenizer.ggml.pre=NAME"),
        ("tokenizer.ggml.pre=smolm", "there is no pre-tokenizer smolm", "did you mean tokenizer.ggml.pre=smollm?"),
        ("tokenizer.gguf.pre=smollm", "takes no name", "did you mean tokenizer.ggml.pre=smollm?"),
    ] {
        for model in [golden, "silent.gguf"] {
            if model == "silent.gguf" && help == "leave it out" {
                continue;
            }
            let refused = earnest(folder.path(), &["models", "show", model, "--allow-config", option]);
            let said = flat(&refused);
            assert_eq!(refused.status.code(), Some(2), "{said}");
            assert!(said.contains(option) && said.contains(reason) && said.contains(help), "{said}");
        }
    }
    let both = ["--allow-config", "tokenizer.ggml.pre=smollm", "--allow-config", "tokenizer.ggml.pre=llama-bpe"];
    let refused = earnest(folder.path(), &[&["models", "show", "silent.gguf"], &both[..]].concat());
    let said = flat(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("twice: tokenizer.ggml.pre=smollm and tokenizer.ggml.pre=llama-bpe"), "{said}");
    // Once for a study, not for each of its models.
    std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    let refused = earnest(folder.path(), &[&["study", "study.toml"], &both[..]].concat());
    let said = flat(&refused);
    assert_eq!((refused.status.code(), said.matches("twice").count()), (Some(2), 1), "{said}");
}

/// Standard error without its line breaks.
fn flat(output: &Output) -> String {
    stderr(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A file without a name and one that names its own.
const STUDY: &str = "limit = 2
prompts = [\"raw\"]
[models.silent]
model = \"silent.gguf\"
[models.named]
model = \"named.gguf\"
[tasks.sums]
suite = \"nupa\"
[generation]
max-tokens = 2
";

#[test]
fn a_study_gives_the_name_to_the_files_that_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    silent(at);
    convert("llama", "llama").0.write(&at.join("named.gguf"));
    let study = |text: &str, results: &str, more: &[&str]| {
        std::fs::write(at.join("study.toml"), text).unwrap();
        earnest(at, &[&["study", "study.toml", "--threads", "1", "--results", results], more].concat())
    };
    let names = |results: &str| -> Vec<(String, Option<String>, Vec<String>)> {
        let runs = Store::open(&at.join(results)).unwrap().runs().unwrap();
        let mut names: Vec<_> = runs
            .into_iter()
            .map(|run| {
                (run.manifest.model.name, run.manifest.settings.pre_tokenizer, run.manifest.model.allowed_config)
            })
            .collect();
        names.sort();
        names
    };
    let supplied = |name: &str| {
        let silent = ("silent".to_owned(), Some(name.to_owned()), vec![format!("tokenizer.ggml.pre={name}")]);
        [("named".to_owned(), None, Vec::new()), silent]
    };
    let run = study(STUDY, "shared", &["--allow-config", "tokenizer.ggml.pre=llama-bpe"]);
    let said = flat(&run);
    assert!(run.status.success(), "{said}");
    assert!(said.contains("llama-bpe is used, as allow-config says"), "{said}");
    let left_out =
        "named: --allow-config tokenizer.ggml.pre=llama-bpe is left out here, because the file itself names smollm";
    assert!(said.contains(left_out) && !said.contains("silent: --allow-config"), "{said}");
    assert_eq!(names("shared"), supplied("llama-bpe"));
    // A model's own name goes before that of the command, and needs none.
    let own = STUDY
        .replace("model = \"silent.gguf\"", "model = \"silent.gguf\"\nallow-config = [\"tokenizer.ggml.pre=smollm\"]");
    for more in [&[][..], &["--allow-config", "tokenizer.ggml.pre=llama-bpe"]] {
        let run = study(&own, "own", more);
        assert!(run.status.success(), "{}", stderr(&run));
        assert_eq!(names("own"), supplied("smollm"));
    }
    // For a model that has its own, it is a mistake of the file.
    let wrong = own.replace("silent.gguf", "named.gguf").replace("models.silent", "models.other");
    let run = study(&wrong, "wrong", &[]);
    assert!(!run.status.success() && flat(&run).contains("leave it out"), "{}", stderr(&run));
    let slip = own.replace("pre=smollm", "pre=smolm");
    let run = study(&slip, "slip", &[]);
    let said = flat(&run);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("models.silent") && said.contains("did you mean tokenizer.ggml.pre=smollm?"), "{said}");
    assert!(said.contains("allow-config tokenizer.ggml.pre=smolm: ") && !said.contains("--allow-config"), "{said}");
    let remote =
        STUDY.replace("model = \"named.gguf\"", "endpoint = \"http://127.0.0.1:1/v1\"\nallow-config = [\"twist\"]");
    let run = study(&remote, "remote", &[]);
    assert!(
        flat(&run).contains("models.named.allow-config: allow-config is for a model or tokenizer that is here"),
        "{}",
        stderr(&run)
    );
}

#[test]
fn a_name_for_all_models_is_refused_where_a_vocabulary_contradicts_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut gguf = convert("llama", "llama").0;
    gguf.metadata.remove("tokenizer.ggml.pre");
    add_merged(&mut gguf, "1", "2");
    gguf.write(&at.join("silent.gguf"));
    convert("llama", "llama").0.write(&at.join("named.gguf"));
    std::fs::write(at.join("study.toml"), STUDY).unwrap();
    let words = ["study", "study.toml", "--threads", "1", "--results", "r"];
    let run = earnest(at, &[&words[..], &["--allow-config", "tokenizer.ggml.pre=smollm"]].concat());
    let said = flat(&run);
    assert_eq!(run.status.code(), Some(3), "{said}");
    assert!(said.contains("is for all models, and splits tokens of this one's vocabulary, such as \"12\""), "{said}");
    assert!(said.contains("allow-config = [\"tokenizer.ggml.pre=NAME\"]"), "{said}");
    let finished = Store::open(&at.join("r")).unwrap().runs().unwrap();
    assert_eq!(finished.iter().map(|run| run.manifest.model.name.as_str()).collect::<Vec<_>>(), ["named"]);
}

#[test]
fn a_reason_of_several_models_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut gguf = convert("llama", "llama").0;
    gguf.set("tokenizer.ggml.pre", Value::String("no-such".to_owned()));
    gguf.write(&at.join("named.gguf"));
    std::fs::write(at.join("study.toml"), STUDY.replace("silent.gguf", "named.gguf")).unwrap();
    let words = ["study", "study.toml", "--threads", "1"];
    let planned = earnest(at, &[&words[..], &["--dry-run"]].concat());
    let table = String::from_utf8_lossy(&planned.stdout).into_owned();
    let total: Vec<&str> = table.lines().find(|line| line.starts_with("all ")).unwrap().split_whitespace().collect();
    assert_eq!(total, ["all", "0", "0", "0", "0", "0:00"], "{table}");
    let run = earnest(at, &words);
    let (said, screen) = (flat(&run), stderr(&run));
    assert_eq!(run.status.code(), Some(3), "{said}");
    assert!(said.contains("silent, named cannot be run: "), "{said}");
    assert_eq!(said.matches("tokenizer.ggml.pre is no-such").count(), 1, "{screen}");
    assert_eq!(said.matches(" failed, for the reason above").count(), 2, "{screen}");
    assert_eq!(said.matches("name the one that the model was trained with").count(), 1, "{screen}");
    // What the plan does not say is said of the first run.
    let quiet = flat(&earnest(at, &[&words[..], &["--quiet"]].concat()));
    assert_eq!(
        (quiet.matches(" failed: ").count(), quiet.matches(", for the reason above").count()),
        (1, 1),
        "{quiet}"
    );
}

#[test]
fn a_key_for_all_models_is_for_those_that_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let copy = copy_of_tiny(at);
    edit_json(&copy.join("config.json"), |config| config["hidden_twist"] = 3.into());
    convert("llama", "llama").0.write(&at.join("named.gguf"));
    std::fs::write(at.join("study.toml"), STUDY.replace("silent.gguf", "copy")).unwrap();
    let words = ["study", "study.toml", "--threads", "1", "--dry-run", "--allow-config", "hidden_twist"];
    let said = flat(&earnest(at, &words));
    assert!(said.contains("config.json sets hidden_twist"), "{said}");
    assert!(said.contains("named: --allow-config hidden_twist is left out here"), "{said}");
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
        (golden("llama-awq-gemm"), "packed as in the file"),
        (golden("llama-gptq-desc-act"), "packed as in the file"),
        (golden("gpt-oss-mxfp4"), "packed as in the file"),
    ] {
        let shown = earnest(folder.path(), &["models", "show", &model]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(text.contains(held), "{model}: {text}{}", stderr(&shown));
    }
}
