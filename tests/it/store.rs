//! The results file: rows are read as written, other versions are refused, several processes share it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::sums::{Sums, manifest};
use earnest_engine::{FinishReason, Timings};
use earnest_results::store::{FILE_NAME, Filter, RunRecord, SCHEMA_VERSION, Store};
use earnest_results::{
    Document, FailureKind, Generated, Plan, RunError, SAMPLE_FORMAT, Sample, SampleFailure, score_completion,
};
use earnest_tasks::suite::{Evidence, FailureClass, Score, Suite};

const PLAN: Plan = Plan { limit: None, samples: 1, shard: None };

fn suite() -> Suite {
    Suite::new(Sums { items: 40, long: None })
}

fn sample(number: usize) -> Sample {
    let answered = !number.is_multiple_of(7);
    Sample {
        format: SAMPLE_FORMAT,
        run: "run".into(),
        suite: "sums".into(),
        item: format!("sums/{}/{number}", ["small", "large"][number % 2]),
        sample: 0,
        task: ["small", "large"][number % 2].into(),
        cluster: format!("c{}", number / 4),
        covariates: BTreeMap::from([("length".into(), number.into()), ("tiny".into(), 1e-300.into())]),
        gold: (number + 1).to_string(),
        prompt_sha256: "0f".repeat(32),
        prompt_tokens: 10 + number,
        budget: 8,
        max_tokens: if number == 3 { 4 } else { 8 },
        completion: answered.then(|| Generated {
            counted_tokens: 0,
            text: format!("the \0 answer\r\n is \"{number}\" \u{1f600}"),
            ids: vec![0, u32::MAX, number as u32],
            finish: if number.is_multiple_of(5) { FinishReason::Length } else { FinishReason::Eos },
            cached_tokens: number,
            timings: Timings { queued_s: 0.1, prefill_s: 1.0 / 3.0, decode_s: 2e-9 },
        }),
        score: answered.then(|| Score {
            correct: number.is_multiple_of(2),
            answer: number.is_multiple_of(3).then(|| number.to_string()),
            scorers: [("final", number.is_multiple_of(2))].into(),
            metrics: [("share", 0.1 + number as f64)].into(),
            failure: (number % 2 == 1).then_some(FailureClass::Wrong),
            evidence: Evidence {
                readings: [("strict".to_owned(), number.is_multiple_of(4).then(|| number.to_string()))]
                    .into_iter()
                    .filter(|_| number.is_multiple_of(2))
                    .collect(),
                reason: (number % 4 == 1).then(|| "NameError: apples\n\0".into()),
                mark: number.is_multiple_of(3).then(|| "bold".into()),
                rivals: if number.is_multiple_of(6) { vec!["7".into()] } else { Vec::new() },
                values: [("grades".to_owned(), serde_json::json!({"form": number}))]
                    .into_iter()
                    .filter(|_| number.is_multiple_of(7))
                    .collect(),
                ..Evidence::default()
            },
        }),
        failure: (!answered).then(|| SampleFailure {
            kind: FailureKind::BeyondContext,
            message: "too long".into(),
            retryable: number == 14,
        }),
    }
}

fn filled(results: &Path, name: &str) -> (Store, RunRecord) {
    let store = Store::create(results).unwrap();
    let run = store.begin(&manifest(name, &suite(), PLAN), 40).unwrap();
    let mut writer = store.writer(&run);
    // Not in order, as completions arrive.
    for number in (0..40).rev() {
        writer.push(number, Sample { run: name.into(), ..sample(number) }).unwrap();
    }
    writer.write().unwrap();
    drop(writer);
    (store, run)
}

fn read(store: &Store, run: &RunRecord, filter: Filter) -> Vec<Sample> {
    store.samples(run, filter).collect::<Result<_, _>>().unwrap()
}

#[test]
fn samples_come_back_as_they_were_in_the_order_of_the_plan() {
    let results = tempfile::tempdir().unwrap();
    let (store, run) = filled(results.path(), "run");
    let expected: Vec<Sample> = (0..40).map(sample).collect();
    assert_eq!(read(&store, &run, Filter::default()), expected);
    drop(store);
    let store = Store::open(results.path()).unwrap();
    let run = store.run("run").unwrap();
    assert_eq!((read(&store, &run, Filter::default()), run.planned), (expected, 40));
    assert!(!results.path().join("earnest.sqlite-wal").exists() || store.count(&run).unwrap() == 40);
}

