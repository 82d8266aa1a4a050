//! Every screen of the command line as a snapshot: `INSTA_UPDATE=always cargo test --release --test it screens` updates
//! them, and the diff shows what changes for a user.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{copy_of_tiny, fill_tensor, run_in, stdout, tiny};
use insta::{Settings, assert_snapshot};

/// Exit code, stdout and stderr of a command.
fn screen(folder: &Path, words: &[&str]) -> String {
    screen_with(folder, words, &[])
}

fn screen_with(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "NO_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
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

/// A screen of so many columns.
fn screen_at(folder: &Path, words: &[&str], columns: &str) -> String {
    screen_with(folder, words, &[("COLUMNS", columns)])
}

/// A screen of 100 columns, the width without a terminal, and after it those of 80 and 140 where they differ. For commands that
/// change nothing and name neither this machine nor its folders, whose lengths move line breaks.
fn widths(folder: &Path, words: &[&str]) -> String {
    let usual = screen(folder, words);
    let mut text = usual.clone();
    for columns in ["80", "140"] {
        let other = screen_at(folder, words, columns);
        if other != usual {
            write!(text, "=== {columns} columns\n{other}").unwrap();
        }
    }
    text
}

/// Filters for values that differ between machines, moments and versions.
fn settings() -> Settings {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?", "[time]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d+", "[time]");
    settings.add_filter(r"sha256:[0-9a-f]{12,64}", "sha256:[hash]");
    settings.add_filter(r"-[0-9a-f]{8}\b", "-[hash]");
    settings.add_filter(r"(samples of \d+ runs?), \d+\.\d KiB", "$1, [size] KiB");
    settings.add_filter(r"(?m)^host .*$(\n {10}.*$)*", "host [machine]");
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
    let suite =
        earnest_tasks::suite::arithmetic_bench::ArithmeticBench::new(earnest_tasks::suite::arithmetic_bench::Options {
            tasks: vec!["add".parse().unwrap(), "rev".parse().unwrap()],
            lengths: "2-4".parse().unwrap(),
            per_length: 2,
            ..Default::default()
        });
    for (number, item) in earnest_tasks::suite::Items::iter(&suite.unwrap()).enumerate() {
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

/// The commands that a `--help` lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The help of a command and of all below it. Returns how many there are.
fn helps(folder: &Path, path: &[&str]) -> usize {
    let words = [path, &["--help"]].concat();
    let text = screen(folder, &words);
    assert!(text.starts_with("exit 0"), "{path:?}: {text}");
    for (columns, text) in
        [(100, &text), (80, &screen_at(folder, &words, "80")), (140, &screen_at(folder, &words, "140"))]
    {
        let fits = text.lines().all(|line| line.chars().count() <= columns || line.starts_with("Usage:"));
        assert!(fits, "{path:?} has lines beyond {columns} columns:\n{text}");
    }
    assert_snapshot!([&["help"], path].concat().join("_").replace('-', "_"), &text);
    let below = commands(&text);
    1 + below.iter().map(|name| helps(folder, &[path, &[name.as_str()]].concat())).sum::<usize>()
}

#[test]
fn help() {
    let folder = tempfile::tempdir().unwrap();
    settings().bind(|| assert!(helps(folder.path(), &[]) >= 30));
}

/// A suite's help has its own options and the usual ones, on two screens.
#[test]
fn help_of_suites() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let help = |words: &[&str]| {
        let text = screen(at, &[words, &["--help"]].concat());
        assert!(text.starts_with("exit 0"), "{words:?}: {text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{words:?} has lines beyond 100 columns:\n{text}"
        );
        text
    };
    let all = help(&["run"]);
    for suite in ["arithmetic-bench", "nupa", "gsm-symbolic", "gsm-mini", "dnc"] {
        assert!(all.contains(&format!("\n  {suite} ")), "{all}");
        for command in ["run", "show", "import"] {
            let text = help(&[command, suite]);
            assert!(text.lines().count() <= 120, "{command} {suite}: {} lines", text.lines().count());
            assert_eq!(text.contains("--shots"), suite == "nupa", "{text}");
            assert_eq!(text.contains("--kinds"), suite == "dnc", "{text}");
        }
    }
    settings().bind(|| {
        assert_snapshot!("help_run_nupa", help(&["run", "nupa"]));
        assert_snapshot!("help_run_dnc", help(&["run", "dnc"]));
        assert_snapshot!("help_show_gsm_mini", help(&["show", "gsm-mini"]));
        assert_snapshot!("help_import_arithmetic_bench", help(&["import", "arithmetic-bench"]));
    });
}

/// All options before or after the suite's name; options of other suites are refused by name.
#[test]
fn command_lines_of_suites() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let model = tiny();
    let model = model.to_str().unwrap();
    let show = |words: &[&str]| screen(at, &[&["show"], words, &["--quiet"]].concat());
    let behind = show(&["nupa", "--shots", "1", "--task", "add_Integer", "--model", model, "--seed", "7"]);
    assert!(behind.starts_with("exit 0"), "{behind}");
    assert_eq!(show(&["--seed", "7", "--model", model, "nupa", "--task", "add_Integer", "--shots", "1"]), behind);
    assert_eq!(show(&["--seed", "7", "--shots", "1", "--model", model, "nupa", "--task", "add_Integer"]), behind);
    assert_ne!(show(&["nupa", "--shots", "1", "--task", "add_Integer", "--model", model]), behind, "another seed");
    settings().bind(|| {
        assert_snapshot!("suite_unknown", widths(at, &["run", "nope", "--model", model]));
        assert_snapshot!("suite_none", widths(at, &["run", "--limit", "3"]));
        assert_snapshot!("suite_foreign_option", widths(at, &["run", "nupa", "--kinds", "all"]));
        assert_snapshot!("suite_option_alone", widths(at, &["run", "--style", "direct"]));
        assert_snapshot!("from_with_suite", screen(at, &["run", "nupa", "--from", "x"]));
        assert_snapshot!("from_with_settings", screen(at, &["run", "--from", "x", "--temperature", "1"]));
        assert_snapshot!("from_with_invariance", screen(at, &["run", "--from", "x", "--batch-invariant"]));
    });
    assert!(screen(at, &["run", "--from", "x", "--threads", "1", "--json"]).contains("x"));
}

#[test]
fn results_screens() {
    let folder = imported();
    let at = folder.path();
    settings().bind(|| {
        assert_snapshot!("import", screen(at, &import("careful", "careful.jsonl")));
        assert_snapshot!("runs_list", widths(at, &["runs", "list"]));
        assert_snapshot!("runs_list_narrow", screen_at(at, &["runs", "list"], "60"));
        assert_snapshot!("runs_list_json", screen(at, &["runs", "list", "--json"]));
        assert_snapshot!("runs_show", widths(at, &["runs", "show", "hasty"]));
        assert_snapshot!("runs_show_narrow", screen_at(at, &["runs", "show", "hasty"], "60"));
        assert_snapshot!("samples", widths(at, &["samples", "hasty", "--limit", "3"]));
        assert_snapshot!(
            "samples_failed",
            widths(at, &["samples", "hasty", "--failed", "--task", "add", "--limit", "1"])
        );
        assert_snapshot!("samples_grep", widths(at, &["samples", "hasty", "--grep", "I think", "--limit", "1"]));
        let one = screen(at, &["samples", "hasty", "--correct", "--limit", "1", "--json"]);
        let one: serde_json::Value = serde_json::from_str(one.split("--- stdout\n").nth(1).unwrap()).unwrap();
        assert_snapshot!("samples_item", widths(at, &["samples", "hasty", "--item", one["item"].as_str().unwrap()]));
        assert_snapshot!("samples_truncated", widths(at, &["samples", "hasty", "--truncated"]));
        assert_snapshot!("samples_none", widths(at, &["samples", "hasty", "--grep", "no such text"]));
        assert_snapshot!("samples_json", screen(at, &["samples", "hasty", "--json", "--limit", "1"]));
        assert_snapshot!("ambiguous", widths(at, &["samples", "careful-"]));
        assert_snapshot!("score", widths(at, &["score", "hasty"]));
        assert_snapshot!("score_save", screen(at, &["score", "hasty", "--save"]));
        assert_snapshot!("runs_delete_asks", screen(at, &["runs", "delete", "careful", "scored"]));
        let list = stdout(&run_in(at, &["runs", "list", "--json"]));
        let copy = list.split('"').find(|name| name.ends_with("-scored")).unwrap();
        assert_snapshot!("runs_delete", screen(at, &["runs", "delete", copy, "--yes"]));
        assert_snapshot!("runs_delete_again", screen(at, &["runs", "delete", "scored", "--yes"]));
        assert_snapshot!("runs_verify", widths(at, &["runs", "verify"]));
    });
}

#[test]
fn comparisons() {
    let folder = imported();
    let at = folder.path();
    settings().bind(|| {
        assert_snapshot!("compare", widths(at, &["compare", "careful", "hasty"]));
        assert_snapshot!("compare_itself", widths(at, &["compare", "careful", "careful"]));
        assert_snapshot!("compare_alike", {
            screen(at, &import("twin", "careful.jsonl"));
            screen(at, &["compare", "careful", "twin"])
        });
        assert_snapshot!(
            "report",
            screen(at, &["report", "careful", "hasty", "-o", "report.html", "--figures", "figures"])
        );
        for format in ["jsonl", "csv", "parquet"] {
            let file = format!("hasty.{format}");
            assert_snapshot!(
                format!("export_{format}"),
                screen(at, &["export", "hasty", "--format", format, "-o", &file])
            );
        }
        assert_snapshot!("export_lm_eval", screen(at, &["export", "hasty", "--format", "lm-eval", "-o", "lm-eval"]));
        assert_snapshot!("reproduce", widths(at, &["reproduce", "arithmetic-bench"]));
        assert_snapshot!("compare_three", widths(at, &["compare", "careful", "hasty", "twin", "--flips", "2"]));
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
        assert_snapshot!("no_results", widths(at, &["runs", "list"]));
        assert_snapshot!("nothing_to_resume", widths(at, &["resume"]));
        assert_snapshot!("import_broken", screen(at, &import("x", "broken.jsonl")));
        assert_snapshot!("import_unknown", screen(at, &import("x", "unknown.jsonl")));
        assert_snapshot!("merge_nothing", screen(at, &["merge"]));
        assert_snapshot!("unknown_command", widths(at, &["evaluate"]));
        assert_snapshot!("no_model", widths(at, &["run", "arithmetic-bench", "--model", "no/such/model"]));
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
    let page = std::fs::read_to_string(folder.path().join("pages/earnest-run-nupa.1")).unwrap();
    assert!(page.contains("per\\-length") && page.contains("rule\\-following"), "{page}");
    let script = screen(folder.path(), &["completions", "bash"]);
    assert!(script.contains("earnest__run__nupa") || script.contains("earnest__subcmd__run__subcmd__nupa"), "{script}");
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
    assert_eq!(named("expected"), 0, "there is no earlier run to go by");
    let notice = events.iter().find(|event| event["code"] == "detectable").unwrap();
    assert_eq!(named("notice"), 0, "{text}");
    assert_eq!(
        (&notice["event"], &notice["level"], &notice["items"]),
        (&"message".into(), &"message".into(), &16.into())
    );
    assert!(notice["text"].as_str().unwrap().starts_with("16 items"), "{notice}");

    // The speed of the first run says how long a second takes, and it is given before the first token.
    let words: Vec<&str> = words.iter().map(|word| if *word == "1" { "2" } else { *word }).collect();
    assert!(screen(folder.path(), &words).starts_with("exit 0"));
    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |name: &str| events.iter().rposition(|event| event["event"] == name);
    let expected = &events[at("expected").unwrap()];
    assert!(expected["seconds"].as_f64().unwrap() > 0.0 && expected["at_most"] == false, "{expected}");
    assert!(expected["source"].as_str().unwrap().starts_with("measured in run "), "{expected}");
    assert!(at("expected") < at("started"));
}

#[test]
fn questions() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let model = tiny();
    let model = model.to_str().unwrap();
    settings().bind(|| {
        assert_snapshot!("suites", widths(at, &["suites"]));
        assert_snapshot!("suites_narrow", screen_at(at, &["suites"], "60"));
        let words = ["show", "arithmetic-bench", "--model", model, "--task", "rev", "--lengths", "3"];
        assert_snapshot!("show", screen(at, &words));
        assert_snapshot!("reproduce_plan", widths(at, &["reproduce", "arithmetic-bench", "--plan"]));
        let words = ["generate", "nupa", "--tasks", "max_Float,add_Integer", "--lengths", "1-2", "--per-length", "1"];
        assert_snapshot!("generate", widths(at, &words));
        assert_snapshot!(
            "rf_lengths",
            screen(at, &["rf-lengths", "--model", model, "--tasks", "add_Integer,max_Float"])
        );
        let bash = screen(at, &["completions", "bash"]);
        assert_snapshot!("completions", bash.lines().take(12).collect::<Vec<_>>().join("\n"));
        let manual = screen(at, &["man"]);
        assert_snapshot!("man", manual.lines().take(20).collect::<Vec<_>>().join("\n"));
    });
}

#[test]
fn machines() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let model = tiny();
    let mut settings = settings();
    // What this machine has is not what the next one has: a line's name stays.
    settings.add_filter(r"(?m)^(earnest|cpu|threads|memory|Hugging Face cache)  .*$", "$1  [machine]");
    settings.add_filter(r"(?m)^cpu features  .*\n(  missing  .*\n)?", "cpu features  [machine]\n");
    settings.add_filter(r"(?m)^cuda  .*\n(  .*\n)*", "cuda  [machine]\n");
    settings.add_filter(r"(?m)^(engine|loading|  decode|  memory)  .*$", "$1  [machine]");
    settings.add_filter(r"(?m)^ +[0-9]+ tokens/s in the .*$", "           [machine]");
    settings.add_filter(r"(?m)^  \d.* samples/s .*$", "  [speed]");
    settings.bind(|| {
        assert_snapshot!("doctor", screen(at, &["doctor"]));
        let words =
            ["bench", "engine", "--model", model.to_str().unwrap(), "--threads", "1", "--workload", "zero-shot"];
        assert_snapshot!("bench_engine", screen(at, &[&words[..], &["--prompts", "4", "--repeat", "1"]].concat()));
    });
}

#[test]
fn a_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Logits that are all alike make the same answer on every processor.
    fill_tensor(&copy_of_tiny(at), "lm_head.weight", 0.0);
    let words = ["run", "arithmetic-bench", "--model", "copy", "--threads", "1", "--max-tokens", "4"];
    let words = [&words[..], &["--tasks", "add,rev", "--lengths", "1..6", "--per-length", "4"]].concat();
    settings().bind(|| {
        assert_snapshot!("run", screen(at, &words));
        assert_snapshot!("run_again", widths(at, &words));
        assert_snapshot!("run_narrow", screen_at(at, &words, "60"));
        assert_snapshot!("resume_finished", screen(at, &["resume"]));
        let nupa = ["run", "nupa", "--model", "copy", "--threads", "1", "--max-tokens", "4", "--limit", "12"];
        let nupa = [&nupa[..], &["--tasks", "add_Integer,max_Float", "--lengths", "1-6"]].concat();
        assert_snapshot!("run_nupa", screen(at, &nupa));
        assert_snapshot!("run_nupa_again", widths(at, &nupa));
        assert_snapshot!("fail_on_error_beyond", screen(at, &[&words[..], &["--fail-on-error", "2"]].concat()));
        assert_snapshot!("no_run", widths(at, &["runs", "show", "nothing"]));
        fill_tensor(&at.join("copy"), "lm_head.weight", f32::MAX);
        assert_snapshot!("resume_another_model", screen(at, &["resume", "arithmetic"]));
        std::fs::write(at.join("earnest-results/earnest.sqlite"), "no file of results, but long enough").unwrap();
        assert_snapshot!("not_a_store", screen(at, &["runs", "list"]));
    });
}

