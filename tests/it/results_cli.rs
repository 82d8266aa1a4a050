//! Messages about stored results that are damaged, differ or failed, and the exit codes of failures.

use std::path::Path;

use crate::program::*;
use earnest_results::store::{FILE_NAME, Store};
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
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&"ended".into(), &"too_many_failures".into()));
    assert!(last["failed"].as_u64().unwrap() >= 6, "{last}");
    let started = events.iter().find(|event| event["event"] == "started").unwrap();
    assert_eq!((started["planned"].as_u64(), started["recorded"].as_u64()), (Some(576), Some(0)));
    assert!(said.contains("continues without those"), "{said}");

    // The same command goes on behind them, and its events are added, also behind half a line that a kill left.
    let path = folder.path().join("events.jsonl");
    std::fs::write(&path, text.trim_end_matches('\n').to_owned() + "\n{\"format\": 1, \"ev").unwrap();
    let output = run_in(folder.path(), &[&words[..], &bounded].concat());
    assert_eq!(code(&output), 6, "{}", stderr(&output));
    let later = timeless_rows(folder.path());
    assert!(later.len() > rows.len() + 5, "{} after {}", later.len(), rows.len());
    let text = std::fs::read_to_string(path).unwrap();
    let (whole, half): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.ends_with('}'));
    assert_eq!(half, ["{\"format\": 1, \"ev"]);
    let events: Vec<Value> = whole.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started: Vec<u64> = events
        .iter()
        .filter(|event| event["event"] == "started")
        .map(|event| event["recorded"].as_u64().unwrap())
        .collect();
    assert_eq!(started, [0, rows.len() as u64]);

    // Without a bound the run ends, with 1.
    let unbounded = run_in(folder.path(), &[&words[..4], &["--threads", "1"], &SMALL].concat());
    assert_eq!(code(&unbounded), 1, "{}", stderr(&unbounded));
    assert!(stdout(&unbounded).contains(" samples failed and are excluded from accuracies"), "{}", stdout(&unbounded));
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
fn completions_inside_opened_thinking_are_scored_with_it_then_and_again() {
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
    reseal(&folder.path().join("earnest-results"));
    let saved = document(&run_in(folder.path(), &["score", &run.manifest.run, "--json", "--save"]));
    assert_eq!(saved["flips"][0]["now_correct"], true, "{saved}");
    assert_eq!((saved["gained"].as_u64(), saved["lost"].as_u64()), (Some(1), Some(0)), "{saved}");
    let name = saved["saved"].as_str().unwrap();
    let scored = store(folder.path()).run(name).unwrap();
    let first: Value = serde_json::from_str(&timeless(folder.path(), &scored)[0]).unwrap();
    assert_eq!(first["verdict"]["correct"], true);
    // The old scores no longer fit the edited completions, the saved ones do.
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
        ("UPDATE samples SET correct = 1 - correct WHERE key % 4294967296 = 6", "have a score that"),
        ("UPDATE samples SET completion_tokens = 99 WHERE key % 4294967296 = 7", "are inconsistent: "),
        ("UPDATE samples SET correct = NULL WHERE key % 4294967296 = 8", "are inconsistent: "),
        ("DELETE FROM texts WHERE key % 4294967296 = 9", "have no text: 1"),
        ("UPDATE texts SET gold = 'x' WHERE key % 4294967296 = 10", "not in the run's plan"),
        ("DELETE FROM samples WHERE key % 4294967296 = 11", "31 of 32 rows"),
        // What contradicts nothing else in the file: the row is not as it was written.
        (
            "UPDATE texts SET prompt_sha256 = 'ab' || substr(prompt_sha256, 3) WHERE key % 4294967296 = 12",
            "were edited in",
        ),
        ("UPDATE texts SET extracted = 'x', covariates = '{}' WHERE key % 4294967296 = 13", "were edited in"),
        (
            "UPDATE samples SET decode_s = decode_s / 2 WHERE key % 4294967296 IN (14, 15)",
            "were edited in the file after they were written, or have no seal: 2",
        ),
        ("UPDATE runs SET settings_sha256 = 'ab' || substr(settings_sha256, 3)", "settings_sha256 in the list of runs"),
        ("UPDATE runs SET model = 'another', suite = 'nupa'", "suite, model in the list of runs"),
        ("UPDATE runs SET planned = 5", "planned in the list of runs"),
        ("DELETE FROM asked", "have no readable question, or not that of the suite in the same version: 32"),
        ("UPDATE texts SET seal = NULL", "were edited in the file after they were written, or have no seal: 32"),
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
    reseal(&other);
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
    assert!(stderr(&refused).contains("is damaged: rows that have a score"), "{}", stderr(&refused));
}

