//! Reports and exports of stored runs, through the program, read back with a browser and with Python where they are.
//! `scripts/view-browser.sh` installs the browser.
use crate::synthetic;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Instant;

use earnest_answer::{CodeOutcome, CodeRunner, Program};
use earnest_engine::{FinishReason, Timings};
use earnest_papers::gsm_symbolic::chapters;
use earnest_report::page::{Chapter, ReportRun, comparisons, figures};
use earnest_results::{Generated, SAMPLE_FORMAT, Sample};
use earnest_tasks::suite::arithmetic_bench::Task;
use earnest_tasks::suite::gsm_symbolic::{GsmSymbolic, Options, Prompt, Source};
use earnest_tasks::suite::registry::{OptionError, Programs};
use earnest_tasks::suite::{Items, Score, Suite};
use serde_json::Value;

fn earnest(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS"] {
        command.env_remove(name);
    }
    command.current_dir(folder).args(words).output().unwrap()
}

fn succeeds(folder: &Path, words: &[&str]) -> String {
    let output = earnest(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Two small runs of three tasks.
fn two_runs(results: &Path) {
    let suite = synthetic::suite(&[Task::Add, Task::Mul, Task::Mul1], 1..=12, 9);
    for (name, model, skill) in [("run-a", "Model-A-Instruct", 5.0), ("run-b", "Qwen2.5-7B-Instruct", 8.0)] {
        let samples = synthetic::samples(name, &suite, skill, name.len() as u64 + skill as u64);
        synthetic::store(results, &synthetic::manifest(name, model, &suite), &samples);
    }
}

/// Runs a script of `tests`; its exit code 77 means that something it needs is not installed.
fn script(interpreter: &str, script: &str, arguments: &[&Path]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let output = match Command::new(interpreter).arg(&script).args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED {}: {interpreter} cannot be started: {error}", script.display());
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => eprintln!("{said}"),
        Some(77) => eprintln!("SKIPPED {}: {said}", script.display()),
        _ => panic!("{}: {said}", script.display()),
    }
}

/// Tries a page in a browser, with screenshots if they are asked for.
fn browse(file: &Path, name: &str) {
    let shots = screenshots(name);
    let arguments: Vec<&Path> = [file].into_iter().chain(shots.as_deref()).collect();
    script("node", "browser/report.mjs", &arguments);
}

/// The page of runs with their differences.
fn page(runs: &[ReportRun], chapters: &[Chapter]) -> String {
    earnest_report::page::page(runs, &comparisons(runs), chapters).unwrap()
}

/// Folder for the browser's screenshots of a page, if requested.
fn screenshots(page: &str) -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("EARNEST_SCREENSHOTS")?).join(page))
}

