//! Commands of docs/ and benches/results that need no model and no download: they stand on their pages as they are run here, and print the
//! numbers that the pages say. docs/study.md, docs/logs.md and docs/tasks.md have tests of their own.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A page, a command on it, its exit code, and what its output holds.
type Line = (&'static str, &'static str, i32, &'static [&'static str]);

const LINES: [Line; 13] = [
    (
        "results.md",
        "earnest stats power clustered --clusters 600 --accuracy 0.02 --intracluster 0.1 --second-size 10",
        0,
        &["0.0156 (1.56 percentage points), a rise if it is 0.0166"],
    ),
    (
        "results.md",
        "earnest stats power clustered --clusters 100 --accuracy 0.02 --intracluster 0.1 --second-size 10 --direction drop",
        1,
        &["No drop from 0.02 is detected, not even one to 0"],
    ),
    (
        "results.md",
        "earnest stats power paired --discordance 0.03 --items 2000 --accuracy 0.05",
        0,
        &["1.08 percentage points"],
    ),
    (
        "results.md",
        "earnest stats power design --effect 0.03 --accuracy 0.6 --intercept-sd 1.5 --slope-sd 0.7 --templates 100 --questions 50 --simulate 2000",
        0,
        &["Power 0.523 for a difference of +3.00 points", "Simulated: power 0.537"],
    ),
    (
        "mixed-models.md",
        "earnest stats glmm answers.csv --formula 'correct ~ model*variant + (1+variant|template) + (1|item)'",
        0,
        &["(1 + variant | template) + (1 | item)", "modelphi:variantsymbolic", "fully converged"],
    ),
    (
        "mixed-models.md",
        "earnest stats glmm answers.csv --formula 'latency ~ model + (1|item)' --family gaussian --drop model",
        0,
        &["REML", "likelihood-ratio tests"],
    ),
    (
        "dnc.md",
        "earnest perturb questions.jsonl --kinds language,verbosity,extra --seed 7 -o perturbed.jsonl",
        0,
        &["3 questions"],
    ),
    ("training.md", "earnest train memory memory.json", 0, &["155 of 155 trainings"]),
    ("training/memorise.md", "earnest train memory docs/training/memory.json", 0, &["42.8 ±8.5", "47.8 ±9.0"]),
    (
        "training/section-3.md",
        "earnest reproduce nupa --section 3 --figures figures",
        0,
        &["+37.3 [+6.3, +68.3]  0.035     0.602  left open"],
    ),
    (
        "training/dnc-defence.md",
        "earnest reproduce dnc --experiment docs/training/dnc-defence.json",
        0,
        &["1.1 [-7.2,   9.5]  1.00", "10.8"],
    ),
    ("statistics.md", "earnest stats holm 0.01 0.04 0.03", 0, &["0.0300", "adjusted for 3 tests"]),
    ("tasks.md", "earnest generate arithmetic-bench --lengths 1-8 -o sums.jsonl", 0, &["sums.jsonl"]),
];

/// Answers of two models to eight items of ten templates under two variants, and the seconds that they took.
fn answers() -> String {
    let mut text = String::from("model,variant,template,item,correct,latency\n");
    for number in 0_u32..320 {
        let (model, variant, template, item) = (number % 2, number / 2 % 2, number / 4 % 10, number / 4 % 80);
        let hash = number.wrapping_mul(2_654_435_761) >> 16;
        let correct = u32::from(hash % 100 < 35 + 4 * template + 10 * model);
        let latency = f64::from(hash % 37) / 10.0 + f64::from(model);
        text += &format!(
            "{},{},t{template},i{item},{correct},{latency}\n",
            ["llama", "phi"][model as usize],
            ["base", "symbolic"][variant as usize]
        );
    }
    text
}

const QUESTIONS: &str = r#"{"id":"1","question":"Ana had 12 figs. She ate 5. How many are left?","answer":"7"}
{"id":"2","question":"A crate holds 9 jars. How many jars do 4 crates hold?","answer":"36"}
{"id":"3","question":"Bo sold 40 pots for $3 each. What did he earn?","answer":"120"}
"#;

