//! docs/study.md: every command of the page works as written, and the study's text and page hold what they promise.
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a command line of the page at the repository's root, on a terminal of 100 columns.
fn earnest(words: &[&str], browser: Option<&Path>) -> Output {
    at_width(words, browser, 100)
}

fn at_width(words: &[&str], browser: Option<&Path>, columns: usize) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "NO_COLOR", "EARNEST_BROWSER"] {
        command.env_remove(name);
    }
    if let Some(browser) = browser {
        command.env("EARNEST_BROWSER", browser);
    }
    command.env("COLUMNS", columns.to_string()).output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// A word of a shell without its quotes.
fn unquoted(word: &str) -> &str {
    word.trim_matches('\'')
}

/// A minute by itself: a dozen commands on the whole study, some with its mixed models.
#[test]
fn every_command_of_the_page_works_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/study.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap().trim());
    let spans = page.split('`').filter(|span| span.starts_with("earnest runs show"));
    let mut commands: Vec<&str> = lines.filter(|line| line.starts_with("earnest ")).chain(spans).collect();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let output = folder.path().join("study.html").display().to_string();
        let words: Vec<&str> = command
            .split_whitespace()
            .skip(1)
            .map(|word| if word == "study.html" { &output } else { unquoted(word) })
            .collect();
        let found = earnest(&words, None);
        let text = said(&found);
        assert_eq!(found.status.code(), Some(0), "{command}: {text}");
        // A model without an estimate is an outcome, which is named with its reason.
        if command.starts_with("earnest reproduce") {
            assert!(
                text.contains("on simple-code has no odds ratio: constant response: every outcome is 0"),
                "{command}: {text}"
            );
        }
    }
    assert!(folder.path().join("study.html").is_file());
}

#[test]
fn a_name_of_several_runs_is_answered_with_commands() {
    let found = earnest(&["runs", "show", "nupa", "--results", "benches/results/study"], None);
    let text = said(&found);
    assert_eq!(found.status.code(), Some(2), "{text}");
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("  earnest runs show nupa-")).collect();
    assert!(commands.len() >= 2, "{text}");
    // What tells the runs apart is a comment behind each command.
    let (command, label) = commands[0].split_once("  # ").unwrap();
    assert!(!label.is_empty(), "{text}");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert_eq!(earnest(&words, None).status.code(), Some(0), "{}", commands[0]);
}

#[test]
fn no_line_of_a_paper_s_screens_is_wider_than_the_terminal() {
    let study = ["--results", "benches/results/study"];
    let commands: [&[&str]; 9] = [
        &["gsm-symbolic"],
        &["gsm-symbolic", "--tables"],
        &["gsm-symbolic", "--tables", "all"],
        &["dnc"],
        &["nupa"],
        &["nupa", "--published"],
        &["nupa", "--section", "3"],
        &["arithmetic-bench"],
        &["gsm-symbolic", "--plan"],
    ];
    for command in commands {
        let plan = command.contains(&"--plan");
        let results: &[&str] = if plan { &[] } else { &study };
        let words = [&["reproduce"], command, results].concat();
        for columns in [80, 100, 140] {
            let found = at_width(&words, None, columns);
            assert_eq!(found.status.code(), Some(0), "{words:?}: {}", said(&found));
            let text = String::from_utf8(found.stdout).unwrap();
            let wide = text.lines().find(|line| line.chars().count() > columns);
            assert_eq!(wide, None, "{words:?} at {columns} columns");
        }
    }
}

#[test]
fn the_list_has_the_intervals_of_the_runs_own_screens() {
    let json = |words: &[&str]| -> serde_json::Value {
        let found = earnest(&[words, &["--results", "benches/results/study", "--json"]].concat(), None);
        serde_json::from_slice(&found.stdout).unwrap_or_else(|_| panic!("{words:?}: {}", said(&found)))
    };
    let list = json(&["runs", "list"]);
    let mut compared = 0;
    for entry in list.as_array().unwrap() {
        let run = json(&["runs", "show", entry["run"].as_str().unwrap()]);
        let rows = run["summary"]["rows"].as_array().unwrap();
        let all = rows.last().unwrap();
        // DNC has no sum over all answers.
        if all["name"] != "all" || all["n"] != entry["judged"] {
            continue;
        }
        let value = &all["values"][0][1];
        assert_eq!((&entry["low"], &entry["high"]), (&value["low"], &value["high"]), "{run}");
        compared += 1;
    }
    assert_eq!(compared, 14);
}

