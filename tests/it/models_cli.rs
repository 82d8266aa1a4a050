//! Models by commit, from the hub to a run: a local hub with faults, and a separate cache for every test.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use earnest_models::hub::Registry;
use earnest_results::store::Store;
use serde_json::Value;

use crate::fake_hub::{FakeHub, Faults, HubFile, git_sha1, sha256};

const REPO: &str = "tiny-org/tiny-llama";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama")
}

fn pinned() -> String {
    format!("{REPO}@{COMMIT}")
}

/// The tiny checkpoint as a repository, weights as a large file, with files that are not needed.
fn files() -> BTreeMap<String, HubFile> {
    let mut files = BTreeMap::new();
    for name in
        ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    {
        let bytes = std::fs::read(tiny().join(name)).unwrap();
        files.insert(name.to_owned(), HubFile { bytes, large: name == "model.safetensors" });
    }
    files.insert("README.md".to_owned(), HubFile { bytes: b"# tiny".to_vec(), large: false });
    files.insert("original/model.safetensors".to_owned(), HubFile { bytes: vec![0; 100], large: true });
    files
}

/// A folder with its own cache, settings and results.
struct Place {
    folder: tempfile::TempDir,
    hub: FakeHub,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap(), hub: FakeHub::start(REPO, COMMIT, files()) }
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
        command.current_dir(self.at()).stdin(Stdio::null()).args(words);
        self.prepare(&mut command);
        command
    }

    /// The environment of a user who has nothing but this place.
    fn prepare(&self, command: &mut Command) {
        for name in [
            "EARNEST_MODEL",
            "EARNEST_MODELS_TOML",
            "EARNEST_RESULTS",
            "HF_HOME",
            "HF_HUB_OFFLINE",
            "TRANSFORMERS_OFFLINE",
            "HF_TOKEN",
            "HF_TOKEN_PATH",
            "HUGGING_FACE_HUB_TOKEN",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.at())
            .env("HF_HUB_CACHE", self.at().join("hub"))
            .env("XDG_CONFIG_HOME", self.at().join("config"))
            .env("EARNEST_CACHE", self.at().join("cache"))
            .env("HF_ENDPOINT", &self.hub.endpoint);
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn repo(&self) -> PathBuf {
        self.at().join("hub/models--tiny-org--tiny-llama")
    }

    fn snapshot(&self) -> PathBuf {
        self.repo().join("snapshots").join(COMMIT)
    }

    fn weights_blob(&self) -> PathBuf {
        self.repo().join("blobs").join(sha256(&files()["model.safetensors"].bytes))
    }

    fn fetched() -> Place {
        let place = Place::new();
        let output = place.run(&["models", "fetch", &pinned()]);
        assert_eq!(code(&output), 0, "{}", text(&output));
        place.hub.forget();
        place
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Both streams.
fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

fn assert_says(output: &Output, exit: i32, parts: &[&str]) {
    assert_eq!(code(output), exit, "{}", text(output));
    for part in parts {
        assert!(text(output).contains(part), "{part} is not in\n{}", text(output));
    }
}

const ASK: [&str; 8] = ["run", "arithmetic-bench", "--threads", "1", "--limit", "2", "--max-tokens", "3"];

#[test]
fn a_pinned_fetch_has_the_layout_of_huggingface_hub() {
    let place = Place::new();
    let output = place.run(&["models", "fetch", &pinned(), "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    let report = &json(&output)[0];
    assert_eq!((report["files"].as_u64(), report["present"].as_u64()), (Some(5), Some(0)));
    for (name, file) in files() {
        let pointer = place.snapshot().join(&name);
        if ["README.md", "original/model.safetensors"].contains(&name.as_str()) {
            assert!(pointer.symlink_metadata().is_err(), "{name} was not asked for");
            continue;
        }
        assert_eq!(std::fs::read(&pointer).unwrap(), file.bytes, "{name}");
        let etag = if file.large { sha256(&file.bytes) } else { git_sha1(&file.bytes) };
        #[cfg(unix)]
        assert_eq!(std::fs::read_link(&pointer).unwrap(), Path::new("../../blobs").join(&etag));
        assert!(place.at().join("hub/.locks/models--tiny-org--tiny-llama").join(format!("{etag}.lock")).is_file());
    }
    assert!(!place.repo().join("refs").exists(), "a commit needs no branch");
    // Again: nothing is transferred.
    place.hub.forget();
    let again = json(&place.run(&["models", "fetch", &pinned(), "--json"]));
    assert_eq!((again[0]["present"].as_u64(), again[0]["transferred"].as_u64()), (Some(5), Some(0)));
    assert_eq!(place.hub.seen().len(), 1, "only the listing is asked for");
}

#[test]
fn one_file_can_be_asked_for() {
    let place = Place::new();
    assert_says(&place.run(&["models", "fetch", &pinned(), "--file", "original/model.safetensors"]), 0, &["1 file, "]);
    assert_eq!(std::fs::read(place.snapshot().join("original/model.safetensors")).unwrap(), vec![0; 100]);
    assert_says(&place.run(&["models", "fetch", &pinned(), "--file", "x.gguf"]), 3, &["x.gguf", "--remote"]);
}

#[test]
fn a_cut_download_continues_where_it_broke_off() {
    let place = Place::new();
    let size = files()["model.safetensors"].bytes.len();
    // Three connections in a row break, within one command.
    place.hub.faults(Faults { cuts: 3, cut_after: size / 5, ..Faults::default() });
    let output = place.run(&["models", "fetch", &pinned(), "--json"]);
    assert_says(&output, 0, &["was interrupted"]);
    assert_eq!(json(&output)[0]["transferred"].as_u64(), Some(files_size()));
    let ranges: Vec<String> = place
        .hub
        .seen()
        .into_iter()
        .filter(|seen| seen.path.starts_with("/cdn/"))
        .filter_map(|seen| seen.range)
        .collect();
    assert_eq!(ranges, [1, 2, 3].map(|n| format!("bytes={}-", n * (size / 5))));

    // A partial file of an earlier process, also of huggingface_hub, is continued as well.
    let place = Place::new();
    std::fs::create_dir_all(place.repo().join("blobs")).unwrap();
    let partial = place.weights_blob().with_extension("incomplete");
    std::fs::write(&partial, &files()["model.safetensors"].bytes[..1000]).unwrap();
    let output = place.run(&["models", "fetch", &pinned(), "--json"]);
    assert_eq!(json(&output)[0]["resumed"], 1, "{}", text(&output));
    assert!(place.hub.seen().iter().any(|seen| seen.range.as_deref() == Some("bytes=1000-")));
    assert!(!partial.exists());

    // Where the hub knows no ranges, it is fetched from the first byte.
    let place = Place::new();
    place.hub.faults(Faults { cuts: 1, cut_after: size / 2, no_ranges: true, ..Faults::default() });
    assert_says(&place.run(&["models", "fetch", &pinned()]), 0, &["all sizes and hashes match"]);
}

fn files_size() -> u64 {
    let wanted = |name: &String| *name != "README.md" && !name.contains('/');
    files().iter().filter(|(name, _)| wanted(name)).map(|(_, file)| file.bytes.len() as u64).sum()
}

#[test]
fn a_hub_that_always_cuts_is_given_up_and_what_came_is_kept() {
    let place = Place::new();
    place.hub.faults(Faults { cuts: usize::MAX, cut_after: 0, ..Faults::default() });
    let output = place.run(&["models", "fetch", &pinned()]);
    assert_says(&output, 3, &["model.safetensors: 5 attempts in a row transferred nothing", "continues the download"]);
    place.hub.faults(Faults { failures: 2, ..Faults::default() });
    assert_says(&place.run(&["models", "fetch", &pinned()]), 0, &["status 503"]);
}

#[test]
fn wrong_bytes_are_never_kept() {
    let place = Place::new();
    place.hub.faults(Faults { corrupt: true, ..Faults::default() });
    let output = place.run(&["models", "fetch", &pinned()]);
    assert_says(&output, 3, &["model.safetensors", "SHA-256", "the file was discarded"]);
    assert!(!place.weights_blob().exists() && !place.weights_blob().with_extension("incomplete").exists());
    assert!(place.snapshot().join("model.safetensors").symlink_metadata().is_err());
    // A wrong beginning from an earlier attempt is thrown away and fetched again.
    place.hub.faults(Faults::default());
    std::fs::write(place.weights_blob().with_extension("incomplete"), vec![7; 5000]).unwrap();
    assert_says(&place.run(&["models", "fetch", &pinned()]), 0, &["all sizes and hashes match"]);
    assert_eq!(std::fs::read(place.weights_blob()).unwrap(), files()["model.safetensors"].bytes);
}

#[test]
fn a_damaged_blob_is_found_and_repaired() {
    let place = Place::fetched();
    let good = std::fs::read(place.weights_blob()).unwrap();
    assert_says(&place.run(&["models", "verify"]), 0, &["ok, SHA-256", "ok, git SHA-1"]);
    let mut bad = good.clone();
    bad[20_000] ^= 1;
    std::fs::write(place.weights_blob(), &bad).unwrap();
    let output = place.run(&["models", "verify", &pinned()]);
    assert_says(&output, 3, &["model.safetensors", "DAMAGED", "earnest models fetch"]);
    let report = json(&place.run(&["models", "verify", &pinned(), "--json"]));
    let damaged: Vec<&Value> =
        report[0]["files"].as_array().unwrap().iter().filter(|f| f["state"] == "damaged").collect();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0]["found"], sha256(&bad).as_str());
    let output = place.run(&["models", "fetch", &pinned(), "--json"]);
    assert_eq!(json(&output)[0]["repaired"], 1, "{}", text(&output));
    assert_eq!(std::fs::read(place.weights_blob()).unwrap(), good);
    // A truncated one.
    std::fs::write(place.weights_blob(), &good[..100]).unwrap();
    assert_says(&place.run(&["models", "verify"]), 3, &["WRONG SIZE"]);
    assert_says(&place.run(&["models", "fetch", &pinned()]), 0, &["damaged and fetched again"]);
    assert_says(&place.run(&["models", "verify", "--remote"]), 0, &["ok, SHA-256"]);
}

#[test]
fn a_missing_file_is_named_with_the_command() {
    let place = Place::new();
    let fetch = format!("earnest models fetch {}", pinned());
    let mut ask = ASK.to_vec();
    let model = pinned();
    ask.extend(["--model", &model]);
    assert_says(&place.run(&ask), 3, &["is not in the cache", &fetch]);
    assert_says(&place.run(&["models", "fetch", &pinned()]), 0, &[]);
    for name in ["tokenizer.json", "model.safetensors", "generation_config.json"] {
        let pointer = place.snapshot().join(name);
        let target = std::fs::read(&pointer).unwrap();
        // The link is there, its content is not.
        std::fs::remove_file(pointer.canonicalize().unwrap()).unwrap();
        place.hub.forget();
        assert_says(&place.run(&ask), 3, &[name, "is missing", &fetch]);
        assert_says(&place.run(&["models", "verify"]), 3, &[name, "MISSING"]);
        assert!(place.hub.seen().is_empty(), "a run asks nobody");
        assert_says(&place.run(&["models", "fetch", &pinned()]), 0, &[]);
        assert_eq!(std::fs::read(&pointer).unwrap(), target);
        // Not even the link.
        std::fs::remove_file(&pointer).unwrap();
        assert_says(&place.run(&ask), 3, &[name, "is missing", &fetch]);
        assert_says(&place.run(&["models", "fetch", &pinned()]), 0, &[]);
    }
    assert_says(&place.run(&ask), 0, &[]);
}

#[test]
fn what_another_program_fetched_is_used() {
    // A snapshot of huggingface_hub: no listing of ours, no refs, and a shard that is not there.
    let place = Place::fetched();
    std::fs::remove_dir_all(place.repo().join(".earnest")).unwrap();
    let model = pinned();
    let mut ask = ASK.to_vec();
    ask.extend(["--model", &model]);
    assert_says(&place.run(&ask), 0, &[]);
    assert_says(&place.run(&["models", "verify"]), 0, &["ok, SHA-256"]);
    std::fs::remove_file(place.snapshot().join("model.safetensors")).unwrap();
    let index = r#"{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}"#;
    std::fs::write(place.snapshot().join("model.safetensors.index.json"), index).unwrap();
    std::fs::write(place.snapshot().join("model-00001-of-00002.safetensors"), "x").unwrap();
    assert_says(&place.run(&ask), 3, &["model-00002-of-00002.safetensors", "is missing"]);
}

#[test]
fn only_commits_are_run() {
    let place = Place::fetched();
    let short = format!("{REPO}@{}", &COMMIT[..10]);
    for (given, why) in [
        (format!("{REPO}@main"), "a branch or tag can be moved"),
        (short, "an abbreviated hash can become ambiguous"),
        (format!("{REPO}@{}g", &COMMIT[..39]), "'g' at position 40"),
        (format!("{REPO}@{COMMIT}0"), "40 hexadecimal digits, not 41"),
    ] {
        let mut ask = ASK.to_vec();
        ask.extend(["--model", &given]);
        // A slip is corrected; only what may be a branch is resolved.
        let slip = given.len() > 50;
        let resolve = if slip {
            format!("earnest models resolve {REPO}@main")
        } else {
            format!("earnest models resolve {given}")
        };
        assert_says(&place.run(&ask), 2, &[why, &resolve]);
        if slip {
            assert_says(&place.run(&["models", "resolve", &given]), 2, &[why]);
        }
        assert_says(&place.run(&["models", "fetch", &given]), 2, &[why]);
    }
    assert_says(&place.run(&["show", "nupa", "--model", "microsoft/phi-2"]), 2, &["as phi-2"]);
    assert_says(
        &place.run(&["show", "nupa", "--model", "Qwen2-7B"]),
        3,
        &["no pinned commit", "earnest models resolve Qwen2-7B"],
    );
    assert_says(
        &place.run(&["show", "nupa", "--model", "Qwen/Qwen2-7B"]),
        2,
        &["names no commit", "earnest models resolve Qwen/Qwen2-7B@main"],
    );
    assert_says(&place.run(&["show", "nupa", "--model", "gema-2b"]), 3, &["did you mean gemma-2b"]);
    assert!(place.hub.seen().is_empty());
}

#[test]
fn a_repository_without_a_commit_is_its_only_one_in_the_cache() {
    let place = Place::fetched();
    let mut ask = ASK.to_vec();
    ask.extend(["--model", REPO]);
    let named = format!("{REPO} is taken at {COMMIT}");
    let output = place.run(&ask);
    assert_says(&output, 0, &[&named, "earnest models use"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains(&named) && place.hub.seen().is_empty());
    // So is a name of a list that gives no commit.
    let entry = format!(
        "format = 1\n\n[[model]]\nname = \"mine\"\nrepo = \"{REPO}\"\ncommit = \"unresolved\"\nkind = \"base\"\n"
    );
    std::fs::write(place.at().join("mine.toml"), entry).unwrap();
    let mut by_name = ASK.to_vec();
    by_name.extend(["--model", "mine", "--models", "mine.toml"]);
    assert_says(&place.run(&by_name), 0, &[&named, "earnest models use"]);
    // A second one: neither is taken.
    let other = "f".repeat(40);
    std::fs::create_dir(place.repo().join("snapshots").join(&other)).unwrap();
    assert_says(&place.run(&ask), 2, &["2 of it are in the cache", COMMIT, &other, "earnest models use"]);
    assert_says(&place.run(&by_name), 2, &["2 of it are in the cache", COMMIT, &other]);
    assert_says(&place.run(&["models", "use", REPO]), 2, &["2 of it are in the cache", COMMIT, &other]);
    // Pinned, it is taken without a word, by its repository or its name.
    let output = place.run(&["models", "use", &pinned()]);
    let list = place.at().join("config/earnest/resolved.toml");
    assert_says(&output, 0, &[&format!("tiny-llama is now {}", pinned()), list.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&list).unwrap().contains(COMMIT));
    for model in [REPO, "tiny-llama"] {
        let mut ask = ASK.to_vec();
        ask.extend(["--model", model]);
        let output = place.run(&ask);
        assert_eq!(code(&output), 0, "{}", text(&output));
        assert!(!text(&output).contains("is taken at"), "{}", text(&output));
    }
    // None in the cache.
    assert_says(
        &place.run(&["models", "use", "microsoft/phi-2"]),
        3,
        &["no commit of microsoft/phi-2", "models resolve"],
    );
    assert!(place.hub.seen().is_empty());
}

#[test]
fn a_pin_needs_a_name_that_is_free_and_a_commit() {
    let place = Place::fetched();
    let used = |words: &[&str]| place.run(&[&["models", "use"], words].concat());
    assert_says(&used(&[&format!("{REPO}@main")]), 2, &["a branch or tag can be moved"]);
    assert_says(&used(&["./tiny"]), 2, &["is a path"]);
    assert_says(&used(&["gema-2b"]), 3, &["did you mean gemma-2b"]);
    assert_says(&used(&[REPO, "--name", "a/b"]), 2, &["--name 'a/b'"]);
    assert_says(&used(&[REPO, "--name", "phi-2"]), 2, &["phi-2 is the list's name of microsoft/phi-2", "OTHER-NAME"]);
    let other = format!("microsoft/phi-2@{}", "e".repeat(40));
    let output = used(&[&other, "--name", "phi-2"]);
    assert_says(&output, 2, &["phi-2 is already pinned by the built-in list", "OTHER-NAME"]);
    // A name of its own, which `use` may move; the commit need not be there yet.
    assert_says(&used(&[&other, "--name", "mine"]), 0, &["mine is now", "`earnest models fetch mine` fetches it"]);
    let moved = json(&used(&[&format!("microsoft/phi-2@{}", "d".repeat(40)), "--name", "mine", "--json"]));
    assert_eq!((moved["commit"].as_str(), moved["cached"].as_bool()), (Some("d".repeat(40).as_str()), Some(false)));
    // An entry of the list without a commit gets it.
    let mut words = vec!["models", "use", "Qwen2-7B"];
    assert_says(&place.run(&words), 3, &["no commit of Qwen/Qwen2-7B is in the cache"]);
    let commit = "c".repeat(40);
    std::fs::create_dir_all(place.at().join("hub/models--Qwen--Qwen2-7B/snapshots").join(&commit)).unwrap();
    assert_says(&place.run(&words), 0, &[&format!("Qwen2-7B is now Qwen/Qwen2-7B@{commit}")]);
    words[2] = "Qwen/Qwen2-7B";
    assert_says(&place.run(&words), 0, &[&format!("Qwen2-7B is now Qwen/Qwen2-7B@{commit}")]);
    // The user's own file has the last word.
    let own = place.at().join("config/earnest/models.toml");
    std::fs::write(&own, format!("format = 1\n[[model]]\nname = \"Qwen2-7B\"\ncommit = \"{}\"\n", "a".repeat(40)))
        .unwrap();
    assert_says(&place.run(&words), 2, &["already pinned by", own.to_str().unwrap(), "OTHER-NAME"]);
    assert!(place.hub.seen().is_empty());
}

#[test]
fn what_the_engine_does_not_run_is_said_before_it_is_resolved_or_fetched() {
    let place = Place::new();
    let listed = json(&place.run(&["models", "list", "--json"]));
    let of_papers = |entry: &&Value| entry["not_runnable"].is_string() && entry["papers"][0].is_string();
    let closed: Vec<&Value> = listed.as_array().unwrap().iter().filter(of_papers).collect();
    assert_eq!(closed.len(), 6);
    for entry in closed {
        let (name, repo) = (entry["name"].as_str().unwrap(), entry["repo"].as_str().unwrap());
        let reason = entry["not_runnable"].as_str().unwrap();
        for given in [name.to_owned(), repo.to_owned(), format!("{repo}@main"), format!("{repo}@{COMMIT}")] {
            let mut ask = ASK.to_vec();
            ask.extend(["--model", &given]);
            let output = place.run(&ask);
            // Words are wrapped nowhere in a message.
            assert_says(&output, 3, &["cannot be run here", reason, "--engine openai and --base-url URL"]);
            let other = text(&output).contains(&format!("--engine mistralrs with --model {name}"));
            assert_eq!(other, ["Qwen3-235B-A22B", "DeepSeek-R1"].contains(&name), "{}", text(&output));
            assert!(!text(&output).contains("models fetch") && !text(&output).contains("models resolve"), "{given}");
        }
    }
    assert!(place.hub.seen().is_empty());
    // A list of the user's may know better.
    std::fs::write(place.at().join("mine.toml"), "format = 1\n[[model]]\nname = \"gpt2\"\nnot_runnable = \"\"\n")
        .unwrap();
    let words = ["show", "nupa", "--model", "gpt2", "--models", "mine.toml"];
    assert_says(&place.run(&words), 3, &["no pinned commit"]);
}

#[test]
fn a_repository_that_is_not_run_is_called_so_at_any_commit() {
    let repo = "Qwen/Qwen3-235B-A22B";
    let place = Place { folder: tempfile::tempdir().unwrap(), hub: FakeHub::start(repo, COMMIT, files()) };
    let model = format!("{repo}@{COMMIT}");
    assert_says(&place.run(&["models", "show", &model]), 0, &["not run"]);
    assert_says(&place.run(&["models", "fetch", &model]), 0, &["can be fetched but not run", "all sizes"]);
    assert_says(&place.run(&["models", "list", "--cached"]), 0, &["cached, ", "; not runnable"]);
    assert!(json(&place.run(&["models", "list", "--cached", "--json"]))[0]["not_runnable"].is_string());
    assert!(json(&place.run(&["models", "show", &model, "--json"]))["not_runnable"].is_string());
}

#[cfg(unix)]
#[test]
fn repositories_without_an_organisation_are_models_too() {
    let place = Place::fetched();
    std::fs::rename(place.repo(), place.at().join("hub/models--oldest")).unwrap();
    std::fs::remove_dir_all(place.at().join("hub/models--oldest/.earnest")).unwrap();
    let model = format!("oldest@{COMMIT}");
    assert_says(&place.run(&["models", "list", "--cached"]), 0, &["oldest ", "cached, "]);
    assert_says(&place.run(&["models", "verify"]), 0, &[&model, "ok, SHA-256"]);
    assert_says(&place.run(&[&ASK[..], &["--model", &model]].concat()), 0, &["oldest"]);
    // One of several that is not there does not hide the others.
    let absent = pinned();
    let output = place.run(&["models", "verify", &model, &absent]);
    assert_says(&output, 3, &["ok, SHA-256", "1 of 2 commits are not in the cache", "not in the cache"]);
    assert_says(&output, 3, &[&format!("earnest models fetch {absent}")]);
    assert_says(&place.run(&["models", "remove", &model, "--yes"]), 0, &["5 files removed"]);
    // A name of the list has a repository, and that has branches.
    let words = ["show", "nupa", "--model", "phi-2@main"];
    assert_says(&place.run(&words), 2, &["earnest models resolve microsoft/phi-2@main"]);
}

#[test]
fn weights_that_nothing_names_are_missing() {
    let place = Place::fetched();
    std::fs::remove_dir_all(place.repo().join(".earnest")).unwrap();
    let model = pinned();
    std::fs::remove_file(place.snapshot().join("model.safetensors")).unwrap();
    let index = place.snapshot().join("model.safetensors.index.json");
    for text in ["{\"weight_map\": {}}", "no index"] {
        std::fs::write(&index, text).unwrap();
        assert_says(&place.run(&["models", "list", "--cached"]), 0, &["1 file missing"]);
        assert_says(&place.run(&["models", "verify", &model]), 3, &["model.safetensors  MISSING"]);
        assert_says(&place.run(&[&ASK[..], &["--model", &model]].concat()), 3, &["model.safetensors of"]);
    }
    // A GGUF file is a model by itself, of any folder.
    std::fs::remove_file(&index).unwrap();
    let file = place.snapshot().join("sub/x.gguf");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "GGUF").unwrap();
    assert_says(&place.run(&["models", "list", "--cached"]), 0, &["cached, "]);
    let path = format!("--model {}", file.display());
    assert_says(&place.run(&[&ASK[..], &["--model", &model]].concat()), 3, &["name one by its path", &path]);
}

#[test]
fn a_part_of_a_checkpoint_is_called_incomplete() {
    let place = Place::fetched();
    std::fs::remove_dir_all(place.repo().join(".earnest")).unwrap();
    assert_says(&place.run(&["models", "verify", &pinned()]), 0, &["ok, SHA-256"]);
    assert_says(&place.run(&["models", "list", "--cached"]), 0, &["cached, "]);
    for name in ["model.safetensors", "tokenizer.json", "config.json"] {
        let pointer = place.snapshot().join(name);
        let target = std::fs::read_link(&pointer).unwrap();
        std::fs::remove_file(&pointer).unwrap();
        assert_says(
            &place.run(&["models", "verify", &pinned()]),
            3,
            &[&format!("{name}  MISSING"), "incomplete", "earnest models fetch"],
        );
        assert_says(&place.run(&["models", "verify"]), 3, &["MISSING"]);
        assert_says(&place.run(&["models", "list", "--cached"]), 0, &["1 file missing"]);
        #[cfg(unix)]
        std::os::unix::fs::symlink(&target, &pointer).unwrap();
    }
    assert_says(&place.run(&["models", "verify"]), 0, &[]);
}

#[test]
fn damaged_files_of_the_cache_are_not_run() {
    let place = Place::fetched();
    let model = pinned();
    let mut ask = ASK.to_vec();
    ask.extend(["--model", &model]);
    assert_says(&place.run(&ask), 0, &[]);
    let mut tables = std::fs::read(place.weights_blob()).unwrap();
    let last = tables.len() - 1;
    tables[last] ^= 1;
    // Weights, by SHA-256, in every command that loads them; the program's own listing is not needed for it.
    for listing in [true, false] {
        std::fs::write(place.weights_blob(), &tables).unwrap();
        if !listing {
            std::fs::remove_dir_all(place.repo().join(".earnest")).unwrap();
        }
        let says = ["is damaged", "SHA-256", &format!("earnest models fetch {model}"), "earnest models verify"];
        assert_says(&place.run(&[&ask[..], &["--new"]].concat()), 3, &says);
        let path = place.snapshot().display().to_string();
        assert_says(&place.run(&[&ASK[..], &["--model", &path]].concat()), 3, &says);
        let check =
            ["models", "quant-check", "nupa", "--model", &model, "--quant", "q8_0", "--limit", "1", "--threads", "1"];
        assert_says(&place.run(&check), 3, &says);
        assert_says(&place.run(&["models", "fetch", &model]), 0, &["damaged and fetched again"]);
    }
    let runs = Store::open(&place.at().join("earnest-results")).unwrap().runs().unwrap();
    assert_eq!(runs.len(), 1, "a refused run has no row");
    // A small file, by git's hash; before the run, and where only prompts are shown.
    let tokenizer = place.snapshot().join("tokenizer_config.json");
    let blob = tokenizer.canonicalize().unwrap();
    let good = std::fs::read(&blob).unwrap();
    std::fs::write(&blob, [&good[..], b"\n"].concat()).unwrap();
    assert_says(&place.run(&ask), 3, &["tokenizer_config.json is damaged", "git SHA-1"]);
    assert_says(&place.run(&["show", "nupa", "--model", &model]), 3, &["is damaged"]);
    std::fs::write(&blob, &good).unwrap();
    assert_says(&place.run(&ask), 0, &[]);
    // A copy that nothing speaks for is run, and that is said.
    std::fs::remove_dir_all(place.repo().join(".earnest")).unwrap();
    std::fs::remove_file(&tokenizer).unwrap();
    std::fs::write(&tokenizer, &good).unwrap();
    let warned = place.run(&ask);
    assert_says(&warned, 0, &["no local digest to check tokenizer_config.json", "models verify --remote"]);
}

#[test]
fn an_engine_that_is_not_there_leaves_no_run() {
    let place = Place::fetched();
    let model = pinned();
    let mut ask = ASK.to_vec();
    ask.extend(["--model", &model, "--engine", "mistralrs"]);
    let output = place.command(&ask).env("EARNEST_MISTRALRS", place.at().join("none")).output().unwrap();
    assert_says(&output, 5, &["--engine mistralrs needs the program", "docs/engines.md"]);
    assert!(!place.at().join("earnest-results").exists(), "a refused command leaves nothing behind");
    // One that ends before it answers is found out later, and leaves no run either.
    let broken = place.at().join("broken");
    std::fs::write(&broken, "#!/bin/sh\nexit 1\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = place.command(&ask).env("EARNEST_MISTRALRS", &broken).output().unwrap();
    assert_says(&output, 5, &["exited before it was ready"]);
    assert!(Store::open(&place.at().join("earnest-results")).unwrap().runs().unwrap().is_empty());
}

#[test]
fn prompts_of_an_endpoint_need_no_weights() {
    let place = Place::new();
    let files = ["--file", "config.json", "--file", "tokenizer.json", "--file", "tokenizer_config.json"];
    assert_says(&place.run(&[&["models", "fetch", &pinned()][..], &files].concat()), 0, &["3 files"]);
    let url = "http://127.0.0.1:9/v1";
    let ask = ["run", "nupa", "--engine", "openai", "--base-url", url, "--tokenizer", &pinned(), "--limit", "1"];
    // The tokenizer is opened; nobody listens there.
    let output = place.run(&ask);
    assert_says(&output, 5, &["cannot use the endpoint"]);
    std::fs::remove_file(place.snapshot().join("tokenizer.json")).unwrap();
    assert_says(&place.run(&ask), 3, &["tokenizer.json of", "is missing", "--file config.json --file tokenizer.json"]);
}

#[test]
fn a_revision_is_resolved_and_kept() {
    let place = Place::new();
    let output = place.run(&["models", "resolve", &format!("{REPO}@main")]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", pinned()), "{}", text(&output));
    assert!(!place.at().join("config/earnest/resolved.toml").exists());
    let short = json(&place.run(&["models", "resolve", &format!("{REPO}@{}", &COMMIT[..8]), "--json"]));
    assert_eq!((short["commit"].as_str(), short["licence"].as_str()), (Some(COMMIT), Some("apache-2.0")));
    // An entry of the user's list without a commit is filled.
    let list = format!("format = 1\n[[model]]\nname = \"mine\"\nrepo = \"{REPO}\"\ncommit = \"unresolved\"\n");
    std::fs::create_dir_all(place.at().join("config/earnest")).unwrap();
    std::fs::write(place.at().join("list.toml"), &list).unwrap();
    let listed = ["models", "resolve", "mine", "--models", "list.toml"];
    assert_says(&place.run(&listed), 0, &[&pinned(), "resolved.toml"]);
    assert_says(&place.run(&["models", "show", "mine"]), 0, &[COMMIT]);
    assert_says(&place.run(&["models", "fetch", "mine"]), 0, &[]);
    let mut ask = ASK.to_vec();
    ask.extend(["--model", "mine", "--json"]);
    assert_says(&place.run(&ask), 0, &[]);
    let store = Store::open(&place.at().join("earnest-results")).unwrap();
    let pinned = store.runs().unwrap().remove(0).manifest.model.pinned.unwrap();
    assert_eq!((pinned.repo.as_str(), pinned.commit.as_str(), pinned.name.as_deref()), (REPO, COMMIT, Some("mine")));
    assert_says(&place.run(&["runs", "show", "arithmetic-bench"]), 0, &[COMMIT]);
    assert_says(&place.run(&["models", "resolve", "mine"]), 2, &["already pinned"]);
    assert_says(&place.run(&["models", "resolve", &format!("{REPO}@v9")]), 3, &["no revision v9"]);
    assert_says(&place.run(&["models", "resolve", "other/one@main"]), 3, &["no repository other/one"]);
}

#[test]
fn gated_repositories_say_what_to_do() {
    let place = Place::new();
    for (status, error) in [(401, "GatedRepo"), (403, "GatedRepo"), (403, ""), (401, "")] {
        place.hub.faults(Faults { refuse: Some((status, error)), ..Faults::default() });
        let page = format!("{}/{REPO}", place.hub.endpoint);
        let output = place.run(&["models", "fetch", &pinned()]);
        let doubtful = text(&output).contains("gated, private or missing");
        assert_eq!(doubtful, (status, error) == (401, ""), "{}", text(&output));
        assert_says(&output, 3, &["is gated", "no token was sent", &page, "HF_TOKEN", "licence"]);
    }
    place.hub.faults(Faults { refuse: Some((403, "GatedRepo")), ..Faults::default() });
    let output = place.command(&["models", "fetch", &pinned()]).env("HF_TOKEN", "hf_verysecret").output().unwrap();
    assert_says(&output, 3, &["although a token was sent", "has not been granted access"]);
    assert!(!text(&output).contains("hf_verysecret"));
    place.hub.faults(Faults { refuse: Some((401, "")), ..Faults::default() });
    let output = place.command(&["models", "fetch", &pinned()]).env("HF_TOKEN", "hf_verysecret").output().unwrap();
    assert_says(&output, 3, &["rejected the token"]);
}

#[test]
fn the_token_goes_to_the_hub_alone_and_is_nowhere_else() {
    let place = Place::new();
    std::fs::create_dir_all(place.at().join(".cache/huggingface")).unwrap();
    std::fs::write(place.at().join(".cache/huggingface/token"), "hf_fromfile\n").unwrap();
    let output = place.run(&["models", "fetch", &pinned(), "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    for seen in place.hub.seen() {
        let expected = (!seen.path.starts_with("/cdn/")).then(|| "Bearer hf_fromfile".to_owned());
        assert_eq!(seen.authorization, expected, "{}", seen.path);
    }
    let model = pinned();
    let mut ask = ASK.to_vec();
    ask.extend(["--model", &model]);
    let ran = place.command(&ask).env("HF_TOKEN", "hf_verysecret").output().unwrap();
    assert!(!text(&ran).contains("hf_verysecret") && !text(&output).contains("hf_fromfile"));
    let mut folders = vec![place.at().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "token" && path.exists() {
                let bytes = std::fs::read(&path).unwrap();
                for secret in [b"hf_verysecret".as_slice(), b"hf_fromfile"] {
                    assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", path.display());
                }
            }
        }
    }
}

#[test]
fn an_answer_for_another_commit_is_refused() {
    let place = Place::new();
    place.hub.faults(Faults { claims: Some("f".repeat(40)), ..Faults::default() });
    assert_says(&place.run(&["models", "fetch", &pinned()]), 3, &["answered a request for", &"f".repeat(40)]);
    assert!(!place.snapshot().exists());
    place.hub.faults(Faults { claims: Some("main".to_owned()), ..Faults::default() });
    assert_says(&place.run(&["models", "resolve", &format!("{REPO}@main")]), 3, &["did not answer with a listing"]);
    let other = format!("{REPO}@{}", "e".repeat(40));
    place.hub.faults(Faults::default());
    assert_says(&place.run(&["models", "fetch", &other]), 3, &["no revision"]);
}

#[test]
fn many_may_fetch_at_once() {
    let place = Place::new();
    place.hub.faults(Faults { slow_ms: 300, cuts: 1, cut_after: 10_000, ..Faults::default() });
    let children: Vec<_> = (0..4)
        .map(|_| {
            let model = pinned();
            let mut command = place.command(&["models", "fetch", &model, "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let outputs: Vec<Output> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let mut transferred = 0;
    for output in &outputs {
        assert_eq!(code(output), 0, "{}", text(output));
        transferred += json(output)[0]["transferred"].as_u64().unwrap();
    }
    assert_eq!(transferred, files_size(), "every byte came once");
    assert_eq!(std::fs::read(place.weights_blob()).unwrap(), files()["model.safetensors"].bytes);
    assert_says(&place.run(&["models", "verify"]), 0, &[]);
    let left: Vec<String> = std::fs::read_dir(place.repo().join("blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("incomplete"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn offline_nothing_is_asked() {
    let place = Place::fetched();
    let commands: [&[&str]; 4] = [
        &["models", "fetch", "microsoft/phi-2@810d367871c1d460086d9f82db8696f2e0a0fcd0"],
        &["models", "resolve", "Qwen2-7B"],
        &["models", "verify", "--remote"],
        &["models", "show", "phi-2", "--remote"],
    ];
    for words in commands {
        let flagged: Vec<&str> = words.iter().copied().chain(["--offline"]).collect();
        assert_says(&place.run(&flagged), 3, &["needs the network, which --offline forbids"]);
        let output = place.command(words).env("HF_HUB_OFFLINE", "1").output().unwrap();
        assert_says(&output, 3, &["needs the network, which HF_HUB_OFFLINE forbids"]);
    }
    assert_says(&place.run(&["models", "fetch", &pinned(), "--offline"]), 0, &["complete in the cache"]);
    assert_says(&place.run(&["models", "verify", "--offline"]), 0, &["ok, "]);
    assert_says(&place.run(&["models", "list", "--offline", "--cached"]), 0, &[REPO]);
    assert!(place.hub.seen().is_empty(), "{:?}", place.hub.seen());
}

/// `unshare -rn` gives a process a network namespace without interfaces; not every system permits it.
#[cfg(target_os = "linux")]
fn without_network(place: &Place, words: &[&str]) -> Option<Output> {
    let permitted =
        Command::new("unshare").args(["-rn", "true"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    if !permitted {
        eprintln!("skipped: `unshare -rn` is not permitted here, so nothing runs without a network");
        return None;
    }
    let mut command = Command::new("unshare");
    command.arg("-rn").arg(env!("CARGO_BIN_EXE_earnest")).args(words).current_dir(place.at()).stdin(Stdio::null());
    place.prepare(&mut command);
    Some(command.output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_pinned_snapshot_runs_in_a_namespace_without_a_network() {
    let place = Place::fetched();
    let model = pinned();
    let mut ask = ASK.to_vec();
    ask.extend(["--model", &model, "--offline"]);
    let Some(output) = without_network(&place, &ask) else { return };
    assert_says(&output, 0, &["add"]);
    // The namespace is real: a fetch in it finds nobody.
    let other = format!("{REPO}@{}", "e".repeat(40));
    let fetch = without_network(&place, &["models", "fetch", &other]).unwrap();
    assert_says(&fetch, 3, &["cannot reach"]);
    assert!(place.hub.seen().is_empty());
}

/// No call of a run is `socket`. Needs strace, which not every system has or permits.
#[cfg(target_os = "linux")]
#[test]
fn a_run_makes_no_socket() {
    let place = Place::fetched();
    let model = pinned();
    let trace = place.at().join("trace");
    let traced = |words: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=socket,connect", "-o"]).arg(&trace).arg(env!("CARGO_BIN_EXE_earnest"));
        command.args(words).current_dir(place.at()).stdin(Stdio::null());
        place.prepare(&mut command);
        command.output().ok()
    };
    let mut ask = ASK.to_vec();
    ask.extend(["--model", &model]);
    let Some(output) = traced(&ask).filter(|output| code(output) == 0) else {
        eprintln!("skipped: there is no strace that may trace here");
        return;
    };
    assert_says(&output, 0, &["add"]);
    let calls = std::fs::read_to_string(&trace).unwrap();
    assert!(!calls.contains("socket("), "{calls}");
    // The same trace does see the socket of a command that may open one.
    traced(&["models", "resolve", &format!("{REPO}@main")]).unwrap();
    assert!(std::fs::read_to_string(&trace).unwrap().contains("socket("));
}

#[test]
fn removal_frees_what_nobody_else_uses() {
    let place = Place::fetched();
    // Another commit with the same weights.
    let other = "f".repeat(40);
    let second = place.repo().join("snapshots").join(&other);
    std::fs::create_dir_all(&second).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        Path::new("../../blobs").join(place.weights_blob().file_name().unwrap()),
        second.join("model.safetensors"),
    )
    .unwrap();
    std::fs::create_dir_all(place.repo().join("refs")).unwrap();
    std::fs::write(place.repo().join("refs/main"), COMMIT).unwrap();
    assert_says(&place.run(&["models", "remove", &pinned()]), 2, &["would remove", "--yes"]);
    assert!(place.snapshot().exists());
    assert_says(&place.run(&["models", "remove", &pinned(), "--yes"]), 0, &["5 files removed", "1 file kept"]);
    assert!(!place.snapshot().exists() && place.weights_blob().exists() && !place.repo().join("refs/main").exists());
    // What no commit uses goes with the last one: a blob without a link, a half of one; and the locks of all.
    let orphan = place.repo().join("blobs").join("b".repeat(64));
    std::fs::write(&orphan, vec![1; 1000]).unwrap();
    std::fs::write(place.repo().join("blobs").join(format!("{}.incomplete", "c".repeat(64))), vec![1; 24]).unwrap();
    let removed = place.run(&["models", "remove", &format!("{REPO}@{other}"), "--yes"]);
    assert_says(&removed, 0, &["and 2 unused ones", "freed"]);
    assert!(!place.repo().exists() && !place.at().join("hub/.locks").exists());
    assert_says(&place.run(&["models", "remove", &pinned(), "--yes"]), 3, &["is not in the cache"]);
}

#[test]
fn published_quantisations_are_named() {
    let place = Place::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints");
    for (name, quantisation, activations, held) in [
        ("llama-fp8-block128", "fp8 e4m3, blocks of 128 x 128", true, "packed as in the file"),
        ("llama-gptq-desc-act", "gptq 4-bit, groups of 128, act order", false, "packed as in the file"),
    ] {
        let model = golden.join(name);
        let model = model.to_str().unwrap();
        assert_says(&place.run(&["models", "show", model]), 0, &["quantised", quantisation, held]);
        let output = place.run(&[&ASK[..], &["--model", model, "--results", name]].concat());
        assert_eq!(code(&output), 0, "{}", text(&output));
        assert_eq!(
            text(&output).contains("activations, keys and values are not quantised"),
            activations,
            "{}",
            text(&output)
        );
        let run = &Store::open(&place.at().join(name)).unwrap().runs().unwrap()[0];
        assert_eq!(run.manifest.model.format, format!("safetensors {quantisation}"));
        assert_eq!(run.manifest.model.published_quantisation(), Some(quantisation));
        assert!(!run.manifest.model.is_gguf() && run.manifest.model.weights.is_none());
    }
    // What is not read names the format and other ways.
    let folder = place.at().join("hqq");
    std::fs::create_dir(&folder).unwrap();
    for entry in std::fs::read_dir(golden.join("llama-gptq-desc-act")).unwrap().flatten() {
        std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    std::fs::write(folder.join("config.json"), config.replace("\"gptq\"", "\"hqq\"")).unwrap();
    let output = place.run(&[&ASK[..], &["--model", "hqq"]].concat());
    assert_says(&output, 3, &["quantization_config.quant_method", "hqq", "GGUF file", "--engine openai"]);
}

#[test]
fn a_list_of_ones_own() {
    let place = Place::new();
    let list = format!("format = 1\n[[model]]\nname = \"mine\"\nrepo = \"{REPO}\"\ncommit = \"{COMMIT}\"\n");
    std::fs::write(place.at().join("mine.toml"), &list).unwrap();
    std::fs::write(place.at().join("broken.toml"), "format = 1\n[[model]]\nname = \"mine\"\n").unwrap();
    assert_says(&place.run(&["models", "fetch", "mine", "--models", "mine.toml"]), 0, &[&pinned()]);
    let mut ask = ASK.to_vec();
    ask.extend(["--model", "mine"]);
    let output = place.command(&ask).env("EARNEST_MODELS_TOML", "mine.toml").output().unwrap();
    assert_says(&output, 0, &["add"]);
    // Resumed and repeated by name, too.
    let repeat = ["run", "--from", "arithmetic-bench", "--models", "mine.toml", "--threads", "1"];
    assert_says(&place.run(&repeat), 0, &[]);
    assert_says(&place.run(&["models", "list", "--models", "broken.toml"]), 2, &["broken.toml", "needs a repo"]);
    assert_says(&place.run(&["models", "list", "--models", "none.toml"]), 3, &["none.toml"]);
    assert_says(&place.run(&["models", "list", "--paper", "nonsense"]), 2, &["gsm-symbolic"]);
    let listed = json(&place.run(&["models", "list", "--models", "mine.toml", "--json"]));
    assert_eq!(listed.as_array().unwrap().len(), Registry::built_in().entries.len() + 1);
    // A folder of a model's name is `./NAME`; the name stays the model's.
    std::os::unix::fs::symlink(tiny(), place.at().join("phi-2")).unwrap();
    assert_says(&place.run(&["show", "arithmetic-bench", "--model", "./phi-2"]), 0, &["item"]);
    assert_says(&place.run(&["show", "arithmetic-bench", "--model", "phi-2"]), 3, &["earnest models fetch phi-2"]);
}

#[test]
fn recommended_is_what_the_list_says_and_then_the_checkpoint() {
    let place = Place::fetched();
    let entry = |name: &str, decoding: &str| {
        format!("[[model]]\nname = \"{name}\"\nrepo = \"{REPO}\"\ncommit = \"{COMMIT}\"\n{decoding}\n")
    };
    let list = format!(
        "format = 1\n{}{}{}",
        entry("warm", "decoding = { temperature = 0.5, top_p = 0.75 }"),
        entry("full", "decoding = { temperature = 0.5, top_p = 0.75, top_k = 7, repetition_penalty = 1.25 }"),
        entry("silent", "")
    );
    std::fs::write(place.at().join("mine.toml"), list).unwrap();
    // The checkpoint recommends something else.
    let own = r#"{"do_sample": true, "temperature": 0.875, "top_k": 11, "top_p": 0.5, "eos_token_id": 2}"#;
    let file = place.snapshot().join("generation_config.json");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, own).unwrap();
    // With the listing it would be a damaged file of the commit.
    std::fs::remove_dir_all(place.repo().join(".earnest")).unwrap();
    let sampling = |model: &str| {
        let results = format!("results-{model}");
        let words = ["run", "arithmetic-bench", "--limit", "2", "--max-tokens", "3", "--threads", "1", "--recommended"];
        let more = ["--models", "mine.toml", "--model", model, "--results", &results];
        assert_says(&place.run(&[&words[..], &more].concat()), 0, &[]);
        let run = Store::open(&place.at().join(&results)).unwrap().runs().unwrap().remove(0);
        let s = run.manifest.settings.generation.sampling;
        (s.temperature, s.top_p, s.top_k, s.repetition_penalty)
    };
    assert_eq!(sampling("silent"), (0.875, 0.5, 11, 1.0));
    assert_eq!(sampling("warm"), (0.5, 0.75, 11, 1.0));
    assert_eq!(sampling("full"), (0.5, 0.75, 7, 1.25));
}

#[test]
fn what_cannot_be_verified_is_not_called_good() {
    let place = Place::new();
    std::fs::create_dir_all(place.snapshot()).unwrap();
    for (name, file) in files() {
        let path = place.snapshot().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.bytes).unwrap();
    }
    let output = place.run(&["models", "verify", &pinned()]);
    assert_says(&output, 3, &["no hashes are known for the files of", "--remote"]);
    assert_says(&place.run(&["models", "verify", "--remote", &pinned()]), 0, &["ok, SHA-256"]);
}

#[test]
fn a_quantised_model_is_another_model() {
    let place = Place::new();
    let model = tiny();
    let mut plain = ASK.to_vec();
    plain.extend(["--model", model.to_str().unwrap()]);
    let mut quantised = plain.clone();
    quantised.extend(["--quant", "q8_0"]);
    let mut normal = plain.clone();
    normal.extend(["--quant", "nf4", "--dtype", "bf16"]);
    let mut none = plain.clone();
    none.extend(["--quant", "none"]);
    for words in [&plain, &quantised, &normal, &none] {
        assert_says(&place.run(words), 0, &[]);
    }
    let store = Store::open(&place.at().join("earnest-results")).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 3, "`--quant none` is the run of before");
    let names: Vec<&str> = runs.iter().map(|run| run.manifest.model.name.as_str()).collect();
    assert_eq!(names, ["llama", "llama-q8_0", "llama-nf4-bf16"]);
    let hashes: std::collections::BTreeSet<_> = runs.iter().map(|run| run.manifest.settings_sha256.clone()).collect();
    assert_eq!(hashes.len(), 3);
    assert!(runs[0].manifest.model.weights.is_none());
    let record = runs[1].manifest.model.weights.clone().unwrap();
    assert!(record.quantised_weights > 0 && record.quantised_weights < record.weights);
    for kept in ["Embedding", "FinalNorm", "Head", "AttentionNorm"] {
        assert!(record.unquantised.iter().any(|role| role == kept), "{kept}: {:?}", record.unquantised);
    }
    assert_says(
        &place.run(&["runs", "show", &runs[1].manifest.run]),
        0,
        &["weights", "q8_0 (", "as they are: Embedding"],
    );
    // Continued as what it is, from its manifest alone.
    let resumed = place.run(&["run", "--from", &runs[1].manifest.run, "--threads", "1"]);
    assert_says(&resumed, 0, &["llama-q8_0"]);
}

#[test]
fn quantisation_is_measured() {
    let place = Place::new();
    let model = tiny();
    let check = [
        "models",
        "quant-check",
        "arithmetic-bench",
        "--model",
        model.to_str().unwrap(),
        "--threads",
        "1",
        "--limit",
        "6",
    ];
    let measured = |words: &[&str]| {
        let all: Vec<&str> = check.iter().chain(words).copied().chain(["--max-tokens", "8", "--json"]).collect();
        json(&place.run(&all))
    };
    let exact = measured(&["--dtype", "f32"]);
    assert_eq!(exact["perplexity"], exact["perplexity_changed"]);
    assert_eq!((exact["identical"].as_u64(), exact["tokens"].as_u64()), (Some(6), exact["tokens_agreeing"].as_u64()));
    let changed = measured(&["--quant", "nf4"]);
    assert_ne!(changed["perplexity"], changed["perplexity_changed"]);
    assert!(changed["weights"]["quantised_weights"].as_u64().unwrap() > 0);
    assert_says(&place.run(&check), 2, &["--quant"]);
    assert_eq!((exact["base"].as_str(), exact["base_quantised"].as_bool()), (Some("safetensors"), Some(false)));
    // Weights that are quantised already are compared with themselves, which is said.
    let Some(folder) = std::env::var_os("EARNEST_MODELS") else { return };
    let file = Path::new(&folder).join("SmolLM2-135M-Instruct.Q4_1.gguf");
    if file.is_file() {
        let mut words = check.to_vec();
        words[4] = file.to_str().unwrap();
        words[8] = "1";
        words.extend(["--quant", "q8_0", "--max-tokens", "2"]);
        assert_says(&place.run(&words), 0, &["quantised already: gguf Q4_1"]);
    }
}

#[test]
fn two_runs_on_other_files_of_one_name_are_told_apart() {
    let place = Place::new();
    for (folder, change) in [("a/tiny", false), ("b/tiny", true)] {
        let folder = place.at().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for entry in std::fs::read_dir(tiny()).unwrap().flatten() {
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        if change {
            let path = folder.join("generation_config.json");
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, format!("{text}\n")).unwrap();
        }
        let mut ask = ASK.to_vec();
        let folder = folder.display().to_string();
        ask.extend(["--model", &folder]);
        assert_says(&place.run(&ask), 0, &[]);
    }
    let store = Store::open(&place.at().join("earnest-results")).unwrap();
    let names: Vec<String> = store.runs().unwrap().into_iter().map(|run| run.manifest.run).collect();
    assert_eq!(names.len(), 2);
    let output = place.run(&["compare", &names[0], &names[1]]);
    assert_says(&output, 0, &["name their models alike (tiny)", "generation_config.json"]);
}

#[cfg(unix)]
#[test]
fn nothing_is_written_or_removed_through_a_link_in_the_cache() {
    use std::os::unix::fs::symlink;
    let fetch = ["models", "fetch", &pinned()];
    let victim = |place: &Place| {
        let victim = place.at().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        victim
    };
    // A download that would go on in a file elsewhere.
    let place = Place::new();
    let (mine, partial) = (victim(&place), format!("{}.incomplete", place.weights_blob().display()));
    std::fs::create_dir_all(place.weights_blob().parent().unwrap()).unwrap();
    symlink(&mine, &partial).unwrap();
    assert_says(&place.run(&fetch), 3, &[&partial, "is a link"]);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    // A folder of links that is elsewhere.
    for folder in ["snapshots".to_owned(), format!("snapshots/{COMMIT}"), ".earnest".to_owned()] {
        let place = Place::new();
        let (elsewhere, link) = (place.at().join("elsewhere"), place.repo().join(folder));
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&elsewhere, &link).unwrap();
        assert_says(&place.run(&fetch), 3, &[link.to_str().unwrap(), "is a link"]);
        assert!(std::fs::read_dir(&elsewhere).unwrap().next().is_none());
    }
    // A listing whose digits are a path.
    let place = Place::fetched();
    let mine = victim(&place);
    let listing = place.repo().join(".earnest").join(format!("{COMMIT}.json"));
    let digits = sha256(&files()["model.safetensors"].bytes);
    let text = std::fs::read_to_string(&listing).unwrap();
    std::fs::write(&listing, text.replace(&digits, "../../../victim")).unwrap();
    assert_eq!(code(&place.run(&["models", "remove", &pinned(), "--yes"])), 0);
    assert!(mine.exists() && !place.snapshot().exists());
    // The whole cache may be on another disk.
    let place = Place::new();
    std::fs::create_dir(place.at().join("disk")).unwrap();
    symlink(place.at().join("disk"), place.at().join("hub")).unwrap();
    assert_says(&place.run(&fetch), 0, &[]);
}

#[cfg(unix)]
#[test]
fn a_home_that_is_no_folder_has_no_list() {
    let place = Place::new();
    let mut list = place.command(&["models", "list"]);
    let output = list.env("HOME", "/dev/null").env_remove("XDG_CONFIG_HOME").output().unwrap();
    assert_says(&output, 0, &["built in"]);
}
