//! Runs that end when their difference to another run is decided.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::program::{code, document, earnest, run_in, stderr, stdout};
use earnest_eval::EvalError;
use earnest_eval::evaluate::{Decoding, Evaluated, EvaluationSettings, GenerationSettings, ModelSession, RunChoice};
use earnest_eval::model::{Device, EngineSettings, LocatedModel, ModelSource};
use earnest_models::hub::HubSettings;
use earnest_report::compare::compare_runs;
use earnest_results::runs::verify;
use earnest_results::scores::CompareSettings;
use earnest_results::store::{FILE_NAME, Filter, RunRecord, Store};
use earnest_results::suites::LocalHost;
use earnest_results::{Plan, Reason, Reporter, RunEvent, Shard, Status};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};

const SAMPLES: u32 = 2;

/// Clusters, and questions of each.
const CLUSTERS: usize = 14;
const QUESTIONS: usize = 4;

/// Draws questions, and an order of their clusters, with which the difference is decided early.
const SEED: u64 = 8;

/// Questions that a small model can mostly answer with a few tokens, and not with one.
fn settings(results: &Path, max_tokens: usize, until: Option<&str>) -> EvaluationSettings {
    let options = Options {
        tasks: ["add", "copy"].map(|task| task.parse().unwrap()).to_vec(),
        lengths: "1-7".parse().unwrap(),
        per_length: QUESTIONS,
        seed: SEED,
        ..Options::default()
    };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("embedded/earnest-abacus-1.4m");
    let model = LocatedModel::find(&path, &HubSettings::default(), Default::default()).unwrap();
    let model = ModelSource::Local { model, device: Device::Cpu, note: None };
    EvaluationSettings {
        plan: Plan { limit: None, samples: SAMPLES, shard: None },
        decoding: Decoding::Asked(GenerationSettings {
            max_tokens: Some(max_tokens),
            seed: SEED,
            ..Default::default()
        }),
        until: until.map(|text| text.parse().unwrap()),
        ..EvaluationSettings::new(Suite::new(ArithmeticBench::new(options).unwrap()), model, results)
    }
}

/// Sets a flag after so many samples.
struct StopAfter {
    left: usize,
    stop: Arc<AtomicBool>,
}

impl Reporter for StopAfter {
    fn event(&mut self, event: &RunEvent<'_>) {
        if let RunEvent::Sample(_) = event {
            self.left = self.left.saturating_sub(1);
            self.stop.store(self.left == 0, Ordering::Relaxed);
        }
    }
}

fn evaluated(settings: &EvaluationSettings) -> Result<Evaluated, EvalError> {
    ModelSession::open(settings)?.evaluate(settings, &mut ())
}

/// Rows without what depends on time.
fn rows(store: &Store, run: &RunRecord) -> Vec<(String, u32, String, bool)> {
    let samples = store.samples(run, Filter::default()).map(|sample| {
        let sample = sample.unwrap();
        let (completion, score) = (sample.completion.unwrap(), sample.score.unwrap());
        (sample.item, sample.sample, completion.text, score.correct)
    });
    samples.collect()
}

/// The name of a whole run with enough tokens and one sample a question.
fn baseline(results: &Path) -> String {
    let whole = settings(results, 10, None);
    let plan = Plan { samples: 1, ..whole.plan };
    evaluated(&EvaluationSettings { plan, ..whole }).unwrap().run.manifest.run
}