#[test]
fn samples_without_texts_say_so() {
    let shown = |more: &[&str]| {
        let words = [&["samples", "nupa-gemma", "--results", "benches/results/study"], more].concat();
        let found = earnest(&words, None);
        (found.status.code(), said(&found))
    };
    let (code, text) = shown(&["--error", "carry"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("hold no texts, so classes of errors cannot be read from them"), "{text}");
    let (code, text) = shown(&["--grep", "5", "--json"]);
    assert!(code == Some(2) && text.contains("hold no texts, so no text can be found"), "{text}");
    let (code, text) = shown(&["--wrong", "--limit", "1"]);
    assert!(code == Some(0) && text.contains("the first sample;"), "{text}");
}

#[test]
fn runs_without_texts_are_not_scored_again() {
    let found = earnest(&["score", "nupa-gemma", "--results", "benches/results/study"], None);
    let text = said(&found);
    assert_eq!(found.status.code(), Some(2), "{text}");
    assert!(text.contains("hold no texts, so there is nothing to score again"), "{text}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_of_every_paper() {
    for paper in ["gsm-symbolic", "nupa", "dnc", "arithmetic-bench"] {
        let found = earnest(&["reproduce", paper, "--results", "/no/such/folder"], None);
        let text = said(&found);
        assert_eq!(found.status.code(), Some(4), "{paper}: {text}");
        assert!(text.contains("/no/such/folder") && text.contains("--results"), "{paper}: {text}");
        // Results without a run of the paper are no error.
        let suite = if paper == "gsm-symbolic" { "gsm-mini" } else { continue };
        let words = ["reproduce", paper, "--suite", suite, "--results", "benches/results/study"];
        let found = earnest(&words, None);
        assert!(found.status.code() == Some(0) && said(&found).contains("has no run of gsm-mini"), "{}", said(&found));
    }
}

#[test]
fn the_summary_is_sixty_lines_at_a_hundred_columns_and_says_what_the_questions_are() {
    let found = earnest(&["reproduce", "gsm-symbolic", "--results", "benches/results/study"], None);
    let text = String::from_utf8(found.stdout).unwrap();
    let displayed: usize = text.lines().map(|line| line.chars().count().div_ceil(100).max(1)).sum();
    assert!(displayed <= 60, "{displayed} lines: {text}");
    for part in [
        "Questions of ours: originals published (all 100 of GSM-Base); variants not the published ones: 0 of 98 known questions agree.",
        "of its 10 of 20, 9 remain",
        "by formula",
        "* Larger numbers are a cause: gsm: ",
        "Falls: gemma-3-270m",
    ] {
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("section ") && !text.contains("docs/"), "{text}");
    let tables = earnest(&["reproduce", "gsm-symbolic", "--results", "benches/results/study", "--tables"], None);
    let tables = String::from_utf8(tables.stdout).unwrap();
    // Each table with numbers of ours begins with the identity.
    let mut counted = 0;
    for part in tables.split("\nTable ").skip(1).chain(tables.split("\nFigure ").skip(1)) {
        // The title may take two lines.
        assert!(part.lines().skip(1).take(2).any(|line| line.starts_with("Questions of ours: ")), "{part}");
        counted += 1;
    }
    assert!(counted >= 14, "{counted}");
}

#[test]
fn the_page_has_the_identity_with_every_table_and_figure_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.html");
    let output = earnest(
        &["reproduce", "gsm-symbolic", "--results", "benches/results/study", "-o", &file.display().to_string()],
        None,
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let html = std::fs::read_to_string(&file).unwrap();
    for part in html.split("<h3 id=\"").skip(1) {
        let name = part.split('"').next().unwrap();
        let begin: String = part.chars().take(700).collect();
        let known = begin.contains("0 of 98 known questions agree") || begin.contains("The paper's values alone");
        assert!(known, "{name}: {begin}");
    }
    assert_eq!(html.matches("<h3 id=\"figure-").count(), 11);
    assert_eq!(html.matches("<h3 id=\"table-").count(), 14);
    assert!(
        html.contains("<b>These runs:</b>") && html.contains("id=\"artefacts\"") && html.contains("id=\"formulas\"")
    );
}

#[test]
fn a_pdf_without_a_browser_says_what_is_missing_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.pdf");
    let absent = folder.path().join("no-browser");
    let words = ["reproduce", "gsm-symbolic", "--results", "benches/results/study", "-o", &file.display().to_string()];
    let output = earnest(&words, Some(&absent));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("EARNEST_BROWSER names") && text.contains("study.html") && !file.exists(), "{text}");
}

#[test]
fn the_scripts_of_the_study_explain_themselves() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/study.sh");
    let run = |words: &[&str]| Command::new("bash").arg(&script).args(words).output().unwrap();
    let help = said(&run(&["--help"]));
    for option in [
        "--questions",
        "--dnc",
        "--models",
        "--only",
        "--prompts",
        "--program",
        "--results",
        "--out",
        "--limit",
        "--plan",
    ] {
        assert!(help.contains(&format!("\n  {option} ")), "{option}: {help}");
    }
    let planned = run(&["--plan", "--questions", "fresh.jsonl", "--only", "gsm", "--prompts", "gsm,simple-nl"]);
    assert!(planned.status.success(), "{}", said(&planned));
    assert_eq!(said(&planned).lines().filter(|line| line.contains("run gsm-symbolic")).count(), 4);
    for wrong in [&["--only", "poems"][..], &["--only", "gsm"], &["--limit"], &["--poem"]] {
        let output = run(wrong);
        assert!(
            output.status.code() == Some(2) && said(&output).starts_with("error: "),
            "{wrong:?}: {}",
            said(&output)
        );
    }
}