#[test]
fn a_report_of_two_runs_reads_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    two_runs(&folder.path().join("earnest-results"));
    let words = ["report", "run-a", "run-b", "-o", "report.html", "--figures", "figures"];
    succeeds(folder.path(), &[&words[..], &["--figure-format", "svg,pdf,png"]].concat());
    let written = || -> Vec<PathBuf> {
        std::fs::read_dir(folder.path().join("figures")).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    // Accuracy, differences, two heat maps, two outcomes.
    assert_eq!(written().len(), 3 * 6, "{:?}", written());
    succeeds(folder.path(), &[&words[..], &["--figure-format", "svg,pdf,png", "--every-figure"]].concat());
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in [
        "Model-A-Instruct",
        "Qwen2.5-7B-Instruct",
        "n.s.",
        "id=\"heat\"",
        "cluster-robust",
        "<noscript>",
        "Content-Security-Policy",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
    // A completion with markup stays text, also where examples stand without a script.
    assert!(!html.contains("<img src=x") && html.contains("&lt;/script&gt;&lt;script&gt;window.earnestWasHere"));
    for bad in ["NaN", "http://", "https://"] {
        assert!(!html.contains(bad), "{bad} is in the page");
    }
    // The result of each model, the heat map, the differences that hold; then notes, and the rest folded.
    let place = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part} is missing"));
    let parts =
        ["<section id=\"summary\">", "<section id=\"heat\">", "<section id=\"differences\">", "<section id=\"notes\">"];
    let places: Vec<usize> = parts.into_iter().chain(["<details class=\"part\""]).map(place).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!html[place("<details class=\"part\"")..].contains("<section"), "everything else is folded");
    let again = folder.path().join("again.html");
    succeeds(folder.path(), &["report", "run-a", "run-b", "-o", "again.html"]);
    assert_eq!(html, std::fs::read_to_string(again).unwrap(), "the same runs give the same bytes");
    let drawings = written();
    // And three curves, latency, tokens.
    assert_eq!(drawings.len(), 3 * 11, "{drawings:?}");
    for path in &drawings {
        let content = std::fs::read(path).unwrap();
        match path.extension().unwrap().to_str().unwrap() {
            "svg" => {
                let text = String::from_utf8(content).unwrap();
                assert!(text.starts_with("<?xml") && text.matches("<g").count() == text.matches("</g>").count());
                // Colours are values: programs other than browsers do not know variables.
                assert!(!text.contains("var(") && !text.contains("@media") && text.contains("#0072b2"), "{path:?}");
            }
            "pdf" => assert!(content.starts_with(b"%PDF-") && content.len() < 200_000, "{path:?}: {}", content.len()),
            _ => {
                assert!(
                    content.starts_with(b"\x89PNG\r\n") && content.len() < 2_000_000,
                    "{path:?}: {}",
                    content.len()
                );
                let width = u32::from_be_bytes(content[16..20].try_into().unwrap());
                assert!((1_000..10_000).contains(&width), "{path:?}: {width} pixels");
            }
        }
    }
    browse(&folder.path().join("report.html"), "two");
}

/// Programs of these tests have no answer.
struct NoRunner;

impl CodeRunner for NoRunner {
    fn run(&self, _: &Program) -> CodeOutcome {
        CodeOutcome::None
    }
}

impl Programs for NoRunner {
    fn start(&self) -> Result<(), OptionError> {
        Ok(())
    }
}

/// A run of word problems: so many questions from each of our 16 templates, and the originals, under every prompt. Variants
/// are answered worse than originals.
fn word_problems(name: &str, per_template: usize, skill: usize) -> ReportRun {
    let options = Options { prompts: Prompt::ALL.to_vec(), ..Options::new(Source::Own { per_template, seed: 1 }) };
    let suite = Suite::new(GsmSymbolic::own(options, Arc::new(NoRunner)).unwrap());
    let mut dice = synthetic::Dice(skill as u64);
    let samples = suite.items.iter().enumerate().map(|(index, item)| {
        let level = skill + 4 * (item.cluster.len() + item.cluster.as_bytes()[0] as usize % 7);
        let right = dice.roll(100) < if item.covariates["variant"] == 1 { level } else { level + 20 };
        let text = synthetic::solution(&item, right, &mut dice);
        let number = text.rsplit(' ').next().map(str::to_owned);
        let tokens = text.len() / 4;
        Sample {
            format: SAMPLE_FORMAT,
            run: name.into(),
            suite: suite.scoring.name().into(),
            item: item.id.clone(),
            sample: 0,
            task: item.task.clone(),
            cluster: item.cluster.clone(),
            covariates: item.covariates.clone(),
            gold: item.gold.clone(),
            prompt_sha256: format!("{index:064x}"),
            prompt_tokens: 900,
            budget: 1024,
            max_tokens: 1024,
            completion: Some(Generated {
                counted_tokens: 0,
                ids: vec![7; tokens],
                text,
                finish: FinishReason::Eos,
                cached_tokens: 800,
                timings: Timings { queued_s: 0.1, prefill_s: 0.02, decode_s: 0.01 * tokens as f64 },
            }),
            score: Some(Score {
                correct: right,
                answer: if right { Some(item.gold.clone()) } else { number },
                scorers: [("study", right), ("strict", right), ("flexible", right)].into(),
                metrics: Default::default(),
                failure: (!right).then(|| ["wrong", "no_number", "wrong_last_number"][dice.roll(3)].into()),
                evidence: Default::default(),
            }),
            failure: None,
        }
    });
    let samples: Vec<Sample> = samples.collect();
    let mut manifest = synthetic::manifest(name, name, &suite);
    manifest.settings.prompt_mode = earnest_results::Mode::Raw;
    ReportRun::new(name, manifest, &suite, samples)
}

