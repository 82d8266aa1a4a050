//! `earnest reproduce gsm-symbolic`, end to end: the paper alone, the plan, and the study executed with two tiny
//! checkpoints, killed and continued in between.
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use earnest_results::Status;
use earnest_results::store::Store;
use serde_json::Value;

fn checkpoint(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints");
    root.join(name).to_string_lossy().into_owned()
}

/// A copy of a tiny checkpoint with room for the study's prompts: its tokens are single bytes, its context is not made for
/// eight worked examples.
fn roomy(folder: &Path, name: &str) -> String {
    let copy = folder.join(name);
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(checkpoint(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let config = copy.join("config.json");
    let mut fields: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    fields["max_position_embeddings"] = 4096.into();
    std::fs::write(&config, fields.to_string()).unwrap();
    copy.to_string_lossy().into_owned()
}

fn earnest(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(["reproduce", "gsm-symbolic"]).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "NO_COLOR"] {
        command.env_remove(name);
    }
    command
}

fn output(folder: &Path, words: &[&str]) -> Output {
    earnest(folder, words).output().unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn without_runs_the_paper_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let shown = output(folder.path(), &[]);
    assert_eq!(shown.status.code(), Some(0));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("No stored runs to compare") && text.lines().count() <= 60, "{text}");
    let tables = String::from_utf8(output(folder.path(), &["--tables", "all"]).stdout).unwrap();
    assert!(tables.contains("Table 15: ") && !tables.contains("section 6"), "{tables}");
    let study = document(&output(folder.path(), &["--json"]));
    assert_eq!(study["tables"].as_array().unwrap().len(), 14);
    assert_eq!(study["figures"].as_array().unwrap().len(), 11);
    assert_eq!(study["claims"][0]["without_artefacts"], 9);
}

#[test]
fn the_plan_has_sixty_runs() {
    let folder = tempfile::tempdir().unwrap();
    let plan = document(&output(folder.path(), &["--plan", "--json"]));
    assert_eq!(plan["runs"].as_array().unwrap().len(), 60);
    assert!(plan["hours"].as_f64().unwrap() > 0.0);
    let model = checkpoint("llama");
    let counted =
        ["--plan", "--json", "--suite", "gsm-mini", "--per-template", "2", "--prompts", "gsm", "--model", &model];
    let counted = document(&output(folder.path(), &counted));
    assert_eq!(counted["runs"].as_array().unwrap().len(), 20);
    assert_eq!(counted["runs"][0]["questions"], 48);
    assert!(counted["runs"][0]["prompt_tokens"].as_u64().unwrap() > 48 * 500);
}

#[test]
fn the_plan_counts_the_suite_s_own_questions_without_a_model_too() {
    let folder = tempfile::tempdir().unwrap();
    let own = ["--plan", "--json", "--suite", "gsm-mini", "--per-template", "2", "--prompts", "gsm"];
    let plan = document(&output(folder.path(), &own));
    assert_eq!(plan["runs"][0]["questions"], 48);
    // Questions that are chosen must be there to be counted.
    let refused = output(folder.path(), &["--plan", "--instances", "2"]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    let model = checkpoint("llama");
    let measured = ["--plan", "--json", "--suite", "gsm-mini", "--model", &model, "--measure"];
    let measured = document(&output(folder.path(), &measured));
    assert_eq!(measured["assumptions"]["measured"], true);
    assert!(measured["notes"][0].as_str().unwrap().contains("this machine's CPU"), "{}", measured["notes"]);
}

#[test]
fn models_of_one_name_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("A"), folder.path().join("B"));
    let from = [(roomy(folder.path(), "llama"), a.join("ckpt")), (roomy(folder.path(), second()), b.join("ckpt"))];
    for (copy, target) in &from {
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::rename(copy, target).unwrap();
    }
    let few = ["--suite", "gsm-mini", "--per-template", "2", "--limit", "6", "--prompts", "gsm", "--max-tokens", "4"];
    let study = |words: &[&str]| document(&output(folder.path(), &[words, &["--json"], &few[..]].concat()));
    let models = |study: &Value| -> Vec<(String, String)> {
        let runs = study["runs"].as_array().unwrap().iter();
        let pair = |run: &Value| [&run["model"], &run["run"]].map(|text| text.as_str().unwrap().to_owned());
        runs.map(|run| pair(run).into()).collect()
    };
    let both = study(&["--run", "--with", "one=A/ckpt,two=B/ckpt"]);
    let mut named = models(&both);
    named.sort();
    assert_eq!(named.iter().map(|pair| pair.0.as_str()).collect::<Vec<_>>(), ["one", "two"], "{named:?}");
    // One of them alone is that one, whichever was asked last.
    for (word, run) in [("one=A/ckpt", &named[0]), ("two=B/ckpt", &named[1]), ("one=A/ckpt", &named[0])] {
        assert_eq!(models(&study(&["--run", "--with", word])).first(), Some(run));
    }
    // Other settings make another run, and the study is that of the command.
    let trimmed = models(&study(&["--run", "--with", "one=A/ckpt", "--trailing-space", "trim"]));
    assert_ne!(trimmed[0].1, named[0].1);
    assert_eq!(models(&study(&["--run", "--with", "one=A/ckpt"])).first(), Some(&named[0]));
}

