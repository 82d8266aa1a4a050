//! Logs of other tools as runs: import, screens, comparisons, round trips.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{code, document, golden, only_run, run_in, stderr, stdout, store};
use earnest_results::store::Filter;
use earnest_tasks::suite::log::value;

fn logs(tool: &str) -> PathBuf {
    golden().join("logs").join(tool)
}

fn words<'a>(words: &'a [&'a str], more: &'a [String]) -> Vec<&'a str> {
    words.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

/// Runs the program and expects success.
fn done(folder: &Path, words: &[&str]) -> String {
    let output = run_in(folder, words);
    assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
    stdout(&output)
}

fn import(folder: &Path, tool: &str, more: &[&str]) -> Value {
    let logs = logs(tool).join("logs");
    let output = run_in(folder, &[&["import", logs.to_str().unwrap(), "--json"], more].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    document(&output)
}

fn names(imported: &Value) -> Vec<String> {
    let runs = imported["imported"].as_array().unwrap();
    runs.iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

fn close(one: &Value, other: f64) -> bool {
    (one.as_f64().unwrap() - other).abs() < 1e-12
}

/// Pairs of logs and their statistics, computed apart from this program.
fn paired(tool: &str) -> Vec<Value> {
    let expected = std::fs::read_to_string(logs(tool).join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    expected["paired"].as_array().unwrap().clone()
}

#[test]
fn comparisons_agree_with_numpy_on_the_same_columns() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for tool in ["lm-eval", "inspect", "lighteval", "openai-batch"] {
        for pair in paired(tool) {
            let file = |side: &str| logs(tool).join(pair[side].as_str().unwrap()).to_str().unwrap().to_owned();
            let text = |name: &str| pair[name].as_str().unwrap_or_default().to_owned();
            let mut options = vec![file("a"), file("b"), "--cluster".into(), "template".into(), "--json".into()];
            let scorer = match (text("metric"), text("filter"), text("scorer")) {
                (metric, filter, _) if !filter.is_empty() => format!("{metric},{filter}"),
                (metric, _, scorer) => format!("{metric}{scorer}"),
            };
            let answers = logs(tool).join("data/arith_a.jsonl").to_str().unwrap().to_owned();
            match scorer.as_str() {
                "" => options.extend(["--answers".to_owned(), answers]),
                _ => options.extend(["--scorer".to_owned(), scorer]),
            }
            let output = run_in(folder.path(), &words(&["compare"], &options));
            assert_eq!(code(&output), 0, "{pair}: {}", stderr(&output));
            let found = document(&output)[0].clone();
            let overall = &found["overall"];
            let clusters = pair["clusters"].as_f64().unwrap();
            assert_eq!((&found["items"], &overall["clusters"]), (&pair["n_common"], &pair["clusters"]), "{pair}");
            let number = |name: &str| pair[name].as_f64().unwrap();
            // The program's is run - baseline, with the small-sample factor of CR1.
            let robust = number("se_cluster_cr0") * (clusters / (clusters - 1.0)).sqrt();
            for (name, expected) in [
                ("baseline", number("mean_a")),
                ("run", number("mean_b")),
                ("difference", -number("difference")),
                ("naive_error", number("se_iid")),
                ("standard_error", robust),
            ] {
                assert!(close(&overall[name], expected), "{name}: {} instead of {expected}, {pair}", overall[name]);
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 15);
    assert!(!folder.path().join("earnest-results").exists(), "nothing is stored");
}

#[test]
fn a_folder_of_logs_is_a_run_for_each_model_and_task() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let imported = import(at, "lm-eval", &["--cluster", "template"]);
    let runs = names(&imported);
    assert_eq!((runs.len(), &imported["known"], &imported["refused"]), (6, &json!([]), &json!([])));
    // Again, from another folder: nothing new.
    let copy = at.join("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(logs("lm-eval").join("logs/hf-gemma")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let again = document(&run_in(at, &["import", "copy", "--cluster", "template", "--json"]));
    assert_eq!((&again["imported"], again["known"].as_array().unwrap().len()), (&json!([]), 1));
    // With another deciding scorer it is another run.
    let other = document(&run_in(at, &["import", "copy", "--json"]));
    assert_eq!(names(&other).len(), 1);
    // One model has one name, whatever the file.
    let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--json"])).unwrap();
    let mut models: BTreeMap<String, usize> = BTreeMap::new();
    for run in listed.as_array().unwrap() {
        *models.entry(run["model"].as_str().unwrap().to_owned()).or_default() += 1;
        assert_eq!((run["status"].as_str(), &run["failed"]), (Some("finished"), &json!(0)), "{run}");
    }
    assert_eq!((models["SmolLM2-135M-Instruct-Q4_1"], models["gemma-3-270m-Q4_K_M"]), (2, 2), "{models:?}");
    assert!(done(at, &["runs", "verify"]).matches("ok  ").count() == 8);
    let shown = done(at, &["runs", "show", &runs[0]]);
    for said in [
        "log of lm-evaluation-harness 0.4.13: scores are the tool's own; 40 documents",
        "exact_match of exact_match,strict-match             40       0.3      0.3",
        "scored by exact_match,strict-match",
        "seed      unknown",
        "few-shot  0",
    ] {
        assert!(shown.contains(said), "{said} is not in {shown}");
    }
    let document: Value = serde_json::from_str(&done(at, &["runs", "show", &runs[0], "--json"])).unwrap();
    let reported = document["reported"].as_array().unwrap();
    assert_eq!(reported.len(), 4);
    assert!(reported.iter().all(|one| close(&one["value"], one["recomputed"].as_f64().unwrap())), "{reported:?}");
    let card = done(at, &["samples", &runs[0], "--limit", "1"]);
    assert!(
        card.contains("Question: What is 12 - 4?") && card.contains("exact_match,flexible-extract wrong (9)"),
        "{card}"
    );
    assert!(!card.contains("tokens") && !card.contains("ended by the model"), "{card}");
}

#[test]
fn two_scorers_two_primaries() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = logs("lm-eval").join("logs/gemma-3-270m-Q4_K_M");
    let path = file.to_str().unwrap();
    let refused = run_in(at, &["import", path, "--primary", "exact_match,flexible-extrakt"]);
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    assert!(stderr(&refused).contains("did you mean exact_match,flexible-extract?"), "{}", stderr(&refused));
    assert!(!at.join("earnest-results").exists());
    let only = document(&run_in(at, &["import", path, "--primary", "flexible-extract", "--keep-going", "--json"]));
    // The other task has other filters.
    assert_eq!((names(&only).len(), only["refused"].as_array().unwrap().len()), (1, 1), "{only}");
    assert_eq!(only["imported"][0]["primary"], "exact_match,flexible-extract");
    assert!(close(&only["imported"][0]["mean"], 0.175));
}

#[test]
fn runs_that_ended_early_are_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let imported = import(at, "inspect", &[]);
    assert_eq!(names(&imported).len(), 10);
    let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--json"])).unwrap();
    let of =
        |name: &str| -> Vec<&Value> { listed.as_array().unwrap().iter().filter(|run| run["suite"] == name).collect() };
    let cancelled = of("arith_slow")[0];
    let counts = |run: &Value| ["status", "recorded", "planned", "failed"].map(|name| run[name].clone());
    assert_eq!(counts(cancelled), [json!("partial"), json!(10), json!(40), json!(2)]);
    assert!(close(&cancelled["accuracy"], 0.375));
    let failed: Vec<_> = of("arith_err").into_iter().map(counts).collect();
    assert!(failed.contains(&[json!("finished"), json!(40), json!(40), json!(2)]), "{failed:?}");
    assert!(failed.contains(&[json!("partial"), json!(11), json!(40), json!(5)]), "{failed:?}");
    // Repeats stand side by side, in whatever order the log has them.
    let epochs = of("arith_epochs");
    assert_eq!(epochs.iter().map(|run| run["recorded"].as_u64().unwrap()).collect::<Vec<_>>(), [120, 120, 12]);
    assert!(epochs.iter().all(|run| run["status"] == "finished"), "{epochs:?}");
    let shown = done(at, &["runs", "show", epochs[2]["run"].as_str().unwrap()]);
    assert!(shown.contains("4 documents x 3 repeats") && shown.contains("accuracy of match, pass_at_2"), "{shown}");
    assert!(!shown.contains("differs"), "{shown}");
    // A failed sample has its error and no score.
    let errors = done(at, &["samples", cancelled["run"].as_str().unwrap(), "--failed", "--json"]);
    let errors: Vec<Value> = errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let error = errors.iter().find(|row| row["verdict"].is_null()).unwrap();
    assert!(error["failure"]["message"].as_str().unwrap().contains("CancelledError"), "{error}");
}

#[test]
fn tools_and_own_runs_are_compared_by_the_text_of_their_questions() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (lm, inspect) = (names(&import(at, "lm-eval", &["--cluster", "template"])), import(at, "inspect", &[]));
    let inspect = inspect["imported"].as_array().unwrap();
    let of = |task: &str| inspect.iter().find(|run| run["task"] == task).unwrap()["run"].as_str().unwrap();
    let arith = lm.iter().find(|run| run.starts_with("arith_a-Smol")).unwrap();
    // Across tools, by id, with the clusters of the one that has them.
    let output = run_in(at, &["compare", arith, of("arith"), "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let found = document(&output)[0].clone();
    let counts = ["items", "by_text", "different_prompts"].map(|name| found[name].as_u64().unwrap());
    assert_eq!((counts, &found["overall"]["clusters"]), ([40, 0, 40], &json!(10)), "{found}");
    let said = stderr(&output);
    assert!(
        said.contains("tool (lm-eval in A, inspect in B)") && said.contains("different prompts for 40 of 40"),
        "{said}"
    );
    let screen = done(at, &["compare", arith, of("arith")]);
    assert!(screen.contains("A is scored by exact_match,strict-match, B by match"), "{screen}");
    // A run of earnest that asks the same questions under other ids, one of them twice.
    let data = std::fs::read_to_string(logs("lm-eval").join("data/arith_a.jsonl")).unwrap();
    let mut rows: Vec<Value> = data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.truncate(6);
    rows.push(rows[0].clone());
    let lines = rows.iter().enumerate().map(|(number, row)| {
        let question = row["question"].as_str().unwrap().to_uppercase().replace(' ', "\u{a0} ");
        json!({"id": format!("own-{number}"), "question": question, "answer": row["answer"]}).to_string()
    });
    std::fs::write(at.join("own.jsonl"), lines.collect::<Vec<_>>().join("\n")).unwrap();
    done(at, &["run", "own.jsonl", "--prompt", "raw", "--max-tokens", "2", "--threads", "1"]);
    let found = document(&run_in(at, &["compare", "own-", arith, "--json"]))[0].clone();
    let counts =
        ["items", "by_text", "ambiguous", "only_baseline", "only_run"].map(|name| found[name].as_u64().unwrap());
    assert_eq!(counts, [5, 5, 2, 2, 35], "{found}");
    assert_eq!(found["overall"]["clusters"], 2, "the log knows the templates: {found}");
    // Nothing in common is an error with the next step, not a comparison of nothing.
    let mcq = lm.iter().find(|run| run.starts_with("mcq_a-Smol")).unwrap();
    let output = run_in(at, &["compare", arith, mcq]);
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""));
    assert!(
        stderr(&output).contains("no items in common") && stderr(&output).contains("help: "),
        "{}",
        stderr(&output)
    );
    let output = run_in(at, &["compare", arith, of("arith"), "--cluster", "topic"]);
    assert_eq!(code(&output), 2);
    assert!(
        stderr(&output).contains("has no value in topic") && stderr(&output).contains("template"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn completions_are_read_again_beside_the_tools_scores() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let runs = names(&import(at, "lm-eval", &["--keep-going"]));
    let of = |begin: &str| runs.iter().find(|run| run.starts_with(begin)).unwrap().as_str();
    let shown = done(at, &["score", of("arith_sc_a-gemma"), "--reader", "final"]);
    assert!(shown.contains("17.5 % (7) by exact_match,maj@4") && shown.contains("15.0 % (6) by final"), "{shown}");
    let gemma = of("arith_a-gemma");
    done(at, &["score", gemma, "--profile", "final", "--save"]);
    let (store, saved) = (store(at), format!("{gemma}-scored"));
    let run = store.run(&saved).unwrap();
    let (mut tool, mut own) = (0.0, 0.0);
    for sample in store.samples(&run, Filter::default()) {
        let score = sample.unwrap().score.unwrap();
        tool += value(&score, "exact_match,flexible-extract").unwrap();
        own += value(&score, "final").unwrap();
        assert_eq!(score.correct, score.scorers["final"]);
    }
    assert_eq!((tool, own > 0.0), (7.0, true));
    // The first run has no reading of its own.
    let output = run_in(at, &["compare", gemma, &saved, "--primary", "final"]);
    assert_eq!(code(&output), 2, "{}", stdout(&output));
    assert!(stderr(&output).contains("none of its samples has a score by final"), "{}", stderr(&output));
    let found = document(&run_in(at, &["compare", gemma, &saved, "--json"]))[0].clone();
    assert_eq!((&found["items"], &found["primary"]), (&json!(40), &json!([["exact_match,strict-match"], ["final"]])));
}

/// Scores by item, sample and scorer, whatever the forms of their names.
fn scores(folder: &Path, run: &str, name: impl Fn(&str) -> Option<String>) -> BTreeMap<(String, u32, String), f64> {
    let store = store(folder);
    let run = store.run(run).unwrap();
    let mut all = BTreeMap::new();
    for sample in store.samples(&run, Filter::default()) {
        let sample = sample.unwrap();
        let Some(score) = sample.score else { continue };
        let scorers = score.scorers.iter().map(|(name, right)| (name, f64::from(u8::from(right))));
        for (scorer, number) in scorers.chain(score.metrics.iter()) {
            if let Some(name) = name(scorer) {
                all.insert((sample.item.clone(), sample.sample, name), number);
            }
        }
    }
    all
}

#[test]
fn exports_come_back_with_every_score() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let questions: String = (0..6)
        .map(|n| {
            json!({"id": format!("q{n}"), "question": format!("Add two numbers: {n} + {n} ="), "answer": 2 * n})
                .to_string()
                + "\n"
        })
        .collect();
    std::fs::write(at.join("sums.jsonl"), questions).unwrap();
    done(at, &["run", "sums.jsonl", "--samples", "2", "--temperature", "1", "--threads", "1"]);
    let run = only_run(at).manifest.run;
    let before = scores(at, &run, |name| Some(name.to_owned()));
    assert!(before.len() > 12);
    for (format, file) in [("jsonl", "out.jsonl"), ("csv", "out.csv"), ("parquet", "out.parquet"), ("lm-eval", "out")] {
        done(at, &["export", &run, "--format", format, "-o", file]);
        let back = at.join(format!("back-{format}"));
        std::fs::create_dir(&back).unwrap();
        let path = at.join(file);
        let output = run_in(&back, &["import", path.to_str().unwrap(), "--json"]);
        assert_eq!(code(&output), 0, "{format}: {}", stderr(&output));
        let imported = document(&output);
        let name = &names(&imported)[0];
        if format != "lm-eval" {
            let after =
                scores(&back, name, |name| before.keys().any(|(_, _, own)| own == name).then(|| name.to_owned()));
            assert_eq!(after, before, "{format}");
            continue;
        }
        // A scorer is a filter of `acc`, a metric one of the filter `none`.
        let after = scores(&back, name, |name| Some(name.to_owned()));
        for ((item, sample, name), number) in &before {
            let of = |scorer: String| after.get(&(item.clone(), *sample, scorer)).copied();
            let found = of(format!("acc,{name}")).or_else(|| of(format!("{name},none")));
            assert_eq!(found, Some(*number), "{item} {sample} {name}");
        }
        assert_eq!(imported["imported"][0]["primary"], "acc,none");
    }
}

/// Everything that a run has of its samples' scores, by item and sample.
fn whole_scores(folder: &Path, run: &str) -> BTreeMap<(String, u32), String> {
    let store = store(folder);
    let run = store.run(run).unwrap();
    let mut all = BTreeMap::new();
    for sample in store.samples(&run, Filter::default()) {
        let sample = sample.unwrap();
        let score = sample.score.as_ref().map(|score| {
            let scorers = score.scorers.iter().map(|(name, right)| (name.to_owned(), f64::from(u8::from(right))));
            let metrics = score.metrics.iter().map(|(metric, value)| (metric.to_owned(), value));
            let numbers: BTreeMap<String, f64> = scorers.chain(metrics).collect();
            (score.correct, score.answer.clone().filter(|answer| !answer.is_empty()), numbers, score.evidence.clone())
        });
        let failure = sample.failure.as_ref().map(|failure| failure.message.clone());
        let text = sample.completion.as_ref().map(|completion| completion.text.clone());
        let choices = sample.covariates.get("choices").cloned();
        let said = format!("{score:?} {failure:?} {text:?} {choices:?} {} {}", sample.gold, sample.budget);
        all.insert((sample.item, sample.sample), said);
    }
    all
}

#[test]
fn exports_of_logs_come_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut runs = names(&import(at, "lm-eval", &[]));
    runs.extend(names(&import(at, "inspect", &[])));
    let listed = |folder: &Path, run: &str| -> Value {
        let listed: Value = serde_json::from_str(&done(folder, &["runs", "list", "--json"])).unwrap();
        let runs = listed.as_array().unwrap();
        let found = runs.iter().find(|one| one["run"] == run).unwrap();
        ["model", "planned", "recorded", "status", "failed", "accuracy"].map(|name| found[name].clone()).to_vec().into()
    };
    let wanted: [&dyn Fn(&&String) -> bool; 6] = [
        &|run| run.starts_with("arith_a-gemma"),
        &|run| run.starts_with("arith_sc_a-gemma"),
        &|run| run.starts_with("mcq_a-gemma"),
        &|run| run.starts_with("arith_epochs"),
        &|run| run.starts_with("arith_err"),
        &|run| run.starts_with("arith_slow"),
    ];
    for wanted in wanted {
        let run = runs.iter().find(|run| wanted(run)).unwrap();
        let chosen =
            document(&run_in(at, &["runs", "show", run, "--json"]))["manifest"]["settings"]["suite_options"]["profile"]
                .clone();
        for format in ["jsonl", "csv", "parquet", "lm-eval"] {
            let back = at.join(format!("{run}-{format}"));
            std::fs::create_dir(&back).unwrap();
            let file = back.join(if format == "lm-eval" { "out".into() } else { format!("out.{format}") });
            done(at, &["export", run, "--format", format, "-o", file.to_str().unwrap()]);
            let output = run_in(&back, &["import", file.to_str().unwrap(), "--json"]);
            assert_eq!(code(&output), 0, "{format} {run}: {}", stderr(&output));
            let imported = document(&output);
            let name = &names(&imported)[0];
            assert_eq!(imported["imported"][0]["primary"], chosen, "{format} {run}");
            assert_eq!(whole_scores(&back, name), whole_scores(at, run), "{format} {run}");
            assert_eq!(listed(&back, name), listed(at, run), "{format} {run}");
        }
    }
}

#[test]
fn exports_of_one_second_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let runs = names(&import(at, "lm-eval", &[]));
    let mine: Vec<&String> = runs.iter().filter(|run| run.contains("gemma-3-270m-Q4_K_M")).collect();
    assert_eq!(mine.len(), 2);
    // The second time replaces the files of the same run.
    for run in [mine[0], mine[1], mine[0]] {
        done(at, &["export", run, "--format", "lm-eval", "-o", "out"]);
    }
    let back = at.join("back");
    std::fs::create_dir(&back).unwrap();
    let found = names(&document(&run_in(&back, &["import", at.join("out").to_str().unwrap(), "--json"])));
    assert_eq!(found.len(), 2, "{found:?}");
    for run in mine {
        let task = run.split('-').next().unwrap();
        let other = found.iter().find(|other| other.starts_with(&format!("{task}-"))).unwrap();
        assert_eq!(whole_scores(&back, other), whole_scores(at, run));
    }
}

