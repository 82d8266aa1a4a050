//! Runs that are killed, stopped, out of disk, or not alone: stored answers remain, and the final rows are those of an
//! unbroken run.
#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::program::*;
use earnest_results::store::Store;
use earnest_results::with_commas;

#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_file_sizes_exits_with_4_and_the_same_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let unbroken = tempfile::tempdir().unwrap();
    let words = ["--lengths", "1..30", "--per-length", "1", "--max-tokens", "8", "--quiet"];
    assert_eq!(code(&tiny_run(unbroken.path(), &words)), 0);
    // Fails a write as a full disk does, in the middle of a row; by default its signal would end the program without a word.
    let model = tiny();
    let script = format!(
        "ulimit -f 900; exec {} run arithmetic-bench --threads 1 --model {} {}",
        env!("CARGO_BIN_EXE_earnest"),
        model.display(),
        words.join(" ")
    );
    let full = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert_eq!(code(&full), 4, "{}", stderr(&full));
    assert!(
        stderr(&full).contains("earnest.sqlite") && stderr(&full).contains("help: raise the limit on file sizes"),
        "{}",
        stderr(&full)
    );
    let kept = timeless_rows(folder.path()).len();
    assert!((1..480).contains(&kept), "{kept}");
    assert_eq!(code(&tiny_run(folder.path(), &words)), 0);
    assert_eq!(timeless_rows(folder.path()), timeless_rows(unbroken.path()));
}

/// Starts the run `words`, sends the signal once the run has a row and `after` more has passed, and waits. None if the
/// run was faster.
fn signalled(folder: &Path, words: &[&str], signal: &str, after: Duration) -> Option<Output> {
    let model = tiny();
    let fixed = ["run", "arithmetic-bench", "--threads", "1", "--model", model.to_str().unwrap()];
    let mut command = earnest(folder);
    let mut child = command.args(fixed).args(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let results = folder.join("earnest-results");
    let has_rows = || {
        let store = Store::open(&results).ok()?;
        let run = store.runs().ok()?.pop()?;
        store.count(&run).ok().filter(|&rows| rows > 0)
    };
    while has_rows().is_none() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(after);
    let ended = child.try_wait().unwrap().is_some();
    if !ended {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    }
    let output = child.wait_with_output().unwrap();
    (!ended).then_some(output)
}

#[test]
fn ctrl_c_keeps_what_is_there_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--lengths", "1..20", "--per-length", "4", "--max-tokens", "24", "--max-batch", "8"];
    let output = signalled(folder.path(), &words, "-INT", Duration::from_millis(5)).expect("the run was too fast");
    assert_eq!(code(&output), 130);
    assert!(stderr(&output).contains("the same command continues the run"), "{}", stderr(&output));
    let kept = timeless_rows(folder.path()).len();
    assert!((1..1280).contains(&kept), "{kept}");
    let list = document(&run_in(folder.path(), &["runs", "list", "--json"]));
    assert_eq!((list[0]["status"].as_str(), list[0]["recorded"].as_u64()), (Some("interrupted"), Some(kept as u64)));
    let resumed = run_in(folder.path(), &["resume", "--threads", "1"]);
    assert_eq!(code(&resumed), 0, "{}", stderr(&resumed));
    assert!(
        stderr(&resumed).contains(&format!("continuing: {} of 1,280", with_commas(kept as u64))),
        "{}",
        stderr(&resumed)
    );
    assert_eq!(timeless_rows(folder.path()).len(), 1280);
}

/// Moment at which a run is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// So long after the start of the process: while it hashes files, loads weights, asks, writes, or says how it went.
    Time(Duration),
    /// Once its file of events has so many samples.
    Samples(usize),
}

/// Starts a run and kills it at the moment. False if it had ended before: the moment came too late.
fn killed(folder: &Path, words: &[&str], moment: Moment) -> bool {
    let events = folder.join("events.jsonl");
    std::fs::remove_file(&events).ok();
    let mut command = earnest(folder);
    command.args(words).args(["--events", "events.jsonl", "--quiet"]).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let due = || match moment {
        Moment::Time(after) => start.elapsed() >= after,
        Moment::Samples(count) => {
            let text = std::fs::read_to_string(&events).unwrap_or_default();
            text.lines().filter(|line| line.contains("\"sample\"") && line.ends_with('}')).count() >= count
        }
    };
    while !due() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(500));
    }
    child.kill().unwrap();
    child.wait().unwrap().signal() == Some(9)
}