#[test]
fn a_run_of_programs_is_checked_without_its_interpreter_but_for_the_scores() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("questions.jsonl"), r#"{"question": "Write a function solution().", "answer": 42}"#)
        .unwrap();
    let task = "name = \"functions\"\nscorers = [\"python\"]\n[questions]\npath = \"questions.jsonl\"\n";
    std::fs::write(at.join("functions.toml"), task).unwrap();
    let model = tiny();
    let words =
        ["run", "functions.toml", "--model", model.to_str().unwrap(), "--max-tokens", "4", "--unconfined", "--quiet"];
    let ran = run_in(at, &words);
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    assert_eq!(code(&run_in(at, &["runs", "verify", "--unconfined"])), 0);
    // An isolation that does not start is a slip of the user's: this command ends at once.
    let results = at.join("earnest-results");
    let isolated = run_in(at, &["runs", "verify", "--sandbox-command", "true"]);
    assert_eq!(code(&isolated), 4);
    assert!(stdout(&isolated).contains("it cannot be checked: "), "{}", stdout(&isolated));
    // Another interpreter may give other values.
    sql(&results, "UPDATE runs SET manifest = replace(manifest, 'RustPython', 'OtherPython')");
    reseal(&results);
    let verify = || run_in(at, &["runs", "verify", "--unconfined"]);
    let verified = verify();
    assert_eq!(code(&verified), 0, "{}{}", stdout(&verified), stderr(&verified));
    assert!(stdout(&verified).contains("(not scored again)"), "{}", stdout(&verified));
    assert!(stderr(&verified).contains("were run by OtherPython"), "{}", stderr(&verified));
    let merged = run_in(at, &["merge", "earnest-results", "--results", "copy", "--unconfined"]);
    assert_eq!(code(&merged), 0, "{}", stderr(&merged));
    assert!(stderr(&merged).contains("1 sample copied"), "{}", stderr(&merged));
    sql(&results, "UPDATE texts SET completion = completion || '!'");
    let verified = verify();
    assert_eq!(code(&verified), 4, "{}{}", stdout(&verified), stderr(&verified));
    assert!(stdout(&verified).contains("were edited in the file"), "{}", stdout(&verified));
    // Without its questions nothing is left to compare rows with.
    sql(&results, "DELETE FROM asked");
    let verified = verify();
    assert_eq!(code(&verified), 4);
    assert!(stdout(&verified).contains("it cannot be checked: "), "{}", stdout(&verified));
}

#[test]
fn outcome_files_are_verified_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    std::fs::create_dir(at.join("outcomes")).unwrap();
    let run = only_run(at).manifest.run;
    let words = ["export", &run, "--format", "parquet", "--outcomes", "-o", "outcomes/run.parquet"];
    assert_eq!(code(&run_in(at, &words)), 0);
    let verified =
        earnest(at).args(["runs", "verify", "--results", "outcomes"]).env("EARNEST_CACHE", at.join("cache")).output();
    let verified = verified.unwrap();
    assert_eq!(code(&verified), 0, "{}{}", stdout(&verified), stderr(&verified));
    assert!(stdout(&verified).contains("neither\nquestions nor"), "{}", stdout(&verified));
}

/// `earnest run` of a part into a folder.
fn run_part(at: &Path, part: &str, results: &str) {
    assert_eq!(code(&tiny_run(at, &[&SMALL[..], &["--shard", part, "--results", results]].concat())), 0);
}

#[test]
fn a_merge_that_is_repeated_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run_part(at, "1/2", "one");
    run_part(at, "2/2", "two");
    assert_eq!(code(&tiny_run(at, &[&SMALL[..], &["--results", "unbroken"]].concat())), 0);
    let merge = |folders: &[&str], results: &str| {
        let output = run_in(at, &[&["merge"], folders, &["--results", results]].concat());
        assert_eq!(code(&output), 0, "{folders:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output) + &stderr(&output)
    };
    let runs = |results: &str| {
        let store = earnest_results::store::Store::open(&at.join(results)).unwrap();
        let runs = store.runs().unwrap();
        runs.iter().map(|run| (run.manifest.run.clone(), store.count(run).unwrap())).collect::<Vec<_>>()
    };
    assert!(merge(&["one", "two"], "all").contains("2 parts joined, 32 samples"));
    let joined = runs("all");
    assert_eq!((joined.len(), joined[0].1), (1, 32));
    for _ in 0..2 {
        let said = merge(&["one", "two"], "all");
        assert_eq!(said.matches("nothing to copy, its 16 samples are in arithmetic-bench").count(), 2, "{said}");
        assert_eq!(runs("all"), joined);
    }
    // A part and the whole, in either order; and the whole twice.
    for (folders, results) in [(["one", "all"], "left"), (["all", "one"], "right"), (["all", "unbroken"], "twice")] {
        for _ in 0..2 {
            merge(&folders, results);
            assert_eq!(runs(results), joined, "{folders:?}");
        }
    }
    // A part beside the whole it is in: the part is not needed.
    let beside = merge(&["one"], "unbroken");
    assert!(beside.contains("nothing to copy, its 16 samples are in"), "{beside}");
    assert_eq!(code(&run_in(at, &["runs", "verify", "--results", "right"])), 0);
    // A run that was begun whole takes the parts in.
    sql(
        &at.join("unbroken"),
        "DELETE FROM texts WHERE key % 4294967296 > 20; DELETE FROM samples WHERE key % 4294967296 > 20;
         UPDATE runs SET status = 'interrupted', manifest = replace(manifest, '\"status\":\"finished\"', \
         '\"status\":\"interrupted\"')",
    );
    reseal(&at.join("unbroken"));
    assert!(merge(&["one", "two"], "unbroken").contains("2 parts joined, 32 samples"));
    assert_eq!(runs("unbroken"), joined);
    assert_eq!(code(&run_in(at, &["runs", "verify", "--results", "unbroken"])), 0);
    // Merging a folder with itself is a slip.
    let itself = run_in(at, &["merge", "./all", "--results", "all"]);
    assert!(code(&itself) == 2 && stderr(&itself).contains("is the results folder itself"), "{}", stderr(&itself));
    assert_eq!(runs("all"), joined);
}

