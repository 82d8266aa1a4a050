//! From questions to a comparison without touching a file: `perturb`, `run` and `compare`; `generate` and `run`.
use std::path::Path;

use serde_json::Value;

use crate::program::{code, document, run_in, stderr, stdout};

/// Runs the program and expects success.
fn done(folder: &Path, words: &[&str]) -> String {
    let output = run_in(folder, words);
    assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
    stdout(&output)
}

fn compared(folder: &Path, one: &str, other: &str) -> Value {
    let output = run_in(folder, &["compare", one, other, "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    document(&output)[0].clone()
}

fn ask(folder: &Path, file: &str) {
    done(folder, &["run", file, "--prompt", "raw", "--max-tokens", "4", "--threads", "1"]);
}

const QUESTIONS: [&str; 2] = [
    // Ids are hashes of the questions.
    r#"{"question": "Ann has 3 cats. She buys 12 more. How many cats has she?", "answer": 15, "formula": "3+12=15"}
{"question": "Tom eats 5 of his 21 pears. How many pears are left?", "answer": "21 - 5 = 16\n#### 16"}
{"question": "A crate holds 48 tins. There are 6 crates in the shop. How many tins are there?", "answer": 288}
"#,
    // Story and question apart, and questions that belong together.
    r#"{"@ID": "n-1", "Body": "Ann has 3 cats. She buys 12 more.", "Question": "How many cats has she?", "Answer": "15 (cats)", "Formula": "3+12=15", "cluster": "Ann"}
{"@ID": "n-2", "Body": "Ann has 31 cats. She sells 12 of them.", "Question": "How many cats has she?", "Answer": "19 (cats)", "Formula": "31-12=19", "cluster": "Ann"}
{"@ID": "n-3", "Body": "A crate holds 48 tins. There are 6 crates.", "Question": "How many tins are there?", "Answer": "288 (tins)", "Formula": "48*6=288", "cluster": "tins"}
"#,
];

#[test]
fn perturbed_questions_are_run_and_compared_with_their_originals() {
    for (questions, clusters) in QUESTIONS.into_iter().zip([3, 2]) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::fs::write(at.join("questions.jsonl"), questions).unwrap();
        done(at, &["perturb", "questions.jsonl", "--kinds", "language,verbosity", "-o", "perturbed.jsonl"]);
        let rows = std::fs::read_to_string(at.join("perturbed.jsonl")).unwrap().lines().count();
        assert_eq!(rows, 6);
        ask(at, "questions.jsonl");
        ask(at, "perturbed.jsonl");
        let found = compared(at, "questions", "perturbed");
        assert_eq!((&found["items"], &found["by_pair"]), (&3.into(), &3.into()), "{found}");
        assert_eq!(found["items_by_pair"], serde_json::json!([3, 6]));
        assert_eq!((&found["only_baseline"], &found["only_run"]), (&0.into(), &0.into()));
        assert_eq!(found["overall"]["clusters"], clusters);
        let kinds: Vec<&Value> = found["perturbations"].as_array().unwrap().iter().map(|kind| &kind["name"]).collect();
        assert_eq!(kinds, ["language", "verbosity"]);
        let screen = done(at, &["compare", "questions", "perturbed"]);
        assert!(screen.contains("Paired by id: 0. Paired by the original that items name in `pair`: 3"), "{screen}");
        assert!(screen.contains("verbosity"), "{screen}");
    }
}

#[test]
fn perturbed_answers_are_those_of_the_new_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("questions.jsonl"), QUESTIONS[1]).unwrap();
    done(at, &["perturb", "questions.jsonl", "--kinds", "noise", "--draws", "2", "-o", "noise.jsonl"]);
    ask(at, "noise.jsonl");
    let exported = done(at, &["export", "noise", "--format", "jsonl", "-o", "-"]);
    let rows: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let given = std::fs::read_to_string(at.join("noise.jsonl")).unwrap();
    assert_eq!(rows.len(), given.lines().count());
    for line in given.lines() {
        let given: Value = serde_json::from_str(line).unwrap();
        let row = rows.iter().find(|row| row["item"] == given["@ID"]).unwrap_or_else(|| panic!("{given}"));
        assert_eq!((&row["gold"], &row["cluster"]), (&given["dnc"]["gold"], &given["cluster"]));
        assert_eq!((&row["covariates"]["pair"], &row["covariates"]["perturbation"]), (&given["pair"], &"noise".into()));
    }
}

