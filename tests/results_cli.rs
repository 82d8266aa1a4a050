//! What the program says of stored results that are damaged, differ or failed, and the exit codes of failures.
mod program;

use std::path::Path;

use earnest::run::store::FILE_NAME;
use program::*;
use serde_json::Value;

/// Options of a small run.
const SMALL: [&str; 7] = ["--lengths", "1..2", "--per-length", "1", "--max-tokens", "6", "--quiet"];

fn sql(results: &Path, statements: &str) {
    rusqlite::Connection::open(results.join(FILE_NAME)).unwrap().execute_batch(statements).unwrap();
}

/// A checkpoint whose logits overflow for most prompts: finite weights, so that it loads.
fn overflowing(folder: &Path) {
    fill_tensor(&copy_of_tiny(folder), "lm_head.weight", 3e38);
}

#[test]
fn too_many_failures_stop_the_run_with_6_and_the_first_is_shown_at_once() {
    let folder = tempfile::tempdir().unwrap();
    overflowing(folder.path());
    let words = ["run", "arithmetic-bench", "--model", "copy", "--threads", "1", "--lengths", "1..9"];
    let bounded = ["--per-length", "4", "--fail-on-error", "0.01", "--events", "events.jsonl", "--max-batch", "2"];
    let output = run_in(folder.path(), &[&words[..], &bounded].concat());
    assert_eq!(code(&output), 6, "{}", stderr(&output));
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().collect();
    let first = lines.iter().position(|line| line.starts_with("warning: sample 0 of") && line.contains("not finite"));
    let last = lines.iter().position(|line| line.starts_with("error: ") && line.contains("--fail-on-error"));
    assert!(first.unwrap() < last.unwrap(), "{said}");
    assert_eq!(said.matches("not finite").count(), 1, "the others are counted, not shown: {said}");
    assert!(said.contains("help: `earnest samples") && stdout(&output).is_empty(), "{said}");
    let rows = timeless_rows(folder.path());
    // 1 % of 576 samples: the sixth failure is one too many; those in flight are not waited for.
    let failed = rows.iter().filter(|row| row["failure"]["kind"] == "engine").count();
    assert!((6..20).contains(&failed) && rows.len() < 100, "{failed} of {}", rows.len());
    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let samples: Vec<&Value> = events.iter().filter(|event| event["event"] == "sample").collect();
    assert_eq!(samples.len(), rows.len());
    let failures: Vec<&&Value> = samples.iter().filter(|sample| !sample["failure"].is_null()).collect();
    assert_eq!(failures.len(), failed);
    for sample in failures {
        assert!(sample["failure"]["message"].as_str().unwrap().contains("not finite") && sample["correct"].is_null());
    }
    assert_eq!(events.last().unwrap()["event"], "ended");
    let started = events.iter().find(|event| event["event"] == "started").unwrap();
    assert_eq!((started["planned"].as_u64(), started["recorded"].as_u64()), (Some(576), Some(0)));

    // Without a bound the run ends, with 1.
    let unbounded = run_in(folder.path(), &[&words[..4], &["--threads", "1"], &SMALL].concat());
    assert_eq!(code(&unbounded), 1, "{}", stderr(&unbounded));
    assert!(stdout(&unbounded).contains(" samples failed and are in no accuracy"), "{}", stdout(&unbounded));
}