/// The two models' logs on `arith_a`, line by line changed, as folders `a` and `b`.
fn changed(folder: &Path, change: impl Fn(usize, &mut Value)) -> [String; 2] {
    let models = [("a", "SmolLM2-135M-Instruct-Q4_1"), ("b", "gemma-3-270m-Q4_K_M")];
    models.map(|(name, model)| {
        let to = folder.join(name);
        std::fs::create_dir(&to).unwrap();
        for file in std::fs::read_dir(logs("lm-eval").join("logs").join(model)).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            let mut text = std::fs::read_to_string(file.path()).unwrap();
            if name.starts_with("samples_arith_sc_a") {
                continue;
            }
            if name.starts_with("samples_") {
                let lines = text.lines().enumerate().map(|(number, line)| {
                    let mut line: Value = serde_json::from_str(line).unwrap();
                    change(number, &mut line);
                    if line.is_null() { String::new() } else { line.to_string() + "\n" }
                });
                text = lines.collect();
            }
            std::fs::write(to.join(name), text).unwrap();
        }
        to.to_str().unwrap().to_owned()
    })
}

#[test]
fn tasks_that_ask_the_same_share_their_clusters() {
    let folder = tempfile::tempdir().unwrap();
    let file = |model: &str| logs("lm-eval").join("logs").join(model).to_str().unwrap().to_owned();
    let (one, other) = (file("SmolLM2-135M-Instruct-Q4_1"), file("gemma-3-270m-Q4_K_M"));
    // statsmodels, OLS(difference, 1) with groups of questions, and of templates: 80 pairs.
    for (more, clusters, error, p) in
        [(&[][..], 40, 0.070_597_268, 0.017_611_932), (&["--cluster", "template"], 10, 0.077_280_154, 0.049_809_852)]
    {
        let output = run_in(folder.path(), &[&["compare", &one, &other, "--json"], more].concat());
        let overall = document(&output)[0]["overall"].clone();
        assert_eq!((&overall["items"], &overall["clusters"]), (&json!(80), &json!(clusters)));
        assert!((overall["standard_error"].as_f64().unwrap() - error).abs() < 1e-8, "{overall}");
        assert!((overall["cluster_t_p"].as_f64().unwrap() - p).abs() < 1e-8, "{overall}");
    }
    // Two clusters with equal differences have no error, however they were added up: an exact test takes the place of the t test.
    let words = ["compare", &one, &other, "--task", "arith_a", "--cluster", "variant"];
    let found = document(&run_in(folder.path(), &[&words[..], &["--json"]].concat()))[0]["overall"].clone();
    assert_eq!(
        (&found["p"], &found["test"], &found["standard_error"]),
        (&json!(0.5), &json!("sign_flips"), &json!(0.0))
    );
    assert!(found["interval"][0].as_f64() < Some(0.0) && found["interval"][1].as_f64() > Some(0.0), "{found}");
    let screen = done(folder.path(), &words).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("The p value is by sign flips of clusters, exact"), "{screen}");
    // A side that is named twice is no comparison.
    let output = run_in(folder.path(), &["compare", &one, &one]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("named twice"), "{}", stderr(&output));
}