#[test]
fn a_decided_run_is_the_beginning_of_the_whole_one_however_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let base = baseline(folder.path());
    let begun = std::fs::read(folder.path().join(FILE_NAME)).unwrap();
    let until = format!("difference to {base} decided");
    let Evaluated { store, run } = evaluated(&settings(folder.path(), 1, Some(&until))).unwrap();
    let decision = run.manifest.decision.clone().unwrap();
    let estimate = decision.estimate.unwrap();
    assert_eq!((run.manifest.status, decision.reason), (Status::Finished, Reason::Different));
    assert!(decision.is_early() && estimate.high < 0.0 && decision.clusters >= 9, "{decision:?}");
    assert_eq!((decision.of_items, decision.of_clusters), (CLUSTERS * QUESTIONS, CLUSTERS));
    assert_eq!(decision.items, QUESTIONS * decision.clusters, "whole clusters are asked");
    let expected = rows(&store, &run);
    assert_eq!(expected.len(), decision.items * SAMPLES as usize);
    assert_eq!(run.planned, expected.len());
    let clusters = |rows: &[(String, u32, String, bool)]| {
        let mut names: Vec<String> = rows.iter().map(|row| row.0.rsplit_once('/').unwrap().0.to_owned()).collect();
        names.dedup();
        names
    };
    let order = clusters(&expected);
    let mut sorted = order.clone();
    sorted.sort();
    sorted.dedup();
    assert!(order.len() == decision.clusters && sorted.len() == order.len() && sorted != order, "{order:?}");
    // The rows, the plan and the settings agree.
    let verification = verify(&store, std::slice::from_ref(&run.manifest.run), &LocalHost::default(), &mut ()).unwrap();
    assert_eq!(verification.damaged(), 0, "{verification:?}");
    // The same command reports it.
    let again = evaluated(&settings(folder.path(), 1, Some(&until))).unwrap().run;
    assert_eq!((again.manifest.run, again.manifest.sessions), (run.manifest.run.clone(), 1));
    // A comparison finds the same difference, and says what its other numbers are worth.
    let compared =
        compare_runs(&store, &[base.clone(), run.manifest.run.clone()], &CompareSettings::default(), &mut ())
            .unwrap()
            .remove(0);
    let sequential = compared.sequential.clone().unwrap();
    assert_eq!(sequential.runs, std::slice::from_ref(&run.manifest.run));
    let found = sequential.estimate.unwrap();
    assert!((found.low - estimate.low).abs() < 1e-12 && (found.high - estimate.high).abs() < 1e-12);
    assert_eq!((found.pairs, found.clusters), (estimate.pairs, estimate.clusters));
    assert!(!compared.settings.iter().any(|change| change.name.starts_with("until")), "{:?}", compared.settings);
    // Interrupted anywhere, with another batch, it is the same run.
    for (after, batch) in [(1, 1), (7, 64), (43, 3), (decision.items, 64), (expected.len() - 1, 2)] {
        let other = tempfile::tempdir().unwrap();
        std::fs::write(other.path().join(FILE_NAME), &begun).unwrap();
        let engine = EngineSettings { max_batch: Some(batch), ..EngineSettings::default() };
        let first = EvaluationSettings { engine, ..settings(other.path(), 1, Some(&until)) };
        let mut reporter = StopAfter { left: after, stop: Arc::clone(&first.stop) };
        let ended = ModelSession::open(&first).unwrap().evaluate(&first, &mut reporter);
        assert!(matches!(&ended, Err(EvalError::Interrupted { .. }) | Ok(_)), "{:?}", ended.err());
        let Evaluated { store, run: resumed } = evaluated(&settings(other.path(), 1, Some(&until))).unwrap();
        let decided = resumed.manifest.decision.clone().unwrap();
        assert_eq!(rows(&store, &resumed), expected, "stopped after {after}");
        assert_eq!(
            (decided.reason, decided.items, decided.estimate),
            (decision.reason, decision.items, decision.estimate)
        );
        assert_eq!(resumed.manifest.settings_sha256, run.manifest.settings_sha256);
    }
}

#[test]
fn equal_runs_are_asked_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let base = baseline(folder.path());
    // One token more changes hardly anything.
    let until = format!("difference to {base} decided");
    let Evaluated { store, run } = evaluated(&settings(folder.path(), 11, Some(&until))).unwrap();
    let decision = run.manifest.decision.clone().unwrap();
    assert_eq!(
        (decision.reason, decision.items, decision.is_early()),
        (Reason::Undecided, CLUSTERS * QUESTIONS, false)
    );
    assert_eq!(rows(&store, &run).len(), CLUSTERS * QUESTIONS * SAMPLES as usize);
    assert_eq!(run.manifest.plan(), run.manifest.whole_plan());
    // So small a number of clusters shows no equality either.
    let within = format!("{until}, or within 5 points");
    let found = evaluated(&settings(folder.path(), 11, Some(&within))).unwrap().run.manifest;
    assert_eq!(found.decision.unwrap().reason, Reason::Undecided);
    assert_ne!(found.run, run.manifest.run, "another condition is another run");
}