#[test]
fn an_engine_that_fails_a_measurement_exits_with_5() {
    let folder = tempfile::tempdir().unwrap();
    overflowing(folder.path());
    let words = ["bench", "engine", "--model", "copy", "--threads", "1", "--workload", "zero-shot", "--prompts", "4"];
    let output = run_in(folder.path(), &words);
    assert_eq!(code(&output), 5, "{}\n{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("not finite"), "{}", stderr(&output));
}

#[test]
fn completions_inside_opened_thinking_are_judged_with_it_then_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let model = copy_of_tiny(folder.path());
    edit_json(&model.join("tokenizer_config.json"), |config| {
        config["chat_template"] = "{{ bos_token }}{{ messages[0].content }}\n<think>\n".into();
    });
    let words = ["run", "arithmetic-bench", "--model", "copy", "--threads", "1", "--prompt", "chat"];
    let output = run_in(folder.path(), &[&words[..], &SMALL].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let run = only_run(folder.path());
    assert_eq!(run.manifest.opened_thinking(), Some("<think>"));
    let rows = timeless_rows(folder.path());
    for row in &rows {
        assert!(!row["completion"]["text"].as_str().unwrap().contains("<think>"), "what is stored is what came back");
        assert_eq!(row["verdict"]["metrics"]["thinking"], 1.0, "{row}");
    }
    let again = document(&run_in(folder.path(), &["score", &run.manifest.run, "--json"]));
    assert_eq!((again["scored"].as_u64(), again["changed"].as_u64()), (Some(32), Some(0)), "{again}");
    assert_eq!(code(&run_in(folder.path(), &["runs", "verify"])), 0);

    // A completion that ends the thinking: what is before the end is no answer, what follows is.
    let gold = rows[0]["gold"].as_str().unwrap();
    let wrong = if gold == "77" { "78" } else { "77" };
    sql(
        &folder.path().join("earnest-results"),
        &format!(
            "UPDATE texts SET completion = '{wrong}</think>The answer is {gold}.' WHERE key % 4294967296 = 0;
             UPDATE texts SET completion = '{gold}</think>The answer is {wrong}.' WHERE key % 4294967296 = 1;"
        ),
    );
    let saved = document(&run_in(folder.path(), &["score", &run.manifest.run, "--json", "--save"]));
    assert_eq!(saved["flips"][0]["now_correct"], true, "{saved}");
    assert_eq!((saved["gained"].as_u64(), saved["lost"].as_u64()), (Some(1), Some(0)), "{saved}");
    let name = saved["saved"].as_str().unwrap();
    let scored = store(folder.path()).run(name).unwrap();
    let first: Value = serde_json::from_str(&timeless(folder.path(), &scored)[0]).unwrap();
    assert_eq!(first["verdict"]["correct"], true);
    // The old verdicts no longer fit the edited completions, the saved ones do.
    assert_eq!(code(&run_in(folder.path(), &["runs", "verify", name])), 0);
    assert_eq!(code(&run_in(folder.path(), &["runs", "verify", &run.manifest.run])), 4);
}

#[test]
fn verify_names_damaged_rows() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(code(&tiny_run(folder.path(), &SMALL)), 0);
    let verified = run_in(folder.path(), &["runs", "verify"]);
    assert_eq!(code(&verified), 0);
    assert!(stdout(&verified).contains("Checked: "), "{}", stdout(&verified));
    let cases = [
        ("UPDATE texts SET matchers = 'no JSON' WHERE key % 4294967296 = 3", "cannot be read: 1: sample 0 of"),
        ("UPDATE texts SET ids = x'ff' WHERE key % 4294967296 = 4", "token ids of a sample are damaged"),
        ("UPDATE texts SET completion = completion || '!' WHERE key % 4294967296 < 0", ""),
        ("UPDATE samples SET correct = 1 - correct WHERE key % 4294967296 = 6", "have a verdict that"),
        ("UPDATE samples SET completion_tokens = 99 WHERE key % 4294967296 = 7", "contradict themselves: "),
        ("UPDATE samples SET correct = NULL WHERE key % 4294967296 = 8", "contradict themselves: "),
        ("DELETE FROM texts WHERE key % 4294967296 = 9", "have no text: 1"),
        ("UPDATE texts SET gold = 'x' WHERE key % 4294967296 = 10", "not in the run's plan"),
        ("DELETE FROM samples WHERE key % 4294967296 = 11", "31 of 32 rows"),
    ];
    for (damage, said) in cases {
        let copy = tempfile::tempdir().unwrap();
        let results = folder.path().join("earnest-results");
        // A checkpoint of the log, so that the file is all there is to copy.
        sql(&results, "PRAGMA wal_checkpoint(TRUNCATE)");
        std::fs::copy(results.join(FILE_NAME), copy.path().join(FILE_NAME)).unwrap();
        sql(copy.path(), damage);
        let verified = run_in(folder.path(), &["runs", "verify", "--results", copy.path().to_str().unwrap()]);
        assert_eq!(code(&verified), if said.is_empty() { 0 } else { 4 }, "{damage}: {}", stdout(&verified));
        assert!(stdout(&verified).contains(said), "{damage}: {}", stdout(&verified));
    }
    // Pages overwritten in the middle of the file.
    let results = folder.path().join("earnest-results");
    let path = results.join(FILE_NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    let verified = run_in(folder.path(), &["runs", "verify"]);
    assert_eq!(code(&verified), 4, "{}{}", stdout(&verified), stderr(&verified));
}

#[test]
fn merging_names_rows_that_disagree_and_copies_nothing() {
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for folder in [&here, &there] {
        assert_eq!(code(&tiny_run(folder.path(), &SMALL)), 0);
    }
    let other = there.path().join("earnest-results");
    let merge = || run_in(here.path(), &["merge", other.to_str().unwrap()]);
    // Rows that are equal but for timings agree, and rows that are not here are taken.
    sql(
        &here.path().join("earnest-results"),
        "DELETE FROM texts WHERE key % 4294967296 > 20; DELETE FROM samples WHERE key % 4294967296 > 20",
    );
    let merged = merge();
    assert_eq!(code(&merged), 0, "{}", stderr(&merged));
    assert!(stderr(&merged).contains("11 samples copied"), "{}", stderr(&merged));
    assert_eq!(timeless_rows(here.path()), timeless_rows(there.path()));

    // A prompt that was another one: nothing in the row itself contradicts it.
    sql(&other, "UPDATE texts SET prompt_sha256 = 'ab' WHERE key % 4294967296 IN (2, 30)");
    let before = timeless_rows(here.path());
    let refused = merge();
    assert_eq!(code(&refused), 4);
    let said = stderr(&refused);
    assert!(said.contains("2 of 32 samples") && said.contains(" in prompt") && said.contains("help: "), "{said}");
    assert_eq!(timeless_rows(here.path()), before);

    // Rows that are damaged in themselves are refused before they are compared.
    sql(&other, "UPDATE samples SET correct = 1 - correct WHERE key % 4294967296 = 5");
    let refused = merge();
    assert_eq!(code(&refused), 4);
    assert!(stderr(&refused).contains("is damaged: rows that have a verdict"), "{}", stderr(&refused));
}
