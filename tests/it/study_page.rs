//! docs/study.md: every command of the page works as written, and the study's text and page hold what they promise.
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a command line of the page at the repository's root.
fn earnest(words: &[&str], browser: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "NO_COLOR", "EARNEST_BROWSER"] {
        command.env_remove(name);
    }
    if let Some(browser) = browser {
        command.env("EARNEST_BROWSER", browser);
    }
    command.env("COLUMNS", "100").output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

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
        let words: Vec<&str> =
            command.split_whitespace().skip(1).map(|word| if word == "study.html" { &output } else { word }).collect();
        let found = earnest(&words, None);
        let text = said(&found);
        match found.status.code() {
            Some(0) => {}
            // A model without an estimate, which is named with its reason.
            Some(1) => {
                assert!(text.contains("has no odds ratio") && text.contains("exit code is 1"), "{command}: {text}")
            }
            other => panic!("{command}: {other:?} {text}"),
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
    let words: Vec<&str> = commands[0].split_whitespace().skip(1).collect();
    assert_eq!(earnest(&words, None).status.code(), Some(0), "{}", commands[0]);
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
        "* Larger numbers are a cause: gsm: not shown for 2 models",
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
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
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
