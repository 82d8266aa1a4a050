//! `earnest train number-model`, end to end: an outcome, a model that other commands take, Ctrl-C and `--resume`.
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SMALL: [&str; 20] = [
    "--size",
    "1,32,64,2,1",
    "--groups",
    "places",
    "--tasks",
    "length_Integer,arithmetic-bench:copy",
    "--lengths",
    "1-3,2",
    "--beyond",
    "4",
    "--batch",
    "16",
    "--steps",
    "30",
    "--warm-up",
    "5",
    "--validate-every",
    "10",
    "--validation",
    "5",
];

fn earnest(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).args(words).stdin(Stdio::null()).env_remove("EARNEST_MODEL");
    command
}

fn train(folder: &Path, words: &[&str]) -> Output {
    earnest(folder, &[&["train", "number-model"], words].concat()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_training_ends_with_a_model_that_other_commands_take() {
    let place = tempfile::tempdir().unwrap();
    let words = [&["--out", "model", "--json"], &SMALL[..]].concat();
    let output = train(place.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("validation at step 30"), "{}", stderr(&output));
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["steps"], 30);
    assert_eq!(outcome["settings"]["lengths"], serde_json::json!([1, 2, 3, 2]));
    let cells = outcome["validation"]["cells"].as_array().unwrap();
    assert!(cells.iter().any(|cell| cell["length"] == 4 && cell["learnt"] == false));
    let shown = earnest(place.path(), &["show", "nupa", "--model", "model", "--task", "add_Integer"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    // A folder that holds a model is not overwritten, and there is nothing to resume.
    let again = train(place.path(), &words);
    assert_eq!(again.status.code(), Some(4));
    assert!(stderr(&again).contains("another folder"), "{}", stderr(&again));
    let resumed = train(place.path(), &["--out", "model", "--resume"]);
    assert_eq!(resumed.status.code(), Some(4));
    // The same settings give the same model.
    let other = train(place.path(), &["--out", "other", "--settings", "model/training.json", "--json"]);
    assert_eq!(other.status.code(), Some(0), "{}", stderr(&other));
    let weights = |name: &str| std::fs::read(place.path().join(name).join("model.safetensors")).unwrap();
    assert_eq!(weights("model"), weights("other"));
}

#[test]
fn wrong_command_lines_exit_with_2_and_leave_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    for (words, named) in [
        (&["--tasks", "addd_Integer"][..], "addd"),
        (&["--tasks", "arithmetic-bench:plus"], "plus"),
        (&["--size", "7b"], "0.3m"),
        (&["--size", "1,30,8,4,2"], "heads"),
        (&["--groups", "places", "--digits", "2"], "one digit"),
        (&["--tasks", "arithmetic-bench:copy", "--reversal", "int"], "only NUPA tasks support reversal"),
        (&["--lengths", "1-4", "--beyond", "4"], "length 4"),
        (&["--clip", "0"], "clip"),
        (&["--index-hints", "--groups", "places"], "drop the hints"),
        (&["--index-hints", "--groups", "random", "--digits", "2"], "random groups"),
        (&["--context", "30", "--lengths", "1-2", "--beyond", "12"], "context"),
        (&["--beta2", "1"], "beta2"),
        (&["--weight-decay", "nan"], "weight_decay"),
        (&["--learning-rate", "inf"], "learning_rate"),
        (&["--tasks", "memorise:phi"], "phi"),
        (&["--resume", "--steps", "5"], "--steps"),
    ] {
        let output = train(place.path(), &[&["--out", "model"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{words:?}: {}", stderr(&output));
        assert!(!place.path().join("model/model.safetensors").exists());
    }
}

#[test]
fn a_folder_is_trained_in_by_one_process() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("model")).unwrap();
    let lock = std::fs::File::create(place.path().join("model/lock")).unwrap();
    lock.lock().unwrap();
    let words = [&["--out", "model"], &SMALL[..]].concat();
    let refused = train(place.path(), &words);
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("another training"), "{}", stderr(&refused));
    assert!(!place.path().join("model/training.json").exists());
    drop(lock);
    let output = train(place.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // The next commands ask what was learnt.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Next: earnest run nupa --model model --tasks length_Integer --lengths 1-4\n"), "{text}");
    assert!(text.contains("earnest run arithmetic-bench --model model --tasks copy --lengths 1-4\n"), "{text}");
}

#[test]
fn what_validation_and_rates_are_is_said() {
    let place = tempfile::tempdir().unwrap();
    let short = ["--size", "1,32,64,2,1", "--lengths", "2-3", "--batch", "8", "--steps", "1", "--validation", "2"];
    let hinted = [&["--out", "hinted", "--index-hints", "--warm-up", "50"], &short[..]].concat();
    let hinted = train(place.path(), &hinted);
    assert_eq!(hinted.status.code(), Some(0), "{}", stderr(&hinted));
    assert!(stderr(&hinted).contains("instead of reaching 2.00e-3"), "{}", stderr(&hinted));
    let text = String::from_utf8_lossy(&hinted.stdout).into_owned();
    assert!(text.contains("best validation") && text.contains("plain numbers") && !text.contains("Next:"), "{text}");
    let random = ["--out", "random", "--digits", "2", "--groups", "random", "--warm-up", "1"];
    let random = train(place.path(), &[&random[..], &short[..]].concat());
    assert_eq!(random.status.code(), Some(0), "{}", stderr(&random));
    assert!(
        stderr(&random).contains("lower bound") && !stderr(&random).contains("instead of reaching"),
        "{}",
        stderr(&random)
    );
    let text = String::from_utf8_lossy(&random.stdout).into_owned();
    assert!(text.contains("lower bound") && text.contains("newest model"), "{text}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_resume_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let steps = |name: &str| -> u64 {
        let text = std::fs::read_to_string(place.path().join(name)).unwrap_or_default();
        serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|state| state["step"].as_u64()).unwrap_or(0)
    };
    let mut words = SMALL.to_vec();
    words[13] = "1000000";
    let mut before = 0;
    for begin in [&words[..], &["--resume"]] {
        let all = [&["train", "number-model", "--out", "model"], begin].concat();
        let child = earnest(place.path(), &all).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // A validation saves the first state; then the signal finds steps after it.
        let patience = std::time::Instant::now();
        while steps("model/state.json") <= before && patience.elapsed().as_secs() < 120 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let id = i32::try_from(child.id()).unwrap();
        // SAFETY: it sends a signal to a process that this test started and has not waited for.
        assert_eq!(unsafe { libc::kill(id, libc::SIGINT) }, 0);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
        let now = steps("model/state.json");
        assert!(now > before, "{now} after {before}");
        before = now;
    }
}
