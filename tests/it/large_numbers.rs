//! Numbers of options and files beyond what memory and time allow: refused with the name and the limit, before anything is taken.
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::program::*;

#[track_caller]
fn refused(folder: &Path, words: &[&str], said: &[&str]) {
    let begun = Instant::now();
    let output = run_in(folder, words);
    let text = stderr(&output);
    assert_eq!(code(&output), 2, "{words:?}: {text}");
    assert!(text.len() < 2_000, "{words:?}: {} bytes", text.len());
    assert!(begun.elapsed() < Duration::from_secs(10), "{words:?}: {:?}", begun.elapsed());
    for word in said {
        assert!(text.contains(word), "{words:?}: no {word:?} in {text}");
    }
}

#[test]
fn designs_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let design = |options: &str, said: &[&str]| {
        let words = format!("stats power design --effect 0.03 --accuracy 0.6 {options}");
        refused(folder.path(), &words.split(' ').collect::<Vec<_>>(), said);
    };
    let million = "1000000";
    design("--templates 2000000 --questions 5", &["--templates 2000000", million]);
    design("--templates 5 --questions 3000000 --samples 2", &["--questions 3000000", million]);
    design("--templates 5 --questions 3 --samples 18446744073709551615", &["--samples 18446744073709551615", million]);
    design("--most-templates 70000000", &["--most-templates 70000000", million]);
    design("--most-questions 9000 --most-samples 90", &["--most-questions 9000", "810000 pairs", "100000"]);
    design("--templates 9000 --questions 900 --samples 9 --simulate 10", &["72900000 answers", million]);
    design(
        "--templates 90 --questions 90 --samples 9 --simulate 900000000000",
        &["--simulate 900000000000", "too long"],
    );
}

#[test]
fn trainings_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let train = |options: &str, said: &[&str]| {
        let words = format!("train number-model --out m --tasks add_Integer --lengths 1 --steps 2 {options}");
        refused(folder.path(), &words.split(' ').collect::<Vec<_>>(), said);
    };
    train("--words 999999999999", &["words", "999999999999", "131072"]);
    train("--batch 999999999", &["batch", "999999999", "4096"]);
    train("--context 999999999999", &["context", "999999999999", "65536"]);
    train("--validation 999999999999", &["validation", "999999999999"]);
    assert!(!folder.path().join("m").exists());
}

#[test]
fn studies_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = |count: usize| {
        (0..count).fold(String::new(), |mut text, task| {
            writeln!(text, "[tasks.t{task}]\nsuite = \"nupa\"\nlimit = 1").unwrap();
            text
        })
    };
    let models = |count: usize| {
        (0..count).fold(String::new(), |mut text, model| {
            writeln!(text, "[models.m{model}]\nmodel = \"built-in\"").unwrap();
            text
        })
    };
    let study = |text: &str, said: &[&str]| {
        std::fs::write(folder.path().join("s.toml"), text).unwrap();
        for more in [&["--dry-run"][..], &[]] {
            refused(folder.path(), &[&["study", "s.toml"], more].concat(), said);
        }
    };
    study(&format!("{}{}", models(20_000), tasks(1)), &["20000 models", "500"]);
    study(&format!("{}{}", models(1), tasks(700)), &["700 tasks", "500"]);
    study(&format!("{}{}", models(200), tasks(90)), &["18000 runs", "10000"]);
    let name = "n".repeat(300);
    study(&format!("name = \"{name}\"\n{}{}", models(1), tasks(1)), &["line 1", "300 bytes", "150"]);
    study(&format!("[models.{name}]\nmodel = \"built-in\"\n{}", tasks(1)), &["a model", "300 bytes", "200"]);
    study(&format!("{}[tasks.{name}]\nsuite = \"nupa\"\n", models(1)), &["a task", "300 bytes", "200"]);
}

#[test]
fn formulas_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "correct,g,a,b,c,d,e\n".to_owned();
    for row in 0_u32..600 {
        let bit = |n: u32| row >> n & 1;
        writeln!(table, "{},g{},{},{},{},{},{}", row * 7 % 5 % 2, row % 30, bit(0), bit(1), bit(2), bit(3), bit(4))
            .unwrap();
    }
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    let formula = |formula: &str, said: &[&str]| {
        refused(folder.path(), &["stats", "glmm", "t.csv", "--formula", formula], said);
    };
    let columns = |count: usize, sign: &str| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>().join(sign);
    formula(&format!("correct ~ {} + (1|g)", columns(30, "*")), &["500 terms"]);
    formula(&format!("correct ~ a + ({}|g)", columns(12, "*")), &["500 terms"]);
    formula(&format!("correct ~ {} + (1|g)", columns(5_000, "+")), &["20000"]);
    formula("correct ~ a + (a*b*c*d*e|g)", &["528 variances and correlations", "40", "||"]);
}
