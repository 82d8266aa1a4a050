//! Stored runs are read although model, data and suite are gone.
use std::path::Path;

use crate::program::*;
use crate::support::sums::{Sums, manifest};
use earnest_results::Plan;
use earnest_results::store::{FILE_NAME, SCHEMA_VERSION, Store};
use serde_json::{Value, json};

const RUN: [&str; 12] = [
    "run",
    "gsm-symbolic",
    "--data",
    "data",
    "--prompt",
    "gsm",
    "--max-tokens",
    "3",
    "--threads",
    "1",
    "--quiet",
    "--model",
];

/// A results folder with two runs of questions from a file, asked of two models that are gone now, as the data are.
fn orphaned(at: &Path) -> [String; 2] {
    std::fs::create_dir(at.join("data")).unwrap();
    let words = ["generate", "gsm-symbolic", "--per-template", "2", "--only", "0-3", "-o", "data/GSM_symbolic.jsonl"];
    assert_eq!(code(&run_in(at, &words)), 0);
    let model = copy_of_tiny(at);
    edit_json(&model.join("config.json"), |config| config["max_position_embeddings"] = 8192.into());
    for seed in ["1", "2"] {
        let output = run_in(at, &[&RUN[..], &["copy", "--seed", seed, "--samples", "2"]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    std::fs::remove_dir_all(&model).unwrap();
    std::fs::remove_dir_all(at.join("data")).unwrap();
    let runs = store(at).runs().unwrap();
    let names: Vec<String> = runs.into_iter().map(|run| run.manifest.run).collect();
    names.try_into().unwrap()
}

fn sql(at: &Path, statements: &str) {
    let file = at.join("earnest-results").join(FILE_NAME);
    rusqlite::Connection::open(file).unwrap().execute_batch(statements).unwrap();
}

fn count(at: &Path, table: &str) -> i64 {
    let file = at.join("earnest-results").join(FILE_NAME);
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn read_lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every command that reads a run, without a warning.
fn reads(at: &Path, [one, two]: &[String; 2]) {
    let said = |words: &[&str]| {
        let output = run_in(at, words);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(code(&output), 0, "{words:?}: {text}");
        text
    };
    assert!(said(&["runs", "list"]).contains(one.as_str()));
    let shown = said(&["runs", "show", one]);
    assert!(shown.contains("gsm main") && shown.contains("gsm base"), "the suite's own table: {shown}");
    let card = said(&["samples", one, "--limit", "1"]);
    assert!(card.contains("  prompt      ") && card.contains("Q: ") && !card.contains("not stored"), "{card}");
    said(&["report", one, two, "-o", "report.html"]);
    assert!(std::fs::read_to_string(at.join("report.html")).unwrap().contains("gsm"));
    let compared = document(&run_in(at, &["compare", one, two, "--json"]));
    assert_eq!((compared[0]["items"].as_u64(), compared[0]["different_question"].as_u64()), (Some(12), Some(0)));
    for format in ["jsonl", "csv", "parquet", "lm-eval"] {
        said(&["export", one, "--format", format, "-o", &format!("export.{format}")]);
    }
    let rows = read_lines(&at.join("export.jsonl"));
    assert_eq!(rows.len(), 24);
    for row in &rows {
        let (question, prompt) = (row["question"].as_str().unwrap(), row["prompt"].as_str().unwrap());
        assert!(prompt.contains(question) && prompt.len() > 10 * question.len(), "eight examples before it: {row}");
    }
    let table = std::fs::read_to_string(at.join("export.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains(",error,question,prompt,"), "{table}");
    said(&["export", one, "--format", "jsonl", "--without-texts", "-o", "bare.jsonl"]);
    assert!(
        read_lines(&at.join("bare.jsonl"))
            .iter()
            .all(|row| row.get("prompt").is_none() && row.get("question").is_none())
    );
    said(&["export", one, "--format", "parquet", "--without-texts", "-o", "bare.parquet"]);
    let bytes = std::fs::read(at.join("bare.parquet")).unwrap();
    let question = rows[0]["question"].as_str().unwrap().as_bytes();
    assert!(!bytes.windows(question.len()).any(|part| part == question), "the first prompt is in the manifest");
    said(&["export", one, "--format", "lm-eval", "--without-texts", "-o", "bare"]);
    let model = std::fs::read_dir(at.join("bare")).unwrap().next().unwrap().unwrap().path();
    let samples = std::fs::read_dir(model).unwrap().map(|file| file.unwrap().path());
    let samples = samples.filter(|file| file.extension().is_some_and(|end| end == "jsonl"));
    for line in samples.flat_map(|file| read_lines(&file)) {
        let covariates = line["doc"]["covariates"].as_object().unwrap();
        assert!(covariates.values().all(|value| value.as_str().is_none_or(|text| !text.contains(' '))), "{line}");
        assert_eq!((&line["doc"]["question"], &line["arguments"]["gen_args_0"]["arg_0"]), (&json!(""), &json!("")));
        assert!(!line["arguments"]["gen_args_0"]["arg_1"]["until"].as_array().unwrap().is_empty());
    }
}

#[test]
fn runs_are_read_after_model_data_and_suite_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let runs = orphaned(at);
    // Both runs and both samples of an item share the questions and, of one model's prompts, the texts.
    assert_eq!((count(at, "asked"), count(at, "packs")), (2, 2));
    reads(at, &runs);
    let verified = run_in(at, &["runs", "verify"]);
    assert_eq!(code(&verified), 0, "{}", stderr(&verified));
    assert!(stderr(&verified).contains("checked against its stored questions"), "{}", stderr(&verified));
    // Scoring completions again needs the suite.
    let score = run_in(at, &["score", &runs[0]]);
    assert!(code(&score) == 4 && stderr(&score).contains("EARNEST_DATA"), "{}", stderr(&score));

    // A suite that this program does not know.
    sql(
        at,
        "UPDATE runs SET suite = 'gone', manifest = replace(manifest, '\"suite\":\"gsm-symbolic\"', '\"suite\":\"gone\"')",
    );
    reseal(&at.join("earnest-results"));
    reads(at, &runs);
    // A run that did not end has no results stored: counts are shown, and why not more.
    sql(
        at,
        "UPDATE runs SET status = 'interrupted', summary = NULL, manifest = replace(manifest, '\"finished\"', '\"interrupted\"')",
    );
    reseal(&at.join("earnest-results"));
    let shown = run_in(at, &["runs", "show", &runs[0]]);
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    assert!(stdout(&shown).contains("this version of earnest has no suite\n  gone"), "{}", stdout(&shown));

    // What nobody uses any more goes.
    for (run, left) in runs.iter().zip([2, 0]) {
        assert_eq!(code(&run_in(at, &["runs", "delete", run, "--yes"])), 0);
        assert_eq!(count(at, "packs"), left);
    }
}

#[test]
fn damaged_questions_and_results_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let small = ["--lengths", "1..2", "--per-length", "1", "--max-tokens", "6", "--quiet"];
    assert_eq!(code(&tiny_run(at, &small)), 0);
    let verify = || run_in(at, &["runs", "verify"]);
    assert_eq!(code(&verify()), 0, "{}", stdout(&verify()));
    sql(at, "UPDATE runs SET summary = replace(summary, '\"recorded\":32', '\"recorded\":31')");
    reseal(&at.join("earnest-results"));
    assert!(stdout(&verify()).contains("the stored results are not those of the rows"), "{}", stdout(&verify()));
    sql(at, "UPDATE packs SET sha256 = zeroblob(32) WHERE id = 1");
    let output = verify();
    assert!(code(&output) == 4 && stdout(&output).contains("no readable question"), "{}", stdout(&output));
    let name = only_run(at).manifest.run;
    let output = run_in(at, &["samples", &name]);
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("the link to the questions of pack 0"), "{}", stderr(&output));
    // A link that fits the wrong digest.
    reseal(&at.join("earnest-results"));
    let output = run_in(at, &["samples", &name]);
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("the questions of") && stderr(&output).contains("its digest does not match"));
}

#[test]
fn merged_and_scored_runs_have_the_questions_of_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let small = ["--lengths", "1..3", "--per-length", "1", "--max-tokens", "2", "--quiet"];
    for part in ["1/3", "2/3", "3/3"] {
        assert_eq!(code(&tiny_run(at, &[&small[..], &["--shard", part]].concat())), 0);
    }
    assert_eq!((count(at, "asked"), count(at, "packs")), (3, 6), "parts ask different questions");
    assert_eq!(code(&run_in(at, &["merge"])), 0);
    assert_eq!((count(at, "asked"), count(at, "packs")), (1, 2));
    let copied = run_in(at, &["merge", "earnest-results", "--results", "all"]);
    assert_eq!(code(&copied), 0, "{}", stderr(&copied));
    let name = only_run(at).manifest.run;
    assert_eq!(code(&run_in(at, &["score", &name, "--save"])), 0);
    assert_eq!((count(at, "asked"), count(at, "packs")), (2, 2));
    // The whole of a run that was asked at once has the same packs.
    let whole = tempfile::tempdir().unwrap();
    assert_eq!(code(&tiny_run(whole.path(), &small)), 0);
    let prompts = |store: Store, name: &str| -> Vec<Option<String>> {
        let run = store.run(name).unwrap();
        assert!(store.has_questions(&run).unwrap() && store.summary(&run).unwrap().is_some(), "{name}");
        store.questions(&run).all().map(|question| question.unwrap().prompt).collect()
    };
    let expected = prompts(store(whole.path()), "arithmetic");
    assert!(expected.len() == 48 && expected.iter().all(Option::is_some));
    assert_eq!(prompts(store(at), &name), expected);
    assert_eq!(prompts(store(at), "-scored"), expected);
    assert_eq!(prompts(Store::open(&at.join("all")).unwrap(), &name), expected);
    for results in ["earnest-results", "all"] {
        let verified = run_in(at, &["runs", "verify", "--results", results]);
        assert_eq!(code(&verified), 0, "{}", stdout(&verified));
    }
}

#[test]
fn every_command_refuses_results_of_another_version_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &["--lengths", "1", "--per-length", "1", "--max-tokens", "2", "--quiet"])), 0);
    let run = only_run(at).manifest.run;
    let (earlier, later) = (SCHEMA_VERSION - 1, SCHEMA_VERSION + 1);
    for (version, next) in
        [(1, "ask the questions again"), (earlier, "ask the questions again"), (later, "update earnest")]
    {
        sql(at, &format!("PRAGMA user_version = {version}"));
        let commands: [&[&str]; 8] = [
            &["runs", "list"],
            &["runs", "show", &run],
            &["runs", "verify"],
            &["samples", &run],
            &["report", &run, "-o", "report.html"],
            &["compare", &run, &run],
            &["export", &run, "--format", "jsonl", "-o", "old.jsonl"],
            &["resume", &run],
        ];
        let again = tiny_run(at, &["--lengths", "1", "--per-length", "1", "--max-tokens", "2", "--quiet"]);
        for output in commands.map(|words| run_in(at, words)).into_iter().chain([again]) {
            let said = stderr(&output);
            assert_eq!(code(&output), 4, "{said}");
            assert!(said.contains(&format!("{FILE_NAME} has format {version}")) && said.contains(next), "{said}");
        }
    }
}

#[test]
fn questions_of_a_long_run_are_read_pack_by_pack() {
    let suite = earnest_tasks::suite::Suite::new(Sums { items: 1_300, long: None });
    let results = tempfile::tempdir().unwrap();
    let store = Store::create(results.path()).unwrap();
    let plan = Plan { limit: Some(1_200), samples: 3, shard: None };
    let run = store.begin(&manifest("one", &suite, plan), plan.len(&suite)).unwrap();
    store.keep_questions(&run, &suite, 0..plan.len(&suite)).unwrap();
    let mut questions = store.questions(&run);
    for planned in plan.walk(&suite).step_by(100) {
        assert_eq!(questions.at(planned.index).unwrap().unwrap().item, planned.item);
    }
    assert!(questions.at(3 * 1_200).unwrap().is_none());
    let all: Vec<String> = store.questions(&run).all().map(|question| question.unwrap().item.id).collect();
    let expected: Vec<String> = plan.walk(&suite).step_by(3).map(|planned| planned.item.id).collect();
    assert_eq!(all, expected);
}
