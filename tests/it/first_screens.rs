//! First screens of runs at 80, 100 and 140 columns: the model inside the program, a real checkpoint, another tool's log.
use std::path::Path;

use crate::program::{code, earnest, stderr, stdout};

/// Standard output of a command at each width; a run that is there already is printed again.
fn at_widths(folder: &Path, words: &[&str]) -> String {
    let mut shown = String::new();
    for columns in [80, 100, 140] {
        let results = if words[0] == "import" { format!("results-{columns}") } else { "results".to_owned() };
        let mut command = earnest(folder);
        command.env("EARNEST_CACHE", folder.join("cache")).env("COLUMNS", columns.to_string());
        let output = command.args(words).args(["--results", &results]).output().unwrap();
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        let out = stdout(&output);
        let lines = out.lines().count();
        assert!(lines <= 40, "{words:?} at {columns} columns: {lines} lines\n{out}");
        // A command is copied, and not broken.
        let is_command = |line: &str| line.starts_with("next: ") || line.starts_with("      earnest ");
        let is_narrow = |line: &str| line.chars().count() <= columns || is_command(line);
        assert!(out.lines().all(is_narrow), "{words:?} at {columns} columns\n{out}");
        shown += &format!("=== {columns} columns\n{out}");
    }
    shown
}

#[test]
fn the_model_inside_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let nupa = ["run", "nupa", "--lengths", "1-8", "--per-length", "1", "--limit", "318", "--max-tokens", "24"];
    insta::assert_snapshot!("nupa_of_the_built_in_model", at_widths(folder.path(), &nupa));
    let bench = ["run", "arithmetic-bench", "--lengths", "1,2,5,20", "--per-length", "2", "--max-tokens", "24"];
    insta::assert_snapshot!("arithmetic_bench_of_the_built_in_model", at_widths(folder.path(), &bench));
    let gsm = ["run", "gsm-mini", "--limit", "6", "--max-tokens", "8"];
    insta::assert_snapshot!("gsm_mini_of_the_built_in_model", at_widths(folder.path(), &gsm));
}

#[test]
fn a_real_checkpoint() {
    let Some(models) = std::env::var_os("EARNEST_MODELS") else {
        eprintln!("skipped: EARNEST_MODELS is not set, so the screen of a real checkpoint is not tested");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let model = Path::new(&models).join("SmolLM2-135M-Instruct.Q4_1.gguf").display().to_string();
    let mut words = vec!["run", "nupa", "--model", &model, "--compute", "int8", "--prompt", "raw", "--shots", "1"];
    words.extend(["--lengths", "1-4", "--per-length", "1", "--limit", "106", "--max-tokens", "12"]);
    insta::assert_snapshot!("nupa_of_smollm2", at_widths(folder.path(), &words));
}

#[test]
fn a_log_and_several() {
    let folder = tempfile::tempdir().unwrap();
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/logs");
    let several = logs.join("lm-eval/logs").display().to_string();
    insta::assert_snapshot!("logs_of_lm_eval", at_widths(folder.path(), &["import", &several]));
    let folder = tempfile::tempdir().unwrap();
    let inspect = std::fs::read_dir(logs.join("inspect/logs")).unwrap().map(|entry| entry.unwrap().path());
    let epochs = inspect.filter(|path| path.display().to_string().contains("arith-epochs")).max().unwrap();
    let one = ["import", &epochs.display().to_string()].map(str::to_owned);
    insta::assert_snapshot!("log_of_inspect", at_widths(folder.path(), &one.each_ref().map(String::as_str)));
}