#[test]
fn a_run_is_repeated_into_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    let name = only_run(at).manifest.run;
    let repeat = |from: &str, results: &str| {
        run_in(at, &["run", "--from", from, "--results", results, "--threads", "1", "--quiet"])
    };
    for (from, results) in [(name.clone(), "new"), (format!("new/{name}"), "newer"), (format!("./newer/{name}"), "new")]
    {
        let output = repeat(&from, results);
        assert_eq!(code(&output), 0, "{from}: {}", stderr(&output));
    }
    let rows = |results: &str| {
        let store = earnest_results::store::Store::open(&at.join(results)).unwrap();
        store.runs().unwrap().iter().map(|run| store.count(run).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((rows("earnest-results"), rows("new"), rows("newer")), (vec![32], vec![32, 32], vec![32]));
    let unknown = repeat("no-such-run", "new");
    assert_eq!(code(&unknown), 2);
    let said = stderr(&unknown);
    assert!(said.contains("no-such-run in new or earnest-results") && said.contains("--from FOLDER/RUN"), "{said}");
    assert!(!at.join("newest").exists() && code(&repeat("no-such-run", "newest")) == 2 && !at.join("newest").exists());
}

#[test]
fn comparisons_say_which_settings_differ() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    let first = only_run(at).manifest.run;
    assert_eq!(code(&tiny_run(at, &[&SMALL[..], &["--new"]].concat())), 0);
    let again = run_in(at, &["compare", &first, &format!("{first}.2")]);
    assert!(code(&again) == 0 && stderr(&again).is_empty(), "equal settings need no warning: {}", stderr(&again));
    let other = ["--lengths", "1..2", "--per-length", "1", "--max-tokens", "9", "--temperature", "0.5", "--quiet"];
    assert_eq!(code(&tiny_run(at, &[&other[..], &["--dtype", "bf16"]].concat())), 0);
    let third = store(at).runs().unwrap().pop().unwrap().manifest.run;
    let output = run_in(at, &["compare", &first, &third]);
    let said = stderr(&output);
    assert_eq!(code(&output), 0, "{said}");
    for part in ["token limit (6 in A, 9 in B)", "temperature (0.0 in A, 0.5 in B)", "weights (as stored in A, "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
    let json = document(&run_in(at, &["compare", &first, &third, "--json"]));
    let names: Vec<&str> =
        json[0]["settings"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"generation.max_tokens"), "{names:?}");
}

#[test]
fn an_import_of_some_samples_is_called_partial() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("one.jsonl"), "{\"item\": \"arithmetic-bench/1/add/001/000\", \"completion\": \"3\"}\n")
        .unwrap();
    let words = ["import", "arithmetic-bench", "--tasks", "add", "--lengths", "1", "--per-length", "2", "--name", "m"];
    assert_eq!(code(&run_in(at, &[&words[..], &["--completions", "one.jsonl"]].concat())), 0);
    let list = document(&run_in(at, &["runs", "list", "--json"]));
    assert_eq!((list[0]["status"].as_str(), list[0]["recorded"].as_u64()), (Some("partial"), Some(1)));
    assert!(!stdout(&run_in(at, &["runs", "list"])).contains("interrupted"));
    let report = run_in(at, &["report", "m", "-o", "report.html"]);
    assert!(stderr(&report).contains(" KiB"), "{}", stderr(&report));
}