#[test]
fn runs_that_cannot_decide_anything_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let base = baseline(folder.path());
    let until = format!("difference to {base} decided");
    let refused = |settings: &EvaluationSettings| match evaluated(settings) {
        Ok(found) => panic!("{} was not refused", found.run.manifest.run),
        Err(error) => error.to_string(),
    };
    let shard = Some(Shard { part: 1, of: 2 });
    let part = settings(folder.path(), 1, Some(&until));
    let part = EvaluationSettings { plan: Plan { shard, ..part.plan }, ..part };
    assert!(refused(&part).contains("`until` cannot end part 1/2"));
    let unknown = settings(folder.path(), 1, Some("difference to nowhere decided"));
    assert!(refused(&unknown).contains("there is no run nowhere"));
    // None of its questions.
    let options = Options { lengths: "9-10".parse().unwrap(), per_length: 5, ..Options::default() };
    let other = EvaluationSettings {
        questions: earnest_eval::evaluate::Questions::Suite(Suite::new(ArithmeticBench::new(options).unwrap())),
        ..settings(folder.path(), 1, Some(&until))
    };
    assert!(refused(&other).contains("items of this run is in"), "{}", refused(&other));
    // A run that ended early has answers that its own difference chose.
    let early = evaluated(&settings(folder.path(), 1, Some(&until))).unwrap().run.manifest.run;
    let chained = settings(folder.path(), 9, Some(&format!("difference to {early} decided")));
    assert!(refused(&chained).contains("ended early itself"));
    // An unfinished one lacks answers.
    let unfinished = settings(folder.path(), 8, None);
    let mut reporter = StopAfter { left: 3, stop: Arc::clone(&unfinished.stop) };
    let Err(EvalError::Interrupted { run, .. }) =
        ModelSession::open(&unfinished).unwrap().evaluate(&unfinished, &mut reporter)
    else {
        panic!("it was to be interrupted");
    };
    assert!(
        refused(&settings(folder.path(), 1, Some(&format!("difference to {run} decided")))).contains("is not finished")
    );
    // Nothing was begun by any of them.
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.runs().unwrap().len(), 3);
    // It can be repeated, with its condition.
    let stored = store.run(&early).unwrap();
    let repeat = EvaluationSettings {
        run: RunChoice::Repeat(Box::new(stored.manifest.clone())),
        ..settings(folder.path(), 1, Some(&until))
    };
    let repeated = evaluated(&repeat).unwrap().run.manifest;
    assert_eq!(repeated.settings_sha256, stored.manifest.settings_sha256);
    assert_eq!(repeated.decision.unwrap().estimate, stored.manifest.decision.unwrap().estimate);
}

#[test]
fn the_program_says_that_a_run_stopped_early() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let ask = |words: &[&str]| {
        let fixed =
            ["run", "nupa", "--model", "earnest-abacus-1.4m", "--tasks", "add_Integer,sub_Integer", "--lengths", "2-5"];
        let limit = ["--limit", "60", "--json"];
        earnest(at).env("EARNEST_CACHE", at.join("cache")).args(fixed).args(limit).args(words).output().unwrap()
    };
    let name = |output: &std::process::Output| {
        assert_eq!(code(output), 0, "{}", stderr(output));
        document(output)["manifest"]["run"].as_str().unwrap().to_owned()
    };
    let base = name(&ask(&[]));
    // A part of a name is enough; the manifest has all of it.
    let until = format!("difference to {} decided", &base[base.len() - 8..]);
    let output = ask(&["--max-tokens", "1", "--until", &until]);
    let early = name(&output);
    assert!(stderr(&output).contains("Stopped early, after "), "{}", stderr(&output));
    let manifest = &document(&output)["manifest"];
    assert_eq!(manifest["settings"]["until"]["difference_to"], base.as_str());
    assert_eq!(manifest["decision"]["reason"], "different");
    let asked = manifest["decision"]["items"].as_u64().unwrap();
    assert!((9..60).contains(&asked), "{asked}");
    let shown = stdout(&run_in(at, &["runs", "show", &early]));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(&format!("Stopped early, after {asked} of 60 clusters; the difference to {base} is decided")),
        "{shown}"
    );
    assert!(words.contains(&format!("until difference to {base} decided")), "{shown}");
    let compared = stdout(&run_in(at, &["compare", &base, &early]));
    let words = compared.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the 95 % anytime-valid interval of the true difference is -"), "{compared}");
    assert!(words.contains("so they are not valid"), "{compared}");
    let page = run_in(at, &["report", &base, &early, "-o", "report.html"]);
    assert_eq!(code(&page), 0, "{}", stderr(&page));
    let html = std::fs::read_to_string(at.join("report.html")).unwrap();
    assert!(html.contains("Stopped early, after ") && html.contains("anytime-valid interval"));
    let verified = run_in(at, &["runs", "verify"]);
    assert_eq!(code(&verified), 0, "{}", stdout(&verified));
    // Repeating and resuming find what it says.
    let resumed =
        earnest(at).env("EARNEST_CACHE", at.join("cache")).args(["resume", &early, "--json"]).output().unwrap();
    assert_eq!(name(&resumed), early);
    let repeated =
        earnest(at).env("EARNEST_CACHE", at.join("cache")).args(["run", "--from", &early, "--json"]).output().unwrap();
    assert_eq!(document(&repeated)["manifest"]["decision"]["items"], asked, "{}", stderr(&repeated));
    // What is wrong with a condition is said.
    let wrong = ask(&["--until", "difference to x decide"]);
    assert_eq!(code(&wrong), 2);
    assert!(stderr(&wrong).contains("'decide' at character 17, expected 'decided'"), "{}", stderr(&wrong));
}