#[test]
fn wrong_commands_are_refused_with_their_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |words: &[&str]| {
        let output = output(folder.path(), words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let model = checkpoint("llama");
    assert!(refused(&["--run"]).contains("--with"));
    assert!(refused(&["--run", "--with", "phi-2"]).contains("is not NAME=MODEL"));
    assert!(refused(&["--prompts", "gsm,poem"]).contains("poem"));
    let twice = format!("a={model},a={model}");
    assert!(refused(&["--run", "--suite", "gsm-mini", "--with", &twice]).contains("names a twice"));
    let data = refused(&["--run", "--with", &format!("a={model}")]);
    assert!(data.contains("--data"), "{data}");
}

#[test]
fn the_study_is_executed_killed_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let models = format!("phi-2={},mine={}", roomy(folder.path(), "llama"), roomy(folder.path(), second()));
    let words = [
        "--run",
        "--suite",
        "gsm-mini",
        "--with",
        &models,
        "--per-template",
        "2",
        "--limit",
        "24",
        "--max-tokens",
        "8",
        "--prompts",
        "gsm,simple-nl",
        "--select",
        "all",
        "--threads",
        "1",
        "--json",
    ];
    let results = folder.path().join("earnest-results");
    // Killed as soon as there is a row: in the middle of the first run or soon after it.
    let mut child = earnest(folder.path(), &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let rows = || -> usize {
        let Ok(store) = Store::open(&results) else { return 0 };
        let runs = store.runs().unwrap_or_default();
        runs.iter().filter_map(|run| Some(store.progress(run).ok()?.settled())).sum()
    };
    while rows() == 0 && child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = rows();
    assert!(before > 0, "nothing was asked");

    let second = output(folder.path(), &words);
    let study = document(&second);
    let store = Store::open(&results).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 4, "two models on two prompts");
    for run in &runs {
        assert_eq!(run.manifest.status, Status::Finished);
        assert_eq!(store.progress(run).unwrap().settled(), 24);
    }
    assert!(runs.iter().any(|run| run.manifest.sessions > 1) || before % 24 == 0, "the killed run was continued");
    assert_eq!(study["runs"].as_array().unwrap().len(), 4);
    let row = |table: usize, name: &str| {
        let rows = study["tables"][table]["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    // The label is the paper's, so its row has both; `mine` has only ours.
    assert!(row(0, "phi-2")["cells"][0]["published"].is_number() && row(0, "phi-2")["cells"][0]["ours"].is_number());
    assert!(row(0, "mine")["cells"][0]["published"].is_null() && row(0, "mine")["cells"][0]["ours"].is_number());
    assert!(study["numbers"]["variant_integers"].as_u64().unwrap() > 0);

    // Each model was loaded once for both prompts: one line a load.
    let loads = |output: &Output| String::from_utf8_lossy(&output.stderr).matches("loading the weights").count();
    assert!((1..=2).contains(&loads(&second)), "{}", String::from_utf8_lossy(&second.stderr));

    // A third time nothing is asked or loaded, and the result is the same.
    let third = output(folder.path(), &words);
    assert_eq!(loads(&third), 0);
    assert_eq!(document(&third), study);
    assert!(Store::open(&results).unwrap().runs().unwrap().iter().all(|run| run.manifest.sessions <= 2));
    // Without --run: all stored runs of the suite, under their labels, with drawings.
    let svg = folder.path().join("figures");
    let shown = output(
        folder.path(),
        &["--suite", "gsm-mini", "--with", &models, "--json", "--figures", &svg.to_string_lossy()],
    );
    assert_eq!(document(&shown)["tables"], study["tables"]);
    assert!(svg.join("gsm-symbolic-figure-1.svg").is_file() && svg.join("gsm-symbolic-figure-9.svg").is_file());
}

#[test]
fn every_model_is_loaded_once_for_all_its_prompts() {
    let folder = tempfile::tempdir().unwrap();
    let models = format!("one={},two={}", roomy(folder.path(), "llama"), roomy(folder.path(), second()));
    let fixed = ["--run", "--suite", "gsm-mini", "--with", &models, "--per-template", "2", "--limit", "6"];
    let words = |rest: &[&'static str]| -> Vec<String> {
        let few = ["--max-tokens", "4", "--threads", "1", "--json"];
        fixed.iter().chain(&few).chain(rest).map(|word| (*word).to_owned()).collect()
    };
    let run = |rest: &[&'static str]| {
        let words = words(rest);
        output(folder.path(), &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let lines = |output: &Output, text: &str| String::from_utf8_lossy(&output.stderr).matches(text).count();
    // As in the study: six answers select nobody, which the first prompt says of each model before the next is loaded.
    let chosen = run(&[]);
    assert_eq!((lines(&chosen, "loading the weights"), lines(&chosen, "skipping the other prompts")), (2, 2));
    assert_eq!(Store::open(&folder.path().join("earnest-results")).unwrap().runs().unwrap().len(), 2);
    // All five prompts: the finished runs are used, and the other four of a model share one load.
    let all = run(&["--select", "all"]);
    assert_eq!(lines(&all, "loading the weights"), 2, "{}", String::from_utf8_lossy(&all.stderr));
    assert_eq!(Store::open(&folder.path().join("earnest-results")).unwrap().runs().unwrap().len(), 10);
    // Without the prompt that decides there is no decision.
    let refused = run(&["--prompts", "simple-nl"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(lines(&refused, "--select all"), 1);
}

/// A second architecture of the golden checkpoints.
fn second() -> &'static str {
    let root: PathBuf = checkpoint("qwen2").into();
    if root.is_dir() { "qwen2" } else { "llama" }
}
