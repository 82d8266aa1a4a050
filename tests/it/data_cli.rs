//! Data sets and a paper's models from a local hub, and the study that is executed with what is there.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::fake_hub::{FakeHub, Faults, HubFile};
use crate::loopback::Server;

const DATASET: &str = "datasets/apple/GSM-Symbolic";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// `earnest` with caches, settings and results of its own.
fn earnest(folder: &Path, endpoint: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in [
        "EARNEST_MODEL",
        "EARNEST_MODELS",
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

/// True if a table has a row of this name.
fn has_row(text: &str, name: &str) -> bool {
    text.lines().any(|line| line.split_whitespace().next() == Some(name) && line.contains("  "))
}

/// True if a model is in the table of those that are not here.
fn is_left_out(text: &str, name: &str) -> bool {
    let table = text.split_once("left out, not on this machine:\n").map_or("", |(_, table)| table);
    has_row(table.split("\n* ").next().unwrap_or(""), name)
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
    assert!(is_left_out(&text, "tiny-moved") && text.contains("`earnest models fetch tiny-moved`"), "{text}");
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

/// A list with models of one repository: as it is, gated, moved, and at a commit that is not there.
fn list_of_models(folder: &Path) {
    let list: PathBuf = folder.join("config/earnest/models.toml");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    let entry = |name: &str, repo: &str, commit: &str, gate: &str| {
        format!(
            "[[model]]\nname = \"{name}\"\nrepo = \"{repo}\"\ncommit = \"{commit}\"\nfamily = \"llama\"\nparameters = 1_000_000_000\n\
             licence = \"tiny\"\ngate = \"{gate}\"\npapers = [\"tiny-paper\"]\n"
        )
    };
    let entries = [
        entry("tiny-gated", "tiny-org/gated", COMMIT, "licence"),
        entry("tiny-moved", "tiny-org/moved", COMMIT, "none"),
        entry("tiny-absent", "tiny-org/tiny-llama", &"f".repeat(40), "none"),
        entry("tiny-llama", "tiny-org/tiny-llama", COMMIT, "none"),
    ];
    std::fs::write(&list, format!("format = 1\n{}", entries.concat())).unwrap();
}

#[test]
fn a_study_goes_on_with_what_is_there_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    list_of_models(folder.path());
    // Other rows than the published ones, from the hub.
    let data = FakeHub::start(DATASET, COMMIT, questions(folder.path()));
    assert_eq!(earnest(folder.path(), &data.endpoint, &["data", "fetch", "gsm-symbolic"]).status.code(), Some(1));
    let hub = FakeHub::start("tiny-org/tiny-llama", COMMIT, checkpoint());
    hub.faults(Faults { gated: Some("tiny-org/gated"), ..Faults::default() });
    let study = |models: &str, more: &[&str]| {
        let few = ["--limit", "6", "--prompts", "gsm", "--max-tokens", "4"];
        earnest(
            folder.path(),
            &hub.endpoint,
            &[&["reproduce", "gsm-symbolic", "--run", "--models", models], more, &few[..]].concat(),
        )
    };
    // Before anything is fetched the plan says what that takes.
    let all = "tiny-gated,tiny-moved,tiny-absent,tiny-llama";
    let planned = study(all, &["--dry-run"]);
    let text = said(&planned);
    assert_eq!(planned.status.code(), Some(0), "{text}");
    for part in [
        "4 models are not here: about 7.5 GiB to fetch, 1 with a licence to accept",
        "huggingface.co/tiny-org/gated",
        "HF_TOKEN",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let fetch = || earnest(folder.path(), &hub.endpoint, &["models", "fetch", "--paper", "tiny-paper"]);
    let fetched = fetch();
    let text = said(&fetched);
    assert_ne!(fetched.status.code(), Some(0), "{text}");
    for part in [
        "tiny-gated was not fetched",
        "gated",
        "no token",
        "tiny-moved was not fetched",
        "tiny-absent was not fetched",
        "3 of 4 models",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(&format!("tiny-org/tiny-llama@{COMMIT}")), "{text}");
    // The command again goes on: what is there is not transferred twice.
    let again = said(&fetch());
    assert!(again.contains("0 B over the network") && again.contains("3 of 4 models"), "{again}");
    hub.forget();
    let planned = study(all, &["--dry-run"]);
    let text = said(&planned);
    assert!(planned.status.code() == Some(0) && text.contains("gsm-symbolic: 1 run"), "{text}");
    assert!(text.contains("3 models are not here") && !text.contains("Variants against originals"), "{text}");
    let run = study(all, &["-o", "study.html"]);
    let text = said(&run);
    assert_eq!(run.status.code(), Some(1), "{text}");
    for part in ["Variants against originals", "3 models were left out"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for name in ["tiny-gated", "tiny-moved", "tiny-absent"] {
        assert!(is_left_out(&text, name), "{name}: {text}");
    }
    assert!(std::fs::read_to_string(folder.path().join("study.html")).unwrap().contains("tiny-llama"));
    assert!(hub.seen().is_empty(), "a run opens no connection");
    // Again: the finished run is used, and the exit code still says that models are missing.
    let second = study(all, &[]);
    assert!(second.status.code() == Some(1) && said(&second).contains("Every run is finished"), "{}", said(&second));
}

/// The repository of a model whose commit the built-in list does not know.
const OPEN: &str = "HuggingFaceTB/SmolLM2-135M-Instruct";

#[test]
fn a_study_fetches_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    list_of_models(folder.path());
    let hub = FakeHub::start("tiny-org/tiny-llama", COMMIT, checkpoint());
    hub.faults(Faults { gated: Some("tiny-org/gated"), moved: vec!["tiny-org/moved", OPEN], ..Faults::default() });
    let few = ["--suite", "gsm-mini", "--per-template", "2", "--limit", "6", "--prompts", "gsm", "--max-tokens", "4"];
    let study = |more: &[&str]| {
        let all = "tiny-gated,tiny-moved,tiny-absent,SmolLM2-135M-Instruct";
        let words = [&["reproduce", "gsm-symbolic", "--run", "--models", all, "--fetch"], more, &few[..]].concat();
        earnest(folder.path(), &hub.endpoint, &words)
    };
    // The plan says what fetching takes, and fetches nothing.
    let planned = study(&["--dry-run"]);
    let text = said(&planned);
    assert_eq!(planned.status.code(), Some(0), "{text}");
    for part in [
        "needs no download",
        "4 models are not here",
        "1 with a licence to accept",
        "without --dry-run",
        "4 models would be fetched",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(has_row(&text, "SmolLM2-135M-Instruct"), "{text}");
    assert!(hub.seen().is_empty());
    let run = study(&[]);
    let text = said(&run);
    assert_eq!(run.status.code(), Some(1), "{text}");
    let absent = format!("tiny-absent was not fetched: tiny-org/tiny-llama has no revision {}", "f".repeat(40));
    let open = format!("SmolLM2-135M-Instruct is now {OPEN}@{COMMIT}");
    for part in [
        "tiny-gated was not fetched: tiny-org/gated is gated",
        "tiny-org/moved has moved to tiny-org/tiny-llama",
        &absent,
        &open,
        "Variants against originals",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (name, left_out) in
        [("tiny-gated", true), ("tiny-absent", true), ("tiny-moved", false), ("SmolLM2-135M-Instruct", false)]
    {
        assert_eq!(is_left_out(&text, name), left_out, "{name}: {text}");
    }
    // Again: what is here is not asked for.
    hub.forget();
    assert_eq!(study(&[]).status.code(), Some(1));
    let asked: Vec<String> = hub.seen().into_iter().map(|seen| seen.path).collect();
    assert!(asked.iter().all(|path| path.contains("gated") || path.contains(&"f".repeat(40))), "{asked:?}");
    let offline = study(&["--offline"]);
    assert_eq!(offline.status.code(), Some(2), "{}", said(&offline));
}

#[test]
fn a_study_fetches_its_questions() {
    let folder = tempfile::tempdir().unwrap();
    list_of_models(folder.path());
    let hub = FakeHub::start(DATASET, COMMIT, questions(folder.path()));
    let study = |more: &[&str]| {
        let words =
            [&["reproduce", "gsm-symbolic", "--run", "--models", "tiny-llama", "--prompts", "gsm"], more].concat();
        earnest(folder.path(), &hub.endpoint, &words)
    };
    let planned = study(&["--dry-run"]);
    let text = said(&planned);
    assert!(planned.status.success() && text.contains("apple/GSM-Symbolic (CC BY-NC-ND 4.0), are not here"), "{text}");
    assert!(text.contains("--fetch") && hub.seen().is_empty(), "{text}");
    let run = study(&["--fetch"]);
    let text = said(&run);
    // The hub has no such model; the questions came, and are named as others than the published ones.
    assert_eq!(run.status.code(), Some(2), "{text}");
    for part in
        [&format!("apple/GSM-Symbolic@{COMMIT}"), "not the published GSM-Symbolic main set", "none of the 1 models"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let planned = said(&study(&["--dry-run"]));
    assert!(planned.contains("The questions are here."), "{planned}");
    // Only the model is asked for again.
    hub.forget();
    study(&["--fetch"]);
    assert!(hub.seen().iter().all(|seen| !seen.path.contains("GSM-Symbolic")), "{:?}", hub.seen());
}

#[test]
fn a_study_file_s_endpoint_is_asked_on_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("served");
    std::fs::create_dir(&place).unwrap();
    for (name, file) in checkpoint() {
        std::fs::write(place.join(name), file.bytes).unwrap();
    }
    let server = Server::start(folder.path(), &place, None);
    let file =
        format!("[models.served]\nendpoint = \"http://{}/v1\"\n\n[tasks.none]\nsuite = \"gsm-mini\"\n", server.address);
    std::fs::write(folder.path().join("served.toml"), file).unwrap();
    let few = ["--suite", "gsm-mini", "--per-template", "2", "--limit", "6", "--prompts", "gsm", "--max-tokens", "4"];
    let words =
        [&["reproduce", "gsm-symbolic", "--run", "--models", "served.toml", "--json", "--offline"], &few[..]].concat();
    let run = earnest(folder.path(), "http://127.0.0.1:9", &words);
    let study: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{}", said(&run)));
    assert_eq!(study["runs"][0]["model"], "served");
    assert_eq!(
        study["analyses"][0]["accuracies"]["base_questions"].as_u64().unwrap()
            + study["analyses"][0]["accuracies"]["variant_questions"].as_u64().unwrap(),
        6
    );
    // An endpoint that is down is named, and keeps no other model from its run.
    drop(server);
    let with = format!("tiny={}", place.display());
    let both = ["reproduce", "gsm-symbolic", "--run", "--models", "served.toml", "--with", &with, "--seed", "2"];
    let both = [&both[..], &few[..]].concat();
    let down = earnest(folder.path(), "http://127.0.0.1:9", &both);
    assert_ne!(down.status.code(), Some(0), "{}", said(&down));
    let list = earnest(folder.path(), "http://127.0.0.1:9", &["runs", "list", "--json"]);
    let listed = String::from_utf8_lossy(&list.stdout).into_owned();
    let mut runs: Vec<&str> = listed.split('"').filter(|word| word.starts_with("gsm-mini-")).collect();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), 2, "{listed}");
}

#[test]
fn fresh_questions_and_harder_sets_are_part_of_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("model");
    std::fs::create_dir(&place).unwrap();
    for (name, file) in checkpoint() {
        std::fs::write(place.join(name), file.bytes).unwrap();
    }
    let with = format!("tiny={}", place.display());
    let few = ["--prompts", "gsm", "--max-tokens", "4", "--with", &with];
    let study = |more: &[&str]| {
        earnest(
            folder.path(),
            "http://127.0.0.1:9",
            &[&["reproduce", "gsm-symbolic", "--run"], more, &few[..]].concat(),
        )
    };
    let own = ["--fresh", "own", "--instances", "1", "--templates", "0-2", "--json"];
    let fresh = study(&own);
    let document: Value = serde_json::from_slice(&fresh.stdout).unwrap_or_else(|_| panic!("{}", said(&fresh)));
    let accuracies = &document["analyses"][0]["accuracies"];
    assert_eq!((&accuracies["base_questions"], &accuracies["variant_questions"]), (&3.into(), &3.into()));
    let files = || std::fs::read_dir(folder.path().join("earnest-results/questions")).unwrap().count();
    assert_eq!(files(), 1);
    // The same command finds its questions and its run; another seed draws others.
    assert!(said(&study(&own)).contains("Every run is finished"));
    assert_eq!(files(), 1);
    assert!(study(&[&own[..], &["--seed", "2"]].concat()).status.code().is_some());
    assert_eq!(files(), 2);
    for (words, named) in [
        (&["--fresh", "own", "--data", "x.jsonl"][..], "--fresh draws the questions"),
        (&["--fresh", "nowhere"], "nowhere"),
        (&["--fresh", "own", "-o", "study.txt"], "neither an HTML page nor a PDF"),
    ] {
        let refused = study(words);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(named), "{named}: {}", said(&refused));
    }
    // The harder sets are beside the others, each against the originals of its templates.
    std::fs::create_dir(folder.path().join("data")).unwrap();
    for (set, seed) in [("main", "1"), ("p1", "5")] {
        let file = format!("data/{set}.jsonl");
        let words = ["generate", "--seed", seed, "-o", &file, "gsm-symbolic", "--per-template", "1", "--only", "0-2"];
        let drawn = earnest(folder.path(), "http://127.0.0.1:9", &words);
        assert!(drawn.status.success(), "{}", said(&drawn));
    }
    let sets = ["--data", "data", "--sets", "base,main,p1"];
    let document = study(&[&sets[..], &["--json"]].concat());
    let document: Value = serde_json::from_slice(&document.stdout).unwrap_or_else(|_| panic!("{}", said(&document)));
    let analysis = &document["analyses"][0];
    assert_eq!(analysis["accuracies"]["variant_questions"], 3);
    let harder = &analysis["harder"]["p1"];
    assert_eq!((&harder["base_questions"], &harder["variant_questions"]), (&3.into(), &3.into()));
    let text = said(&study(&[&sets[..], &["-o", "study.html"]].concat()));
    assert!(text.contains("Harder sets against the originals"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("study.html")).unwrap();
    assert!(page.contains("GSM-P1 and GSM-P2") && page.contains(">p1<"));
}

#[test]
fn models_that_are_not_here_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let study = |models: &str| {
        let words = ["reproduce", "gsm-symbolic", "--run", "--models", models, "--suite", "gsm-mini"];
        earnest(folder.path(), "http://127.0.0.1:9", &words)
    };
    let paper = study("paper");
    let said = String::from_utf8_lossy(&paper.stderr).into_owned();
    assert_eq!(paper.status.code(), Some(2), "{said}");
    assert!(said.contains("20 models left out, not on this machine:") && said.lines().count() <= 32, "{said}");
    let (table, _) = said.split_once("error: ").unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{said}");
    for name in ["phi-2", "gemma-2b", "Meta-Llama-3-8B"] {
        assert!(is_left_out(&said, name), "{name}: {said}");
    }
    assert!(said.contains("4.7 GiB") && said.contains("gemma, to accept") && said.contains("HF_TOKEN"), "{said}");
    let small = study("small");
    let said = String::from_utf8_lossy(&small.stderr).into_owned();
    assert_eq!(small.status.code(), Some(2), "{said}");
    assert!(is_left_out(&said, "SmolLM2-135M-Instruct") && said.contains("scripts/fetch-models.sh all"), "{said}");
    // A file of that name with another content is none of the two.
    std::fs::create_dir(folder.path().join("models")).unwrap();
    std::fs::write(folder.path().join("models/gemma-3-270m-q4_k_m.gguf"), "other").unwrap();
    let said = String::from_utf8_lossy(&study("small").stderr).into_owned();
    assert!(
        said.contains("models/gemma-3-270m-q4_k_m.gguf has SHA-256") && said.contains("fetch-models.sh --to models"),
        "{said}"
    );
}