/// A minute by itself: its limits are of time and size, which fewer samples do not show.
#[test]
fn fifty_thousand_word_problems_fit_into_eight_megabytes() {
    let begin = Instant::now();
    let run = word_problems("Model-Big", 625, 40);
    assert!(run.samples.len() > 50_000);
    let characters: usize = run.samples.iter().filter_map(|sample| Some(sample.completion.as_ref()?.text.len())).sum();
    assert!(characters / run.samples.len() > 250, "the texts are as long as worked solutions");
    let runs = [run];
    let (made, chapters) = (begin.elapsed(), chapters(&runs));
    let fitted = begin.elapsed();
    let html = page(&runs, &chapters);
    let megabytes = html.len() as f64 / 1e6;
    eprintln!(
        "{} samples, {:.1} MB of completions: mixed models in {:.2} s, a page of {megabytes:.2} MB in {:.2} s",
        runs[0].samples.len(),
        characters as f64 / 1e6,
        (fitted - made).as_secs_f64(),
        (begin.elapsed() - fitted).as_secs_f64()
    );
    assert!(megabytes < 8.0, "{megabytes} MB");
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("EARNEST_BIG_PAGE").map_or_else(|| folder.path().join("big.html"), PathBuf::from);
    std::fs::write(&path, html).unwrap();
    browse(&path, "big");
}

#[test]
fn runs_of_word_problems_have_the_studys_figures() {
    let mut runs = vec![word_problems("phi-2", 12, 40), word_problems("My Model", 12, 60)];
    // A run without originals has no odds ratio, and says so.
    let mut alone = word_problems("Variants only", 3, 50);
    alone.samples.retain(|sample| sample.covariates["variant"] == 1 && sample.task == "gsm");
    runs.push(alone);
    let [chapter] = &chapters(&runs)[..] else { panic!("one suite, one chapter") };
    let names: Vec<&str> = chapter.figures.iter().map(|figure| figure.name.as_str()).collect();
    for figure in ["figure-1", "figure-3", "figure-4", "figure-5", "figure-6", "figure-7", "figure-7-cumulative"] {
        assert!(names.contains(&format!("gsm-mini-{figure}").as_str()), "{figure}: {names:?}");
    }
    let forest = chapter.figures.iter().find(|figure| figure.name == "gsm-mini-figure-1").unwrap().standalone();
    let tip = regex::Regex::new(r"<title>My Model: ([0-9.]+) \[([0-9.]+), ([0-9.]+)\]").unwrap();
    let numbers = tip.captures(&forest).unwrap_or_else(|| panic!("{forest}"));
    let [estimate, low, high] = [1, 2, 3].map(|group| numbers[group].parse::<f64>().unwrap());
    assert!(low < estimate && estimate < high && estimate < 1.0, "variants are harder: {estimate} [{low}, {high}]");
    assert!(
        chapter.notes.iter().any(|note| note.starts_with("Variants only, gsm prompt: not in these")),
        "{:?}",
        chapter.notes
    );
    assert!(chapter.notes.iter().any(|note| note.contains("Kolmogorov-Smirnov D = 0.")), "{:?}", chapter.notes);
    let html = page(&runs, std::slice::from_ref(chapter));
    assert!(
        html.contains("<details class=\"part\" id=\"gsm-mini\">")
            && html.contains("Figure 7: integers in the questions")
    );
    // The packed samples may have any letters.
    let readable = html.split("<script type=\"text/plain\"").next().unwrap();
    assert!(!readable.contains("NaN"), "{}", &readable[readable.find("NaN").unwrap_or(0).saturating_sub(200)..][..400]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, html).unwrap();
    browse(&file, "gsm");
    // Other suites, and runs without originals, have no such figures.
    assert!(chapters(&runs[2..]).is_empty());
    let suite = synthetic::suite(&[Task::Copy], 1..=3, 4);
    let samples = synthetic::samples("one", &suite, 3.0, 1);
    let other = ReportRun::new("one", synthetic::manifest("one", "M", &suite), &suite, samples);
    assert!(chapters(&[other]).is_empty());
}