#[test]
fn filters_choose() {
    let results = tempfile::tempdir().unwrap();
    let (store, run) = filled(results.path(), "run");
    let count = |filter| {
        let found = read(&store, &run, filter);
        assert!(found.is_sorted_by_key(|sample| sample.covariates["length"].as_u64()));
        found.len()
    };
    let expect = |keep: fn(&Sample) -> bool| (0..40).map(sample).filter(keep).count();
    assert_eq!(count(Filter { task: Some("small".into()), ..Filter::default() }), 20);
    assert_eq!(count(Filter { task: Some("none".into()), ..Filter::default() }), 0);
    assert_eq!(count(Filter { item: Some("sums/large/3".into()), ..Filter::default() }), 1);
    let right = |sample: &Sample| sample.score.as_ref().is_some_and(|score| score.correct);
    assert_eq!(count(Filter { correct: Some(true), ..Filter::default() }), expect(right));
    assert_eq!(
        count(Filter { failed: true, ..Filter::default() }),
        expect(|sample| !sample.score.as_ref().is_some_and(|score| score.correct))
    );
    assert_eq!(count(Filter { truncated: true, ..Filter::default() }), expect(Sample::truncated));
    // Bound as a value, never as SQL.
    assert_eq!(count(Filter { contains: Some("\"11\"".into()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { contains: Some("%' OR 1 --".into()), ..Filter::default() }), 0);
    let of_scorers =
        |one: &str, other: &str| Filter { disagree: Some([one.into(), other.into()]), ..Filter::default() };
    assert_eq!(count(of_scorers("final", "final")), 0);
    // Both must have scored a sample, and a name is never SQL.
    assert_eq!((count(of_scorers("final", "strict")), count(of_scorers("final", "\" OR 1 --"))), (0, 0));
    let both = Filter { task: Some("large".into()), reason: Some("wrong".into()), ..Filter::default() };
    assert_eq!(count(both), expect(|sample| sample.task == "large" && sample.score.is_some()));
}

#[test]
fn sums_equal_those_of_the_rows() {
    let results = tempfile::tempdir().unwrap();
    let (store, run) = filled(results.path(), "run");
    let found = store.aggregate(&run).unwrap();
    let samples: Vec<Sample> = (0..40).map(sample).collect();
    let mut totals = earnest_results::Totals { planned: 40, ..Default::default() };
    samples.iter().for_each(|sample| totals.add(sample));
    assert_eq!(found.totals, totals);
    let scored: Vec<_> = samples.iter().filter_map(|s| Some((s, s.score.as_ref()?))).collect();
    assert_eq!((found.scored, found.correct), (scored.len(), scored.iter().filter(|(_, v)| v.correct).count()));
    assert_eq!(found.tasks.iter().map(|task| task.scored).sum::<usize>(), found.scored);
    assert_eq!(found.reasons, [("wrong".to_owned(), found.scored - found.correct)]);
    let values = scored.iter().map(|(sample, score)| (sample.cluster.as_str(), f64::from(u8::from(score.correct))));
    let expected = earnest_stats::cluster_robust_se(values).unwrap();
    assert!((found.standard_error.unwrap() - expected).abs() < 1e-12);
    let progress = store.progress(&run).unwrap();
    assert!(!progress.is_settled(14) && progress.is_settled(7) && !progress.is_settled(40));
    assert_eq!((progress.settled(), progress.failed(), progress.scored()), (39, 5, 34));
}

#[test]
fn a_row_is_replaced_at_its_place_and_an_item_has_one_place() {
    let results = tempfile::tempdir().unwrap();
    let (store, run) = filled(results.path(), "run");
    let mut writer = store.writer(&run);
    writer.push(14, Sample { failure: None, ..sample(14) }).unwrap();
    writer.write().unwrap();
    assert_eq!(store.count(&run).unwrap(), 40);
    assert!(store.progress(&run).unwrap().is_settled(14));
    writer.push(50, sample(3)).unwrap();
    assert!(matches!(writer.write(), Err(RunError::Store { .. })), "the item has a row at another place");
    assert_eq!(store.count(&run).unwrap(), 40);
}

#[test]
fn runs_are_found_by_any_unique_part_of_their_names() {
    let results = tempfile::tempdir().unwrap();
    let (store, _) = filled(results.path(), "sums-model-12ab34cd");
    filled(results.path(), "sums-model-12ab34cd.2");
    filled(results.path(), "sums-other-77777777");
    let name = |part: &str| store.run(part).map(|run| run.manifest.run);
    assert_eq!(name("sums-model-12ab34cd").unwrap(), "sums-model-12ab34cd", "the whole name wins over longer ones");
    assert_eq!(name("7777").unwrap(), "sums-other-77777777");
    assert!(matches!(name("sums-m"), Err(RunError::AmbiguousRun { runs, .. }) if runs.len() == 2));
    // A run without rows does not count where another matches, and is found where none does.
    store.begin(&manifest("sums-other-88888888", &suite(), PLAN), 40).unwrap();
    assert_eq!(name("other").unwrap(), "sums-other-77777777");
    assert_eq!(name("8888").unwrap(), "sums-other-88888888");
    let nothing = name("nothing").unwrap_err();
    assert!(nothing.help().unwrap().contains("runs list"), "{nothing}");
    let run = store.run("7777").unwrap();
    store.delete(&run).unwrap();
    assert_eq!((store.runs().unwrap().len(), store.strays().unwrap()), (3, 0));
    let lock = store.lock("sums-model-12ab34cd").unwrap();
    assert!(matches!(store.delete(&store.run("sums-model-12ab34cd").unwrap()), Err(RunError::Locked { .. })));
    drop(lock);
}

#[test]
fn other_versions_and_foreign_files_are_refused_by_name() {
    let results = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(results.path()), Err(RunError::NoStore { .. })));
    drop(filled(results.path(), "run"));
    let path = results.path().join(FILE_NAME);
    let refused = |version: u32| match Store::create(results.path()).map(drop) {
        Err(RunError::OtherFormat { part, found, known }) => {
            assert_eq!((part, found, known), (path.display().to_string(), version, SCHEMA_VERSION));
        }
        other => panic!("{version}: {other:?}"),
    };
    for version in [0, 1, SCHEMA_VERSION - 1, SCHEMA_VERSION + 1] {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        drop(connection);
        refused(version);
    }
    for foreign in ["not a database at all, but longer than a header of one", "short"] {
        std::fs::write(&path, foreign).unwrap();
        assert!(matches!(Store::create(results.path()).map(drop), Err(RunError::NotAStore { .. })), "{foreign}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign, "it was not touched");
    }
    std::fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    assert!(matches!(Store::create(results.path()).map(drop), Err(RunError::NotAStore { .. })));
}

#[test]
fn rows_and_manifests_of_another_format_are_refused() {
    let results = tempfile::tempdir().unwrap();
    let (store, run) = filled(results.path(), "run");
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    connection.execute_batch("UPDATE texts SET format = 2").unwrap();
    crate::program::reseal(results.path());
    let outcomes = store.outcomes(&run, |_| Ok::<(), RunError>(()));
    let sample = store.samples(&run, Filter::default()).next().unwrap().map(drop);
    for refused in [outcomes, sample] {
        assert!(matches!(refused, Err(RunError::OtherFormat { found: 2, known: 1, .. })), "{refused:?}");
    }
    connection.execute_batch("UPDATE runs SET manifest = json_set(manifest, '$.format', 2)").unwrap();
    match store.runs() {
        Err(RunError::OtherFormat { part, found: 2, known: 1 }) => {
            assert!(part.starts_with("the manifest of run in "), "{part}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn several_writers_of_different_runs_share_a_new_file() {
    let results = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let folder = results.path();
            scope.spawn(move || {
                let name = format!("run{writer}");
                let store = Store::create(folder).unwrap();
                let run = store.begin(&manifest(&name, &suite(), PLAN), 40).unwrap();
                let mut writer = store.writer(&run).batches_of(3);
                for number in 0..40 {
                    writer.push(number, Sample { run: name.clone(), ..sample(number) }).unwrap();
                }
                writer.write().unwrap();
            });
        }
    });
    let store = Store::open(results.path()).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 4);
    for run in &runs {
        assert_eq!(store.count(run).unwrap(), 40);
        assert!(read(&store, run, Filter::default()).iter().all(|sample| sample.run == run.manifest.run));
    }
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
}