#[test]
fn one_id_with_another_question_is_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let cache = at.join("cache");
    let asked = |suite: &str, options: &[&str]| {
        let runs: Vec<String> = ["2", "3"]
            .map(|seed| {
                let words =
                    ["run", suite, "--model", "earnest-abacus-1.4m", "--seed", seed, "--max-tokens", "2", "--json"];
                let output = earnest(at).env("EARNEST_CACHE", &cache).args(words).args(options).output().unwrap();
                assert_eq!(code(&output), 0, "{}", stderr(&output));
                document(&output)["manifest"]["run"].as_str().unwrap().to_owned()
            })
            .into();
        let output = run_in(at, &["compare", &runs[0], &runs[1], "--json"]);
        // Without a common question there is nothing to compare, which is an error.
        let (items, different) = match code(&output) {
            0 => {
                let compared = document(&output).as_array().unwrap()[0].clone();
                (compared["items"].as_u64().unwrap(), compared["different_question"].as_u64().unwrap())
            }
            other => {
                assert_eq!((other, stdout(&output).as_str()), (2, ""));
                let said = stderr(&output);
                let (count, _) = said.split_once(" ids in common, but under each of them another question").unwrap();
                (0, count.rsplit(' ').next().unwrap().parse().unwrap())
            }
        };
        // What was asked, as exported: questions by their ids.
        let questions = runs.iter().map(|run| {
            let folder = format!("lm-{run}");
            let output = earnest(at)
                .env("EARNEST_CACHE", &cache)
                .args(["export", run, "--format", "lm-eval", "-o", &folder])
                .output()
                .unwrap();
            assert_eq!(code(&output), 0, "{}", stderr(&output));
            let mut found = std::collections::BTreeMap::new();
            let model = std::fs::read_dir(at.join(folder)).unwrap().next().unwrap().unwrap().path();
            for file in std::fs::read_dir(model).unwrap().map(|file| file.unwrap().path()) {
                if file.extension().is_some_and(|end| end == "jsonl") {
                    for line in std::fs::read_to_string(file).unwrap().lines() {
                        let line: Value = serde_json::from_str(line).unwrap();
                        let doc = &line["doc"];
                        let name = |field: &str| doc[field].as_str().unwrap().to_owned();
                        found.insert(name("id"), (name("question"), name("answer")));
                    }
                }
            }
            found
        });
        let questions: Vec<_> = questions.collect();
        let both = questions[0].iter().filter_map(|(id, one)| Some((one, questions[1].get(id)?)));
        let (mut same, mut answer) = (0, 0);
        for (one, other) in both {
            same += u64::from(one == other);
            answer += u64::from(one.1 == other.1);
        }
        (items, different, same, answer)
    };
    let (items, different, same, answer) = asked("nupa", &["--tasks", "count_Integer", "--limit", "120"]);
    assert!(answer > same + 5, "many questions have the same answer: {answer}, {same}");
    assert_eq!((items, different), (same, 120 - same));
    let (items, different, same, answer) = asked("gsm-mini", &["--prompt", "gsm", "--limit", "40"]);
    assert!(same >= 10 && answer >= same, "originals are the same under any seed: {same}, {answer}");
    assert_eq!((items, different), (same, 40 - same));
}

#[test]
fn texts_in_questions_are_found_in_every_pack() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Three packs of questions, with characters that JSON escapes.
    let text = |index: usize| match index % 300 {
        7 => format!("What is \"{index}\" + 1?"),
        8 => format!("a\\b\tc {index}"),
        9 => format!("\u{6570} {index}"),
        _ => format!("What is {index} + 1?"),
    };
    let (mut questions, mut completions) = (String::new(), String::new());
    for index in 0..1300 {
        let id = format!("q{index:04}");
        let row = serde_json::json!({"id": id, "question": text(index), "answer": index + 1});
        questions += &format!("{row}\n");
        completions += &format!("{}\n", serde_json::json!({"item": id, "completion": "1"}));
    }
    std::fs::write(at.join("own.jsonl"), questions).unwrap();
    std::fs::write(at.join("c.jsonl"), completions).unwrap();
    let import = run_in(at, &["import", "own.jsonl", "--completions", "c.jsonl", "--name", "m", "--quiet"]);
    assert_eq!(code(&import), 0, "{}", stderr(&import));
    for wanted in ["\" + 1?", "a\\b", "\t", "\u{6570}", "is 1299", "is 5", "What is", "nowhere"] {
        let expected: Vec<String> =
            (0..1300).filter(|index| text(*index).contains(wanted)).map(|index| format!("q{index:04}")).collect();
        let found = run_in(at, &["samples", "own", "--question", wanted, "--json", "--limit", "2000"]);
        let items = |output: &str| -> Vec<String> {
            output.lines().map(|line| line.split("\"item\":\"").nth(1).unwrap()[..5].to_owned()).collect()
        };
        assert_eq!(items(&stdout(&found)), expected, "{wanted:?}: {}", stderr(&found));
    }
}

