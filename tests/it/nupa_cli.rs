//! The NUPA suite at the command line: runs on a tiny random checkpoint, generation, rule lengths, refusals.
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn tiny() -> PathBuf {
    // The committed copy: `EARNEST_GOLDEN` may name a folder that holds other vectors.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama")
}

fn earnest(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).env("EARNEST_MODEL", tiny()).env("COLUMNS", "100");
    for name in ["EARNEST_RESULTS", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.args(words).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let fixed = ["run", "nupa", "--threads", "1", "--quiet", "--max-tokens", "4"];
    let output = earnest(folder, &[&fixed[..], words].concat());
    // The prompts of rule following are longer than the context of the tiny checkpoint: then samples fail, the run does not.
    let expected = if words.contains(&"rule-following") { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(expected), "{words:?}: {}", stderr(&output));
    output
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

#[test]
fn all_tasks_run_and_the_table_reads_like_figure_2() {
    let folder = tempfile::tempdir().unwrap();
    // Lengths up to 20 and few of them: the context of the tiny checkpoint is 512 characters.
    let words = ["--lengths", "2,6,12,20", "--per-length", "1"];
    let first = stdout(&run(folder.path(), &words));
    // Nothing is right, so there are no bars.
    assert!(first.contains("By length: S (0 %") && first.contains("Nothing right: add, "), "{first}");
    assert!(!first.contains("Bars for"), "{first}");
    assert!(first.lines().count() <= 40, "{first}");
    let screen = stdout(&run(folder.path(), &[&words[..], &["--metric", "exact_match"]].concat()));
    let lines: Vec<&str> = screen.lines().collect();
    let heading = lines.iter().position(|line| line.trim_start().starts_with('S')).expect("a heading");
    assert_eq!(lines[heading].split_whitespace().collect::<Vec<_>>()[..2], ["S", "M"]);
    let rows = |name: &str| lines.iter().filter(|line| line.split_whitespace().next() == Some(name)).count();
    assert_eq!((rows("add"), rows("sig"), rows("floordiv"), rows("all")), (4, 2, 1, 1));
    for heading in ["Integer", "Float", "Fraction", "Scientific"] {
        assert!(lines.contains(&heading), "{heading}\n{screen}");
    }
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{screen}");

    // The finished run shows its other tables.
    let digits = stdout(&run(folder.path(), &[&words[..], &["--metric", "dlength"]].concat()));
    assert!(digits.contains("dlength"), "{digits}");
    let all = stdout(&run(folder.path(), &[&words[..], &["--metric", "all"]].concat()));
    for title in ["Right, per cent", "Digit match", "dlength", "Up to how many digits"] {
        assert!(all.contains(title), "{title}");
    }

    let found = document(&run(folder.path(), &[&words[..], &["--json"]].concat()));
    assert_eq!(found["summary"]["rows"].as_array().unwrap().len(), 54);
    assert_eq!(found["grids"].as_array().unwrap().len(), 4);
    assert_eq!(found["totals"]["recorded"], found["totals"]["planned"]);
    let options = &found["manifest"]["settings"]["suite_options"];
    assert_eq!((&options["adapter"], &options["seed"]), (&"completion".into(), &1.into()));
    let runs = document(&earnest(folder.path(), &["runs", "list", "--json"]));
    assert_eq!(runs.as_array().unwrap().len(), 1, "what is shown is no part of a run's identity");
}

#[test]
fn stored_runs_are_read_with_their_own_options() {
    let folder = tempfile::tempdir().unwrap();
    let good = |words: &[&str]| {
        let output = earnest(folder.path(), words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        output
    };
    // Options that differ from every default, so that a suite built without them would ask something else.
    let words = ["--tasks", "add_Integer,max:Float", "--lengths", "2-4", "--per-length", "2", "--profile", "paper"];
    let first = document(&run(folder.path(), &[&words[..], &["--seed", "7", "--shots", "1", "--json"]].concat()));
    let name = first["manifest"]["run"].as_str().unwrap();
    let again = document(&good(&["run", "--from", name, "--threads", "1", "--quiet", "--json"]));
    let second = again["manifest"]["run"].as_str().unwrap();
    assert_ne!(name, second);
    assert_eq!(first["manifest"]["settings"], again["manifest"]["settings"]);
    assert_eq!(first["summary"], again["summary"]);
    let resumed = document(&good(&["resume", name, "--threads", "1", "--quiet", "--json"]));
    assert_eq!(resumed["grids"], first["grids"]);
    let shown = stdout(&good(&["runs", "show", name]));
    assert!(shown.contains("Right, per cent") && !shown.contains("Digit match"), "{shown}");
    assert!(stdout(&good(&["runs", "show", name, "--metric", "digit_match"])).contains("Digit match"));
    assert!(stdout(&good(&["samples", name, "--limit", "1"])).contains("add_Integer"));
    let scored = document(&good(&["score", name, "--json"]));
    assert_eq!((&scored["scored"], &scored["changed"]), (&12.into(), &0.into()));
    let compared = stdout(&good(&["compare", name, second]));
    assert!(compared.contains("12"), "{compared}");
    good(&["report", name, second, "-o", "report.html"]);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("add_Integer"));
    let rows = stdout(&good(&["export", name, "--format", "jsonl", "-o", "-"]));
    assert_eq!(rows.lines().count(), 12);
    good(&["export", name, "--format", "parquet", "-o", "samples.parquet"]);
    good(&["export", name, "--format", "lm-eval", "-o", "lm-eval"]);
    good(&["runs", "verify"]);

    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |row: &Value| serde_json::json!({"item": row["item"], "completion": row["gold"]}).to_string();
    let lines: Vec<String> = rows.iter().map(line).collect();
    std::fs::write(folder.path().join("answers.jsonl"), lines.join("\n")).unwrap();
    let fixed =
        ["import", "nupa", "--completions", "answers.jsonl", "--name", "perfect", "--seed", "7", "--shots", "1"];
    let imported = document(&good(&[&fixed[..], &words, &["--json"]].concat()));
    assert_eq!(imported["totals"]["recorded"], 12);
    assert_eq!(imported["grids"][0]["groups"][0]["rows"][0]["cells"][0]["value"]["estimate"], 1.0);
}

#[test]
fn options_that_change_items_change_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let fixed = ["--tasks", "add_Integer,max:Float", "--lengths", "3", "--per-length", "1", "--json"];
    let mut ids = std::collections::BTreeSet::new();
    let changes: [&[&str]; 13] = [
        &[],
        &["--seed", "2"],
        &["--split", "valid"],
        &["--profile", "paper"],
        &["--shots", "1"],
        &["--budget", "2xL"],
        &["--budget", "3"],
        &["--no-stop-at-newline"],
        &["--wording", "reference"],
        &["--reference"],
        &["--short-operand", "any"],
        &["--hard-floats", "equal"],
        &["--style", "rule-following"],
    ];
    for change in changes {
        let found = document(&run(folder.path(), &[&fixed[..], change].concat()));
        assert!(ids.insert(found["manifest"]["run"].as_str().unwrap().to_owned()), "{change:?}");
    }
    // Spelt otherwise, the same items are the same run.
    let same = ["--tasks", "add:Integer,max_Float_Float_Float", "--lengths", "3..3", "--per-length", "1", "--json"];
    let found = document(&run(folder.path(), &same));
    assert!(!ids.insert(found["manifest"]["run"].as_str().unwrap().to_owned()));
}