#[test]
fn generated_items_are_asked_under_their_ids() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let choice = ["--tasks", "add,sub", "--lengths", "1-2", "--per-length", "2"];
    done(at, &[&["generate", "arithmetic-bench", "-o", "sums.jsonl"][..], &choice].concat());
    ask(at, "sums.jsonl");
    let run = ["run", "arithmetic-bench", "--prompt", "raw", "--max-tokens", "4", "--threads", "1"];
    done(at, &[&run[..], &choice].concat());
    let found = compared(at, "arithmetic-bench", "sums");
    assert_eq!((&found["items"], &found["by_pair"]), (&8.into(), &0.into()), "{found}");
    assert_eq!((&found["only_run"], &found["different_question"]), (&0.into(), &0.into()));
}

#[test]
fn every_suite_that_needs_no_data_writes_its_items() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for words in [
        &["generate", "arithmetic-bench", "--per-length", "1", "--lengths", "1-3"][..],
        &["generate", "gsm-mini", "--instances", "1"],
        &["generate", "nupa", "--items", "--per-length", "1", "--lengths", "3"],
        &["generate", "nupa", "--items", "--prompt", "chat", "--per-length", "1", "--lengths", "3"],
    ] {
        let written = done(at, words);
        let mut ids = std::collections::BTreeSet::new();
        for line in written.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            for column in ["id", "task", "question", "answer", "cluster"] {
                assert!(row[column].as_str().is_some_and(|text| !text.is_empty()), "{column}: {row}");
            }
            assert_eq!(row.get("system").is_some(), words.contains(&"chat"), "{row}");
            assert!(ids.insert(row["id"].to_string()), "{row}");
        }
        assert!(ids.len() > 10, "{words:?}: {}", ids.len());
    }
    for (words, said) in [
        (&["generate", "nupa", "--shots", "2"][..], "--shots needs --items"),
        (&["generate", "nupa", "--prompt", "raw"], "--prompt needs --items"),
        (&["generate", "nupa", "--items", "--zero-padding"], "which has no --zero-padding"),
        (&["generate", "dnc"], "--data"),
    ] {
        let refused = run_in(at, words);
        assert!(code(&refused) == 2 && stderr(&refused).contains(said), "{words:?}: {}", stderr(&refused));
    }
}

#[test]
fn given_questions_of_nupa_are_asked() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let tasks = ["--tasks", "add_Integer,max_Float", "--lengths", "1-2", "--per-length", "2"];
    done(at, &[&["generate", "nupa", "--seed", "9", "-o", "own.jsonl"][..], &tasks].concat());
    let run = ["run", "nupa", "--questions", "own.jsonl", "--prompt", "raw", "--threads", "1", "--json"];
    let first: Value = serde_json::from_str(&done(at, &run)).unwrap();
    assert_eq!(first["manifest"]["settings"]["suite_options"]["tasks"].as_array().map(Vec::len), Some(2), "{first}");
    let shown = done(at, &["samples", "nupa", "--limit", "1"]);
    assert!(shown.contains("add_Integer_Integer_Integer:"), "{shown}");
    // The stored run finds its file again, and says so where it is another one.
    done(at, &["score", "nupa"]);
    let text = std::fs::read_to_string(at.join("own.jsonl")).unwrap();
    std::fs::write(at.join("own.jsonl"), text.lines().skip(1).collect::<Vec<_>>().join("\n")).unwrap();
    let refused = run_in(at, &["score", "nupa"]);
    assert!(code(&refused) != 0 && stderr(&refused).contains("they were changed"), "{}", stderr(&refused));
    std::fs::write(at.join("bad.jsonl"), "{\"task\": \"add_Integer\", \"a\": \"1\", \"b\": \"two\"}\n{}").unwrap();
    let refused = run_in(at, &["run", "nupa", "--questions", "bad.jsonl"]);
    assert!(code(&refused) == 2 && stderr(&refused).contains("bad.jsonl, line 1: "), "{}", stderr(&refused));
}
