//! `earnest train experiment` and `earnest reproduce nupa --section 3`, end to end: a plan, a grid that is interrupted and
//! continued, a summary, the paper's tables beside it, and invalid files.
use std::path::Path;
use std::process::{Command, Output, Stdio};

const FILE: &str = r#"
title = "a test"
seeds = [1, 2]
questions = 10

[training]
task = "length_Integer"
size = "1,32,64,2,1"
lengths = "2-3"
steps = 24
batch = 16
warm_up = 5
validate_every = 8
validation = 5
words = 64
parts = 1

[[grid]]
name = "encodings"
position = ["rope", "nope"]
task = "add_Integer"
beyond = 4

[[grid]]
name = "pi"
task = "memorise:pi"
then = "memorise:e"
then_after = 16
lengths = 12
"#;

fn earnest(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).args(words).stdin(Stdio::null()).env_remove("EARNEST_MODEL");
    command
}

fn output(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = earnest(folder, words).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned())
}

fn models(path: &Path) -> serde_json::Value {
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut models = results["models"].clone();
    for model in models.as_array_mut().unwrap() {
        model.as_object_mut().unwrap().remove("seconds");
    }
    models
}

#[test]
fn a_grid_is_broken_off_goes_on_and_stands_beside_the_paper() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    std::fs::write(folder.join("small.toml"), FILE).unwrap();
    let (code, plan, err) = output(folder, &["train", "experiment", "small.toml", "--plan"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(plan.contains("6 trainings, 144 steps to go"), "{plan}");
    assert!(plan.contains("add_Integer-digits1-nope-plain-1x32x64x2x1-seed2"), "{plan}");
    assert!(!folder.join("small").exists(), "a plan writes nothing");

    let run = |out: &str, summary: &str| {
        output(folder, &["train", "experiment", "small.toml", "--out", out, "--summary", summary])
    };
    let (code, out, err) = run("whole", "whole.json");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("6 trained and evaluated models"), "{out}");
    // What a kill may leave: a log that is cut, a model without its state, a model that nobody asked, nothing at all.
    let (code, _, err) = run("broken", "broken.json");
    assert_eq!(code, Some(0), "{err}");
    let cell = |name: &str| folder.join("broken").join(name);
    let rope = cell("add_Integer-digits1-rope-plain-1x32x64x2x1-seed1");
    std::fs::remove_file(rope.join("evaluation.json")).unwrap();
    let log = std::fs::read_to_string(rope.join("log.jsonl")).unwrap();
    std::fs::write(rope.join("log.jsonl"), &log[..log.len() / 2]).unwrap();
    let nope = cell("add_Integer-digits1-nope-plain-1x32x64x2x1-seed1");
    std::fs::remove_file(nope.join("evaluation.json")).unwrap();
    std::fs::remove_dir_all(cell("memorise_pi-digits1-rope-plain-1x32x64x2x1-seed2")).unwrap();
    let (_, plan, _) = output(folder, &["train", "experiment", "small.toml", "--out", "broken", "--plan"]);
    assert!(plan.contains("trained") && plan.contains("step 0") && plan.contains("48 steps to go"), "{plan}");
    let (code, _, err) = run("broken", "broken.json");
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(models(&folder.join("whole.json")), models(&folder.join("broken.json")));

    // Digits of e are asked from the beginning on, and learnt after the 16th step.
    let all = models(&folder.join("whole.json"));
    let pi = all.as_array().unwrap().iter().find(|model| model["task"] == "memorise:pi").unwrap();
    assert_eq!(pi["course"].as_array().unwrap().len(), 3);
    let asked: Vec<&str> =
        pi["scores"].as_array().unwrap().iter().map(|score| score["task"].as_str().unwrap()).collect();
    assert_eq!(asked, ["memorise:pi", "memorise:e"]);

    for source in ["whole", "whole.json"] {
        let (code, text, err) = output(folder, &["reproduce", "nupa", "--section", "3", "--experiment", source]);
        assert_eq!(code, Some(0), "{err}");
        for named in ["6 of 6 models", "nope - rope", "Table 12", "not comparable", "Table 18", "Limitations"] {
            assert!(text.contains(named), "{named}: {text}");
        }
    }
    let words = ["reproduce", "nupa", "--section", "3", "--experiment", "whole", "--json", "--figures", "drawn"];
    let (code, json, err) = output(folder, &words);
    assert_eq!(code, Some(0), "{err}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let cell = json["cells"].as_array().unwrap().iter().find(|cell| !cell["ours"].as_array().unwrap().is_empty());
    let ours = &cell.unwrap()["ours"][0];
    assert_eq!((ours["seeds"].as_u64(), ours["length"].as_u64()), (Some(2), Some(3)));
    assert!(ours["std_err"].is_number(), "{ours}");
    let drawn = std::fs::read_dir(folder.join("drawn")).unwrap().count();
    assert_eq!(drawn, json["figures"].as_array().unwrap().len());
    assert!(drawn >= 3);
}

#[test]
fn two_processes_share_a_grid() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("small.toml"), FILE.replace("[1, 2]", "[1]")).unwrap();
    let words = ["train", "experiment", "small.toml", "-q"];
    let start = || earnest(place.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (one, other) = (start(), start());
    let outputs = [one, other].map(|child| child.wait_with_output().unwrap());
    for output in &outputs {
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (_, plan, _) = self::output(place.path(), &["train", "experiment", "small.toml", "--plan"]);
    assert!(plan.contains("3 trainings, 0 steps to go"), "{plan}");
}

#[test]
fn files_and_folders_that_make_no_sense_are_named() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    for (from, to, named) in [
        ("\"rope\"", "\"learned\"", "unknown positional encoding"),
        ("steps = 24", "step = 24", "step"),
        ("task = \"length_Integer\"", "task = \"lenght_Integer\"", "length_Integer"),
        ("then_after = 16", "then_after = 15", "multiple of 8"),
        ("memorise:e", "memorise:phi", "phi"),
        ("seeds = [1, 2]", "", "seeds"),
    ] {
        let text = FILE.replacen(from, to, 1);
        let text = if named == "length_Integer" { text.replace("task = \"add_Integer\"\n", "") } else { text };
        std::fs::write(folder.join("wrong.toml"), text).unwrap();
        let (code, _, err) = output(folder, &["train", "experiment", "wrong.toml"]);
        assert_eq!(code, Some(2), "{to}: {err}");
        assert!(err.contains("wrong.toml") && err.contains(named), "{to}: {err}");
        assert!(!folder.join("wrong").exists(), "{to}");
    }
    let (code, _, err) = output(folder, &["train", "experiment", "absent.toml"]);
    assert_eq!(code, Some(2), "{err}");
    std::fs::create_dir(folder.join("empty")).unwrap();
    for (words, exit, named) in [
        (&["--experiment", "empty"][..], 4, "is not an experiment"),
        (&["--experiment", "absent.json"], 4, "absent.json"),
        (&["--plan"], 2, "--plan"),
        (&["some-run"], 2, "--section"),
    ] {
        let (code, _, err) = output(folder, &[&["reproduce", "nupa", "--section", "3"], words].concat());
        assert_eq!(code, Some(exit), "{words:?}: {err}");
        assert!(err.contains(named), "{words:?}: {err}");
    }
    let (code, ..) = output(folder, &["reproduce", "nupa", "--section", "4"]);
    assert_eq!(code, Some(2));
    let (code, ..) = output(folder, &["reproduce", "nupa", "--experiment", "empty"]);
    assert_eq!(code, Some(2));
}

#[test]
fn our_own_run_stands_beside_the_paper() {
    let place = tempfile::tempdir().unwrap();
    let (code, text, err) = output(place.path(), &["reproduce", "nupa", "--section", "3"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("docs/training/section-3.md") && text.contains("Table 16"), "{text}");
    for part in [
        "something is no worse, with a margin of 5 points",
        "Ours beside Table 18",
        "RoPE + rev + pad",
        "51.7 [39.3, 63.8]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, published, _) = output(place.path(), &["reproduce", "nupa", "--section", "3", "--published"]);
    assert!(published.contains("NoPE + rev + pad + 1d") && published.len() > text.len(), "{published}");
}