#[test]
fn commands_of_the_pages_print_what_the_pages_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("docs"), folder.path().join("docs")).unwrap();
    fs::copy(root.join("docs/training/memory.json"), folder.path().join("memory.json")).unwrap();
    fs::write(folder.path().join("answers.csv"), answers()).unwrap();
    fs::write(folder.path().join("questions.jsonl"), QUESTIONS).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_earnest"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    for (page, line, code, holds) in LINES {
        let text = fs::read_to_string(root.join("docs").join(page)).unwrap();
        assert!(text.contains(line), "docs/{page} has no `{line}`");
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .env("PATH", &path)
            .env("COLUMNS", "160");
        for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "NO_COLOR"] {
            command.env_remove(name);
        }
        let found = command.output().unwrap();
        let said = [&found.stdout, &found.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
        assert_eq!(found.status.code(), Some(code), "{line}: {said}");
        for part in holds {
            assert!(said.contains(part), "{line}: no {part:?} in {said}");
        }
    }
}

fn wilson(share: f64, sets: f64) -> earnest_stats::Estimate {
    earnest_stats::wilson(share * sets, sets, 2.575_829_303_548_9).unwrap()
}

/// Share and its 99 % interval (Wilson) in per cent.
fn with_interval(share: f64, sets: f64) -> String {
    let found = wilson(share, sets);
    format!("{:.1} [{:.1}, {:.1}]", 100.0 * share, 100.0 * found.low, 100.0 * found.high)
}

#[test]
fn the_page_on_verdicts_has_the_simulated_counts_and_they_keep_their_bounds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    let page = fs::read_to_string(folder.join("verdicts.md")).unwrap();
    let lines = fs::read_to_string(folder.join("verdicts.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 51);
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| row[name].as_f64().unwrap();
        let (name, sets) = (row["cell"].as_str().unwrap(), of("verdicts"));
        let cells = format!(
            "| {name} | {} | {:.1} | {} | {:.1} | {:.0} |",
            with_interval(of("p_below_5"), sets),
            100.0 * of("t_below_5"),
            with_interval(of("coverage"), sets),
            100.0 * of("mean_width"),
            100.0 * of("by_exchange"),
        );
        assert!(page.contains(&cells), "{cells}");
        assert!(name.contains(" to ") || wilson(of("p_below_5"), sets).low <= 0.065, "{name}");
        assert!(wilson(of("coverage"), sets).high >= 0.935 && sets >= 0.7 * of("sets"), "{name}");
    }
}

#[test]
fn the_page_on_coverage_has_the_simulated_counts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    let page = fs::read_to_string(folder.join("glmm_coverage.md")).unwrap();
    let lines = fs::read_to_string(folder.join("glmm_designs.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 16);
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| row[name].as_f64().unwrap();
        let name = match row["model"].as_str() {
            Some("default") => format!("{}: default model", row["design"].as_str().unwrap()),
            _ => "random intercept only".to_owned(),
        };
        let shares = format!("{:.1} % | {:.1} %", 100.0 * of("coverage"), 100.0 * of("p_below_5"));
        let rest = format!("{:.3} | {:.3} | {:.3}", of("mean_error"), of("sd_of_estimates"), of("mean_estimate"));
        let cells = format!("| {name} | {} | {shares} | {rest} |", of("fits"));
        assert!(page.contains(&cells), "{cells}");
    }
}

/// Blocks that `scripts/docs-blocks.sh` writes: below a line `<!-- earnest ... -->`, what that command prints.
#[test]
fn blocks_of_pages_are_what_their_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut blocks = 0;
    for page in fs::read_dir(root.join("docs")).unwrap() {
        let page = page.unwrap().path();
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        for part in text.split("\n<!-- earnest ").skip(1) {
            let (words, rest) = part.split_once(" -->\n```text\n").unwrap_or_else(|| panic!("{part}"));
            let (block, _) = rest.split_once("```").unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
            command.args(words.split(' ')).current_dir(root).stdin(Stdio::null()).env("COLUMNS", "100");
            for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "NO_COLOR"] {
                command.env_remove(name);
            }
            let found = command.output().unwrap();
            let printed = String::from_utf8(found.stdout).unwrap();
            assert!(found.status.success(), "{words}: {}", String::from_utf8_lossy(&found.stderr));
            assert_eq!(printed, block, "{}: earnest {words}", page.display());
            blocks += 1;
        }
    }
    assert!(blocks >= 4, "{blocks} blocks");
}
