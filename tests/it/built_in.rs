//! Claims about the embedded model: short integers are right, longer ones are not, and the first command works.
use std::path::Path;
use std::process::Command;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, Event, Logprobs, Request, RequestId};
use earnest_eval::EvalError;
use earnest_eval::samples::{each_asked, scored_tokens};
use earnest_models::checkpoint::Checkpoint;
use earnest_results::store::{Filter, Store};
use earnest_tasks::suite::arithmetic_bench::{self, ArithmeticBench};
use earnest_tasks::suite::nupa::{Lengths, NupaOptions, NupaSuite, TaskId};
use earnest_tasks::suite::{Answered, Item, Suite};

const NAME: &str = "earnest-abacus-1.4m";

/// Shares of right answers, greedy, in the order of the items.
fn judged(suite: &Suite) -> Vec<(Item, bool)> {
    let checkpoint = Checkpoint::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("embedded").join(NAME)).unwrap();
    let options = Options { threads: Some(2), kv_memory: Some(1 << 26), max_batch: 64, ..Options::default() };
    let mut engine = CpuEngine::load(&checkpoint, options).unwrap();
    let items: Vec<Item> = suite.items.iter().collect();
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
    judged(&Suite::new(NupaSuite::new(options).unwrap()))
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
    let copies = judged(&Suite::new(ArithmeticBench::new(options).unwrap()));
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
    assert!(err.contains(NAME), "{err}");
    assert!(out.contains("add") && out.contains(NAME), "{out}");
    assert!(
        out.contains("next: earnest samples nupa-")
            && out.contains("      earnest run --from nupa-")
            && out.contains(" --model MODEL"),
        "{out}"
    );
    let results = place.path().join("earnest-results");
    let names = std::fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: Vec<String> = names.filter(|name| name.ends_with(".html")).collect();
    assert_eq!(pages.len(), 1);
    assert!(out.contains(&pages[0]), "{out}");
    // The same command reports the same run, from anywhere the cache is.
    let again = run();
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.starts_with("this run was finished") && !said.contains("--model given"), "{said}");
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
    assert!(out.contains("0.0 % right of 6 answers"), "{out}");
    // Prompts with eight worked examples have room, and nothing is right.
    assert!(!err.contains("failed"), "{err}");
    assert!(out.contains("0.0 [ 0.0,"), "{out}");
}

/// Rows that the texts take on a terminal of so many columns.
fn rows_at(columns: usize, text: &str) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum()
}

/// A command line for a terminal of so many columns.
type Words<'a> = &'a dyn Fn(u32) -> Vec<String>;

// They are computed again from the weights, all tokens in one step.
#[test]
fn log_probabilities_of_an_answer_are_those_of_its_generation() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["run", "nupa", "--tasks", "add_Integer,max_Float", "--lengths", "3,9", "--per-length", "1", "--quiet"])
        .args(["--max-tokens", "24", "--results", "results"])
        .current_dir(place.path())
        .env("EARNEST_CACHE", place.path().join("cache"))
        .env_remove("EARNEST_MODEL")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The program has its model in its cache.
    let store = Store::open(&place.path().join("results")).unwrap();
    let run = store.runs().unwrap().remove(0);
    let mut manifest = run.manifest.clone();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("embedded").join(NAME);
    manifest.model.path = folder.display().to_string();
    let checkpoint = Checkpoint::open(&folder).unwrap();
    let mut engine = CpuEngine::load(&checkpoint, Options { kv_memory: Some(1 << 26), ..Options::default() }).unwrap();
    let mut compared = 0;
    let checked = each_asked(&store, &run, Filter::default(), usize::MAX, |asked| {
        let item = &asked.question.as_ref().unwrap().item;
        let tokens = scored_tokens(&manifest, item, &asked.sample)?.unwrap();
        let prompt: Vec<u32> = tokens.prompt.unwrap().iter().map(|token| token.id).collect();
        let ids = &asked.sample.completion.as_ref().unwrap().ids;
        let logprobs = Logprobs { top: 1, prompt_from: None };
        engine.submit(Request { logprobs, ..Request::greedy(RequestId(0), prompt, ids.len()) }).unwrap();
        let generated = loop {
            let found = engine.poll().unwrap().into_iter().find_map(|event| match event {
                Event::Finished(completion) => Some(completion),
                _ => None,
            });
            if let Some(completion) = found {
                break completion;
            }
        };
        assert_eq!(&generated.ids, ids);
        for (token, own) in tokens.completion.iter().zip(generated.logprobs.as_ref().unwrap()) {
            let logprob = token.logprob.unwrap();
            assert!(logprob <= 0.0 && (logprob - own.chosen).abs() < 1e-5, "{}: {logprob}, {}", item.id, own.chosen);
            compared += 1;
        }
        Ok::<(), EvalError>(())
    });
    assert_eq!(checked.unwrap().0, 4);
    assert!(compared > 12, "{compared}");
    // Other weights under the same name are not scored.
    manifest.settings.model_files[0].sha256 = "0".repeat(64);
    let refused = each_asked(&store, &run, Filter::default(), 1, |asked| {
        scored_tokens(&manifest, &asked.question.unwrap().item, &asked.sample).map(drop)
    });
    assert!(refused.unwrap_err().to_string().contains("are not those of "));
}

