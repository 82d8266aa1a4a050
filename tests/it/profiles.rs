//! Deciding scorers: defaults, `--scorer` and its former spellings, all scorers side by side, and those of stored runs.

use std::path::Path;

use crate::program::*;
use earnest_results::store::FILE_NAME;
use serde_json::{Value, json};

/// Answers of a chat model to 744 + 543: thinking before the right one, the right one, and a wrong one.
const ANSWERS: [&str; 3] = ["<think>700 + 500 = 1200, and 44 + 43 = 87</think>\n\n1287", "1287", "The answer is 99."];

/// Imports the answers as a run with its own questions; returns its document.
fn import(at: &Path, words: &[&str]) -> Value {
    let line = |(number, completion): (usize, &&str)| {
        let a = (744 + number).to_string();
        let completion = completion.replace("1287", &(1287 + number).to_string());
        json!({"task": "add_Integer", "a": a, "b": "543", "completion": completion}).to_string()
    };
    let lines: Vec<String> = ANSWERS.iter().enumerate().map(line).collect();
    std::fs::write(at.join("answers.jsonl"), lines.join("\n")).unwrap();
    let fixed = ["import", "nupa", "--completions", "answers.jsonl", "--name", "mine", "--json"];
    let output = run_in(at, &[&fixed[..], words].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    document(&output)
}

fn sql(at: &Path, statements: &str) {
    let path = at.join("earnest-results").join(FILE_NAME);
    rusqlite::Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

fn rule<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rules = document["readings"]["rules"].as_array().unwrap();
    rules.iter().find(|rule| rule["name"] == name).unwrap_or_else(|| panic!("no {name} in {document}"))
}

#[test]
fn chats_are_read_by_their_final_answer_and_raw_texts_by_the_papers_rule() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let chat = import(at, &["--prompt", "chat"]);
    assert_eq!(chat["manifest"]["settings"]["suite_options"]["profile"], "final");
    assert_eq!(chat["readings"]["primary"], json!(["final"]));
    assert_eq!((chat["readings"]["samples"].as_u64(), rule(&chat, "final")["right"].as_u64()), (Some(3), Some(2)));
    // No scorer reads thinking.
    assert_eq!(rule(&chat, "strict")["right"], 2);
    let raw = import(at, &[]);
    assert_eq!(raw["manifest"]["settings"]["suite_options"]["profile"], "strict");
    assert_eq!(raw["readings"]["primary"], json!(["strict"]));
    let named = import(at, &["--prompt", "chat", "--profile", "paper"]);
    assert_eq!(named["manifest"]["settings"]["suite_options"]["profile"], "paper");
    let run = chat["manifest"]["run"].as_str().unwrap();
    let shown = stdout(&run_in(at, &["runs", "show", run]));
    for part in ["Right, per cent, by scorer final", "differs", "strict    2/3  66.7", "scored by final"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let list = stdout(&run_in(at, &["runs", "list"]));
    assert!(list.contains(" scorer ") && list.contains(" final ") && list.contains(" paper "), "{list}");
    let output = run_in(at, &["report", run, "-o", "page.html"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let page = std::fs::read_to_string(at.join("page.html")).unwrap();
    assert!(page.contains("How answers were read; final decides") && page.contains("differs from final"));
    assert!(page.contains("exact_match, by scorer final"));
    for (suite, possible) in [
        ("nupa", "final, strict, paper, ref"),
        ("arithmetic-bench", "final, boundary, compat, last_number"),
        ("gsm-mini", "final, study, study_strict, strict, flexible"),
    ] {
        let wrong = run_in(at, &["run", suite, "--profile", "best"]);
        assert_eq!(code(&wrong), 2);
        assert!(stderr(&wrong).contains(&format!("--scorer takes {possible}")), "{}", stderr(&wrong));
    }
}

#[test]
fn samples_on_which_rules_differ_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run = import(at, &["--prompt", "chat"])["manifest"]["run"].as_str().unwrap().to_owned();
    // As if the strict reading had missed two of the three.
    sql(
        at,
        "UPDATE texts SET matchers = json_set(matchers, '$.strict', json('false')), \
         evidence = json_set(evidence, '$.readings.strict', '700') WHERE key % 4294967296 < 2;",
    );
    reseal(&at.join("earnest-results"));
    let samples = |words: &[&str]| run_in(at, &[&["samples", &run, "--disagree", "final,strict"], words].concat());
    let rows = stdout(&samples(&["--json"]));
    assert_eq!(rows.lines().count(), 2, "{rows}");
    assert_eq!(stdout(&samples(&["--json", "--limit", "1"])).lines().count(), 1);
    let mirrored = run_in(at, &["samples", &run, "--disagree", "strict,final", "--json"]);
    assert_eq!(stdout(&mirrored), rows);
    assert_eq!(stdout(&samples(&["--json", "--task", "add:Integer"])), rows);
    assert_eq!(stdout(&samples(&["--json", "--failed"])), "");
    let cards = stdout(&samples(&["--limit", "1"]));
    let lines: Vec<&str> = cards.lines().collect();
    assert_eq!(lines[1..3], ["  final       right, read 1287", "  strict      wrong, read 700"], "{cards}");
    let none = run_in(at, &["samples", &run, "--disagree", "final,paper", "--json"]);
    assert!(code(&none) == 0 && stdout(&none).is_empty());
    let unknown = run_in(at, &["samples", &run, "--disagree", "final,strct"]);
    assert_eq!(code(&unknown), 2);
    assert!(stderr(&unknown).contains("final, paper, ref, strict"), "{}", stderr(&unknown));
    for slip in ["final", "final,", "final,final", "a,b,c"] {
        let refused = run_in(at, &["samples", &run, "--disagree", slip]);
        assert!(code(&refused) == 2 && stderr(&refused).contains("name two scorers"), "{}", stderr(&refused));
    }
}

/// Makes the only run of a folder one of version 1, which knew no `final` and one order.
fn age(at: &Path) {
    let settings = "UPDATE runs SET summary = NULL, manifest = json_set(manifest, '$.settings.suite_version', '1', \
                    '$.settings.suite_options.profile', 'strict');
        UPDATE texts SET matchers = json_remove(matchers, '$.final'), evidence = NULL, metrics = json_remove(metrics, \
        '$.final_digit_match', '$.final_dlength', '$.final_dlength_total', '$.example_echoed', '$.only_in_thinking', '$.rivals');";
    sql(at, settings);
    sql(at, "UPDATE runs SET manifest = json_remove(manifest, '$.settings.suite_options.order')");
    reseal(&at.join("earnest-results"));
}

#[test]
fn stored_completions_get_the_final_answer_without_asking_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run = import(at, &["--prompt", "chat"])["manifest"]["run"].as_str().unwrap().to_owned();
    age(at);
    // A run of an earlier version of the suite is shown as it was scored.
    let before = document(&run_in(at, &["runs", "show", &run, "--json"]));
    assert_eq!(before["readings"]["primary"], json!(["strict"]));
    assert_eq!(before["readings"]["rules"].as_array().unwrap().len(), 3);
    let unknown = run_in(at, &["samples", &run, "--disagree", "final,strict"]);
    assert!(stderr(&unknown).contains("`earnest score") && code(&unknown) == 2, "{}", stderr(&unknown));

    let today = stdout(&run_in(at, &["score", &run]));
    for part in ["version 1 then, 2.3 now", "66.7 % (2) by strict", "new: final, right on 2 of 3", "--scorer final"] {
        assert!(today.contains(part), "{part}: {today}");
    }
    let saved = document(&run_in(at, &["score", &run, "--save", "--profile", "final", "--json"]));
    assert_eq!((saved["primary"].as_str(), saved["primary_now"].as_str()), (Some("strict"), Some("final")));
    assert_eq!(saved["new_rules"]["final"], json!({"samples": 3, "right": 2}));
    assert_eq!(saved["reread"], 0, "it was not read before");
    assert!(saved["new_metrics"].as_array().unwrap().contains(&json!("rivals")), "{saved}");
    let scored = saved["saved"].as_str().unwrap();
    let after = document(&run_in(at, &["runs", "show", scored, "--json"]));
    assert_eq!(after["readings"]["primary"], json!(["final"]));
    assert_eq!(after["manifest"]["settings"]["suite_options"]["profile"], "final");
    assert_eq!(code(&run_in(at, &["runs", "verify", scored])), 0);
    // As if an earlier reader had taken another number, as wrong as today's.
    let others = "UPDATE texts SET extracted = '7' WHERE matchers ->> '$.final' = 0 AND evidence IS NOT NULL;";
    sql(at, others);
    reseal(&at.join("earnest-results"));
    let again = document(&run_in(at, &["score", scored, "--json"]));
    assert_eq!((&again["reread"], &again["gained"], &again["lost"]), (&json!(1), &json!(0), &json!(0)), "{again}");
    let said = stdout(&run_in(at, &["score", scored]));
    assert!(said.contains("final reads another answer in 1 completion."), "{said}");
    let compared = run_in(at, &["compare", &run, scored]);
    assert_eq!(code(&compared), 0, "{}", stderr(&compared));
    let said = stdout(&compared);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let alike = "Compared by strict, which both have; by default A is scored by strict and B by final.";
    assert!(said.contains(alike) && said.contains("scorer "), "{said}");
    assert_eq!(code(&run_in(at, &["report", &run, scored, "-o", "both.html"])), 0);
    let slip = run_in(at, &["score", &run, "--profile", "best"]);
    assert!(code(&slip) == 2 && stderr(&slip).contains("final, strict, paper, ref"), "{}", stderr(&slip));
}

#[test]
fn the_usual_rule_is_spelt_as_in_runs_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let words = ["--lengths", "1", "--per-length", "1", "--tasks", "add", "--max-tokens", "4", "--quiet", "--json"];
    let output = tiny_run(at, &words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let first = document(&output);
    let options = &first["manifest"]["settings"]["suite_options"];
    let spelt = r#"{"ends":"answer_line","lengths":"1","order":2,"per_length":1,"seed":1,"set":1,"tasks":["add"]}"#;
    assert_eq!(options.to_string(), spelt);
    // Completions that go on are spelt as in runs of before.
    let goes_on = document(&tiny_run(at, &[&words[..], &["--no-stop-at-newline"]].concat()));
    let options_of_before = goes_on["manifest"]["settings"]["suite_options"].to_string();
    assert_eq!(options_of_before, spelt.replace(r#""ends":"answer_line","#, ""));
    // The same with its name is the same run, and `score --profile` spells it so too.
    let named = document(&tiny_run(at, &[&words[..], &["--profile", "boundary"]].concat()));
    assert_eq!(named["manifest"]["run"], first["manifest"]["run"]);
    let run = first["manifest"]["run"].as_str().unwrap();
    let saved = document(&run_in(at, &["score", run, "--save", "--profile", "boundary", "--json"]));
    let scored = store(at).run(saved["saved"].as_str().unwrap()).unwrap().manifest.settings;
    assert_eq!(scored.suite_options, *options);
    let last = document(&run_in(at, &["score", run, "--save", "--profile", "last_number", "--json"]));
    let scored = store(at).run(last["saved"].as_str().unwrap()).unwrap().manifest.settings;
    assert_eq!(scored.suite_options["profile"], "last_number");
}

#[test]
fn runs_of_another_version_of_a_suite_are_continued_by_that_version() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let words = ["--lengths", "1", "--per-length", "2", "--tasks", "add", "--max-tokens", "4", "--quiet", "--json"];
    assert_eq!(code(&tiny_run(at, &words)), 0);
    let run = only_run(at).manifest.run;
    sql(
        at,
        "DELETE FROM texts WHERE key % 2 = 1; DELETE FROM samples WHERE key % 2 = 1; \
         UPDATE runs SET summary = NULL, status = 'interrupted', manifest = json_set(manifest, '$.status', 'interrupted', \
         '$.settings.suite_version', '1.0', '$.settings_sha256', 'of another version');",
    );
    reseal(&at.join("earnest-results"));
    // This one says how to begin anew.
    let refused = run_in(at, &["resume", &run]);
    assert_eq!(code(&refused), 4, "{}", stderr(&refused));
    assert!(stderr(&refused).contains("suite_version (1.0 before") && stderr(&refused).contains("run --from"));
}
