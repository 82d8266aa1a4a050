//! The screens of `earnest models` as snapshots: `INSTA_UPDATE=always cargo test --release --test it models_screens`
//! updates them.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::{Settings, assert_snapshot};

use crate::fake_hub::{FakeHub, Faults, HubFile};

const REPO: &str = "tiny-org/tiny-llama";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn hub() -> FakeHub {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama");
    let mut files = BTreeMap::new();
    for name in
        ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        files.insert(name.to_owned(), HubFile { bytes, large: name == "model.safetensors" });
    }
    FakeHub::start(REPO, COMMIT, files)
}

/// Exit code, stdout and stderr of a command in its own folder.
fn screen(folder: &Path, hub: &FakeHub, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in
        ["EARNEST_MODEL", "EARNEST_MODELS_TOML", "EARNEST_RESULTS", "NO_COLOR", "COLUMNS", "HF_HOME", "HF_TOKEN"]
    {
        command.env_remove(name);
    }
    for name in ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    command
        .env("HOME", folder)
        .env("HF_HUB_CACHE", folder.join("hub"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env("EARNEST_CACHE", folder.join("cache"))
        .env("HF_ENDPOINT", &hub.endpoint);
    let output = command.output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let mut text = format!("exit {code}\n");
    for (name, part) in [("stdout", stdout), ("stderr", stderr)] {
        if !part.is_empty() {
            write!(text, "--- {name}\n{part}").unwrap();
        }
    }
    text
}

fn settings(folder: &Path, hub: &FakeHub) -> Settings {
    let mut settings = Settings::clone_current();
    settings.add_filter(&regex::escape(&folder.display().to_string()), "[folder]");
    settings.add_filter(&regex::escape(&hub.endpoint), "[hub]");
    settings
}

#[test]
fn help() {
    let (folder, hub) = (tempfile::tempdir().unwrap(), hub());
    settings(folder.path(), &hub).bind(|| {
        assert_snapshot!("help", screen(folder.path(), &hub, &["models", "--help"]));
        for command in ["list", "show", "fetch", "verify", "resolve", "remove", "quant-check"] {
            let text = screen(folder.path(), &hub, &["models", command, "--help"]);
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            assert_snapshot!(format!("help_{command}"), text);
        }
    });
}

#[test]
fn screens() {
    let (folder, hub) = (tempfile::tempdir().unwrap(), hub());
    let at = folder.path();
    let pinned = format!("{REPO}@{COMMIT}");
    settings(at, &hub).bind(|| {
        assert_snapshot!("list", screen(at, &hub, &["models", "list"]));
        assert_snapshot!("list_nothing_cached", screen(at, &hub, &["models", "list", "--cached"]));
        assert_snapshot!("show_pinned", screen(at, &hub, &["models", "show", "Meta-Llama-3-8B-Instruct"]));
        assert_snapshot!("show_unresolved", screen(at, &hub, &["models", "show", "Qwen2-72B"]));
        assert_snapshot!("show_not_runnable", screen(at, &hub, &["models", "show", "gpt2"]));
        assert_snapshot!("verify_nothing", screen(at, &hub, &["models", "verify"]));
        assert_snapshot!("not_cached", screen(at, &hub, &["show", "nupa", "--model", "gemma-2b"]));
        assert_snapshot!("branch", screen(at, &hub, &["show", "nupa", "--model", "microsoft/phi-2@main"]));
        assert_snapshot!("slip", screen(at, &hub, &["models", "show", "gema-2b"]));
        assert_snapshot!("offline", screen(at, &hub, &["models", "fetch", "gemma-2b", "--offline"]));
        hub.faults(Faults { refuse: Some((401, "GatedRepo")), ..Faults::default() });
        assert_snapshot!("gated", screen(at, &hub, &["models", "fetch", &pinned]));
        hub.faults(Faults::default());
        assert_snapshot!("fetch", screen(at, &hub, &["models", "fetch", &pinned]));
        assert_snapshot!("fetch_again", screen(at, &hub, &["models", "fetch", &pinned, "--quiet"]));
        assert_snapshot!("show_fetched", screen(at, &hub, &["models", "show", &pinned]));
        assert_snapshot!("list_cached", screen(at, &hub, &["models", "list", "--cached"]));
        assert_snapshot!("verify", screen(at, &hub, &["models", "verify", &pinned]));
        assert_snapshot!("resolve", screen(at, &hub, &["models", "resolve", &format!("{REPO}@main")]));
        assert_snapshot!("remove_asks", screen(at, &hub, &["models", "remove", &pinned]));
        let check = ["models", "quant-check", "arithmetic-bench", "--model", &pinned, "--quant", "q4k", "--limit", "4"];
        let check: Vec<&str> = check.into_iter().chain(["--max-tokens", "8", "--threads", "1"]).collect();
        assert_snapshot!("quant_check", screen(at, &hub, &check));
        assert_snapshot!("remove", screen(at, &hub, &["models", "remove", &pinned, "--yes"]));
    });
}
