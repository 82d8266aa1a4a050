//! The program, end to end: screens, errors, exit codes. Models: a tiny random checkpoint
//! from the golden folder, and SmolLM2 where `EARNEST_MODELS` has it.

use std::path::Path;
use std::process::Stdio;

use crate::program::*;
use serde_json::Value;

#[test]
fn help_documents_examples_variables_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let help = run_in(folder.path(), &["--help"]);
    assert_eq!(code(&help), 0);
    for part in [
        "Examples:",
        "EARNEST_RESULTS",
        "NO_COLOR",
        "Exit codes:",
        "130",
        "run ",
        "suites",
        "show",
        "doctor",
        "compare",
    ] {
        assert!(stdout(&help).contains(part), "{part} is not in\n{}", stdout(&help));
    }
    for command in [
        "run",
        "show",
        "suites",
        "doctor",
        "resume",
        "samples",
        "compare",
        "score",
        "import",
        "merge",
        "man",
        "report",
        "export",
        "reproduce",
    ] {
        let help = run_in(folder.path(), &[command, "--help"]);
        assert_eq!(code(&help), 0);
        assert!(stdout(&help).lines().all(|line| line.chars().count() <= 100), "{}", stdout(&help));
    }
    assert_eq!(code(&run_in(folder.path(), &["--version"])), 0);
}

#[test]
fn wrong_command_lines_exit_with_2_and_name_the_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny();
    let model = model.to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["evaluate"], "evaluate"),
        (&["run"], "SUITE"),
        (&["run", "arithmetik-bench", "--model", model], "arithmetic-bench"),
        (&["run", "arithmetic-bench", "--model", model, "--lengths", "3..1"], "backwards"),
        (&["run", "arithmetic-bench", "--model", model, "--lengths", "1..101"], "101"),
        (&["run", "arithmetic-bench", "--model", model, "--tasks", "add,plus"], "plus"),
        (&["run", "arithmetic-bench", "--model", model, "--per-length", "0"], "0 items per length"),
        (&["run", "arithmetic-bench", "--model", model, "--set", "3"], "1 and 2"),
        (&["run", "arithmetic-bench", "--model", model, "--limit", "0"], "--limit"),
        (&["run", "arithmetic-bench", "--model", model, "--samples", "0"], "--samples"),
        (&["run", "arithmetic-bench", "--model", model, "--kv-memory", "2 bananas"], "bananas"),
        (&["run", "arithmetic-bench", "--model", model, "--temperature", "-1"], "temperature"),
        (&["run", "arithmetic-bench", "--model", model, "--top-k", "5"], "temperature 0"),
        (&["run", "arithmetic-bench", "--model", model, "--max-tokens", "0"], "--max-tokens"),
        (&["run", "arithmetic-bench", "--model", model, "--threads", "0"], "--threads"),
        (&["run", "arithmetic-bench", "--model", model, "--shard", "5/4"], "part 5"),
        (&["run", "arithmetic-bench", "--model", model, "--fail-on-error", "2"], "--fail-on-error"),
        (&["run", "arithmetic-bench", "--from", "x"], "--from"),
        (&["compare", "x"], "RUN"),
        (&["samples", "x", "--failed", "--correct"], "--correct"),
        (&["show", "arithmetic-bench", "--model", model, "--task", "plus"], "plus"),
        (&["show", "arithmetic-bench", "--model", model, "--item", "nothing"], "nothing"),
    ];
    for (words, named) in cases {
        let output = run_in(folder.path(), words);
        assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{words:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{words:?}");
        assert!(!stderr(&output).contains('\u{1b}'), "no colours off a terminal");
    }
    assert!(!folder.path().join("earnest-results").exists(), "a refused command leaves nothing behind");
}

#[test]
fn unusable_checkpoints_exit_with_3() {
    let folder = tempfile::tempdir().unwrap();
    let missing = run_in(folder.path(), &["run", "arithmetic-bench", "--model", "no/such/model"]);
    assert_eq!(code(&missing), 3);
    assert!(stderr(&missing).contains("no/such/model") && stderr(&missing).contains("help: "), "{}", stderr(&missing));

    let broken = folder.path().join("broken");
    std::fs::create_dir(&broken).unwrap();
    for file in std::fs::read_dir(tiny()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), broken.join(file.file_name())).unwrap();
    }
    let weights = broken.join("model.safetensors");
    let bytes = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
    let truncated = run_in(folder.path(), &["run", "arithmetic-bench", "--model", "broken", "--limit", "1"]);
    assert_eq!(code(&truncated), 3, "{}", stderr(&truncated));
    assert!(stderr(&truncated).contains("model.safetensors"), "{}", stderr(&truncated));

    let template = tiny_run(folder.path(), &["--prompt", "chat", "--limit", "1"]);
    assert_eq!(code(&template), 3);
    assert!(stderr(&template).contains("--prompt raw"), "{}", stderr(&template));
}