#[test]
fn scores_that_are_no_numbers_have_parts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let [one, other] = changed(at, |number, line| {
        line["exact_match"] = match number % 3 {
            0 => json!({"form": 1, "content": 0.5}),
            _ => json!({"form": 0, "content": 0.25}),
        };
    });
    let output = run_in(at, &["compare", &one, &other]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    assert!(
        said.contains("has no number for `exact_match,strict-match`; its parts are exact_match,strict-match.content, ")
            && said.contains("--scorer exact_match,strict-match.content"),
        "{said}"
    );
    let screen = done(at, &["compare", &one, &other, "--scorer", "form"]);
    assert!(screen.contains("Scored by exact_match,strict-match.form"), "{screen}");
    let runs = names(&document(&run_in(at, &["import", &one, &other, "--json"])));
    let screen = done(at, &["compare", &runs[0], &runs[1], "--primary", "form"]);
    assert!(screen.contains("Scored by exact_match,strict-match.form"), "{screen}");
    // An import takes the names that a comparison takes.
    for name in ["form", "exact_match,strict-match.form"] {
        let results = format!("results-{name}");
        let words = ["import", &one, &other, "--scorer", name, "--json", "--results", &results];
        let imported = document(&run_in(at, &words));
        let of = |run: &Value| (run["primary"].as_str().map(str::to_owned), run["mean"].as_f64().unwrap());
        let found: Vec<_> = imported["imported"].as_array().unwrap().iter().map(of).collect();
        assert!(
            found.iter().all(|(chosen, _)| chosen.as_deref() == Some("exact_match,strict-match.form")),
            "{found:?}"
        );
        assert!(found.iter().all(|(_, mean)| (mean - 0.35).abs() < 1e-12), "{found:?}");
    }
    let refused = run_in(at, &["import", &one, "--primary", "exact_match,strict-match.shape", "--results", "r"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("has no scorer exact_match,strict-match.shape"), "{}", stderr(&refused));
    // Neither right nor wrong.
    let failed = run_in(at, &["samples", &runs[0], "--failed"]);
    assert_eq!(stdout(&failed), "", "{}", stderr(&failed));
    let first = done(at, &["samples", &runs[0], "--limit", "1"]);
    assert!(first.lines().next().unwrap().ends_with(" - no number"), "{first}");
}

#[test]
fn a_question_of_several_tasks_counts_once_and_the_screen_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let of = |model: &str| logs("lm-eval").join("logs").join(model).display().to_string();
    let paths = [of("SmolLM2-135M-Instruct-Q4_1"), of("gemma-3-270m-Q4_K_M")];
    let joined = |words: &[&str]| done(folder.path(), words).split_whitespace().collect::<Vec<_>>().join(" ");
    let screen = joined(&["compare", &paths[0], &paths[1]]);
    for part in [
        "40 questions are asked in several tasks, and all answers to one are one cluster",
        "--cluster FIELD names the field",
        "40 clusters of items",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    let json = document(&run_in(folder.path(), &["compare", &paths[0], &paths[1], "--json"]));
    assert_eq!(
        (&json[0]["items"], &json[0]["overall"]["clusters"], &json[0]["shared_questions"]),
        (&json!(80), &json!(40), &json!(40))
    );
    // One task, and a field that says what belongs together.
    let one = joined(&["compare", &paths[0], &paths[1], "--task", "arith_a"]);
    assert!(one.contains("Items count as independent. If some belong"), "{one}");
    let clustered = joined(&["compare", &paths[0], &paths[1], "--cluster", "template"]);
    assert!(!clustered.contains("--cluster FIELD") && clustered.contains("10 clusters"), "{clustered}");
}

#[test]
fn numbers_beyond_shares_are_not_called_right_or_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let [one, other] = changed(at, |number, line| {
        let shift = line["exact_match"].as_f64().unwrap();
        line["exact_match"] = json!(number as f64 - 40.0 * shift);
    });
    let screen = done(at, &["compare", &one, &other]);
    for absent in ["has right", "different outcomes"] {
        assert!(!screen.contains(absent), "{screen}");
    }
    assert!(screen.contains("Items with a higher score in B: ") && screen.contains("\nscorer "), "{screen}");
}