#[test]
fn samples_show_the_prompt_that_was_asked_and_refuse_slips() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let model = copy_of_tiny(at);
    edit_json(&model.join("tokenizer_config.json"), |config| {
        config["chat_template"] = "{{ bos_token }}<<{{ messages[-1].content }}>>".into();
    });
    let words = ["run", "nupa", "--model", "copy", "--threads", "1", "--max-tokens", "3", "--limit", "4", "--quiet"];
    let few = ["--tasks", "add_Integer", "--lengths", "1-3", "--shots", "2"];
    for mode in ["chat", "raw"] {
        let output = run_in(at, &[&words[..], &few, &["--prompt", mode]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let runs: Vec<String> = store(at).runs().unwrap().into_iter().map(|run| run.manifest.run).collect();
    let [chat, raw] = &runs[..] else { panic!("two runs") };
    let shown = |words: &[&str]| {
        let output = run_in(at, &[&["samples"], words].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let card = shown(&[chat, "--limit", "1"]);
    assert!(card.contains("  prompt      <bos><<") && card.contains(">>\n"), "{card}");
    assert!(!card.contains("  question") && !card.contains("not stored"), "{card}");
    let text = shown(&[raw, "--limit", "1"]);
    assert!(text.contains("  prompt      ") && !text.contains("<<") && !text.contains("not stored"), "{text}");
    assert_eq!(text.matches("Add two numbers: ").count(), 3, "two examples and the question: {text}");

    // A task by its short name; what no sample has is a slip.
    assert!(shown(&[chat, "--task", "add_Integer"]).contains("add_Integer_Integer_Integer"));
    for slip in [["--task", "ad_Integer"], ["--task", "sub_Integer"], ["--item", "nothing/1/2"], ["--reason", "wrnog"]]
    {
        let output = run_in(at, &["samples", chat, slip[0], slip[1]]);
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{slip:?}");
        let said = stderr(&output);
        assert!(said.contains("no sample of") && said.contains("help: "), "{said}");
    }
    let said = stderr(&run_in(at, &["samples", chat, "--task", "sub_Integer"]));
    assert!(said.contains("it has add_Integer") && !said.contains("add_Integer_"), "{said}");

    // The export has the prompt, the examples in it and what ends a completion.
    let exported = |run: &str, folder: &str| {
        let output = run_in(at, &["export", run, "--format", "lm-eval", "-o", folder]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let model = std::fs::read_dir(at.join(folder)).unwrap().next().unwrap().unwrap().path();
        let read = |start: &str| {
            let mut files = std::fs::read_dir(&model).unwrap().map(|file| file.unwrap().path());
            let file = files.find(|file| file.file_name().unwrap().to_str().unwrap().starts_with(start)).unwrap();
            std::fs::read_to_string(file).unwrap()
        };
        let results: Value = serde_json::from_str(&read("results_")).unwrap();
        let first: Value = serde_json::from_str(read("samples_").lines().next().unwrap()).unwrap();
        let shots = results["n-shot"].as_object().unwrap().values().next().unwrap().as_u64().unwrap();
        (shots, first["arguments"]["gen_args_0"].clone(), stderr(&output))
    };
    let (shots, arguments, said) = exported(chat, "lm-chat");
    assert_eq!((shots, &arguments["arg_1"]["until"]), (2, &serde_json::json!([])));
    let prompt = arguments["arg_0"].as_str().unwrap();
    assert!(prompt.starts_with("<bos><<") && prompt.ends_with(">>") && !said.contains("warning"), "{prompt} {said}");
    let (shots, arguments, _) = exported(raw, "lm-raw");
    assert_eq!((shots, &arguments["arg_1"]["until"]), (2, &serde_json::json!(["\n"])));
    assert_eq!(arguments["arg_0"].as_str().unwrap().matches("Add two numbers: ").count(), 3, "{arguments}");

    // Without the model, and with one whose template is another one now, the prompts are those that were asked.
    let cards = [shown(&[chat, "--limit", "4"]), shown(&[raw, "--limit", "4"])];
    std::fs::rename(&model, at.join("elsewhere")).unwrap();
    assert_eq!([shown(&[chat, "--limit", "4"]), shown(&[raw, "--limit", "4"])], cards);
    let (_, arguments, said) = exported(chat, "lm-again");
    assert!(arguments["arg_0"].as_str().unwrap().starts_with("<bos><<") && !said.contains("warning"), "{arguments}");
    std::fs::rename(at.join("elsewhere"), &model).unwrap();
    edit_json(&model.join("tokenizer_config.json"), |config| {
        config["chat_template"] = "{{ bos_token }}[[{{ messages[-1].content }}]]".into();
    });
    assert_eq!(shown(&[chat, "--limit", "4"]), cards[0]);
}

#[cfg(unix)]
#[test]
fn results_that_may_not_be_written_are_read() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    let run = only_run(at).manifest.run;
    let program = at.join("program");
    std::fs::copy(env!("CARGO_BIN_EXE_earnest"), &program).unwrap();
    let results = at.join("earnest-results");
    let allow = |bits: u32| {
        let mut places = vec![at.to_owned(), results.clone(), results.join("locks")];
        places.extend(std::fs::read_dir(&results).unwrap().map(|file| file.unwrap().path()));
        places.extend(std::fs::read_dir(results.join("locks")).unwrap().map(|file| file.unwrap().path()));
        for place in places {
            let own = if place.is_dir() { bits | 0o111 } else { bits };
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(own)).unwrap();
        }
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    // Permissions do not bind root, who becomes somebody else.
    // SAFETY: returns a number.
    let root = unsafe { libc::geteuid() } == 0;
    let read = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.current_dir(at).args(words).env_remove("EARNEST_RESULTS");
        if root {
            command.uid(65_534).gid(65_534);
        }
        command.output().unwrap()
    };
    allow(0o444);
    for words in [
        &["runs", "list"][..],
        &["runs", "show", &run],
        &["runs", "verify"],
        &["samples", &run, "--limit", "1"],
        &["report", &run, "-o", "-"],
        &["export", &run, "--format", "csv", "-o", "-"],
        &["score", &run],
    ] {
        let output = read(words);
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("arithmetic-bench"), "{words:?}: {}", stdout(&output));
    }
    let refused = read(&["runs", "delete", &run, "--yes"]);
    assert_eq!(code(&refused), 4, "{}", stderr(&refused));
    // Tables of another version are refused, and so is an empty file.
    allow(0o644);
    sql(&results, "PRAGMA user_version = 3; PRAGMA wal_checkpoint(TRUNCATE)");
    allow(0o444);
    let other = read(&["runs", "list"]);
    assert!(code(&other) == 4 && stderr(&other).contains("earnest.sqlite has format 3"), "{}", stderr(&other));
    allow(0o644);
    std::fs::write(results.join("earnest.sqlite"), "").unwrap();
    allow(0o444);
    let empty = read(&["runs", "list"]);
    assert!(code(&empty) == 4 && stderr(&empty).contains("is not a results file"), "{}", stderr(&empty));
    allow(0o755);
}

#[test]
fn a_hash_names_the_run_it_ends_and_nothing_to_do_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    let run = only_run(at).manifest.run;
    let hash = run.rsplit('-').next().unwrap();
    assert_eq!(code(&run_in(at, &["score", &run, "--save"])), 0);
    assert_eq!(code(&tiny_run(at, &[&SMALL[..], &["--new"]].concat())), 0);
    let names: Vec<String> = store(at).runs().unwrap().into_iter().map(|run| run.manifest.run).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let shown = document(&run_in(at, &["runs", "show", hash, "--json"]));
    assert_eq!(shown["manifest"]["run"], run.as_str());
    let copy = document(&run_in(at, &["runs", "show", "scored", "--json"]));
    assert_eq!(copy["manifest"]["run"], format!("{run}-scored").as_str());
    let ambiguous = run_in(at, &["runs", "show", &hash[..6]]);
    assert!(code(&ambiguous) == 2 && stderr(&ambiguous).contains("matches 3"), "{}", stderr(&ambiguous));
    // Held against a paper, the copy and its original are one run.
    let beside = document(&run_in(at, &["reproduce", "arithmetic-bench", "--json"])).to_string();
    assert!(beside.contains(&format!("{run}-scored")) && beside.contains(&format!("{run}.2")), "{beside}");
    assert!(!beside.contains(&format!("{run}\"")) && !beside.contains(&format!("{run} ")), "{beside}");

    for words in [&["resume"][..], &["merge"]] {
        let output = run_in(at, words);
        assert_eq!((code(&output), stdout(&output).as_str()), (0, ""), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("no parts of runs") || stderr(&output).contains("nothing to resume"));
    }
    // A page beside the run is told of.
    let page = at.join("earnest-results").join(format!("{run}.html"));
    std::fs::write(&page, "").unwrap();
    // A part of a name is not enough for what cannot be undone.
    let part = run_in(at, &["runs", "delete", hash, "--yes"]);
    assert_eq!(code(&part), 2, "{}", stderr(&part));
    assert!(stderr(&part).contains(&format!("did you mean {run}?")), "{}", stderr(&part));
    assert_eq!(code(&run_in(at, &["runs", "show", &run])), 0);
    let deleted = run_in(at, &["runs", "delete", &run, "--yes"]);
    assert!(code(&deleted) == 0 && stderr(&deleted).contains(".html is not deleted"), "{}", stderr(&deleted));
    assert!(page.exists());
}

#[test]
fn parts_that_are_all_here_are_not_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run_part(at, "1/2", "earnest-results");
    // Not yet: the whole run is begun beside its part, with a word about it.
    let aside = run_in(at, &["merge"]);
    assert_eq!(code(&aside), 4);
    run_part(at, "2/2", "earnest-results");
    let refused = tiny_run(at, &SMALL);
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    let said = stderr(&refused);
    assert!(said.contains("all 2 parts") && said.contains("`earnest merge`") && said.contains("--new"), "{said}");
    assert_eq!(code(&run_in(at, &["merge"])), 0);
    let joined = only_run(at).manifest.run;
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    assert_eq!(only_run(at).manifest.run, joined, "the whole run is reported");
    run_part(at, "1/2", "other");
    let asked = tiny_run(at, &[&SMALL[..], &["--results", "other"]].concat());
    assert!(
        code(&asked) == 0 && stderr(&asked).contains("parts 1/2 of this run are already finished"),
        "{}",
        stderr(&asked)
    );
}

