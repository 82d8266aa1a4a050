//! Questions of the user at the command line: files of questions, task files, and what works on their runs.
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn earnest(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "HF_HOME", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    command.env("HF_HUB_CACHE", folder.join("hub")).output().unwrap()
}

fn stdout(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn document(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&stdout(&earnest(folder, words))).unwrap()
}

fn refused(folder: &Path, words: &[&str], code: i32, said: &[&str]) {
    let output = earnest(folder, words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
    for word in said {
        assert!(text.contains(word), "{words:?}: no {word:?} in {text}");
    }
}

/// Twelve sums in three clusters one after the other.
fn sums() -> String {
    let mut text = String::new();
    for index in 0..12 {
        let (a, b) = (7 * index % 10 + 1, 3 * index + 5);
        let row = json!({"question": format!("{a}+{b}=?"), "answer": a + b, "cluster": index / 4, "level": index % 3});
        writeln!(text, "{row}").unwrap();
    }
    text
}

const TASK: &str = r#"
name = "my-sums"
version = "2"
scorers = ["final", { name = "digits", kind = "regex", pattern = '(\d+)', take = "last" }, "contains"]

[questions]
path = "sums.jsonl"
covariates = { level = "level", long = "{{ question | length }}" }

[prompt]
template = "{{ question }}"

[prompts.shown]
template = "{{ question }}"
system = "Add."

[generation]
max_tokens = 16
stop = ["\n"]
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sums.jsonl"), sums()).unwrap();
    std::fs::write(folder.path().join("my-sums.toml"), TASK).unwrap();
    folder
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn accuracy(document: &Value) -> f64 {
    document["summary"]["rows"][0]["values"][0][1]["estimate"].as_f64().unwrap()
}

#[test]
fn questions_with_answers_are_enough() {
    let folder = folder();
    let at = folder.path();
    let ran = document(at, &["-q", "run", "sums.jsonl", "--limit", "6", "--json"]);
    let settings = &ran["manifest"]["settings"];
    assert_eq!((settings["suite"].as_str(), settings["suite_version"].as_str()), (Some("sums"), Some("1")));
    assert_eq!(ran["totals"]["planned"], 6);
    let run = ran["manifest"]["run"].as_str().unwrap();
    let samples = lines(&stdout(&earnest(at, &["samples", run, "--json"])));
    let mut clusters: Vec<&str> = samples.iter().map(|sample| sample["cluster"].as_str().unwrap()).collect();
    clusters.sort_unstable();
    // The file has four of a cluster in a row.
    assert_eq!(clusters, ["0", "0", "1", "1", "2", "2"]);
    assert!(samples.iter().all(|sample| sample["covariates"]["level"].is_u64()));
    let shown = document(at, &["show", "sums.jsonl", "--json"]);
    assert_eq!(shown["text"], "Question: 1+5=?\nAnswer:");
    assert_eq!(shown["gold"], "6");
}

#[test]
fn everything_that_works_on_a_run_works_on_a_task() {
    let folder = folder();
    let at = folder.path();
    let ran = document(at, &["-q", "run", "my-sums.toml", "--json"]);
    let run = ran["manifest"]["run"].as_str().unwrap().to_owned();
    assert!(run.starts_with("my-sums-earnest-abacus-1.4m-"), "{run}");
    let columns: Vec<&str> = ran["summary"]["rows"][0]["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value[0].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["accuracy", "digits", "contains"]);
    let right = accuracy(&ran);
    assert!(right > 0.0 && right < 1.0, "the built-in model answers {right} of them");

    let again = earnest(at, &["run", "my-sums.toml"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("this run was finished"));
    assert!(stdout(&earnest(at, &["-q", "run", "--from", &run])).contains("my-sums 2 on"));
    assert!(stdout(&earnest(at, &["samples", &run, "--limit", "1"])).contains("  scores  "));
    assert!(stdout(&earnest(at, &["runs", "verify"])).contains("ok"));
    assert!(stdout(&earnest(at, &["score", &run])).contains("No score changed"));
    let rescored = stdout(&earnest(at, &["score", &run, "--profile", "contains"]));
    assert!(rescored.contains("contains is the scorer instead of final"), "{rescored}");
    refused(at, &["score", &run, "--profile", "best"], 2, &["--scorer takes final, digits, contains"]);
    let csv = stdout(&earnest(at, &["-q", "export", &run, "--format", "csv", "-o", "-"]));
    assert!(csv.lines().next().unwrap().contains("covariate_level,covariate_long,matcher_contains,matcher_digits"));
    stdout(&earnest(at, &["-q", "export", &run, "--format", "lm-eval", "-o", "lm"]));

    let other = document(at, &["-q", "run", "my-sums.toml", "--prompt", "shown", "--json"]);
    let other = other["manifest"]["run"].as_str().unwrap().to_owned();
    assert_ne!(other, run);
    let compared = stdout(&earnest(at, &["compare", &run, &other]));
    assert!(compared.contains("12 items") || compared.contains("all      12"), "{compared}");
    stdout(&earnest(at, &["-q", "report", &run, &other, "-o", "page.html"]));
    assert!(std::fs::read_to_string(at.join("page.html")).unwrap().contains("1+5=?"));
    let words = ["stats", "glmm", "--run", &run, "--response", "contains", "--fixed", "level", "--group", "cluster"];
    assert!(stdout(&earnest(at, &words)).contains("level"));
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let folder = folder();
    let at = folder.path();
    let whole = document(at, &["-q", "run", "my-sums.toml", "--json", "--results", "whole"]);
    for part in ["1/2", "2/2"] {
        stdout(&earnest(at, &["-q", "run", "my-sums.toml", "--shard", part, "--results", "parts"]));
    }
    stdout(&earnest(at, &["-q", "merge", "--results", "parts"]));
    let run = whole["manifest"]["run"].as_str().unwrap();
    let merged = document(at, &["runs", "show", run, "--results", "parts", "--json"]);
    assert_eq!(merged["summary"], whole["summary"]);
    let resumed = earnest(at, &["resume", run, "--results", "whole"]);
    assert!(String::from_utf8_lossy(&resumed.stderr).contains("this run was finished"));
}

#[test]
fn stored_runs_find_moved_data_and_refuse_changed_ones() {
    let folder = folder();
    let at = folder.path();
    let ran = document(at, &["-q", "run", "sums.jsonl", "--limit", "3", "--json"]);
    let run = ran["manifest"]["run"].as_str().unwrap();
    std::fs::create_dir(at.join("elsewhere")).unwrap();
    std::fs::rename(at.join("sums.jsonl"), at.join("elsewhere/sums.jsonl")).unwrap();
    refused(at, &["score", run], 4, &["are not there any more", "EARNEST_DATA"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    let moved = command.current_dir(at).args(["score", run]).env("EARNEST_DATA", "elsewhere").output().unwrap();
    assert!(stdout(&moved).contains("No score changed"));
    std::fs::write(at.join("sums.jsonl"), sums() + "{\"question\": \"1+1=?\", \"answer\": 2}\n").unwrap();
    refused(at, &["score", run], 4, &["were changed after the run"]);
}

#[test]
fn tasks_are_begun_and_checked() {
    let folder = folder();
    let at = folder.path();
    stdout(&earnest(at, &["tasks", "new", "fresh"]));
    let checked = document(at, &["tasks", "check", "fresh.toml", "--json"]);
    assert_eq!((checked["task"].as_str(), checked["questions"].as_u64()), (Some("fresh"), Some(3)));
    assert_eq!(checked["findings"], json!([]));
    assert_eq!(document(at, &["-q", "run", "fresh.toml", "--json"])["totals"]["planned"], 3);
    refused(at, &["tasks", "new", "fresh"], 2, &["fresh.jsonl exists and is not overwritten"]);
    refused(at, &["tasks", "new", "nupa"], 2, &["is the name of a suite"]);
    refused(at, &["tasks", "new", "a b"], 2, &["is no name for a task"]);
    std::fs::write(
        at.join("bad.jsonl"),
        "{\"question\": \"1+1?\", \"answer\": 2}\n{\"question\": \"1+1?\", \"answer\": null}\n",
    )
    .unwrap();
    let found = earnest(at, &["tasks", "check", "bad.jsonl"]);
    assert_eq!(found.status.code(), Some(1));
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(
        text.contains("questions without a usable answer: 1\n  bad.jsonl, line 2: answer: the column answer has none"),
        "{text}"
    );
    assert!(
        stdout(&earnest(at, &["tasks", "check", "my-sums.toml"]))
            .contains("scored by  final; beside it digits, contains")
    );
}

/// An original leaves its `pair` empty; one that names itself, a variant, or no question of a file with originals is named.
#[test]
fn pairs_that_cannot_be_are_named() {
    let folder = folder();
    let at = folder.path();
    let check = |rows: &str| {
        std::fs::write(at.join("pairs.csv"), format!("id,question,answer,pair\n{rows}")).unwrap();
        let found = earnest(at, &["tasks", "check", "pairs.csv"]);
        (found.status.code(), String::from_utf8(found.stdout).unwrap())
    };
    let (code, said) = check("a,1 + 1?,2,\nb,1 + 2?,3,a\nc,1 + 3?,4,NA\n");
    assert!(code == Some(0) && !said.contains("original"), "{said}");
    let (code, said) = check("a,1 + 1?,2,\nb,1 + 2?,3,a\nc,1 + 3?,4,c\n");
    assert!(code == Some(1) && said.contains("the row names itself (c) as its"), "{said}");
    let (code, said) = check("a,1 + 1?,2,\nb,1 + 2?,3,a\nc,1 + 3?,4,b\nd,1 + 4?,5,x\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("c names b, which names another original"), "{said}");
    assert!(said.contains("d names x, which is no id"), "{said}");
    // Originals of another file are none of this one's.
    let (code, said) = check("b,1 + 2?,3,q1\nc,1 + 3?,4,q2\n");
    assert!(code == Some(0) && !said.contains("original"), "{said}");
}

#[test]
fn what_is_wrong_is_said_before_a_model_is_loaded() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("bad.jsonl"), "{\"question\": \"1+1?\", \"answer\": 2}\n{\"question\": \"1+2?\"}\n")
        .unwrap();
    refused(
        at,
        &["run", "bad.jsonl", "--model", "none"],
        2,
        &["bad.jsonl, line 2: answer: there is none", "--skip-bad-rows"],
    );
    let skipped = earnest(at, &["run", "bad.jsonl", "--skip-bad-rows"]);
    assert!(stdout(&skipped).contains("1 row was left out: bad.jsonl, line 2"));
    assert!(String::from_utf8_lossy(&skipped.stderr).contains("1 row was left out"));
    for (text, said) in [
        ("nam = \"x\"", &["t.toml, line 1, column 1: there is no key nam", "did you mean name?"][..]),
        (
            "scorers = [{ kind = \"regex\", pattern = \"(\" }]\n[questions]\npath = \"sums.jsonl\"",
            &["t.toml, line 1", "unclosed group"],
        ),
        (
            "[questions]\npath = \"sums.jsonl\"\n[prompt]\ntemplate = \"{{ qestion }}\"",
            &["no column qestion (did you mean question?)"],
        ),
        ("[questions]\npath = \"none.jsonl\"", &["none.jsonl"]),
    ] {
        std::fs::write(at.join("t.toml"), text).unwrap();
        refused(at, &["run", "t.toml", "--model", "none"], 2, said);
    }
    refused(at, &["run", "my-sums.toml", "--prompt", "other"], 2, &["the task file has no prompt other", "shown"]);
    refused(at, &["run", "my-sums.toml", "--profile", "other"], 2, &["there is no scorer other"]);
    refused(at, &["run", "nosuch"], 2, &["there is no suite nosuch", "or a file of questions"]);
    refused(at, &["run", "task"], 2, &["task needs a file of questions"]);
}

#[test]
fn completions_are_imported_by_id() {
    let folder = folder();
    let at = folder.path();
    let samples = {
        let ran = document(at, &["-q", "run", "my-sums.toml", "--json"]);
        lines(&stdout(&earnest(at, &["samples", ran["manifest"]["run"].as_str().unwrap(), "--json"])))
    };
    let completions: String = samples
        .iter()
        .map(|sample| {
            format!(
                "{}\n",
                json!({"id": sample["item"], "completion": format!("It is {}.", sample["gold"].as_str().unwrap())})
            )
        })
        .collect();
    std::fs::write(at.join("said.jsonl"), completions).unwrap();
    let imported =
        document(at, &["import", "my-sums.toml", "--completions", "said.jsonl", "--name", "oracle", "--json"]);
    assert_eq!((imported["totals"]["planned"].as_u64(), accuracy(&imported)), (Some(12), 1.0));
}

#[test]
fn a_word_in_a_suites_place_may_name_a_task_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    refused(at, &["run", "gsm8k"], 2, &["there is no suite gsm8k", "choose from"]);
    std::fs::create_dir(at.join("tasks")).unwrap();
    std::fs::write(at.join("tasks/gsm8k.toml"), "").unwrap();
    refused(at, &["run", "gsm8k"], 2, &["there is no suite gsm8k", "did you mean tasks/gsm8k.toml?"]);
    std::fs::write(at.join("gsm8k.jsonl"), "").unwrap();
    refused(at, &["run", "gsm8k"], 2, &["did you mean gsm8k.jsonl?"]);
}