#[test]
fn the_smallest_run_has_a_page_alone_and_beside_another() {
    let suite = synthetic::suite(&[Task::Copy], 1..=1, 1);
    let run = |model: &str| {
        let samples = synthetic::samples(model, &suite, 3.0, 1);
        ReportRun::new(model, synthetic::manifest(model, model, &suite), &suite, samples)
    };
    let chapter = Chapter {
        id: "empty".into(),
        title: "Nothing".into(),
        lead: String::new(),
        notes: Vec::new(),
        figures: Vec::new(),
    };
    let runs = [run("A"), run("B")];
    for shown in [&runs[..1], &runs[..]] {
        let html = page(shown, std::slice::from_ref(&chapter));
        assert!(html.contains("<section id=\"summary\">") && !html.contains("id=\"empty\""), "{html}");
    }
}

#[test]
fn differences_without_an_error_are_drawn_and_named() {
    let suite = synthetic::suite(&[Task::Add, Task::Copy, Task::Rev], 1..=6, 8);
    let run = |model: &str, keep: &dyn Fn(&Sample) -> bool, skill: f64| {
        let mut samples = synthetic::samples(model, &suite, skill, 1);
        samples.retain(|sample| sample.failure.is_none() && keep(sample));
        for sample in samples.iter_mut().filter(|sample| sample.task == "add") {
            sample.cluster = "the only one".into();
        }
        ReportRun::new(model, synthetic::manifest(model, model, &suite), &suite, samples)
    };
    let runs = [run("A", &|_| true, 3.0), run("B", &|sample| sample.task != "rev", 4.0)];
    let html = page(&runs, &[]);
    assert!(html.contains("B: no standard error can be estimated from one cluster of items: add."), "{html}");
    assert!(html.contains("B: not compared, because no item is in both runs: rev."));
    let drawn = figures(&runs, &comparisons(&runs), true);
    let delta = &drawn.iter().find(|placed| placed.figure.name == "difference-to-first").unwrap().figure;
    let text = delta.standalone();
    assert!(text.contains("add, B: ") && text.contains("[unknown, unknown]"), "{text}");
    // Where no error can be estimated nothing was tested, which is no finding either.
    assert!(text.contains("[unknown, unknown], not tested") && text.contains("no test"), "{text}");
    assert!(!text.contains("[unknown, unknown], not significant"), "{text}");
}

/// A run of one task and the model M, at a temperature, of a day.
fn at_temperature(temperature: f32, day: &str, lengths: std::ops::RangeInclusive<usize>) -> ReportRun {
    let suite = synthetic::suite(&[Task::Copy, Task::Add], lengths, 8);
    let name = format!("run-{temperature}");
    let mut manifest = synthetic::manifest(&name, "M", &suite);
    manifest.settings.generation.sampling.temperature = temperature;
    manifest.settings_sha256 = manifest.settings.sha256();
    manifest.started = format!("{day}T10:00:00Z");
    let samples = synthetic::samples(&name, &suite, 3.0 + f64::from(temperature), 1);
    ReportRun::new("results", manifest, &suite, samples)
}