#[test]
fn files_of_completions_may_begin_with_a_mark_and_models_need_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let line = "\u{feff}{\"item\": \"arithmetic-bench/1/add/001/000\", \"completion\": \"3\"}\n";
    std::fs::write(at.join("one.jsonl"), line).unwrap();
    let words =
        ["import", "arithmetic-bench", "--tasks", "add", "--lengths", "1", "--per-length", "1", "--completions"];
    let import = |name: &str| run_in(at, &[&words[..], &["one.jsonl", "--name", name]].concat());
    for nameless in ["", " "] {
        let output = import(nameless);
        assert!(code(&output) == 2 && stderr(&output).contains("--name is empty"), "{}", stderr(&output));
    }
    let output = import("m");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    // A run without a completion has no share of right answers.
    sql(&at.join("earnest-results"), "DELETE FROM texts; DELETE FROM samples");
    sql(
        &at.join("earnest-results"),
        "UPDATE runs SET status = 'interrupted', manifest = replace(manifest, '\"finished\"', '\"interrupted\"')",
    );
    reseal(&at.join("earnest-results"));
    let scored = stdout(&run_in(at, &["score", "m"]));
    assert!(scored.contains("nothing to score") && !scored.contains('%'), "{scored}");
}

#[test]
fn names_with_a_slip_are_answered_with_the_nearest_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    let run = only_run(at).manifest.run;
    for words in [
        &["runs", "show", "arithmetic-bench-lama"][..],
        &["samples", "arithmetik-bench"],
        &["compare", "arithmetic-bench-lama", "llama"],
        &["report", "arithmetic-bench-lama"],
        &["export", "arithmetic-bench-lama", "--format", "jsonl", "-o", "-"],
        &["score", "arithmetic-bench-lama"],
        &["runs", "delete", "arithmetic-bench-lama"],
        &["run", "--from", "arithmetic-bench-lama"],
    ] {
        let refused = run_in(at, words);
        let said = stderr(&refused);
        assert!(code(&refused) == 2 && said.contains("there is no run"), "{words:?}: {said}");
        assert!(said.contains(&format!("did you mean {run}?")), "{words:?}: {said}");
    }
    // A letter is no part of a name.
    for letter in ["b", "l", "x"] {
        let refused = run_in(at, &["runs", "show", letter]);
        assert!(stderr(&refused).contains(&format!("there is no run {letter}")), "{}", stderr(&refused));
    }
    let command = run_in(at, &["rnu", "nupa"]);
    assert!(stderr(&command).contains("'run'") && !stderr(&command).contains("'runs'"), "{}", stderr(&command));
}