#[test]
fn a_run_killed_at_20_random_moments_ends_with_the_same_rows() {
    let model = tiny();
    let run = "run arithmetic-bench --lengths 1..12 --per-length 2 --max-tokens 16 --max-batch 8 --threads 1 --model";
    let run: Vec<&str> = run.split(' ').chain([model.to_str().unwrap()]).collect();
    let unbroken = tempfile::tempdir().unwrap();
    let start = Instant::now();
    assert_eq!(code(&run_in(unbroken.path(), &run)), 0);
    let length = start.elapsed().as_micros() as u64;
    let expected = timeless(unbroken.path(), &only_run(unbroken.path()));
    assert_eq!(expected.len(), 384);
    // A linear congruential generator with a fixed seed: random moments, of which half do not depend on the machine.
    let mut seed = 20_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let whole = |folder: &Path| {
        let resumed = run_in(folder, &run);
        assert_eq!(code(&resumed), 0, "{}", stderr(&resumed));
        let rows = timeless(folder, &only_run(folder));
        assert!(rows == expected, "the rows of a killed run differ from those of an unbroken one");
    };
    let mut folder = tempfile::tempdir().unwrap();
    let (mut kills, mut late, mut with_a_part) = (0, 0, 0);
    while kills < 20 {
        let moment = match (kills + late) % 2 {
            0 => Moment::Time(Duration::from_micros(random(length))),
            _ => Moment::Samples(1 + random(160) as usize),
        };
        let resume = ["resume", "--threads", "1", "--max-batch", "8"];
        // Both ways to continue; `resume` needs a run that was begun.
        let begun = Store::open(&folder.path().join("earnest-results")).is_ok_and(|s| !s.runs().unwrap().is_empty());
        let words = if begun && random(2) == 0 { &resume[..] } else { &run[..] };
        if !killed(folder.path(), words, moment) {
            // Too late, which also happens where little was left: this run is whole now, the next one is killed instead.
            late += 1;
            assert!(late < 100, "the machine is too fast or too slow for the moments drawn");
            whole(folder.path());
            folder = tempfile::tempdir().unwrap();
            continue;
        }
        kills += 1;
        let Ok(store) = Store::open(&folder.path().join("earnest-results")) else { continue };
        let Some(begun) = store.runs().unwrap().pop() else { continue };
        let kept = timeless(folder.path(), &begun);
        assert!(kept.iter().all(|row| expected.contains(row)), "a kill leaves whole rows only");
        with_a_part += usize::from((1..384).contains(&kept.len()));
    }
    assert!(with_a_part >= 5, "only {with_a_part} of 20 kills left a part of the rows");
    whole(folder.path());
    let verified = run_in(folder.path(), &["runs", "verify"]);
    assert_eq!(code(&verified), 0, "{}", stdout(&verified));
}

#[test]
fn several_processes_write_different_runs_of_one_folder_at_once() {
    let together = tempfile::tempdir().unwrap();
    let model = tiny();
    let words = |seed: &str| {
        let words = "run arithmetic-bench --lengths 1..4 --per-length 2 --max-tokens 8 --threads 1 --quiet --seed";
        let words = words.split(' ').chain([seed, "--model", model.to_str().unwrap()]);
        words.map(str::to_owned).collect::<Vec<String>>()
    };
    let seeds = ["1", "2", "3", "4"];
    let children = seeds.map(|seed| {
        let mut command = earnest(together.path());
        command.args(words(seed)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let runs = store(together.path()).runs().unwrap();
    assert_eq!(runs.len(), 4);
    for seed in seeds {
        let alone = tempfile::tempdir().unwrap();
        assert_eq!(code(&earnest(alone.path()).args(words(seed)).output().unwrap()), 0);
        let run = only_run(alone.path());
        let same = runs.iter().find(|other| other.manifest.run == run.manifest.run).unwrap();
        assert_eq!(timeless(together.path(), same), timeless(alone.path(), &run));
    }
    assert_eq!(code(&run_in(together.path(), &["runs", "verify"])), 0);
}

#[test]
fn a_run_has_one_writer_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--lengths", "1..2", "--per-length", "1", "--max-tokens", "4", "--quiet"];
    assert_eq!(code(&tiny_run(folder.path(), &words)), 0);
    let store = store(folder.path());
    let run = only_run(folder.path());
    let _lock = store.lock(&run.manifest.run).unwrap();
    let second = tiny_run(folder.path(), &words);
    assert_eq!(code(&second), 4, "{}", stderr(&second));
    assert!(stderr(&second).contains("another earnest process is writing"), "{}", stderr(&second));
}
