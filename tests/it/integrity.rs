//! Stores that were edited outside the program: whatever reads them names what was edited.
use std::path::Path;
use std::process::Output;

use crate::program::*;
use earnest_results::store::FILE_NAME;

const SMALL: [&str; 7] = ["--lengths", "1..2", "--per-length", "1", "--max-tokens", "6", "--quiet"];

fn sql(folder: &Path, statements: &str) {
    let file = folder.join("earnest-results").join(FILE_NAME);
    rusqlite::Connection::open(file).unwrap().execute_batch(statements).unwrap();
}

/// Copies the file of results, so that each edit is of a fresh one.
fn copied(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // A checkpoint of the log: the file is all there is to copy.
    sql(from, "PRAGMA wal_checkpoint(TRUNCATE)");
    let results = folder.path().join("earnest-results");
    std::fs::create_dir(&results).unwrap();
    std::fs::copy(from.join("earnest-results").join(FILE_NAME), results.join(FILE_NAME)).unwrap();
    folder
}

/// A results folder with two finished runs.
fn two_runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for seed in ["1", "2"] {
        let output = tiny_run(folder.path(), &[&SMALL[..], &["--seed", seed]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    store(folder).runs().unwrap().into_iter().map(|run| run.manifest.run).collect()
}

fn refuses(output: &Output, named: &[&str]) {
    assert_eq!(code(output), 4, "{}{}", stdout(output), stderr(output));
    let said = stderr(output);
    for word in named.iter().chain(&["was edited in", "earnest.sqlite", "earnest runs verify"]) {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}

#[test]
fn every_reader_names_an_edited_row_and_summary() {
    let whole = two_runs();
    let runs = names(whole.path());
    let (one, other) = (runs[0].as_str(), runs[1].as_str());
    let readers: [&[&str]; 9] = [
        &["runs", "list"],
        &["runs", "list", "--json"],
        &["runs", "show", one],
        &["runs", "show", one, "--json"],
        &["report", one, "-o", "page.html"],
        &["compare", other, one],
        &["export", one, "--format", "csv"],
        &["export", one, "--format", "lm-eval", "-o", "lm"],
        &["stats", "glmm", "--run", one],
    ];
    let edits = [
        ("UPDATE samples SET correct = 1 - correct WHERE key = 4294967296 + 3", "sample 0 of arithmetic-bench/"),
        (
            "UPDATE runs SET summary = replace(summary, '\"recorded\":', '\"recorded\":1') WHERE id = 1",
            "the row of runs with the manifest and the summary",
        ),
        (
            "UPDATE runs SET manifest = replace(manifest, '\"sessions\":1', '\"sessions\":2') WHERE id = 1",
            "the row of runs with the manifest and the summary",
        ),
        ("UPDATE runs SET status = 'interrupted', summary = NULL WHERE id = 1", "the row of runs"),
    ];
    for (edit, row) in edits {
        let folder = copied(whole.path());
        sql(folder.path(), edit);
        for words in readers {
            refuses(&run_in(folder.path(), words), &[one, row]);
        }
        assert!(!folder.path().join("page.html").exists() && !folder.path().join("lm").exists());
        // The other run is whole, and so is what does not read the edited one.
        assert_eq!(code(&run_in(folder.path(), &["runs", "show", other])), 0);
        let verified = run_in(folder.path(), &["runs", "verify"]);
        assert_eq!(code(&verified), 4);
        assert!(stdout(&verified).contains(&format!("damaged  {one}")), "{}", stdout(&verified));
        assert!(stdout(&verified).contains(&format!("ok       {other}")), "{}", stdout(&verified));
    }

    // A text is read by reports and exports, not by lists.
    let folder = copied(whole.path());
    sql(folder.path(), "UPDATE texts SET completion = completion || '!' WHERE key = 4294967296 + 5");
    assert_eq!(code(&run_in(folder.path(), &["runs", "list"])), 0);
    for words in [readers[4], readers[6], readers[8]] {
        refuses(&run_in(folder.path(), words), &[one, "sample 0 of arithmetic-bench/"]);
    }
    // An unfinished run has no summary: its screen is made of its rows.
    let folder = copied(whole.path());
    sql(
        folder.path(),
        "UPDATE runs SET status = 'interrupted', summary = NULL, \
         manifest = replace(manifest, '\"status\":\"finished\"', '\"status\":\"interrupted\"') WHERE id = 1",
    );
    reseal(&folder.path().join("earnest-results"));
    sql(folder.path(), "UPDATE texts SET matchers = replace(matchers, 'false', 'true') WHERE key = 4294967296 + 5");
    refuses(&run_in(folder.path(), readers[2]), &[one, "sample 0 of arithmetic-bench/"]);
}

#[test]
fn rows_without_seals_are_edited_rows() {
    let whole = two_runs();
    let runs = names(whole.path());
    let one = runs[0].as_str();
    let (list, show) = (["runs", "list"], ["runs", "show", one]);
    let (samples, export) = (["samples", one], ["export", one, "--format", "csv"]);
    let row = "sample 0 of arithmetic-bench/";
    let edits: [(&str, [&[&str]; 2], &str); 4] = [
        ("UPDATE samples SET seal = NULL WHERE key = 4294967296 + 3", [&list, &show], row),
        ("UPDATE texts SET seal = NULL WHERE key = 4294967296 + 3", [&samples, &export], row),
        ("UPDATE runs SET seal = NULL WHERE id = 1", [&list, &export], "the row of runs"),
        ("UPDATE asked SET seal = NULL WHERE key >> 32 = 1", [&samples, &["report", one]], "the link to the questions"),
    ];
    for (edit, readers, named) in edits {
        let folder = copied(whole.path());
        sql(folder.path(), edit);
        for words in readers {
            refuses(&run_in(folder.path(), words), &[one, named]);
        }
        let verified = run_in(folder.path(), &["runs", "verify"]);
        assert_eq!(code(&verified), 4, "{edit}: {}", stdout(&verified));
        assert!(stdout(&verified).contains(&format!("damaged  {one}")), "{edit}: {}", stdout(&verified));
    }
}

#[test]
fn missing_rows_and_exchanged_questions_are_named() {
    let whole = two_runs();
    let runs = names(whole.path());
    let one = runs[0].as_str();
    let folder = copied(whole.path());
    sql(folder.path(), "DELETE FROM samples WHERE key = 4294967296 + 3; DELETE FROM texts WHERE key = 4294967296 + 3");
    let readers: [&[&str]; 6] = [
        &["runs", "list"],
        &["runs", "show", one],
        &["report", one, "-o", "page.html"],
        &["export", one, "--format", "csv"],
        &["samples", one],
        &["stats", "glmm", "--run", one],
    ];
    for words in readers {
        let output = run_in(folder.path(), words);
        assert_eq!(code(&output), 4, "{words:?}: {}{}", stdout(&output), stderr(&output));
        let said = stderr(&output);
        assert!(
            said.contains(one) && said.contains("marked as finished, but has ") && said.contains(" rows"),
            "{said}"
        );
    }
    let folder = copied(whole.path());
    sql(
        folder.path(),
        "UPDATE asked SET questions = (SELECT questions FROM asked WHERE key >> 32 = 2) WHERE key >> 32 = 1",
    );
    for words in [&["samples", one][..], &["report", one, "-o", "page.html"], &["export", one, "--format", "jsonl"]] {
        refuses(&run_in(folder.path(), words), &[one, "the link to the questions"]);
    }
}

#[test]
fn triggers_and_views_are_refused_by_name() {
    let whole = two_runs();
    let cases = [
        ("CREATE TRIGGER flip AFTER INSERT ON samples BEGIN UPDATE samples SET correct = 1; END", "trigger flip"),
        ("CREATE VIEW best AS SELECT * FROM samples", "view best"),
        (
            "ALTER TABLE samples RENAME TO hidden; CREATE VIEW samples AS SELECT * FROM hidden WHERE correct = 1",
            "view samples",
        ),
    ];
    for (code_of_others, name) in cases {
        let folder = copied(whole.path());
        sql(folder.path(), code_of_others);
        for words in [&["runs", "list"][..], &["runs", "verify"]] {
            let refused = run_in(folder.path(), words);
            assert_eq!(code(&refused), 4, "{}", stderr(&refused));
            let said = stderr(&refused);
            assert!(said.contains(name) && said.contains("earnest.sqlite") && said.contains("help: "), "{said}");
        }
        let again = tiny_run(folder.path(), &[&SMALL[..], &["--seed", "3"]].concat());
        assert_eq!(code(&again), 4, "nothing is written either: {}", stderr(&again));
    }
}

#[test]
fn cells_of_csv_are_no_formulas_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let texts =
        ["=HYPERLINK(\"http://evil.example\",\"x\")", "@SUM(A1)", "+1+1", "-2+3", "'=1", "-12", "\t=1", "plain"];
    let items: Vec<String> = (0..texts.len()).map(|index| format!("arithmetic-bench/1/add/001/{index:03}")).collect();
    let lines: String = items
        .iter()
        .zip(texts)
        .map(|(item, text)| format!("{}\n", serde_json::json!({"item": item, "completion": text})))
        .collect();
    std::fs::write(folder.path().join("c.jsonl"), lines).unwrap();
    let import = ["import", "arithmetic-bench", "--completions", "c.jsonl", "--name", "m", "--tasks", "add"];
    assert_eq!(code(&run_in(folder.path(), &[&import[..], &["--lengths", "1"]].concat())), 0);
    let csv = stdout(&run_in(folder.path(), &["export", "m", "--format", "csv"]));
    for cell in
        [",\"'=HYPERLINK(\"\"http", ",'@SUM(A1),", ",'+1+1,", ",'-2+3,", ",''=1,", ",-12,", ",'\t=1,", ",plain,"]
    {
        assert!(csv.contains(cell), "{cell:?} in {csv}");
    }
    let raw = stdout(&run_in(folder.path(), &["export", "m", "--format", "csv", "--raw-cells"]));
    assert!(raw.contains(",@SUM(A1),") && raw.contains(",'=1,"), "{raw}");
    let refused = run_in(folder.path(), &["export", "m", "--format", "jsonl", "--raw-cells"]);
    assert_eq!(code(&refused), 2);
    for (name, text) in [("neutral", csv), ("raw", raw)] {
        let at = folder.path().join(name);
        std::fs::create_dir(&at).unwrap();
        std::fs::write(at.join("rows.csv"), text).unwrap();
        let read = run_in(&at, &["import", "rows.csv"]);
        assert_eq!(code(&read), 0, "{}", stderr(&read));
        let (run, results) = (only_run(&at), store(&at));
        let samples = results.samples(&run, Default::default());
        let samples = samples.map(|sample| sample.unwrap().completion.unwrap().text);
        assert_eq!(samples.collect::<Vec<_>>(), texts, "{name}");
    }
}