#[test]
fn runs_of_one_model_are_told_apart_in_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let list = |columns: Option<usize>| {
        let mut command = earnest(at);
        match columns {
            Some(columns) => command.env("COLUMNS", columns.to_string()),
            None => command.env_remove("COLUMNS"),
        };
        stdout(&command.args(["runs", "list"]).output().unwrap())
    };
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    let json = || document(&run_in(at, &["runs", "list", "--json"]));
    assert!(json()[0].get("label").is_none() && !list(None).contains("what differs"), "{}", list(None));
    for words in [&["--seed", "2"][..], &["--seed", "2", "--temperature", "0.5"], &["--new"]] {
        assert_eq!(code(&tiny_run(at, &[&SMALL[..], words].concat())), 0);
    }
    let json = json();
    let labels: Vec<&str> = json.as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels[1..3], ["temperature 0.0, seed 2", "temperature 0.5, seed 2"]);
    for same in [labels[0], labels[3]] {
        assert!(same.starts_with("temperature 0.0, seed 1, begun 20"), "{same}");
    }
    let piped = list(None);
    let row = piped.lines().find(|line| line.contains("temperature 0.5, seed 2")).unwrap();
    assert!(row.starts_with("arithmetic-bench-llama-") && row.contains("finished"), "{piped}");
    for columns in [60, 80, 100, 140, 200] {
        let screen = list(Some(columns));
        assert!(screen.lines().all(|line| line.chars().count() <= columns), "{columns}\n{screen}");
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(labels.iter().all(|label| words.contains(label)), "{columns}\n{screen}");
    }
    // The error for a name of several runs has the same labels.
    let refused = stderr(&run_in(at, &["runs", "show", "llama"]));
    assert!(labels.iter().all(|label| refused.contains(&format!("# {label}"))), "{refused}");
}