// The command of the README with a question of every task and length up to 20 digits, the other suites, files of questions, an import and a profile.
#[test]
fn every_run_ends_with_one_screen_of_forty_lines() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write(
        "sums.jsonl",
        "{\"question\": \"What is 2 + 3?\", \"answer\": \"5\"}\n{\"question\": \"What is 6 * 7?\", \"answer\": \"42\"}\n",
    );
    write("sums.toml", "name = \"sums\"\n[questions]\npath = \"sums.jsonl\"\n");
    let completions = (0..200).map(|number| {
        let (a, b) = (1000 + 7 * number, 10 + number);
        let answer = if number % 3 == 0 { a + b } else { a - b };
        format!("{{\"a\": \"{a}\", \"b\": \"{b}\", \"task\": \"add_Integer\", \"completion\": \"{answer}\"}}\n")
    });
    write("completions.jsonl", &completions.collect::<Vec<_>>().concat());
    let short = ["--max-tokens", "24"];
    let asked = |words: &[&'static str]| [&["run"][..], words, &short].concat();
    let imported = ["import", "nupa", "--completions", "completions.jsonl", "--name"];
    let measured = ["% right of ", "95 % interval", "More: earnest runs show ", "next: earnest samples "];
    // An import takes a name once.
    let imported = |columns: u32| -> Vec<String> {
        imported.iter().map(|word| (*word).to_owned()).chain([format!("mine-{columns}")]).collect()
    };
    let owned = |words: Vec<&str>| -> Vec<String> { words.into_iter().map(str::to_owned).collect() };
    let cases: [(Words<'_>, &[&str], &[&str]); 8] = [
        (
            &|_| owned(asked(&["nupa", "--lengths", "1-20", "--per-length", "1"])),
            &measured,
            &["By length: S (", "Bars for S, M"],
        ),
        (
            &|_| owned(asked(&["arithmetic-bench", "--lengths", "1-20", "--per-length", "1"])),
            &measured,
            &["By length: 1-3 (", "Bars for 1-3, 4-10, 11-20", "Nothing right: "],
        ),
        (
            &|_| owned(asked(&["arithmetic-bench", "--lengths", "1..3", "--per-length", "2"])),
            &measured,
            &["By length: 1 (", "Bars for 1, 2, 3"],
        ),
        (&|_| owned(asked(&["gsm-mini", "--limit", "6"])), &measured, &["gsm base"]),
        (&|_| owned(asked(&["sums.jsonl"])), &measured, &[]),
        (&|_| owned(asked(&["sums.toml"])), &measured, &["sums 1 on "]),
        (&imported, &measured, &["mine-", "33.5 % right of 200"]),
        // Few questions a skill leave most limits uncertain, so that few skills share a line.
        (
            &|_| owned(vec!["profile", "--budget", "12"]),
            &["Numeracy profile of ", "wrong answers: ", "next: earnest samples ", "earnest profile --compare "],
            &["Arithmetic-Bench:", "Words: "],
        ),
    ];
    for (words, usual, parts) in cases {
        for columns in [80, 100, 140] {
            let words = words(columns);
            let output = Command::new(env!("CARGO_BIN_EXE_earnest"))
                .args(&words)
                .current_dir(place.path())
                .env("EARNEST_CACHE", place.path().join("cache"))
                .env("COLUMNS", columns.to_string())
                .env_remove("EARNEST_MODEL")
                .env_remove("EARNEST_RESULTS")
                .output()
                .unwrap();
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{words:?}: {err}");
            let screen = out.as_ref();
            let end = screen.find("page: ").unwrap_or_else(|| panic!("{words:?}: no page: {screen}"));
            let rows = rows_at(columns as usize, screen);
            assert!(rows <= 40, "{words:?} at {columns} columns, {rows} rows\n{screen}");
            assert_eq!(screen[end..].matches(" earnest ").count(), 2, "{words:?}: {screen}");
            assert!(
                out[..end].lines().all(|line| line.chars().count() <= columns as usize),
                "{words:?} at {columns}\n{out}"
            );
            // A sentence may go on in the next line.
            let words_alone = screen.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in usual.iter().chain(parts) {
                assert!(
                    screen.contains(part) || words_alone.contains(part),
                    "{words:?}: no {part} at {columns} columns\n{screen}"
                );
            }
        }
    }
}