#[test]
fn a_file_that_several_make_at_once_is_a_store_for_each_of_them() {
    for _ in 0..40 {
        let results = tempfile::tempdir().unwrap();
        let begin = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    begin.wait();
                    Store::create(results.path()).unwrap();
                });
            }
        });
    }
}

#[test]
fn rows_that_do_not_belong_are_found() {
    let results = tempfile::tempdir().unwrap();
    let (store, run) = filled(results.path(), "run");
    store.keep_questions(&run, &suite(), 0..40).unwrap();
    let faults = store.examine(&run, Some(&suite())).unwrap();
    assert!(
        faults.len() == 1 && faults[0].contains("score that the suite in the same version"),
        "made-up scores: {faults:?}"
    );
    let mut writer = store.writer(&run);
    for planned in PLAN.walk(&suite()) {
        let mut row = sample(planned.index);
        if let Some(completion) = &row.completion {
            row.score = Some(score_completion(&suite(), &planned.item, None, &completion.text, row.truncated()));
        }
        writer.push(planned.index, row).unwrap();
    }
    writer.write().unwrap();
    drop(writer);
    assert_eq!(store.examine(&run, Some(&suite())).unwrap(), Vec::<String>::new());
    let mut edited = run.clone();
    edited.manifest.status = earnest_results::Status::Finished;
    edited.manifest.settings.samples = 2;
    let faults = store.examine(&edited, Some(&suite())).unwrap();
    assert!(faults.iter().any(|fault| fault.contains("edited")), "{faults:?}");
    assert!(faults.iter().any(|fault| fault.contains("40 of 80 rows")), "{faults:?}");
    drop(store);
    let connection = rusqlite::Connection::open(results.path().join(FILE_NAME)).unwrap();
    connection
        .execute_batch("UPDATE texts SET gold = '0' WHERE key % 100 = 5; DELETE FROM samples WHERE key % 100 = 7")
        .unwrap();
    let store = Store::open(results.path()).unwrap();
    let faults = store.examine(&run, Some(&suite())).unwrap();
    assert!(faults.iter().any(|fault| fault.contains("not in the run's plan")), "{faults:?}");
    assert!(store.strays().unwrap() > 0);
}

