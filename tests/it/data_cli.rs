//! Data sets and a paper's models from a local hub, and the study that is executed with what is there.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::fake_hub::{FakeHub, Faults, HubFile};

const DATASET: &str = "datasets/apple/GSM-Symbolic";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// `earnest` with caches, settings and results of its own.
fn earnest(folder: &Path, endpoint: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in [
        "EARNEST_MODEL",
        "EARNEST_MODELS_TOML",
        "EARNEST_RESULTS",
        "EARNEST_DATA",
        "HF_HUB_OFFLINE",
        "HF_TOKEN",
        "HF_TOKEN_PATH",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "https_proxy",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    command.env("HF_HOME", folder.join("hf")).env("HF_ENDPOINT", endpoint);
    command
        .env("HOME", folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("XDG_CONFIG_HOME", folder.join("config"));
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Questions of our own templates in the layout of the published data set.
fn questions(folder: &Path) -> BTreeMap<String, HubFile> {
    let drawn =
        earnest(folder, "http://127.0.0.1:9", &["generate", "gsm-symbolic", "--per-template", "2", "--only", "0-3"]);
    assert!(drawn.status.success(), "{}", said(&drawn));
    let file = |bytes: Vec<u8>, large| HubFile { bytes, large };
    [
        ("README.md".to_owned(), file(b"CC BY-NC-ND 4.0".to_vec(), false)),
        ("main/test.jsonl".to_owned(), file(drawn.stdout, true)),
        ("loader.py".to_owned(), file(b"print()".to_vec(), false)),
    ]
    .into()
}

#[test]
fn a_data_set_is_fetched_recognised_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let hub = FakeHub::start(DATASET, COMMIT, questions(folder.path()));
    // A connection that breaks off is resumed.
    hub.faults(Faults { cuts: 1, cut_after: 100, ..Faults::default() });
    let fetched = earnest(folder.path(), &hub.endpoint, &["data", "fetch", "gsm-symbolic"]);
    let text = said(&fetched);
    // Other rows than the published ones are named, and the exit code says so.
    assert_eq!(fetched.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("apple/GSM-Symbolic@{COMMIT}")), "{text}");
    assert!(text.contains("not the published GSM-Symbolic main set"), "{text}");
    let snapshot = folder.path().join("hf/hub/datasets--apple--GSM-Symbolic/snapshots").join(COMMIT);
    assert!(snapshot.join("main/test.jsonl").is_file() && !snapshot.join("loader.py").exists());
    // Without --data the questions are found there; a run opens no connection.
    hub.forget();
    let shown = earnest(folder.path(), &hub.endpoint, &["generate", "gsm-symbolic", "--items", "--prompt", "gsm"]);
    assert!(shown.status.success(), "{}", said(&shown));
    assert_eq!(String::from_utf8_lossy(&shown.stdout).lines().count(), 4 * 3);
    assert!(hub.seen().is_empty());
    // A second time nothing is transferred.
    hub.faults(Faults::default());
    let again = said(&earnest(folder.path(), &hub.endpoint, &["data", "fetch", "gsm-symbolic", "--revision", COMMIT]));
    assert!(again.contains("0 B over the network"), "{again}");
}

#[test]
fn what_the_hub_refuses_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let hub = FakeHub::start(DATASET, COMMIT, questions(folder.path()));
    let refused = |words: &[&str]| {
        let output = earnest(folder.path(), &hub.endpoint, words);
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        said(&output)
    };
    let absent = "f".repeat(40);
    let text = refused(&["data", "fetch", "gsm-symbolic", "--revision", &absent]);
    assert!(text.contains(&absent) && text.contains("GSM-Symbolic"), "{text}");
    assert!(refused(&["data", "fetch", "gsm-symbolic", "--revision", "main"]).contains("40 hexadecimal digits"));
    hub.faults(Faults { refuse: Some((401, "GatedRepo")), ..Faults::default() });
    let text = refused(&["data", "fetch", "gsm-symbolic"]);
    assert!(text.contains("gated") && text.contains("no token"), "{text}");
    hub.faults(Faults { refuse: Some((404, "RepoNotFound")), ..Faults::default() });
    assert!(refused(&["data", "fetch", "gsm8k"]).contains("openai/gsm8k"));
}

/// A tiny checkpoint with room for the study's prompts.
fn checkpoint() -> BTreeMap<String, HubFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama");
    let mut files = BTreeMap::new();
    for name in
        ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    {
        let mut bytes = std::fs::read(root.join(name)).unwrap();
        if name == "config.json" {
            let mut fields: Value = serde_json::from_slice(&bytes).unwrap();
            fields["max_position_embeddings"] = 4096.into();
            bytes = fields.to_string().into_bytes();
        }
        files.insert(name.to_owned(), HubFile { bytes, large: name == "model.safetensors" });
    }
    files
}