#[test]
fn a_report_says_what_was_compared_when_and_with_what_conclusion() {
    let mut runs = vec![at_temperature(0.0, "2026-02-03", 1..=6), at_temperature(1.5, "2026-02-05", 1..=6)];
    ReportRun::distinguish(&mut runs);
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["M (temperature 0.0)", "M (temperature 1.5)"], "settings tell runs of one model apart");
    let html = page(&runs, &[]);
    let top = html.split("<section id=\"heat\"").next().unwrap();
    for part in [
        "<title>arithmetic-bench: M (temperature 1.5) beside M (temperature 0.0) \u{b7} earnest</title>",
        "<p class=\"title\">arithmetic-bench: M (temperature 1.5) beside M (temperature 0.0)</p>",
        "Runs of 2026-02-03 to 2026-02-05 (UTC).",
    ] {
        assert!(top.contains(part), "{part}: {top}");
    }
    let verdict = comparisons(&runs)[0].conclusion();
    assert!(
        // What belongs together stays on a line of the page.
        top.replace('\u{a0}', " ")
            .contains(&format!("<p class=\"verdict\">{}</p>", verdict.replace('<', "&lt;").replace('\'', "&#39;"))),
        "{verdict}: {top}"
    );
    assert_eq!(html, page(&runs, &[]), "nothing is of the day on which it is written");
    let alone = page(&runs[..1], &[]);
    assert!(alone.contains("Run of 2026-02-03 (UTC).") && !alone.contains("class=\"verdict\""));
    // Of many runs there is a sentence on all of them.
    let mut many: Vec<ReportRun> =
        [0.0, 0.5, 1.0, 1.5].map(|temperature| at_temperature(temperature, "2026-02-03", 1..=6)).into();
    ReportRun::distinguish(&mut many);
    let html = page(&many, &[]);
    let [_, verdict] = html.split("<p class=\"verdict\">").collect::<Vec<_>>()[..] else { panic!("one verdict") };
    let found = comparisons(&many);
    let better = found.iter().filter(|one| one.overall.p_holm.is_some_and(|p| p < 0.05)).count();
    assert!(verdict.starts_with("Of 3 runs beside M (temperature 0.0), "), "{verdict}");
    assert!(verdict.contains(&format!("; {} ", 3 - better)) && verdict.contains("not told apart from it"), "{verdict}");
    // Where settings tell nothing apart, the start does, and at last a number.
    let mut equal = vec![at_temperature(0.0, "2026-02-03", 1..=6); 2];
    ReportRun::distinguish(&mut equal);
    let labels = [equal[0].label.as_str(), equal[1].label.as_str()];
    assert_eq!(labels, ["M (begun 2026-02-03 10:00:00)", "M (begun 2026-02-03 10:00:00) #2"]);
}

#[test]
fn heat_maps_of_few_lengths_are_not_blown_up() {
    let widest = |lengths| {
        let html = page(&[at_temperature(0.0, "2026-02-03", lengths)], &[]);
        let map = html.split("class=\"heat single").nth(1).unwrap();
        let number = |text: &str| -> f64 {
            let found = map.split(text).nth(1).unwrap();
            found.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap().parse().unwrap()
        };
        (number("max-width:"), number(" width=\""), number("min-width:"))
    };
    for lengths in [1..=2, 1..=6, 1..=100] {
        let (most, width, least) = widest(lengths);
        assert!(most <= 1.31 * width && most >= 1.2 * width && least <= width + 1.0, "{least}, {width}, {most}");
    }
}

#[test]
fn figures_of_one_run_need_no_other() {
    let suite = synthetic::suite(&[Task::Copy], 5..=5, 4);
    let samples = synthetic::samples("one", &suite, 3.0, 1);
    let mut runs = vec![ReportRun::new("one", synthetic::manifest("one", "M", &suite), &suite, samples)];
    runs.push(runs[0].clone());
    ReportRun::distinguish(&mut runs);
    assert_ne!(runs[0].label, runs[1].label);
    runs.truncate(1);
    // One length: no curve and no heat map; one run: no difference.
    assert_eq!(figures(&runs, &comparisons(&runs), true).len(), 4);
    assert!(page(&runs, &[]).contains("</html>"));
}