#[test]
fn statistics() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut csv = String::from("template,variant,first,second,value\n");
    for row in 0..240_u32 {
        // A fixed pattern without structure.
        let die = row.wrapping_mul(2_654_435_761) >> 16;
        let (first, second) = (u32::from(die % 10 < 6), u32::from(die % 10 < 5 || die % 7 == 0));
        writeln!(csv, "t{},{},{first},{second},{}", row % 12, row % 2, die % 101).unwrap();
    }
    std::fs::write(at.join("data.csv"), csv).unwrap();
    let glmm = ["stats", "glmm", "data.csv", "--response", "first", "--fixed", "variant", "--group", "template"];
    settings().bind(|| {
        assert_snapshot!("stats_glmm", widths(at, &glmm));
        assert_snapshot!("stats_ks", widths(at, &["stats", "ks", "data.csv", "--value", "value", "--by", "variant"]));
        assert_snapshot!("stats_holm", widths(at, &["stats", "holm", "0.01", "0.04", "0.03"]));
        let compare = ["stats", "compare", "data.csv", "--first", "first", "--second", "second", "--group", "template"];
        assert_snapshot!("stats_compare", widths(at, &compare));
        assert_snapshot!(
            "stats_power_paired",
            widths(at, &["stats", "power", "paired", "--discordance", "0.2", "--effect", "0.05"])
        );
        assert_snapshot!("stats_power_design", {
            let model = ["--accuracy", "0.6", "--intercept-sd", "1.5", "--slope-sd", "0.7", "--effect", "0.05"];
            widths(at, &[&["stats", "power", "design"][..], &model, &["--questions", "20"]].concat())
        });
        assert_snapshot!("stats_power_clustered", {
            let rates = ["--accuracy", "0.6", "--intracluster", "0.3", "--effect", "0.05"];
            widths(at, &[&["stats", "power", "clustered"][..], &rates].concat())
        });
        assert_snapshot!(
            "stats_no_column",
            screen(at, &["stats", "ks", "data.csv", "--value", "x", "--by", "variant"])
        );
    });
}