#[test]
fn the_lines_of_a_run_are_no_wider_than_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(code(&tiny_run(at, &SMALL)), 0);
    let nupa = ["run", "nupa", "--model", tiny().to_str().unwrap(), "--max-tokens", "4", "--quiet"].map(str::to_owned);
    for limit in ["3", "20"] {
        let run = earnest(at).args(&nupa).args(["--limit", limit]).env("COLUMNS", "80").output().unwrap();
        let screen = stdout(&run);
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    }
    for run in store(at).runs().unwrap() {
        for columns in [60, 80, 100] {
            for metric in [&[][..], &["--metric", "all"]] {
                let mut command = earnest(at);
                command.args(["runs", "show", &run.manifest.run]).args(metric).env("COLUMNS", columns.to_string());
                let screen = stdout(&command.output().unwrap());
                // The path of the checkpoint on this machine may be longer than a line.
                let wide = |line: &&str| line.chars().count() > columns && !line.contains(tiny().to_str().unwrap());
                // The table of tasks of a suite without grids, and that of scorers, is as wide as its columns on small screens.
                let wide = screen.lines().filter(|_| columns >= 80).find(wide);
                assert_eq!(wide, None, "{columns}\n{screen}");
                for part in ["options   ", "tasks ", "cost      ", "settings  sha256:"] {
                    assert!(screen.contains(part), "{part}: {screen}");
                }
                assert!(!screen.contains(['{', '}']), "{screen}");
            }
        }
    }
}

#[test]
fn wrong_answers_are_offered_where_there_are_some() {
    use earnest_tasks::suite::Items;
    use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};

    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let options = Options {
        tasks: vec!["add".parse().unwrap()],
        lengths: "1".parse().unwrap(),
        per_length: 2,
        ..Options::default()
    };
    let suite = ArithmeticBench::new(options).unwrap();
    let import = |name: &str, answer: &dyn Fn(usize, &str) -> String| {
        let lines: String = suite
            .iter()
            .enumerate()
            .map(|(number, item)| {
                let completion = answer(number, &item.gold);
                format!("{}\n", serde_json::json!({"item": item.id, "completion": completion}))
            })
            .collect();
        std::fs::write(at.join("answers.jsonl"), lines).unwrap();
        let words = ["import", "arithmetic-bench", "--tasks", "add", "--lengths", "1", "--per-length", "2", "--name"];
        let output = run_in(at, &[&words[..], &[name, "--completions", "answers.jsonl"]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let right = import("right", &|_, gold| gold.to_owned());
    assert!(
        right.contains("next: earnest compare OTHER arithmetic-bench-right-") && !right.contains("--wrong"),
        "{right}"
    );
    let wrong = import("wrong", &|number, gold| if number == 0 { "none".to_owned() } else { gold.to_owned() });
    assert!(wrong.contains("next: earnest samples arithmetic-bench-wrong-") && wrong.contains("--wrong"), "{wrong}");
    assert!(wrong.contains("\n      earnest compare OTHER "), "{wrong}");
}

#[test]
fn offered_commands_name_the_folder_that_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let results = ["--results", "elsewhere"];
    assert_eq!(code(&tiny_run(at, &[&SMALL[..], &results].concat())), 0);
    let run = Store::open(&at.join("elsewhere")).unwrap().runs().unwrap().remove(0).manifest.run;
    let again = run_in(at, &[&["resume", &run, "--threads", "1"], &results[..]].concat());
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    let repeats = format!("`earnest run --from {run} --results elsewhere` repeats it");
    assert!(stderr(&again).contains(&repeats), "{}", stderr(&again));
    let slip = run_in(at, &[&["runs", "show", "no-such-run"], &results[..]].concat());
    assert!(stderr(&slip).contains("`earnest runs list --results elsewhere` lists them"), "{}", stderr(&slip));
    // A name that both runs have, given for both.
    assert_eq!(code(&tiny_run(at, &[&SMALL[..], &results, &["--new"]].concat())), 0);
    let words = ["compare", "arithmetic-bench", "arithmetic-bench", "--results", "elsewhere"];
    let ambiguous = run_in(at, &words);
    assert_eq!(code(&ambiguous), 2, "{}", stderr(&ambiguous));
    let said = stderr(&ambiguous);
    let offered = said.lines().find_map(|line| line.strip_prefix("  earnest ")).unwrap();
    let words: Vec<&str> = offered.split("  #").next().unwrap().split_whitespace().collect();
    assert_eq!((words[0], words.len()), ("compare", 5), "{said}");
    assert_ne!(words[1], words[2]);
    assert_eq!(code(&run_in(at, &words)), 0, "{said}");
    // The table that a screen offers.
    let words = ["run", "nupa", "--limit", "60", "--threads", "1", "--quiet"];
    assert_eq!(code(&run_in(at, &[&words[..], &results].concat())), 0);
    let screen = stdout(&run_in(at, &[&["runs", "show", "nupa"], &results[..]].concat()));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" --metric exact_match --results elsewhere`. * "), "{screen}");
    // Without the option there is nothing to say.
    let plain = run_in(at, &["runs", "show", "no-such-run"]);
    assert!(!stderr(&plain).contains("--results elsewhere"), "{}", stderr(&plain));
}
