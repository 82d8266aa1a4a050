//! Every screen of the command line as a snapshot: `INSTA_UPDATE=always cargo test --release --test screens` writes them
//! anew, and the diff shows what a user will see differently.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use insta::{Settings, assert_snapshot};

fn tiny() -> PathBuf {
    let golden = std::env::var_os("EARNEST_GOLDEN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from);
    golden.join("engine/checkpoints/llama")
}

/// Exit code, stdout and stderr of a command.
fn screen(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "NO_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let mut text = format!("exit {code}\n");
    for (name, part) in [("stdout", stdout), ("stderr", stderr)] {
        if !part.is_empty() {
            write!(text, "--- {name}\n{part}").unwrap();
        }
    }
    text
}

/// What differs between machines, moments and versions.
fn settings() -> Settings {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?", "[time]");
    settings.add_filter(r"sha256:[0-9a-f]{12,64}", "sha256:[hash]");
    settings.add_filter(r"-[0-9a-f]{8}\b", "-[hash]");
    settings.add_filter(r"(?m)^host .*$", "host [machine]");
    settings.add_filter(r"earnest \d+\.\d+\.\d+", "earnest [version]");
    settings.add_filter(&regex::escape(&tiny().display().to_string()), "[tiny checkpoint]");
    settings
}

/// Two imported runs of the same twelve questions: `careful` errs once, `hasty` on every second question.
fn imported() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut careful = String::new();
    let mut hasty = String::new();
    let line =
        |item: &str, completion: &str| format!("{}\n", serde_json::json!({"item": item, "completion": completion}));
    let suite = earnest::suite::arithmetic_bench::ArithmeticBench::new(earnest::suite::arithmetic_bench::Options {
        tasks: vec!["add".parse().unwrap(), "rev".parse().unwrap()],
        lengths: "2-4".parse().unwrap(),
        per_length: 2,
        ..Default::default()
    });
    for (number, item) in earnest::suite::Suite::items(&suite.unwrap()).enumerate() {
        let wrong = "I think it is 1234567.";
        let right = format!("The answer is {}.", item.gold);
        careful += &line(&item.id, if number == 5 { wrong } else { &right });
        hasty += &line(&item.id, if number % 2 == 0 { wrong } else { &right });
    }
    std::fs::write(folder.path().join("careful.jsonl"), careful).unwrap();
    std::fs::write(folder.path().join("hasty.jsonl"), hasty).unwrap();
    for name in ["careful", "hasty"] {
        let imported = screen(folder.path(), &import(name, &format!("{name}.jsonl")));
        assert!(imported.starts_with("exit 0"), "{imported}");
    }
    folder
}

fn import<'a>(name: &'a str, file: &'a str) -> [&'a str; 12] {
    [
        "import",
        "arithmetic-bench",
        "--tasks",
        "add,rev",
        "--lengths",
        "2..4",
        "--per-length",
        "2",
        "--name",
        name,
        "--completions",
        file,
    ]
}

#[test]
fn help() {
    let folder = tempfile::tempdir().unwrap();
    settings().bind(|| {
        assert_snapshot!("help", screen(folder.path(), &["--help"]));
        for command in [
            "run",
            "resume",
            "runs",
            "samples",
            "compare",
            "score",
            "import",
            "merge",
            "suites",
            "show",
            "doctor",
            "completions",
            "man",
        ] {
            assert_snapshot!(format!("help_{command}"), screen(folder.path(), &[command, "--help"]));
        }
        for command in ["list", "show", "delete", "verify"] {
            assert_snapshot!(format!("help_runs_{command}"), screen(folder.path(), &["runs", command, "--help"]));
        }
    });
}

#[test]
fn results_screens() {
    let folder = imported();
    let at = folder.path();
    settings().bind(|| {
        assert_snapshot!("import", screen(at, &import("careful", "careful.jsonl")));
        assert_snapshot!("runs_list", screen(at, &["runs", "list"]));
        assert_snapshot!("runs_show", screen(at, &["runs", "show", "hasty"]));
        assert_snapshot!("samples", screen(at, &["samples", "hasty", "--limit", "3"]));
        assert_snapshot!(
            "samples_failed",
            screen(at, &["samples", "hasty", "--failed", "--task", "add", "--limit", "1"])
        );
        assert_snapshot!("samples_none", screen(at, &["samples", "hasty", "--grep", "no such text"]));
        assert_snapshot!("samples_json", screen(at, &["samples", "hasty", "--json", "--limit", "1"]));
        assert_snapshot!("ambiguous", screen(at, &["samples", "careful-"]));
        assert_snapshot!("score", screen(at, &["score", "hasty"]));
        assert_snapshot!("score_save", screen(at, &["score", "hasty", "--save"]));
        assert_snapshot!("runs_delete_asks", screen(at, &["runs", "delete", "careful", "scored"]));
        assert_snapshot!("runs_delete", screen(at, &["runs", "delete", "scored", "--yes"]));
        assert_snapshot!("runs_delete_again", screen(at, &["runs", "delete", "scored", "--yes"]));
        assert_snapshot!("runs_verify", screen(at, &["runs", "verify"]));
    });
}

