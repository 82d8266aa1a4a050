//! The golden subject `glmm_formula` on spoilt, unseen and missing files.
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::golden_subjects::{files, glmm_formula};

const SET: &str = "s08_corr_one";

fn golden() -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm_formula");
    let text = files::read(&folder.join(format!("results/{SET}.json"))).unwrap();
    let mut golden: Value = serde_json::from_str(&text).unwrap();
    // One fit will do.
    golden["fits"].as_array_mut().unwrap().truncate(1);
    golden
}

/// The report on one file of this content, under a name that nobody knows.
fn report(content: &str) -> crate::golden_subjects::report::FileReport {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm_formula");
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("glmm_formula");
    std::fs::create_dir_all(target.join("results")).unwrap();
    std::fs::write(target.join("unseen.csv"), files::read(&source.join(format!("{SET}.csv"))).unwrap()).unwrap();
    std::fs::write(target.join("results/unseen.json"), content).unwrap();
    let mut reports = glmm_formula::check(folder.path());
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// Pointers to all numbers that the README has compared.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    const NOT_COMPARED: [&str; 8] =
        ["optimum", "default_glmer", "tolerance", "sd_tolerance", "error", "seconds", "seed", "truth"];
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(index, value)| numbers(value, &format!("{at}/{index}"), found));
        }
        Value::Object(entries) => {
            for (key, value) in entries.iter().filter(|(key, _)| !NOT_COMPARED.contains(&key.as_str())) {
                numbers(value, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_recorded_number_is_compared() {
    let golden = golden();
    let seen = report(&golden.to_string());
    assert!(seen.passes() && seen.total() == 1, "{:?}", seen.failures());
    let mut found = Vec::new();
    numbers(&golden["fits"], "/fits", &mut found);
    assert!(found.len() > 60, "{}", found.len());
    for pointer in found.iter().map(String::as_str).chain(["/rows"]) {
        let mut spoilt = golden.clone();
        let place = spoilt.pointer_mut(pointer).unwrap();
        let number = place.as_f64().unwrap();
        *place = json!(number + 0.1 * number.abs().max(0.1));
        assert!(!report(&spoilt.to_string()).passes(), "{pointer}: {number}");
    }
}

#[test]
fn spoilt_words_and_missing_parts_fail() {
    let golden = golden();
    for (pointer, instead) in [
        ("/link", json!("probit")),
        ("/fits", json!([])),
        ("/fits/0/family", json!("gaussian")),
        ("/fits/0/nAGQ", json!(5)),
        ("/fits/0/formula", json!("correct ~ variant + prompt + (1|template)")),
        ("/fits/0/formula", json!("correct ~ variant + prompt + (1+variant||template)")),
        ("/fits/0/formula", json!("correct ~ variant + prompt + (1+variant|template")),
        ("/fits/0/levels/variant", json!(["symbolic", "base"])),
        ("/fits/0/fixed/1/name", json!("variantbase")),
        ("/fits/0/fixed/1/estimate", json!("-0.28")),
        ("/fits/0/dropped_columns", json!(["promptdirect"])),
        ("/fits/0/singular", json!(false)),
        ("/fits/0/random", json!([])),
        ("/fits/0/random/0/group", json!("item")),
        ("/fits/0/random/0/terms/1", json!("promptdirect")),
        ("/fits/0/random/0/corr", Value::Null),
        ("/fits/0/conditional_modes/0/groups", json!([])),
        ("/fits/0/conditional_modes/0/groups/0/level", json!("t99")),
        ("/fits/0/marginal", Value::Null),
        ("/fits/0/marginal/factor", json!("prompt")),
        ("/fits/0/marginal/levels/0/level", json!("symbolic")),
        ("/fits/0/tolerance", Value::Null),
    ] {
        let mut spoilt = golden.clone();
        *spoilt.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = instead;
        assert!(!report(&spoilt.to_string()).passes(), "{pointer}");
    }
    for key in ["fixed", "random", "deviance", "aic", "conditional_modes", "marginal", "tolerance", "theta", "vcov_rx"]
    {
        let mut spoilt = golden.clone();
        spoilt["fits"][0].as_object_mut().unwrap().remove(key).unwrap();
        assert!(!report(&spoilt.to_string()).passes(), "{key}");
    }
    let text = golden.to_string();
    assert!(!report(&text[..text.len() / 2]).passes());
    assert!(!report("").passes());
}

#[test]
fn missing_files_are_absent() {
    let folder = tempfile::tempdir().unwrap();
    let reports = glmm_formula::check(folder.path());
    assert!(reports.len() == 1 && reports[0].is_absent());
    let results = folder.path().join("glmm_formula/results");
    std::fs::create_dir_all(&results).unwrap();
    std::fs::write(results.join("unseen.json"), golden().to_string()).unwrap();
    let reports = glmm_formula::check(folder.path());
    assert!(reports.len() == 1 && reports[0].is_absent() && reports[0].file.contains("unseen.csv"));
}