#[test]
fn a_file_that_was_cut_between_lines_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let [one, other] = changed(at, |number, line| {
        if number >= 55 {
            *line = Value::Null;
        }
    });
    let output = run_in(at, &["import", &one]);
    assert_eq!(code(&output), 2, "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("it has 15 lines of the filter ") && said.contains("but 40 of another one"), "{said}");
    // With what there is, and the exit code of an import that left something out.
    let output = run_in(at, &["compare", &one, &other, "--keep-going"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    // A score that is no number costs that score, not the document.
    let nan = at.join("nan");
    std::fs::create_dir(&nan).unwrap();
    let [one, _] = changed(&nan, |number, line| {
        if number == 3 {
            line["exact_match"] = json!("NaN");
        }
    });
    let output = run_in(at, &["import", &one, "--keep-going", "--json"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let imported = document(&output);
    assert_eq!((&imported["imported"][0]["items"], &imported["imported"][0]["refused"]), (&json!(40), &json!(1)));
}

#[test]
fn completions_without_scores_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows: String =
        (0..6).map(|n| format!("{n},The answer is {}.,{}\n", 2 * n, if n < 4 { 2 * n } else { 99 })).collect();
    std::fs::write(at.join("answers.csv"), format!("id,completion,gold\n{rows}")).unwrap();
    let columns = "id=id,completion=completion,target=gold";
    let words = ["import", "answers.csv", "--columns", columns, "--task", "sums", "--model-name", "m", "--json"];
    let run = names(&document(&run_in(at, &words)))[0].clone();
    let screen = done(at, &["score", &run, "--reader", "final"]);
    assert!(screen.contains("66.7 % (4) by final"), "{screen}");
    done(at, &["score", &run, "--reader", "final", "--save"]);
    let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--json"])).unwrap();
    let saved = listed.as_array().unwrap().iter().find(|one| one["run"] == format!("{run}-scored")).unwrap();
    assert!(close(&saved["accuracy"], 4.0 / 6.0), "{saved}");
    // Answers of other ids are no answers.
    let plain = ["import", "answers.csv", "--columns", "id=id,completion=completion", "--model-name", "m"];
    std::fs::write(at.join("others.csv"), "id,answer\nzzz,1\n").unwrap();
    let output = run_in(at, &[&plain[..], &["--answers", "others.csv"]].concat());
    assert_eq!(code(&output), 2, "{}", stdout(&output));
    assert!(stderr(&output).contains("has no id of the log"), "{}", stderr(&output));
}

#[test]
fn what_is_missing_or_made_up_in_a_log_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A repeat of which the log cannot have so many.
    let from = logs("inspect").join("logs/2026-11-22T16-53-58-00-00_arith-epochs_AxKwvaLNJ2qguPFzHuVipk.json");
    let text = std::fs::read_to_string(from).unwrap();
    let mut log: Value = serde_json::from_str(&text).unwrap();
    log["samples"][0]["epoch"] = json!(4_000_000_003_u32);
    std::fs::write(at.join("epochs.json"), log.to_string()).unwrap();
    let output = run_in(at, &["import", "epochs.json"]);
    assert_eq!(code(&output), 2, "{}", stdout(&output));
    assert!(stderr(&output).contains("a sample is repeat 4000000003, but the log has 12"), "{}", stderr(&output));
    assert!(!at.join("earnest-results").exists() || done(at, &["runs", "list", "--json"]).trim() == "[]");
    // Samples whose results are of another task, and hints that name the option as it is called.
    let alone = at.join("alone");
    std::fs::create_dir(&alone).unwrap();
    let [one, _] = changed(&alone, |_, _| {});
    let rename = |from: &str, to: &str| {
        let files = std::fs::read_dir(&one).unwrap().map(|file| file.unwrap().path());
        let mut files = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(from));
        let file = files.next().unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().replace(from, to);
        std::fs::rename(&file, file.with_file_name(name)).unwrap();
    };
    rename("samples_arith_a", "samples_other");
    let output = run_in(at, &["import", &one, "--json"]);
    assert!(names(&document(&output))[0].starts_with("other-"), "{}", stderr(&output));
    assert!(stderr(&output).contains("has no results of other"), "{}", stderr(&output));
    let mut results = std::fs::read_dir(&one).unwrap().map(|file| file.unwrap().path());
    let results = results.find(|path| path.extension().is_some_and(|kind| kind == "json")).unwrap();
    std::fs::remove_file(results).unwrap();
    let said = stderr(&run_in(at, &["import", &one]));
    assert!(said.contains("--model-name NAME"), "{said}");
    // A log that is there already with other choices.
    let path = logs("lm-eval").join("logs/hf-gemma");
    let words = ["import", path.to_str().unwrap()];
    done(at, &words);
    let said = stderr(&run_in(at, &[&words[..], &["--cluster", "template"]].concat()));
    assert!(
        said.contains("the log is already there as mcq_a-gemma") && said.contains("with another cluster"),
        "{said}"
    );
}

#[test]
fn nothing_is_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let from = logs("lm-eval").join("logs/hf-gemma");
    let broken = at.join("broken");
    std::fs::create_dir(&broken).unwrap();
    for file in std::fs::read_dir(&from).unwrap() {
        let file = file.unwrap();
        let mut text = std::fs::read_to_string(file.path()).unwrap();
        if file.file_name().to_str().unwrap().starts_with("samples_") {
            let half = text.len() * 2 / 3;
            text.truncate(half);
        }
        std::fs::write(broken.join(file.file_name()), text).unwrap();
    }
    let good = logs("lm-eval").join("logs/hf-SmolLM2");
    let output = run_in(at, &["import", "broken", good.to_str().unwrap()]);
    assert_ne!(code(&output), 0);
    assert!(stderr(&output).contains("samples_mcq_a_"), "{}", stderr(&output));
    if at.join("earnest-results").exists() {
        let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--json"])).unwrap();
        let listed = listed.as_array().unwrap();
        assert!(listed.iter().all(|run| run["status"] == "finished"), "{listed:?}");
    }
    let output = run_in(at, &["import", "broken", good.to_str().unwrap(), "--keep-going", "--json"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let outcome = document(&output);
    assert!(!outcome["refused"].as_array().unwrap().is_empty(), "{outcome}");
    assert!(done(at, &["runs", "verify"]).lines().filter(|line| line.starts_with("damaged")).count() == 0);
}

#[test]
fn a_table_says_what_its_columns_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let row = |n: usize, model: &str, score: f64| format!("q{n},How many {n}?,{model},{score},{}\n", n / 4);
    let mut text = String::from("qid,text,who,points,page\n");
    for n in 0..12 {
        text += &row(n, "one", (n % 3) as f64 / 2.0);
        text += &row(n, "two", (n % 4) as f64 / 4.0);
    }
    std::fs::write(at.join("scores.csv"), text).unwrap();
    let columns = "id=qid,question=text,model=who,score=points";
    let output = run_in(at, &["import", "scores.csv", "--columns", columns, "--task", "counting", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let runs = names(&document(&output));
    assert_eq!(runs.len(), 2);
    // A scorer that gives fractions is a metric throughout, where it gives 0 and 1 too.
    let store = store(at);
    for sample in store.samples(&store.run(&runs[0]).unwrap(), Filter::default()) {
        let score = sample.unwrap().score.unwrap();
        assert!(score.scorers.is_empty() && score.metrics.contains("points"), "{score:?}");
    }
    // Fractions are compared as they are.
    let found = document(&run_in(at, &["compare", &runs[0], &runs[1], "--cluster", "page", "--json"]))[0].clone();
    let overall = &found["overall"];
    assert_eq!((&found["items"], &overall["clusters"], &overall["mcnemar_p"]), (&json!(12), &json!(3), &Value::Null));
    assert!(close(&overall["baseline"], 0.5) && close(&overall["run"], 0.375), "{overall}");
    let listed = done(at, &["runs", "list"]);
    assert!(listed.contains("50.0 [") && listed.contains("37.5 ["), "{listed}");
    let direct = document(&run_in(
        at,
        &["compare", "scores.csv", "--columns", columns, "--task", "counting", "--cluster", "page", "--json"],
    ))[0]
        .clone();
    assert_eq!(direct["overall"]["difference"], overall["difference"]);
}

#[test]
fn a_table_names_the_originals_of_its_variants() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // 8 originals, of which even ones are right, and 3 variants of each, of which one is right less; the expected answer of the
    // first row is the id of its original.
    let mut text = String::from("id,set,right,original,gold\n");
    for n in 0..8 {
        text += &format!("q{n},original,{},,{n}\n", u8::from(n % 2 == 0));
        for v in 0..3 {
            text += &format!("q{n}v{v},variants,{},q{n},q{n}\n", u8::from(n % 2 == 0 && v > 0));
        }
    }
    std::fs::write(at.join("all.csv"), &text).unwrap();
    let words = |columns: &'static str| ["import", "all.csv", "--columns", columns, "--model-name", "m", "--json"];
    let columns = "id=id,task=set,score=right,pair=original,target=gold";
    let output = run_in(at, &words(columns));
    assert_eq!((code(&output), stderr(&output).contains("warning")), (0, false), "{}", stderr(&output));
    let runs = names(&document(&output));
    assert_eq!(runs.len(), 2);
    let store = store(at);
    for (run, pairs) in [(&runs[0], false), (&runs[1], true)] {
        for sample in store.samples(&store.run(run).unwrap(), Filter::default()) {
            let sample = sample.unwrap();
            let original = &sample.item[..2];
            assert_eq!(sample.cluster, original);
            assert_eq!(sample.covariates.get("pair"), pairs.then(|| original.into()).as_ref(), "{sample:?}");
        }
    }
    // Originals against the means of their variants: a right original loses a third, a wrong one nothing.
    for (one, other, sign) in [(&runs[0], &runs[1], -1.0), (&runs[1], &runs[0], 1.0)] {
        let output = run_in(at, &["compare", one, other, "--json"]);
        let found = document(&output)[0].clone();
        assert_eq!((code(&output), &found["items"], &found["by_pair"]), (0, &json!(8), &json!(8)), "{found}");
        assert!(!stderr(&output).contains("an original in"), "{}", stderr(&output));
        let overall = &found["overall"];
        assert_eq!(overall["clusters"], 8);
        assert!(close(&overall["difference"], sign / 6.0), "{overall}");
        assert!(close(&overall["standard_error"], 1.0 / 6.0 / f64::sqrt(7.0)), "{overall}");
    }
    let shown = done(at, &["compare", &runs[0], &runs[1]]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("Paired by the original that items name in `pair`: 8, with 8 items of A and 24 of B"),
        "{shown}"
    );
    // Two models that answered everything are paired by id, a variant in the cluster of its original.
    let both: String = text.lines().skip(1).flat_map(|row| [format!("{row},a\n"), format!("{row},b\n")]).collect();
    std::fs::write(
        at.join("both.csv"),
        format!("id,set,right,original,gold,model\n{both}")
            .replace("q1v0,variants,0,q1,q1,b", "q1v0,variants,1,q1,q1,b"),
    )
    .unwrap();
    let words_of_both = ["both.csv", "--columns", "id=id,score=right,pair=original,model=model", "--json"];
    let found = document(&run_in(at, &[&["compare"], &words_of_both[..]].concat()))[0].clone();
    assert_eq!((&found["items"], &found["by_pair"], &found["overall"]["clusters"]), (&json!(32), &json!(0), &json!(8)));
    // Variants of originals that the other run does not have.
    std::fs::write(at.join("one.csv"), "id,right,of\nq0,1,\nq1,0,\n").unwrap();
    std::fs::write(at.join("other.csv"), "id,right,of\nx0,1,p0\nx1,0,p1\n").unwrap();
    let output = run_in(at, &["compare", "one.csv", "other.csv", "--columns", "id=id,score=right,pair=of"]);
    let said = "2 items of other.csv name an original in `pair`, such as p0, and one.csv has none of them";
    assert!(code(&output) == 2 && stderr(&output).contains(said), "{}", stderr(&output));

    // The same table with other columns is another log.
    let without = document(&run_in(at, &words("id=id,task=set,score=right,target=gold")));
    assert_eq!(names(&without).len(), 2);

    // Originals that are elsewhere are counted, and a row that names itself is refused.
    std::fs::write(at.join("all.csv"), text.replace(",q7,", ",p7,")).unwrap();
    let output = run_in(at, &words(columns));
    let said = "of 24 rows with an original in `original`, 3 name one that is no id of the table (the first: p7)";
    assert!(code(&output) == 0 && stderr(&output).contains(said), "{}", stderr(&output));
    std::fs::write(at.join("all.csv"), text.replace("q0,original,1,,", "q0,original,1,q0,")).unwrap();
    let output = run_in(at, &words(columns));
    let said = "line 2: the row names itself (q0) as its original in `original`";
    assert!(code(&output) == 2 && stderr(&output).contains(said), "{}", stderr(&output));
}

#[test]
fn a_question_without_a_label_is_its_own_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Labels are numbers that other questions have as ids; a third have none.
    let labels = ["1", "", "1", "2", " ", "2", "nan", "1"];
    for (model, right) in [("a", 3), ("b", 5)] {
        let rows =
            labels.iter().enumerate().map(|(n, label)| format!("{n},What is {n}?,{},{label}\n", u8::from(n < right)));
        std::fs::write(
            at.join(format!("{model}.csv")),
            "id,text,right,template\n".to_owned() + &rows.collect::<String>(),
        )
        .unwrap();
    }
    let table = ["--columns", "id=id,question=text,score=right", "--task", "t"];
    let mut runs = Vec::new();
    for model in ["a", "b"] {
        let file = format!("{model}.csv");
        let words = [&["import", &file, "--model-name", model, "--cluster", "template", "--json"][..], &table].concat();
        let output = run_in(at, &words);
        assert!(stderr(&output).contains("3 documents have no template, each of them is a cluster of its own"));
        let imported = document(&output);
        assert_eq!(imported["imported"][0]["without_label"], 3);
        runs.extend(names(&imported));
    }
    // As stored, and by the field of runs without clusters.
    let plain: Vec<String> = ["a", "b"]
        .iter()
        .flat_map(|model| {
            let file = format!("{model}.csv");
            let words =
                [&["import", &file, "--model-name", model, "--results", "plain", "--json"][..], &table].concat();
            names(&document(&run_in(at, &words)))
        })
        .collect();
    for words in [
        vec!["compare", &runs[0], &runs[1]],
        vec!["compare", &plain[0], &plain[1], "--results", "plain", "--cluster", "template"],
    ] {
        let found = document(&run_in(at, &[&words[..], &["--json"]].concat()))[0]["overall"].clone();
        assert_eq!((&found["items"], &found["clusters"], &found["without_label"]), (&json!(8), &json!(5), &json!(3)));
        let screen = done(at, &words);
        let joined = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains("5 clusters of items (3 items have no label, each is its own)"), "{screen}");
    }
    // A field that no question has is a slip.
    let output = run_in(at, &[&["import", "a.csv", "--model-name", "c", "--cluster", "tmplate"][..], &table].concat());
    assert_eq!(code(&output), 2);
    assert!(
        stderr(&output).contains("has no value in tmplate") && stderr(&output).contains("template"),
        "{}",
        stderr(&output)
    );
    // And so is one that is blank or missing in all.
    std::fs::write(at.join("blank.csv"), "id,text,right,template\n1,What is 1?,1,\n2,What is 2?,0,NA\n").unwrap();
    let blank = ["import", "blank.csv", "--model-name", "d", "--cluster", "template"];
    let output = run_in(at, &[&blank[..], &table].concat());
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""));
    assert!(stderr(&output).contains("has no value in template, and no other has one"), "{}", stderr(&output));
}