#[test]
fn suites_and_doctor_print_text_or_one_document() {
    let folder = tempfile::tempdir().unwrap();
    let suites = run_in(folder.path(), &["suites"]);
    assert!(stdout(&suites).contains("arithmetic-bench") && stdout(&suites).contains("mul_1"));
    let list = document(&run_in(folder.path(), &["suites", "--json"]));
    assert_eq!((list[0]["name"].as_str(), list[0]["items"].as_u64()), (Some("arithmetic-bench"), Some(16_000)));

    let doctor = run_in(folder.path(), &["doctor"]);
    for part in ["threads", "memory", "cuda", "RustPython", "landlock", "seccomp", "results", "Hugging Face cache"] {
        assert!(stdout(&doctor).contains(part), "{}", stdout(&doctor));
    }
    let found = document(&run_in(folder.path(), &["doctor", "--json"]));
    assert!(found["host"]["threads"].as_u64().unwrap() >= 1);
    assert!(found["cuda"]["ready"].is_boolean());
    assert_eq!(found["sandbox"]["problem"], serde_json::Value::Null);
    let wrong = run_in(folder.path(), &["doctor", "--python", "/no/such/python"]);
    assert!(code(&wrong) == 0 && stdout(&wrong).contains("not available: cannot use"), "{}", stdout(&wrong));
}

#[test]
fn show_prints_the_exact_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny();
    let words = ["show", "arithmetic-bench", "--model", model.to_str().unwrap(), "--task", "rev", "--lengths", "5"];
    let screen = stdout(&run_in(folder.path(), &words));
    assert!(screen.contains("Reverse·the·following·number:·"), "{screen}");
    let shown = document(&run_in(folder.path(), &[&words[..], &["--json"]].concat()));
    assert_eq!(shown["bos"], 1);
    assert_eq!(shown["tokens"][0]["id"], shown["bos_token"]["id"]);
    assert_eq!(shown["prompt"], "raw");
    let number = shown["text"].as_str().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(shown["gold"].as_str().unwrap(), number.chars().rev().collect::<String>());
    let again = run_in(
        folder.path(),
        &["show", "arithmetic-bench", "--model", words[3], "--item", shown["item"].as_str().unwrap(), "--json"],
    );
    let again = document(&again);
    assert!(shown["ids_sha256"].is_string() && shown["text_sha256"].is_string());
    assert_eq!((&again["ids_sha256"], &again["text_sha256"]), (&shown["ids_sha256"], &shown["text_sha256"]));
}

#[test]
fn a_run_is_kept_reported_and_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--lengths", "1..3", "--per-length", "1", "--max-tokens", "8", "--limit", "20"];
    let first = tiny_run(folder.path(), &words);
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    assert!(
        stdout(&first).contains("arithmetic-bench")
            && stdout(&first).contains("More: earnest runs show arithmetic-bench-")
    );
    assert!(stderr(&first).contains("loading the weights"));
    let rows = timeless_rows(folder.path());
    assert_eq!(rows.len(), 20);

    let again = tiny_run(folder.path(), &words);
    assert_eq!((code(&again), stdout(&again)), (0, stdout(&first)), "reported from the disk");
    assert!(!stderr(&again).contains("loading"), "{}", stderr(&again));
    assert_eq!(timeless_rows(folder.path()), rows);

    // Options that change no answer find the same run.
    let faster = tiny_run(folder.path(), &[&words[..], &["--max-batch", "4", "--no-prefix-cache"]].concat());
    assert!(stderr(&faster).contains("--new"), "{}", stderr(&faster));

    let json = tiny_run(folder.path(), &[&words[..], &["--json", "--quiet"]].concat());
    let found = document(&json);
    assert_eq!(stderr(&json), "");
    assert_eq!(found["totals"]["recorded"], 20);
    assert_eq!(found["manifest"]["status"], "finished");
    assert_eq!(found["manifest"]["first_prompt"]["bos"], 1);

    let run = only_run(folder.path());
    let name = run.manifest.run.clone();
    let before = timeless(folder.path(), &run);
    let repeated = tiny_run(folder.path(), &[&words[..], &["--new", "--max-batch", "3", "--no-prefix-cache"]].concat());
    assert_eq!(code(&repeated), 0, "{}", stderr(&repeated));
    let from = run_in(folder.path(), &["run", "--from", &name, "--threads", "1", "--quiet"]);
    assert_eq!((code(&from), stderr(&from)), (0, String::new()));
    for number in [2, 3] {
        let again = store(folder.path()).run(&format!("{name}.{number}")).unwrap();
        assert_eq!(again.manifest.settings, run.manifest.settings);
        let rows: Vec<String> = timeless(folder.path(), &again)
            .iter()
            .map(|line| line.replace(&format!("{name}.{number}"), &name))
            .collect();
        assert_eq!(rows, before, "a repeat gives the same answers");
    }
}

