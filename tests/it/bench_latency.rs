//! `earnest bench latency` on a tiny checkpoint: measurements and refused arguments.

use crate::bench_program::{Running, command, outcome};
use serde_json::Value;

fn latency(words: &[&str]) -> (i32, String, String) {
    outcome("latency", words)
}

fn document(words: &[&str]) -> Value {
    let (code, stdout, stderr) = latency(words);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn both_modes_answer_the_same_questions_at_every_batch_size() {
    let d = document(&["--tasks", "add_Integer", "--lengths", "1,2", "--batch", "1,4", "--samples", "6", "--json"]);
    assert_eq!(d["questions"], 6);
    let names: Vec<&str> = d["modes"].as_array().unwrap().iter().map(|mode| mode["mode"].as_str().unwrap()).collect();
    assert_eq!(names, ["direct", "rf-cot"]);
    for mode in d["modes"].as_array().unwrap() {
        assert!(mode["unsteady"].as_array().unwrap().is_empty(), "the engine's tokens depend on the batch");
        let latencies = mode["latencies"].as_array().unwrap();
        assert_eq!(latencies.iter().map(|l| l["batch"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 4]);
        for l in latencies {
            assert_eq!(l["passes"].as_array().unwrap().len(), 3);
            let reached = l["passes"][0]["largest_batch"].as_u64().unwrap();
            assert_eq!(reached, l["batch"].as_u64().unwrap());
            let value = |name: &str| l[name].as_f64().unwrap();
            let s = &l["seconds_per_sample"];
            let (low, median, high) =
                (s["low"].as_f64().unwrap(), s["median"].as_f64().unwrap(), s["high"].as_f64().unwrap());
            assert!(0.0 < low && low <= median && median <= high);
            // Steps take most of a pass, and no more than all of it.
            let steps = value("prefill_per_sample") + value("decode_per_sample");
            assert!(steps <= median * 1.001 && steps >= 0.2 * median, "{steps} of {median}");
            assert!(l["first_token_s"]["median"].as_f64() <= l["latency_s"]["median"].as_f64());
            assert!(value("kv_bytes") > 0.0);
        }
    }
    let times = d["modes"][1]["latencies"][0]["times_direct"].as_f64().unwrap();
    let median = |mode: usize| d["modes"][mode]["latencies"][0]["seconds_per_sample"]["median"].as_f64().unwrap();
    assert!((times - median(1) / median(0)).abs() < 1e-9);
}

#[test]
fn the_right_number_of_tokens_is_generated_whatever_the_model_writes() {
    let tokens = |rule: &str| {
        let d = document(&[
            "--tasks",
            "add_Integer",
            "--lengths",
            "1",
            "--batch",
            "3",
            "--samples",
            "3",
            "--repeat",
            "1",
            "--tokens",
            rule,
            "--json",
        ]);
        let mean = |mode: usize| d["modes"][mode]["latencies"][0]["new_tokens"].as_f64().unwrap();
        (mean(0), mean(1), d["modes"][0]["right"].clone())
    };
    let (direct, rule_following, right) = tokens("right");
    assert!(right.is_null(), "the model did not choose the number of its tokens");
    assert!((2.0..=4.0).contains(&direct), "a digit and the end of the sequence: {direct}");
    assert!(rule_following > 10.0 * direct, "a trace is much longer: {rule_following}");
    assert!(tokens("written").2.is_number());
}

#[test]
fn questions_beyond_the_window_are_dropped_and_counted() {
    let words =
        ["--tasks", "add_Integer", "--lengths", "1,20", "--batch", "2", "--samples", "4", "--repeat", "1", "--json"];
    let d = document(&words);
    let window = d["window"].as_u64().unwrap();
    let dropped = d["dropped"]["by_task"].as_object().unwrap();
    assert!(
        dropped.values().all(|count| count.as_u64() > Some(0)) && dropped.len() == 1,
        "a trace of 20 digits fits {window}?"
    );
    let (code, _, stderr) = latency(&["--context", "12"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("fits a window of 12 tokens") && stderr.contains("--lengths"), "{stderr}");
    let (code, _, stderr) = latency(&["--context", "99999999"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("exceeds the model's context"), "{stderr}");
}

#[test]
fn tasks_without_a_rule_are_refused_for_rule_following_only() {
    let (code, _, stderr) = latency(&["--tasks", "count_Integer"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("count") && stderr.contains("--modes direct"), "{stderr}");
    let direct = ["--tasks", "count_Integer", "--modes", "direct", "--batch", "2", "--samples", "2", "--repeat", "1"];
    let (code, stdout, stderr) = latency(&direct);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("direct") && !stdout.contains("rf-cot"), "{stdout}");
}

#[test]
fn what_was_measured_before_ctrl_c_is_printed() {
    let words = ["--tasks", "add_Integer", "--lengths", "1", "--batch", "2", "--samples", "2", "--repeat", "1000"];
    for json in [false, true] {
        let words = [&words[..], if json { &["--json"] } else { &[] }].concat();
        // The third pass of all has begun: one of each mode is whole.
        let (code, stdout, rest) = Running::until("latency", &words, "pass 2 of 1000").interrupt();
        assert_eq!(code, 130, "{rest}");
        assert!(rest.contains("of 2000 passes were measured"), "{rest}");
        if json {
            let d: Value = serde_json::from_str(&stdout).unwrap();
            let passes = d["passes"].as_u64().unwrap();
            assert!((2..2000).contains(&passes) && d["planned_passes"] == 2000, "{passes}");
            let rows = d["modes"].as_array().unwrap().iter();
            let of = |mode: &Value| mode["latencies"][0]["passes"].as_array().unwrap().len() as u64;
            assert_eq!(rows.map(of).sum::<u64>(), passes);
        } else {
            assert!(stdout.contains("rf-cot") && stdout.contains("of 2000 passes; the results"), "{stdout}");
        }
    }
}

#[test]
fn direct_answers_in_the_same_memory_are_named_beside_the_paper_s() {
    let words = ["--tasks", "add_Integer", "--lengths", "1", "--batch", "1,4", "--samples", "4", "--repeat", "1"];
    let d = document(&[&words[..], &["--json"]].concat());
    let (direct, rule) = (&d["modes"][0]["latencies"], &d["modes"][1]["latencies"]);
    let median = |row: &Value| row["seconds_per_sample"]["median"].as_f64().unwrap();
    for row in rule.as_array().unwrap() {
        let same = &row["same_memory"];
        let base = direct.as_array().unwrap().iter().find(|base| base["batch"] == same["batch"]).unwrap();
        assert!(base["kv_bytes"].as_u64() <= row["kv_bytes"].as_u64());
        assert!((same["times"].as_f64().unwrap() - median(row) / median(base)).abs() < 1e-9);
    }
    assert!(direct[0]["same_memory"].is_null());
    let (_, stdout, _) = latency(&words);
    let stdout = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    // 5.625 / 0.371 and 5.625 / 0.336 of Table 2.
    assert!(stdout.contains("15.2 times direct at 128, 16.7 times direct at 256 (the same memory)"), "{stdout}");
}

#[test]
fn a_cache_that_is_too_small_is_refused_before_anything_is_measured() {
    let words = ["--tasks", "add_Integer", "--lengths", "2", "--batch", "1", "--samples", "1", "--repeat", "1"];
    let needed = |stderr: &str| stderr.contains("--kv-memory");
    let (code, _, stderr) = latency(&[&words[..], &["--kv-memory", "64KiB"]].concat());
    assert!(code == 2 && needed(&stderr) && !stderr.contains("pass 1"), "{code} {stderr}");
    // Which question of which mode it was.
    assert!(stderr.contains("direct, add_Integer"), "{stderr}");
    let (code, _, stderr) = latency(&["--batch", "1,4", "--max-batch", "2"]);
    assert!(code == 2 && stderr.contains("--max-batch 2 is less") && !stderr.contains("loading"), "{code} {stderr}");
}

#[test]
fn the_document_says_what_was_asked_and_the_screen_fits() {
    let words = ["--tasks", "add_Integer", "--lengths", "1,2", "--batch", "1,2", "--samples", "4", "--repeat", "1"];
    let d = document(&[&words[..], &["--warm-up", "1", "--no-prefix-cache", "--threads", "1", "--json"]].concat());
    assert_eq!(d["tasks"], serde_json::json!(["add_Integer_Integer_Integer"]));
    assert_eq!(d["lengths"], serde_json::json!([1, 2]));
    assert_eq!((&d["samples"], &d["warm_up"]), (&4.into(), &1.into()));
    assert_eq!((&d["options"]["prefix_cache"], &d["options"]["threads"]), (&false.into(), &1.into()));
    assert_eq!(d["asked_modes"], serde_json::json!(["direct", "rf-cot"]));
    for columns in [60, 80, 200] {
        let output = command("latency", &words)
            .args(["--no-prefix-cache"])
            .env("COLUMNS", columns.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("no prefix cache"), "{text}");
        // One pass has no range.
        assert!(text.lines().filter(|line| line.starts_with("direct  ")).all(|line| !line.contains('[')), "{text}");
        let rows = text.lines().filter(|line| line.starts_with("rf-cot  ")).count();
        // Two batch sizes in one table, two or three.
        assert_eq!(
            rows,
            2 * if columns == 200 {
                1
            } else if columns == 80 {
                2
            } else {
                3
            },
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
    let (code, _, stderr) = latency(&["--threads", "0"]);
    assert!(code == 2 && stderr.contains("at least 1 thread"), "{stderr}");
}
