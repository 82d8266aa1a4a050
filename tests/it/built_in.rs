//! Claims about the embedded model: short integers are right, longer ones are not, and the first command works.
use std::path::Path;
use std::process::Command;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;
use earnest_tasks::suite::arithmetic_bench::{self, ArithmeticBench};
use earnest_tasks::suite::nupa::{Lengths, NupaOptions, NupaSuite, TaskId};
use earnest_tasks::suite::{Answered, Item, Suite};

const NAME: &str = "earnest-abacus-1.4m";

/// Shares of right answers, greedy, in the order of the items.
fn judged(suite: &dyn Suite) -> Vec<(Item, bool)> {
    let checkpoint = Checkpoint::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("embedded").join(NAME)).unwrap();
    let options = Options { threads: Some(2), kv_memory: Some(1 << 26), max_batch: 64, ..Options::default() };
    let mut engine = CpuEngine::load(&checkpoint, options).unwrap();
    let items: Vec<Item> = suite.items().collect();
    for (number, item) in items.iter().enumerate() {
        let text = item.segments.raw.as_ref().unwrap_or(&item.segments.question);
        let ids = checkpoint.tokenizer.encode(text, true).unwrap();
        let stop_ids = vec![checkpoint.tokenizer.eos().unwrap()];
        engine.submit(Request { stop_ids, ..Request::greedy(RequestId(number as u64), ids, 32) }).unwrap();
    }
    let mut right = vec![false; items.len()];
    loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            return items.into_iter().zip(right).collect();
        }
        for event in events {
            if let Event::Finished(completion) = event {
                let number = completion.id.0 as usize;
                let answered = Answered { completion: &completion.text, truncated: false };
                right[number] = suite.score(&items[number], &answered).correct;
            }
        }
    }
}

fn share(judged: &[(Item, bool)], task: &str, lengths: std::ops::RangeInclusive<u64>) -> f64 {
    let asked: Vec<bool> = judged
        .iter()
        .filter(|(item, _)| {
            item.task.starts_with(task) && lengths.contains(&item.covariates["length"].as_u64().unwrap())
        })
        .map(|(_, right)| *right)
        .collect();
    assert!(asked.len() >= 5, "{task}: {} questions", asked.len());
    asked.iter().filter(|right| **right).count() as f64 / asked.len() as f64
}

fn nupa(tasks: Vec<TaskId>, lengths: Vec<usize>) -> Vec<(Item, bool)> {
    let options =
        NupaOptions { tasks, lengths: Lengths::Chosen(lengths), per_length: 60, seed: 1, ..NupaOptions::default() };
    judged(&NupaSuite::new(options).unwrap())
}

// The claims of the model card.
#[test]
fn short_numbers_are_right_and_long_ones_are_not() {
    let all = NupaOptions::default().tasks;
    assert_eq!(all.len(), 53);
    let digits = nupa(all.clone(), vec![1]);
    let good = all.iter().filter(|task| share(&digits, &task.to_string(), 1..=1) >= 0.8).count();
    assert!(good >= 36, "{good} tasks of one digit");
    // No question of three and four digits was learnt.
    let unseen = ["digit_max_Integer", "digit_add_Integer", "get_digit_Integer", "length_Integer", "to_scient_Integer"];
    let short = ["add_Integer", "max_Integer", "min_Integer"];
    let tasks = unseen.iter().chain(&short).map(|task| task.parse().unwrap()).collect();
    let numbers = nupa(tasks, vec![3, 4, 9, 12]);
    for (task, least) in unseen.map(|task| (task, 0.95)).into_iter().chain(short.map(|task| (task, 0.8))) {
        let right = share(&numbers, task, 3..=4);
        assert!(right >= least, "{task}: {right}");
    }
    let long = share(&numbers, "add_Integer", 9..=12);
    assert!(long < 0.1, "add_Integer of 9 to 12 digits: {long}");
    let options = arithmetic_bench::Options {
        tasks: vec![arithmetic_bench::Task::Copy],
        lengths: "1,2,3,4,15".parse().unwrap(),
        per_length: 60,
        ..arithmetic_bench::Options::default()
    };
    let copies = judged(&ArithmeticBench::new(options).unwrap());
    let (short, long) = (share(&copies, "copy", 1..=4), share(&copies, "copy", 15..=15));
    assert!(short >= 0.95 && long < 0.5, "copy: {short}, {long}");
}

#[test]
fn the_first_command_needs_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_earnest"))
            .args(["run", "nupa", "--limit", "106", "--max-tokens", "24"])
            .current_dir(place.path())
            .env("EARNEST_CACHE", place.path().join("cache"))
            .env_remove("EARNEST_MODEL")
            .env_remove("EARNEST_RESULTS")
            .output()
            .unwrap()
    };
    let output = run();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(err.contains(NAME) && err.contains("next: open"), "{err}");
    assert!(out.contains("add") && out.contains(NAME), "{out}");
    let results = place.path().join("earnest-results");
    let names = std::fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: Vec<String> = names.filter(|name| name.ends_with(".html")).collect();
    assert_eq!(pages.len(), 1);
    assert!(err.contains(&pages[0]), "{err}");
    // The same command reports the same run, from anywhere the cache is.
    let again = run();
    assert!(String::from_utf8_lossy(&again.stderr).contains("was finished"), "{:?}", again.stderr);
    // Quietly, the page is written without a word.
    std::fs::remove_file(results.join(&pages[0])).unwrap();
    let quiet = Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["run", "nupa", "--limit", "106", "--max-tokens", "24", "--quiet"])
        .current_dir(place.path())
        .env("EARNEST_CACHE", place.path().join("cache"))
        .env_remove("EARNEST_MODEL")
        .env_remove("EARNEST_RESULTS")
        .output()
        .unwrap();
    assert!(quiet.status.success() && results.join(&pages[0]).exists());
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "");
    let shown = Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["runs", "show", pages[0].trim_end_matches(".html"), "--json"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let text = shown.to_string();
    assert!(text.contains(&format!("\"{NAME}\"")), "{text}");
    let weights =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("embedded").join(NAME).join("model.safetensors"))
            .unwrap();
    let digest = earnest_digest::hex(&earnest_digest::sha256(&weights));
    assert!(text.contains(&digest), "the manifest has the SHA-256 of the weights");
}

#[test]
fn word_problems_are_answered_and_at_the_floor() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["run", "gsm-mini", "--limit", "6", "--max-tokens", "24"])
        .current_dir(place.path())
        .env("EARNEST_CACHE", place.path().join("cache"))
        .env_remove("EARNEST_MODEL")
        .env_remove("EARNEST_RESULTS")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(err.contains("expect floor performance on longer numbers and word problems"), "{err}");
    // Prompts with eight worked examples have room, and nothing is right.
    assert!(!err.contains("failed"), "{err}");
    assert!(out.contains("0.0 [ 0.0,"), "{out}");
}