#[test]
fn imports_of_one_log_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = logs("lm-eval").join("logs/hf-gemma").to_str().unwrap().to_owned();
    done(at, &["import", &file]);
    done(at, &["import", &file, "--cluster", "template"]);
    let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--json"])).unwrap();
    let labels: Vec<&str> = listed.as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["no cluster", "cluster template"]);
    let screen = done(at, &["runs", "list"]);
    assert!(
        screen.contains("differs") && screen.contains(" cluster template ") && screen.contains(" no cluster "),
        "{screen}"
    );
    let output = run_in(at, &["runs", "show", "mcq_a"]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    for (run, label) in listed.as_array().unwrap().iter().zip(labels) {
        assert!(said.contains(&format!("earnest runs show {}  # {label}", run["run"].as_str().unwrap())), "{said}");
    }
}

#[test]
fn one_model_imported_by_prompt_is_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, answer) in [("a.jsonl", "2"), ("b.jsonl", "3")] {
        let item = "arithmetic-bench/1/add/001/000";
        std::fs::write(at.join(name), json!({"item": item, "completion": answer}).to_string()).unwrap();
        let words = ["import", "arithmetic-bench", "--completions", name, "--name", "my-model", "--lengths", "1"];
        done(at, &[&words[..], &["--per-length", "1", "--tasks", "add"]].concat());
    }
    let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--json"])).unwrap();
    let runs: Vec<&str> = listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    let output = run_in(at, &["compare", runs[0], runs[1]]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(!stderr(&output).contains("the files differ"), "{}", stderr(&output));
}