#[test]
fn limit_is_balanced_and_samples_repeat_items() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--tasks", "add,rev", "--lengths", "1..2", "--limit", "4", "--samples", "2", "--max-tokens", "4"];
    let output = tiny_run(folder.path(), &[&words[..], &["--temperature", "1", "--quiet"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let rows = timeless_rows(folder.path());
    let of = |task: &str| rows.iter().filter(|row| row["task"] == task).count();
    assert_eq!((rows.len(), of("add"), of("rev")), (8, 4, 4));
    let different = rows.chunks(2).filter(|pair| pair[0]["completion"]["ids"] != pair[1]["completion"]["ids"]);
    assert!(different.count() > 0, "samples of an item draw different random numbers");
}

#[test]
fn a_prompt_beyond_the_context_is_recorded_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    // In a raw prompt of the tiny checkpoint every digit is a token, its context is 512.
    let model = folder.path().join("short");
    std::fs::create_dir(&model).unwrap();
    for file in std::fs::read_dir(tiny()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), model.join(file.file_name())).unwrap();
    }
    let config = std::fs::read_to_string(model.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["max_position_embeddings"] = 40.into();
    std::fs::write(model.join("config.json"), config.to_string()).unwrap();
    let words =
        ["run", "arithmetic-bench", "--model", "short", "--tasks", "copy", "--lengths", "2,90", "--per-length", "2"];
    let output = run_in(folder.path(), &words);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("context of 40 tokens"), "shown at once: {}", stderr(&output));
    assert!(
        stdout(&output).contains("2 samples failed") && stdout(&output).contains("less than the suite's token budget"),
        "{}",
        stdout(&output)
    );
    let rows = timeless_rows(folder.path());
    let failed: Vec<_> = rows.iter().filter(|row| !row["failure"].is_null()).collect();
    assert_eq!((rows.len(), failed.len()), (4, 2));
    assert_eq!(failed[0]["failure"]["kind"], "beyond_context");
    let answered = rows.iter().find(|row| row["failure"].is_null()).unwrap();
    assert!(answered["max_tokens"].as_u64() < answered["budget"].as_u64());
}

#[test]
fn a_damaged_file_of_results_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--lengths", "1", "--per-length", "1", "--max-tokens", "4", "--quiet"];
    assert_eq!(code(&tiny_run(folder.path(), &words)), 0);
    std::fs::write(folder.path().join("earnest-results/earnest.sqlite"), "this is no SQLite file, but long enough")
        .unwrap();
    let output = tiny_run(folder.path(), &words);
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("earnest.sqlite is not a results file of earnest"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = earnest(folder.path()).arg("suites").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

#[test]
fn a_real_model_gets_short_sums_right() {
    let Some(models) = std::env::var_os("EARNEST_MODELS") else {
        eprintln!("skipped: EARNEST_MODELS is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let model = Path::new(&models).join("SmolLM2-135M-Instruct.Q4_1.gguf");
    let words = ["--tasks", "add,copy", "--lengths", "1..2", "--per-length", "2", "--max-tokens", "48", "--json"];
    let fixed = ["run", "arithmetic-bench", "--model", model.to_str().unwrap()];
    let output = earnest(folder.path()).args(fixed).args(words).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let found = document(&output);
    assert_eq!(found["manifest"]["settings"]["prompt_mode"], "chat");
    assert_eq!(found["totals"]["recorded"], 8);
    let right = timeless_rows(folder.path()).iter().filter(|row| row["verdict"]["correct"] == true).count();
    assert!(right >= 3, "only {right} of 8 are right");
}
