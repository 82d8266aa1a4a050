//! The results file: rows are read as written, earlier versions are migrated, several processes share it.

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
    assert_eq!((read(&store, &run, Filter::default()), run.planned), (expected, Some(40)));
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

/// A file as the first version wrote it: the tables and statements of that version, kept here.
fn first_version(results: &Path) {
    let connection = rusqlite::Connection::open(results.join(FILE_NAME)).unwrap();
    connection
        .execute_batch(
            "PRAGMA application_id = 1700885102;
             PRAGMA user_version = 1;
             CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings_sha256 TEXT NOT NULL, suite TEXT \
             NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, started TEXT NOT NULL, ended TEXT, manifest TEXT NOT NULL) \
             STRICT;
             CREATE TABLE samples (key INTEGER PRIMARY KEY, run INTEGER NOT NULL, item TEXT NOT NULL, sample INTEGER NOT \
             NULL, task TEXT NOT NULL, cluster TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, budget INTEGER NOT NULL, \
             max_tokens INTEGER NOT NULL, finish TEXT, completion_tokens INTEGER, cached_tokens INTEGER, queued_s REAL, \
             prefill_s REAL, decode_s REAL, correct INTEGER, verdict_failure TEXT, failure_kind TEXT, retryable INTEGER, \
             UNIQUE (run, item, sample)) STRICT;
             CREATE TABLE texts (key INTEGER PRIMARY KEY, format INTEGER NOT NULL, covariates TEXT NOT NULL, gold TEXT NOT \
             NULL, prompt_sha256 TEXT NOT NULL, completion TEXT, ids BLOB, extracted TEXT, matchers TEXT, metrics TEXT, \
             failure_message TEXT) STRICT;",
        )
        .unwrap();
    let manifest = serde_json::to_string(&manifest("old", &suite(), PLAN)).unwrap();
    connection
        .execute(
            "INSERT INTO runs VALUES (1, 'old', 'hash', 'sums', 'model', 'finished', '2026-01-01T00:00:00Z', NULL, ?)",
            [manifest],
        )
        .unwrap();
    connection
        .execute_batch(
            "INSERT INTO samples VALUES (4294967298, 1, 'sums/small/2', 0, 'small', 'c0', 12, 8, 8, 'eos', 2, 1, 0.5, 0.25, \
             0.125, 1, NULL, NULL, NULL);
             INSERT INTO texts VALUES (4294967298, 1, '{\"length\":2}', '3', 'ab', '3', x'0102', '3', \
             '{\"final\":true}', '{\"share\":0.1}', NULL);",
        )
        .unwrap();
}

/// As the second version wrote it.
fn second_version(results: &Path) {
    first_version(results);
    let connection = rusqlite::Connection::open(results.join(FILE_NAME)).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE runs ADD COLUMN planned INTEGER; CREATE INDEX runs_by_settings ON runs (settings_sha256);
             PRAGMA user_version = 2;",
        )
        .unwrap();
}

/// As the third version wrote it.
fn third_version(results: &Path) {
    second_version(results);
    let connection = rusqlite::Connection::open(results.join(FILE_NAME)).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE texts ADD COLUMN evidence TEXT; ALTER TABLE texts ADD COLUMN seal INTEGER; PRAGMA user_version = 3;",
        )
        .unwrap();
}

/// As the fourth version wrote it.
fn fourth_version(results: &Path) {
    third_version(results);
    let connection = rusqlite::Connection::open(results.join(FILE_NAME)).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE packs (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, content BLOB NOT NULL) STRICT;
             CREATE TABLE asked (key INTEGER PRIMARY KEY, items INTEGER NOT NULL, questions INTEGER NOT NULL, prompts INTEGER) \
             STRICT;
             ALTER TABLE runs ADD COLUMN summary TEXT; PRAGMA user_version = 4;",
        )
        .unwrap();
}

/// As the fifth version wrote it.
fn fifth_version(results: &Path) {
    fourth_version(results);
    let connection = rusqlite::Connection::open(results.join(FILE_NAME)).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE runs ADD COLUMN seal INTEGER; ALTER TABLE samples ADD COLUMN seal INTEGER; PRAGMA user_version = 5;",
        )
        .unwrap();
}

/// As one development version wrote it.
fn fifth_version_with_pack_seals(results: &Path) {
    fifth_version(results);
    let connection = rusqlite::Connection::open(results.join(FILE_NAME)).unwrap();
    connection.execute_batch("ALTER TABLE asked ADD COLUMN seal INTEGER;").unwrap();
}

#[test]
fn files_of_previous_versions_are_migrated_with_their_rows() {
    assert_eq!(SCHEMA_VERSION, 6, "a new version needs a file of the one before it here");
    for written in
        [first_version, second_version, third_version, fourth_version, fifth_version, fifth_version_with_pack_seals]
    {
        migrates(written);
    }
}

fn migrates(written: fn(&Path)) {
    let results = tempfile::tempdir().unwrap();
    written(results.path());
    // Two at once: one migrates, the other finds it done.
    let (one, two) = std::thread::scope(|scope| {
        let open = || scope.spawn(|| Store::open(results.path()).map(|store| store.runs().unwrap().len()));
        let (one, two) = (open(), open());
        (one.join().unwrap().unwrap(), two.join().unwrap().unwrap())
    });
    assert_eq!((one, two), (1, 1));
    let store = Store::open(results.path()).unwrap();
    let run = store.run("old").unwrap();
    assert_eq!(run.planned, None);
    let samples = read(&store, &run, Filter::default());
    let [sample] = &samples[..] else { panic!("{samples:?}") };
    let completion = sample.completion.as_ref().unwrap();
    assert_eq!((sample.item.as_str(), completion.ids.as_slice()), ("sums/small/2", &[1, 2][..]));
    assert_eq!(completion.timings, Timings { queued_s: 0.5, prefill_s: 0.25, decode_s: 0.125 });
    assert_eq!(sample.score.as_ref().unwrap().metrics["share"], 0.1);
    store.begin(&manifest("new", &suite(), PLAN), 40).unwrap();
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
}

#[test]
fn later_versions_and_foreign_files_are_refused_by_name() {
    let results = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(results.path()), Err(RunError::NoStore { .. })));
    drop(filled(results.path(), "run"));
    let path = results.path().join(FILE_NAME);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    drop(connection);
    match Store::open(results.path()).map(drop) {
        Err(RunError::LaterFormat { path: named, found, known }) => {
            assert_eq!((named, found, known), (path.clone(), SCHEMA_VERSION + 1, SCHEMA_VERSION));
        }
        other => panic!("{other:?}"),
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