#[test]
fn the_page_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    copy(&logs("lm-eval").join("logs"), &at.join("lm-eval-results"));
    copy(&logs("openai-batch"), &at.join("batch"));
    for left_out in ["data", "expected.json"] {
        let path = at.join("batch").join(left_out);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    }
    std::fs::copy(logs("openai-batch").join("data/arith_a.jsonl"), at.join("answers.jsonl")).unwrap();
    std::fs::write(at.join("scores.csv"), "question_id,text,right\n1,Capital of France?,1\n2,Capital of Italy?,0\n")
        .unwrap();
    std::fs::write(
        at.join("variants.csv"),
        "id,right,kind,original\nq1,1,original,\nq2,0,original,\nq1a,0,variants,q1\nq1b,1,variants,q1\nq2a,0,variants,q2\n",
    )
    .unwrap();
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/logs.md")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_earnest")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    let mut printed = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == "```text" {
            let shown: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            assert!(printed.starts_with(&shown.join("\n")), "the page shows something else than\n{printed}");
        }
        if line != "```sh" {
            continue;
        }
        for command in lines.by_ref().take_while(|line| *line != "```") {
            let output = std::process::Command::new("sh")
                .args(["-c", command])
                .current_dir(at)
                .env("PATH", &path)
                .env("COLUMNS", "100")
                .env_remove("EARNEST_RESULTS")
                .output()
                .unwrap();
            assert_eq!(code(&output), 0, "{command}\n{}{}", stdout(&output), stderr(&output));
            printed = stdout(&output);
            commands += 1;
        }
    }
    assert!(commands >= 10, "{commands} commands");
    let drawn = std::fs::read_to_string(at.join("difference.svg")).unwrap();
    let shown = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/difference.svg")).unwrap();
    assert_eq!(drawn, shown, "the page shows another figure");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn an_import_says_how_many_samples_have_no_score() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows = |scores: &[&str]| {
        let rows = scores.iter().enumerate().map(|(number, score)| format!("q{number},text,{score}\n"));
        "id,text,right\n".to_owned() + &rows.collect::<String>()
    };
    let table = ["--columns", "id=id,completion=text,score=right", "--task", "t"];
    for (model, scores, without, sentence) in [
        ("whole", &["1", "0", "1"][..], 0, None),
        ("one", &["1", "", "0"], 1, Some("1 of 3 samples has no score by right.")),
        ("several", &["1", "", "", "0"], 2, Some("2 of 4 samples have no score by right.")),
    ] {
        let file = format!("{model}.csv");
        std::fs::write(at.join(&file), rows(scores)).unwrap();
        let words = [&["import", &file, "--model-name", model][..], &table].concat();
        let imported = document(&run_in(at, &[&words[..], &["--json", "--results", "json"]].concat()));
        let entry = &imported["imported"][0];
        assert_eq!((&entry["without_score"], &entry["failed"]), (&json!(without), &json!(0)), "{imported}");
        let screen = done(at, &words).split_whitespace().collect::<Vec<_>>().join(" ");
        match sentence {
            Some(sentence) => assert!(screen.contains(sentence), "{screen}"),
            None => assert!(!screen.contains("no score"), "{screen}"),
        }
    }
    // Of Inspect's log the samples that failed.
    let imported = import(at, "inspect", &["--results", "inspect"]);
    let failed = |entry: &&Value| entry["failed"].as_u64().unwrap() > 0;
    let entries = imported["imported"].as_array().unwrap();
    assert!(entries.iter().filter(failed).count() > 0, "{imported}");
    assert!(entries.iter().all(|entry| entry["without_score"].as_u64() >= entry["failed"].as_u64()), "{imported}");
}