#[test]
fn a_paper_s_models_are_fetched_as_far_as_they_are_there_and_the_study_goes_on_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let hub = FakeHub::start("tiny-org/tiny-llama", COMMIT, checkpoint());
    let list: PathBuf = folder.path().join("config/earnest/models.toml");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    let entry = |name: &str, repo: &str| {
        format!(
            "[[model]]\nname = \"{name}\"\nrepo = \"{repo}\"\ncommit = \"{COMMIT}\"\nfamily = \"llama\"\npapers = [\"tiny-paper\"]\n"
        )
    };
    let text =
        format!("format = 1\n{}{}", entry("tiny-moved", "tiny-org/moved"), entry("tiny-llama", "tiny-org/tiny-llama"));
    std::fs::write(&list, text).unwrap();
    let fetched = earnest(folder.path(), &hub.endpoint, &["models", "fetch", "--paper", "tiny-paper"]);
    let text = said(&fetched);
    assert_ne!(fetched.status.code(), Some(0), "{text}");
    assert!(text.contains("tiny-moved was not fetched") && text.contains("1 of 2 models"), "{text}");
    assert!(text.contains(&format!("tiny-org/tiny-llama@{COMMIT}")), "{text}");
    let unknown = earnest(folder.path(), &hub.endpoint, &["models", "fetch", "--paper", "poems"]);
    assert!(unknown.status.code() == Some(2) && said(&unknown).contains("gsm-symbolic"), "{}", said(&unknown));
    hub.forget();
    let study_with = |models: &str, more: [&str; 2]| {
        let few =
            ["--suite", "gsm-mini", "--per-template", "2", "--limit", "6", "--prompts", "gsm", "--max-tokens", "4"];
        let words = [&["reproduce", "gsm-symbolic", "--run", "--models", models], &more[..], &few[..]].concat();
        earnest(folder.path(), &hub.endpoint, &words)
    };
    let study = |models: &str| study_with(models, ["-o", "study.html"]);
    let run = study("tiny-moved,tiny-llama");
    let text = said(&run);
    assert!(text.contains("tiny-moved is left out") && text.contains("models fetch"), "{text}");
    assert!(text.contains("Variants against originals"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("study.html")).unwrap();
    assert!(
        page.contains("tiny-llama") && page.contains("id=\"table-15\"") && page.contains("16 templates of earnest")
    );
    assert!(hub.seen().is_empty(), "a run opens no connection");
    let none = study("tiny-moved");
    assert!(none.status.code() == Some(2) && said(&none).contains("none of the 1 models"), "{}", said(&none));
    // Outcome files stand in for the run, whose questions and completions they do not have.
    let list = earnest(folder.path(), &hub.endpoint, &["runs", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&list.stdout).unwrap();
    let name = listed.to_string().split('"').find(|word| word.starts_with("gsm-mini-")).unwrap().to_owned();
    std::fs::create_dir(folder.path().join("outcomes")).unwrap();
    let file = format!("outcomes/{name}.parquet");
    let export = ["export", &name, "--format", "parquet", "--outcomes", "-o", &file];
    let exported = earnest(folder.path(), &hub.endpoint, &export);
    assert!(exported.status.success(), "{}", said(&exported));
    let shown = |results: &str| {
        let words = ["reproduce", "gsm-symbolic", "--suite", "gsm-mini", "--json", "--results", results];
        let output = earnest(folder.path(), &hub.endpoint, &words);
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
    };
    assert_eq!(shown("outcomes"), shown("earnest-results"));
    let bytes = std::fs::read(folder.path().join(&file)).unwrap();
    std::fs::write(folder.path().join(&file), &bytes[..bytes.len() / 2]).unwrap();
    let damaged = earnest(folder.path(), &hub.endpoint, &["runs", "list", "--results", "outcomes"]);
    assert!(damaged.status.code() != Some(0) && said(&damaged).contains("incomplete"), "{}", said(&damaged));
    // Runs of any origin are joined under a name.
    let joined = ["reproduce", "gsm-symbolic", "--suite", "gsm-mini", "--json", "--with", &format!("phi-2={name}")];
    let output = earnest(folder.path(), &hub.endpoint, &joined);
    let study: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    assert_eq!(study["runs"][0]["model"], "phi-2");
    let missing = earnest(
        folder.path(),
        &hub.endpoint,
        &["reproduce", "gsm-symbolic", "--suite", "gsm-mini", "--with", "phi-2=no-such-run"],
    );
    assert!(missing.status.code() == Some(2) && said(&missing).contains("no run no-such-run"), "{}", said(&missing));
    // A part has no estimates that could be missing: the model alone makes the difference.
    let part = |models: &str| study_with(models, ["--shard", "1/2"]).status.code();
    assert_eq!((part("tiny-llama"), part("tiny-moved,tiny-llama")), (Some(0), Some(1)));
}