#[test]
fn exports_read_back() {
    let folder = tempfile::tempdir().unwrap();
    two_runs(&folder.path().join("earnest-results"));
    for format in ["jsonl", "csv", "parquet"] {
        let file = format!("samples.{format}");
        succeeds(folder.path(), &["export", "run-b", "--format", format, "-o", &file]);
    }
    succeeds(folder.path(), &["export", "run-b", "--format", "lm-eval", "-o", "lm-eval"]);
    let lines = succeeds(folder.path(), &["export", "run-b", "--format", "jsonl", "-o", "-"]);
    assert_eq!(lines, std::fs::read_to_string(folder.path().join("samples.jsonl")).unwrap());
    assert_eq!(lines.lines().count(), 3 * 12 * 9);
    let parquet = std::fs::read(folder.path().join("samples.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    script("python3", "python/exports.py", &[folder.path()]);
}

#[test]
fn mistakes_name_the_thing_and_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    two_runs(&folder.path().join("earnest-results"));
    let cases: [(&[&str], i32, &str); 9] = [
        (&["report", "run-a", "--figures", "figures", "--figure-format", "jpg"], 2, "svg, pdf, png"),
        (&["report", "run-a", "--figure-format", "pdf"], 2, "--figures <DIR>"),
        (&["report", "run-a", "-o", "page.html", "--figures", "earnest-results/earnest.sqlite"], 4, "earnest.sqlite"),
        (&["compare", "run-a", "run-b", "--figure", "difference.jpg"], 2, ".svg, .pdf or .png"),
        (&["report", "run-c"], 2, "run-c"),
        (&["export", "run-a", "--format", "lm-eval", "-o", "-"], 2, "folder"),
        (&["export", "run-a", "--format", "csv", "-o", "missing/samples.csv"], 4, "missing"),
        (&["reproduce", "arithmetic-benches"], 2, "arithmetic-bench"),
        (&["report", "run-a", "--results", "elsewhere"], 4, "elsewhere"),
    ];
    for (words, code, named) in cases {
        let output = earnest(folder.path(), words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(named), "{words:?}: {said}");
    }
    assert!(!folder.path().join("report.html").exists(), "a failed report leaves no file");
}

#[test]
fn reproduction_stands_beside_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("earnest-results");
    let whole = synthetic::suite(&[Task::Mul, Task::Count], 1..=100, 10);
    let samples = synthetic::samples("whole", &whole, 2.2, 3);
    let kept: Vec<_> = samples.into_iter().filter(|sample| sample.failure.is_none()).collect();
    synthetic::store(&results, &synthetic::manifest("whole", "Qwen2.5-7B-Instruct", &whole), &kept);
    let few = synthetic::suite(&[Task::Mul], 1..=4, 5);
    let samples = synthetic::samples("few", &few, 2.2, 3);
    synthetic::store(&results, &synthetic::manifest("few", "Qwen2.5-7B-Instruct-Q4_K_M", &few), &samples);
    let document: Value =
        serde_json::from_str(&succeeds(folder.path(), &["reproduce", "arithmetic-bench", "--json"])).unwrap();
    let cell = |run: &str, table: u64, column: &str| -> Value {
        let tables = document["tables"].as_array().unwrap();
        let table = tables.iter().find(|t| t["run"] == run && t["table"] == table).unwrap();
        table["cells"].as_array().unwrap().iter().find(|cell| cell["column"] == column).unwrap().clone()
    };
    let mul = cell("whole", 4, "mul");
    assert!((mul["published"]["value"]["estimate"].as_f64().unwrap() - 0.022).abs() < 1e-9);
    assert_eq!(mul["published"]["items"], 1000);
    let ours = mul["ours"]["compat"]["estimate"].as_f64().unwrap();
    let difference = mul["difference"]["estimate"].as_f64().unwrap();
    assert!((ours - 0.022 - difference).abs() < 1e-9);
    assert!(["differs", "no_difference_shown"].contains(&mul["reading"].as_str().unwrap()));
    assert!(cell("whole", 6, "count")["published"]["doubt"].as_str().unwrap().contains("copied"));
    assert_eq!(cell("whole", 4, "add")["reading"], "not_run");
    let other = cell("few", 4, "mul");
    assert_eq!(other["reading"], "not_comparable");
    assert_eq!(other["difference"], Value::Null);
    let limits =
        document["runs"].as_array().unwrap().iter().find(|run| run["run"] == "few").unwrap()["limits"].to_string();
    assert!(limits.contains("lengths 1-4") && limits.contains("Q4_K_M"), "{limits}");
    let curve = document["curves"].as_array().unwrap().iter().find(|curve| curve["run"] == "whole").unwrap();
    assert_eq!(curve["points"].as_array().unwrap().len(), 30);
    let text = succeeds(folder.path(), &["reproduce", "arithmetic-bench", "--figures", "figures"]);
    for part in ["Table 4", "Table 5", "Table 6", "Figure 1", "Qwen2.5-72B-Instruct", "not comparable", "AIME"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(folder.path().join("figures/arithmetic-bench-figure-1.svg").exists());
    let plan = succeeds(folder.path(), &["reproduce", "arithmetic-bench", "--plan"]);
    assert!(plan.contains("QwQ-32B") && plan.contains("16000") && !plan.contains("--model gpt-4"));
}

/// A suite with several metrics: tables in its own units, heat maps of ranges, curves of every metric, and unknown bounds.
#[test]
fn a_nupa_run_shows_every_metric_in_its_unit() {
    use earnest_tasks::suite::nupa::{Lengths, NupaOptions, NupaSuite};
    let folder = tempfile::tempdir().unwrap();
    let tasks = ["add_Integer", "max_Float", "to_float_Fraction", "multiply_hard_ScientificNotation"];
    let options = NupaOptions {
        tasks: tasks.iter().map(|task| task.parse().unwrap()).collect(),
        lengths: Lengths::Chosen(vec![3, 6, 10, 18]),
        per_length: 1,
        seed: 1,
        ..NupaOptions::default()
    };
    let suite = NupaSuite::new(options).unwrap();
    let lines = suite.iter().enumerate().map(|(number, item)| {
        let completion = if number % 3 == 0 { item.gold.clone() } else { "12".to_owned() };
        format!("{}\n", serde_json::json!({"item": item.id, "completion": completion}))
    });
    std::fs::write(folder.path().join("lines.jsonl"), lines.collect::<String>()).unwrap();
    let names = tasks.join(",");
    let words =
        ["import", "nupa", "--tasks", &names, "--lengths", "3,6,10,18", "--per-length", "1", "--name", "Model-N"];
    succeeds(folder.path(), &[&words[..], &["--completions", "lines.jsonl"]].concat());
    succeeds(folder.path(), &["report", "nupa-Model-N", "-o", "report.html", "--figures", "figures", "--every-figure"]);
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in [
        "Digit match, per cent of the digits",
        "Difference in length (dlength), digits",
        "Further metrics by length",
        "max_Float: dlength",
        "range of lengths",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
    // One sample leaves the bounds of a mean unknown; that is no number on the page.
    assert!(html.contains("unknown") && !html.contains("NaN") && !html.contains(">inf") && !html.contains("Infinity"));
    let drawings = std::fs::read_dir(folder.path().join("figures")).unwrap().count();
    // Accuracy, 4 tasks by 3 metrics, 3 heat maps, outcomes; imported completions have neither timings nor token ids.
    assert_eq!(drawings, 1 + 12 + 3 + 1);
    for format in ["csv", "jsonl", "parquet"] {
        let file = format!("samples.{format}");
        succeeds(folder.path(), &["export", "nupa-Model-N", "--format", format, "-o", &file]);
    }
    let csv = std::fs::read_to_string(folder.path().join("samples.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains("metric_strict_dlength") && csv.lines().count() >= 17);
    assert!(!csv.contains("NaN") && !csv.contains("inf"), "{csv}");
    succeeds(folder.path(), &["export", "nupa-Model-N", "--format", "lm-eval", "-o", "lm"]);
    browse(&folder.path().join("report.html"), "nupa");
}