#[test]
fn comparisons() {
    let folder = imported();
    let at = folder.path();
    settings().bind(|| {
        assert_snapshot!("compare", screen(at, &["compare", "careful", "hasty"]));
        assert_snapshot!("compare_itself", screen(at, &["compare", "careful", "careful"]));
        assert_snapshot!("compare_alike", {
            screen(at, &import("twin", "careful.jsonl"));
            screen(at, &["compare", "careful", "twin"])
        });
        assert_snapshot!("compare_three", screen(at, &["compare", "careful", "hasty", "twin", "--flips", "2"]));
    });
}

#[test]
fn mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("broken.jsonl"), "{\"item\": \"x\"}\n").unwrap();
    std::fs::write(
        at.join("unknown.jsonl"),
        "{\"task\": \"add\", \"a\": \"1\", \"b\": \"x\", \"completion\": \"2\"}\n",
    )
    .unwrap();
    settings().bind(|| {
        assert_snapshot!("no_results", screen(at, &["runs", "list"]));
        assert_snapshot!("nothing_to_resume", screen(at, &["resume"]));
        assert_snapshot!("import_broken", screen(at, &import("x", "broken.jsonl")));
        assert_snapshot!("import_unknown", screen(at, &import("x", "unknown.jsonl")));
        assert_snapshot!("merge_nothing", screen(at, &["merge"]));
        assert_snapshot!("unknown_command", screen(at, &["evaluate"]));
        assert_snapshot!("no_model", screen(at, &["run", "arithmetic-bench", "--model", "no/such/model"]));
    });
}

#[test]
fn parts_are_worked_on_and_joined() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let model = tiny();
    let run = |shard: &str, results: &str| {
        let words = [
            "run",
            "arithmetic-bench",
            "--model",
            model.to_str().unwrap(),
            "--threads",
            "1",
            "--lengths",
            "1..2",
            "--per-length",
            "1",
            "--max-tokens",
            "8",
            "--quiet",
            "--shard",
            shard,
            "--results",
            results,
        ];
        screen(at, &words)
    };
    assert!(run("1/2", "here").starts_with("exit 0"));
    // The random checkpoint's answers depend on the processor; what is said about them does not.
    settings().bind(|| {
        assert_snapshot!("merge_incomplete", screen(at, &["merge", "--results", "here"]));
    });
    assert!(run("2/2", "there").starts_with("exit 0"));
    settings().bind(|| {
        assert_snapshot!("merge", screen(at, &["merge", "there", "--results", "here"]));
    });
    let verified = screen(at, &["runs", "verify", "--results", "here"]);
    assert!(verified.starts_with("exit 0") && verified.matches("ok ").count() == 2, "{verified}");
}

#[test]
fn completions_and_manual_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = screen(folder.path(), &["completions", shell]);
        for word in ["resume", "compare", "fail-on-error"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let manual = screen(folder.path(), &["man"]);
    assert!(manual.contains(".TH") && manual.contains("Exit codes"), "{manual}");
    assert!(screen(folder.path(), &["man", "--dir", "pages"]).starts_with("exit 0"));
    let page = std::fs::read_to_string(folder.path().join("pages/earnest-run.1")).unwrap();
    assert!(page.contains("shard"), "{page}");
}

#[test]
fn events_are_lines_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny();
    let words = [
        "run",
        "arithmetic-bench",
        "--model",
        model.to_str().unwrap(),
        "--threads",
        "1",
        "--lengths",
        "1",
        "--per-length",
        "1",
        "--max-tokens",
        "4",
        "--quiet",
        "--events",
        "events.jsonl",
    ];
    assert!(screen(folder.path(), &words).starts_with("exit 0"));
    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((named("started"), named("sample"), named("ended")), (1, 16, 1));
    assert!(named("preparing") == 3 && named("progress") >= 1);
    assert!(events.iter().all(|event| event["format"] == 1 && event["at"].is_string()));
}