#[test]
fn a_document_from_the_file_equals_that_of_the_rows() {
    for shard in [None, Some(earnest_results::Shard { part: 2, of: 3 })] {
        let results = tempfile::tempdir().unwrap();
        let plan = Plan { limit: Some(36), samples: 1, shard };
        let store = Store::create(results.path()).unwrap();
        let run = store.begin(&manifest("run", &suite(), plan), plan.len(&suite())).unwrap();
        let mut writer = store.writer(&run);
        for planned in plan.walk(&suite()).skip(1) {
            writer.push(planned.index, sample(planned.index)).unwrap();
        }
        writer.write().unwrap();
        drop(writer);
        let path = store.path().display().to_string();
        let rows = read(&store, &run, Filter::default());
        let expected = Document::new(&path, run.manifest.clone(), &suite(), plan, &rows);
        let found = Document::stored(&store, &run, &suite()).unwrap();
        assert_eq!(found, expected);
        assert!(found.totals.recorded > 10 && found.totals.failed > 0 && found.totals.truncated > 0);
        assert!(found.summary.rows[0].n > 5 && found.failures[0].count == found.totals.failed);
    }
}

#[test]
fn outcomes_are_the_rows_without_their_texts() {
    let results = tempfile::tempdir().unwrap();
    let (store, run) = filled(results.path(), "run");
    let mut outcomes = Vec::new();
    let walk = store.outcomes(&run, |outcome| -> Result<(), RunError> {
        outcomes.push(outcome);
        Ok(())
    });
    walk.unwrap();
    assert_eq!(outcomes.len(), 40);
    for (number, outcome) in outcomes.iter().enumerate() {
        let expected = sample(number);
        let score = expected.score.map(|score| Score { answer: None, evidence: Evidence::default(), ..score });
        assert_eq!(outcome.score.as_deref(), score.as_ref());
        assert_eq!((outcome.index, &outcome.item, &outcome.failure), (number, &expected.item, &expected.failure));
        assert_eq!(outcome.tokens, expected.completion.map_or(0, |completion| completion.ids.len()));
    }
}