/// Imports lines with further options; returns the printed document.
fn import(folder: &Path, lines: &[String], words: &[&str]) -> Output {
    std::fs::write(folder.join("made.jsonl"), lines.join("\n")).unwrap();
    let fixed = ["import", "nupa", "--completions", "made.jsonl", "--name", "elsewhere", "--json"];
    earnest(folder, &[&fixed[..], words].concat())
}

#[test]
fn imported_chats_are_read_as_chats() {
    let folder = tempfile::tempdir().unwrap();
    let line = serde_json::json!({"task": "add_Integer", "a": "744", "b": "543", "completion": "The answer is 1287."});
    let exact = |words: &[&str]| {
        let output = import(folder.path(), &[line.to_string()], &[&["--profile", "ref"][..], words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let d = document(&output);
        (d["summary"]["rows"][0]["values"][0][1]["estimate"].clone(), d["manifest"]["settings"]["prompt_mode"].clone())
    };
    assert_eq!(exact(&["--prompt", "chat"]), (1.0.into(), "chat".into()));
    assert_eq!(exact(&[]), (0.0.into(), "raw".into()));
    let output = import(folder.path(), &[line.to_string()], &["--prompt", "auto"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--prompt chat"));
    let screen = earnest(folder.path(), &["runs", "show", "elsewhere"]);
    let screen = stdout(&screen);
    assert!(!screen.contains("greedy"), "how the completions were made is not known: {screen}");
}

#[test]
fn imported_questions_must_be_ones_that_can_be_answered() {
    let folder = tempfile::tempdir().unwrap();
    let good = serde_json::json!({"task": "sub_Integer", "a": "9", "b": "5", "completion": "4"}).to_string();
    for (task, a, b) in [("sub_Integer", "3", "5"), ("add_ScientificNotation", "1.5e-3", "2.0e-3")] {
        let bad = serde_json::json!({"task": task, "a": a, "b": b, "completion": "0"}).to_string();
        let output = import(folder.path(), &[good.clone(), bad], &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{task}: {said}");
        assert!(said.contains("line 2") && said.contains("cannot ask"), "{said}");
    }
}

#[test]
fn imported_items_must_be_the_questions_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let line = serde_json::json!({"item": "add_Integer_Integer_Integer/3/0", "task": "add_Integer", "a": "1", "completion": "4"});
    let output = import(folder.path(), &[line.to_string()], &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("line 1") && said.contains("not 1") && said.contains("--seed"), "{said}");
}

#[test]
fn samples_of_a_question_count_together() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for (question, (a, b)) in [("744", "543"), ("21", "35"), ("50", "49"), ("333", "111")].into_iter().enumerate() {
        let sum = a.parse::<u32>().unwrap() + b.parse::<u32>().unwrap();
        let text = if question < 2 { sum.to_string() } else { "0".to_owned() };
        let line = |sample: u32| {
            serde_json::json!({"task": "add_Integer", "a": a, "b": b, "completion": text, "sample": sample}).to_string()
        };
        lines.extend((0..50).map(line));
    }
    let output = import(folder.path(), &lines, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = document(&output)["summary"]["rows"][0]["values"][0][1].clone();
    let (low, high) = (value["low"].as_f64().unwrap(), value["high"].as_f64().unwrap());
    assert!(low < 0.16 && high > 0.84, "two questions of four: [{low}, {high}]");
}

#[test]
fn stopping_at_line_breaks_is_no_option_of_a_chat() {
    let folder = tempfile::tempdir().unwrap();
    let line = serde_json::json!({"task": "add_Integer", "a": "1", "b": "1", "completion": "2"});
    let output = import(folder.path(), &[line.to_string()], &["--prompt", "chat", "--no-stop-at-newline"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn the_prompt_mode_decides_the_adapter() {
    let folder = tempfile::tempdir().unwrap();
    let chatty = folder.path().join("chatty");
    std::fs::create_dir(&chatty).unwrap();
    for file in std::fs::read_dir(tiny()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), chatty.join(file.file_name())).unwrap();
    }
    let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>";
    std::fs::write(chatty.join("chat_template.jinja"), template).unwrap();
    let show = |words: &[&str]| {
        let fixed = ["show", "nupa", "--model", "chatty", "--task", "sig_Integer", "--json"];
        let output = earnest(folder.path(), &[&fixed[..], words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        document(&output)
    };
    let chat = show(&[]);
    let text = chat["text"].as_str().unwrap();
    assert!(text.contains("<system>") && text.contains(r#"r"\d+\.\d+e\d+""#), "{text}");
    assert_eq!((&chat["prompt"], chat["stop_strings"].as_array().unwrap().len()), (&"chat".into(), 0));
    let raw = show(&["--prompt", "raw", "--shots", "2"]);
    assert!(!raw["text"].as_str().unwrap().contains("<system>"));
    assert_eq!(raw["stop_strings"][0], "\n");
    assert_eq!(raw["text"].as_str().unwrap().lines().count(), 3);
    assert_eq!((&raw["item"], &raw["gold"]), (&chat["item"], &chat["gold"]));
}

#[test]
fn refusals_name_what_exists() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["run", "nupa", "--tasks", "add_Intger"], &["the nearest are add_Integer,", "`earnest suites` has all 53"]),
        (&["run", "nupa", "--tasks", "add_Integer,add:Integer"], &["--tasks", "named twice"]),
        (&["run", "nupa", "--lengths", "101"], &["1 to 100"]),
        (&["run", "nupa", "--lengths", "50", "--tasks", "add_Integer"], &["1 to 20"]),
        (&["run", "nupa", "--lengths", "50"], &["1 to 20"]),
        (&["run", "nupa", "--per-length", "0"], &["--per-length"]),
        (&["run", "nupa", "--profile", "best"], &["strict, paper, ref"]),
        (&["run", "nupa", "--budget", "plenty"], &["generous", "2xL"]),
        (&["run", "nupa", "--budget", "0"], &["--budget"]),
        (&["run", "nupa", "--shots", "9"], &["at most 8"]),
        (&["run", "nupa", "--shots", "2", "--style", "rule-following"], &["zero-shot"]),
        (&["run", "nupa", "--shots", "2", "--split", "train"], &["training split"]),
        (&["run", "nupa", "--tasks", "count_Integer", "--style", "rule-following"], &["no rule", "mod_Integer"]),
        (&["run", "nupa", "--reference", "--short-operand", "any"], &["contradicts"]),
        (&["run", "nupa", "--set", "1"], &["nupa has no --set"]),
        (&["run", "arithmetic-bench", "--shots", "1"], &["arithmetic-bench has no --shots"]),
        (&["run", "arithmetic-bench", "--reference"], &["--reference"]),
        (&["run", "arithmetic-bench", "--lengths", "reference"], &["nupa"]),
        (&["show", "nupa", "--task", "add"], &["the nearest are"]),
        (&["show", "nupa", "--item", "add_Integer/3/0"], &["no item"]),
        (&["generate", "nupa", "--tasks", "plus"], &["the nearest are"]),
        (&["generate", "nupa", "--lengths", "0"], &["lengths begin at 1"]),
        (&["generate", "nupa", "--tasks", "add_Integer", "--lengths", "21"], &["1 to 20"]),
        (&["generate", "nupa", "--tasks", "max_Float", "--index-hints", "5"], &["--index-hints", "alphabet"]),
        (&["generate", "nupa", "--text", "rule-following", "--reversal", "int"], &["--text", "plainly"]),
        (&["generate", "nupa", "--hints-from-high-digit"], &["--index-hints"]),
        (&["rf-lengths", "--tasks", "count_Integer"], &["no rule exists"]),
    ];
    for (words, parts) in cases {
        let output = earnest(folder.path(), words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        for part in *parts {
            assert!(stderr(&output).contains(part), "{words:?}: {part} is not in {}", stderr(&output));
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a refused command leaves nothing behind");
}

#[test]
fn generated_sets_repeat_and_never_share_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let generate = |words: &[&str]| {
        let fixed = ["generate", "nupa", "--tasks", "add_Integer,max_Float", "--lengths", "2-4", "--per-length", "50"];
        let output = earnest(folder.path(), &[&fixed[..], words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output
    };
    let test = generate(&[]);
    assert_eq!(stdout(&test).lines().count(), 300);
    assert!(stderr(&test).contains("300 lines"), "{}", stderr(&test));
    assert_eq!(generate(&["-o", "test.jsonl", "--quiet"]).stdout, b"");
    assert_eq!(std::fs::read(folder.path().join("test.jsonl")).unwrap(), test.stdout);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left behind");

    let train = generate(&["--split", "train"]);
    // Questions of two digits are in both parts, and are marked in the test.
    let lines = |output: &Output, short: bool| -> Vec<Value> {
        let all = stdout(output);
        let lines = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| (line["length"] == 2) == short).collect()
    };
    let prompts = |lines: Vec<Value>| -> std::collections::BTreeSet<String> {
        lines.iter().map(|line| line["prompt"].as_str().unwrap().to_owned()).collect()
    };
    assert!(prompts(lines(&train, false)).is_disjoint(&prompts(lines(&test, false))));
    assert!(lines(&test, true).iter().all(|line| line["in_train"] == true));
    assert!(lines(&test, false).iter().chain(&lines(&train, true)).all(|line| line.get("in_train").is_none()));

    let formatted = generate(&["--reversal", "int", "--zero-padding", "--index-hints", "12"]);
    let line: Value = serde_json::from_str(stdout(&formatted).lines().next().unwrap()).unwrap();
    let plain: Value = serde_json::from_str(stdout(&test).lines().next().unwrap()).unwrap();
    assert_eq!((&line["a"], &line["answer"]), (&plain["a"], &plain["answer"]));
    let reversed: String = plain["answer"].as_str().unwrap().chars().rev().collect();
    assert_eq!(line["completion"], reversed);
    assert!(line["prompt"].as_str().unwrap().contains("<i"));

    let few = earnest(folder.path(), &["generate", "nupa", "--tasks", "length_Integer", "--lengths", "1"]);
    assert!(stderr(&few).contains("fewer than 100 questions in the test part"), "{}", stderr(&few));
}

#[test]
fn an_unwritable_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = earnest(folder.path(), &["generate", "nupa", "--per-length", "1", "-o", "no/such/folder/x.jsonl"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("no/such/folder/x.jsonl"), "{}", stderr(&output));
    // A folder is no file, and must not be replaced by one.
    std::fs::create_dir(folder.path().join("taken")).unwrap();
    let output = earnest(folder.path(), &["generate", "nupa", "--per-length", "1", "-o", "taken"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(folder.path().join("taken").is_dir());
}

#[test]
fn rule_lengths_stand_beside_the_published_ones() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["rf-lengths", "--tasks", "mod_Integer,add_Fraction", "--questions", "2", "--context", "3000"];
    let screen = stdout(&earnest(folder.path(), &words));
    assert!(screen.contains("Table 19") && screen.contains("mod_Integer"), "{screen}");
    let found = document(&earnest(folder.path(), &[&words[..], &["--json"]].concat()));
    assert_eq!(found["tasks"][0]["published"], 6);
    let measured = found["tasks"][0]["measured"].as_array().unwrap();
    assert!(measured.windows(2).all(|pair| pair[0]["length"].as_u64() < pair[1]["length"].as_u64()));
    assert!(measured[0]["smallest"].as_u64() > Some(100));
}
