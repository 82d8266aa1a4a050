//! `earnest run --devices`: processes for parts of a run, joined.
use std::path::Path;
use std::process::{Command, Output};

fn earnest(results: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    let results = ["--results", results.to_str().unwrap()];
    command.args(args).args(results).env_remove("EARNEST_DEVICE").output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", words(output)))
}

const RUN: [&str; 6] = ["run", "arithmetic-bench", "--limit", "14", "--threads", "1"];

#[test]
fn parts_on_several_devices_are_the_run_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let (several, one) = (folder.path().join("several"), folder.path().join("one"));
    let joined = earnest(&several, &[&RUN[..], &["--devices", "cpu,cpu", "--json"]].concat());
    assert!(joined.status.success(), "{}", words(&joined));
    assert!(String::from_utf8_lossy(&joined.stderr).contains("2 parts joined, 14 samples"), "{}", words(&joined));
    let alone = earnest(&one, &[&RUN[..], &["--device", "cpu", "--json"]].concat());
    let (joined, alone) = (json(&joined), json(&alone));
    assert_eq!(joined["manifest"]["settings_sha256"], alone["manifest"]["settings_sha256"]);
    assert_eq!(joined["manifest"]["run"], alone["manifest"]["run"]);
    // How much of the prompts came from the prefix cache depends on the batch.
    for field in ["planned", "recorded", "failed", "prompt_tokens", "completion_tokens"] {
        assert_eq!(joined["totals"][field], alone["totals"][field], "{field}");
    }
    assert_eq!((&joined["summary"], &joined["manifest"]["status"]), (&alone["summary"], &alone["manifest"]["status"]));
    assert!(joined["summary"].is_object(), "{joined}");
    // The parts are gone, and the same command reports the whole run.
    let listed = json(&earnest(&several, &["runs", "list", "--json"]));
    assert_eq!(listed.as_array().or(listed["runs"].as_array()).map(Vec::len), Some(1), "{listed}");
    let again = earnest(&several, &[&RUN[..], &["--devices", "cpu,cpu"]].concat());
    assert!(again.status.success() && words(&again).contains("this run was finished"), "{}", words(&again));
}

#[test]
fn a_limit_that_the_program_chooses_is_that_of_every_part() {
    let folder = tempfile::tempdir().unwrap();
    // How long answers are makes no difference here.
    let short = ["--max-tokens", "1", "--devices", "cpu,cpu", "--json"];
    let joined = earnest(folder.path(), &[&["run", "arithmetic-bench", "--threads", "1"], &short[..]].concat());
    assert!(joined.status.success(), "{}", words(&joined));
    let words = String::from_utf8_lossy(&joined.stderr).into_owned();
    assert!(
        words.contains("asking 1600 items, every task with its lengths in their proportions")
            && words.contains("2 parts joined"),
        "{words}"
    );
}

#[test]
fn what_belongs_to_one_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (more, part) in [
        (&["--shard", "1/2"][..], "--shard cannot be used with --devices"),
        (&["--new"], "--new cannot be used with --devices"),
        (&["--engine", "openai", "--base-url", "http://127.0.0.1:1/v1"], "endpoint has its own devices"),
        (&["--device", "cpu"], "--device and --devices both name devices"),
    ] {
        let refused = earnest(folder.path(), &[&RUN[..], &["--devices", "cpu,cpu"], more].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", words(&refused));
        assert!(words(&refused).contains(part), "{}", words(&refused));
    }
    let ignored = earnest(folder.path(), &[&RUN[..], &["--device", "cpu", "--cuda-variant", "wgmma"]].concat());
    assert!(ignored.status.code() == Some(2) && words(&ignored).contains("--device is cpu"), "{}", words(&ignored));
    let unknown = earnest(folder.path(), &[&RUN[..], &["--devices", "0,gpu"]].concat());
    assert!(unknown.status.code() == Some(2) && words(&unknown).contains("gpu is not a device"), "{}", words(&unknown));
}