/// A log of Inspect whose results are by these scorers, with the scores of its samples.
fn inspect_log(scorers: &[&str], samples: &[Value]) -> String {
    let scores: Vec<Value> = scorers
        .iter()
        .map(|name| json!({"name": name, "scorer": name, "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}}}))
        .collect();
    let samples: Vec<Value> = samples
        .iter()
        .enumerate()
        .map(|(number, scores)| json!({"id": format!("q{number}"), "epoch": 1, "input": "q", "target": "1", "scores": scores}))
        .collect();
    json!({
        "version": 2, "status": "success", "eval": {"model": "m", "task": "t"},
        "results": {"scores": scores}, "samples": samples,
    })
    .to_string()
}

#[test]
fn a_log_whose_samples_have_other_scorers_than_its_results_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (right, wrong) = (json!({"value": "C"}), json!({"value": "I"}));
    let renamed = inspect_log(&["match"], &[json!({"other": right}), json!({"other": wrong})]);
    std::fs::write(at.join("renamed.json"), renamed).unwrap();
    let output = run_in(at, &["import", "renamed.json"]);
    assert!(code(&output) != 0 && stdout(&output).is_empty(), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("its results have scores by match, but its samples by other"),
        "{}",
        stderr(&output)
    );
    assert!(!stdout(&run_in(at, &["runs", "list"])).contains("renamed"));

    // One scorer of two, of one sample of two.
    let partly = inspect_log(&["match", "f1"], &[json!({"match": right}), json!({"other": wrong})]);
    std::fs::write(at.join("partly.json"), partly).unwrap();
    let output = run_in(at, &["import", "partly.json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("no sample has a score by f1, which is in the log's results"),
        "{}",
        stderr(&output)
    );
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("1 of 2 samples has no score by match."), "{said}");
}

#[test]
fn logs_without_scores_are_not_called_without_common_questions() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let batch = logs("openai-batch");
    let output = run_in(at, &["import", batch.to_str().unwrap(), "--json"]);
    let runs = names(&document(&output));
    let screen = run_in(at, &["import", batch.to_str().unwrap(), "--results", "other"]);
    assert!(!stderr(&screen).contains("earnest compare"), "{}", stderr(&screen));
    let output = run_in(at, &["compare", &runs[0], &runs[1]]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    assert!(said.contains("none of its samples has a score") && said.contains("--answers FILE"), "{said}");
}

#[test]
fn rows_of_another_earnest_are_refused_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("t.csv"), "id,text,right\nq1,text,1\nq2,text,0\n").unwrap();
    let columns = ["--columns", "id=id,completion=text,score=right", "--task", "t", "--model-name", "m"];
    let run = names(&document(&run_in(at, &[&["import", "t.csv", "--json"][..], &columns].concat()))).remove(0);
    done(at, &["export", &run, "--format", "jsonl", "-o", "rows.jsonl"]);
    let rows = std::fs::read_to_string(at.join("rows.jsonl")).unwrap();
    assert!(rows.contains("\"format\":1"), "{rows}");
    std::fs::write(at.join("later.jsonl"), rows.replace("\"format\":1", "\"format\":9")).unwrap();
    let output = run_in(at, &["import", "later.jsonl", "--results", "other"]);
    assert!(code(&output) != 0, "{}", stdout(&output));
    assert!(
        stderr(&output).contains("an export of another earnest, in version 9 of its samples"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_list_has_the_start_that_a_log_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let inspect = std::fs::read_dir(logs("inspect").join("logs")).unwrap().map(|entry| entry.unwrap().path());
    let json = { inspect }.find(|path| path.extension().is_some_and(|ending| ending == "json")).unwrap();
    let text = std::fs::read_to_string(json).unwrap();
    let (utc, other) = ("2026-11-22T16:53:58+00:00", "2026-11-22T17:53:58+01:00");
    assert!(text.contains(utc));
    std::fs::write(at.join("utc.json"), &text).unwrap();
    // Another log at the same moment, as another zone has it.
    let edited = text.replace(utc, other).replace("gemma", "gemme").replace("SmolLM2", "SmolLM3");
    std::fs::write(at.join("other.json"), edited).unwrap();
    std::fs::write(at.join("silent.csv"), "id,text,right\nq0,text,1\nq1,text,0\n").unwrap();
    let table = ["--columns", "id=id,completion=text,score=right", "--task", "t", "--model-name", "m"];
    for words in
        [&["import", "utc.json"][..], &["import", "other.json"], &[&["import", "silent.csv"][..], &table].concat()]
    {
        let output = run_in(at, &[words, &["--results", "r"]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        // The command that is offered is of the same folder.
        let said = stdout(&output);
        let next = said.lines().find_map(|line| line.strip_prefix("next: earnest ")).unwrap();
        done(at, &next.split_whitespace().collect::<Vec<_>>());
    }
    let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--results", "r", "--json"])).unwrap();
    let mut started: Vec<Option<&str>> = listed.as_array().unwrap().iter().map(|run| run["started"].as_str()).collect();
    started.sort();
    assert_eq!(started, [None, Some("2026-11-22T16:53:58Z"), Some(other)]);
    let screen = done(at, &["runs", "list", "--results", "r"]);
    for (run, start) in listed.as_array().unwrap().iter().map(|run| (run["run"].as_str().unwrap(), &run["started"])) {
        let shown = match start.as_str() {
            None => "unknown",
            Some(start) if start == other => "2026-11-22 17:53:58+01:00",
            Some(_) => "2026-11-22 16:53:58",
        };
        let row = screen.lines().find(|line| line.starts_with(run)).unwrap();
        assert!(row.trim_end().ends_with(shown), "{shown}: {screen}");
        assert!(
            done(at, &["runs", "show", run, "--results", "r"])
                .contains(start.as_str().map_or("started   unknown", |_| "started   2026"))
        );
    }
    // Two logs of one file that say nothing are told apart by their imports, and nothing is said to have begun then.
    std::fs::write(at.join("silent.csv"), "id,text,right\nq0,text,0\nq1,text,0\n").unwrap();
    done(at, &[&["import", "silent.csv", "--results", "r"][..], &table].concat());
    let listed: Value = serde_json::from_str(&done(at, &["runs", "list", "--results", "r", "--json"])).unwrap();
    let silent: Vec<&Value> = listed.as_array().unwrap().iter().filter(|run| run["suite"] == "t").collect();
    assert_eq!(silent.len(), 2);
    assert!(silent.iter().all(|run| run["label"].as_str().unwrap().starts_with("imported 20")), "{listed}");
}
