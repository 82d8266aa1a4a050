//! Runs with a scripted engine: requests, rows, continuation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Fate, Letters, Scripted, Sums, manifest};
use earnest_engine::{FinishReason, Sampling};
use earnest_eval::prompt::Prompter;
use earnest_eval::run::Runner;
use earnest_results::store::{Filter, Store};
use earnest_results::{
    Ended, FailureKind, Generation, Level, ModeRequest, Notice, Plan, Reporter, RunError, RunEvent, RunNotice, Sample,
    Shard, write_jsonl,
};
use earnest_tasks::suite::{Answered, Item, Items, Score, Scored, Scoring, Suite, Summary};

fn sums(items: usize) -> Suite {
    Suite::new(Sums { items, long: None })
}

const PLAN: Plan = Plan { limit: None, samples: 1, shard: None };

/// One session of the run `run` of a results folder.
fn session(
    results: &Path,
    suite: &Suite,
    plan: Plan,
    engine: &mut Scripted<'_>,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<Ended, RunError> {
    bounded(results, suite, plan, engine, stop, reporter, None)
}

fn bounded(
    results: &Path,
    suite: &Suite,
    plan: Plan,
    engine: &mut Scripted<'_>,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
    fail_on_error: Option<f64>,
) -> Result<Ended, RunError> {
    let generation =
        Generation { sampling: Sampling::GREEDY, seed: 1, stop_ids: vec![0], max_tokens: None, thinking: false };
    let store = Store::create(results)?;
    let _lock = store.lock("run")?;
    let run = match store.exactly("run")? {
        Some(run) => run,
        None => store.begin(&manifest("run", suite, plan), plan.len(suite))?,
    };
    let progress = store.progress(&run)?;
    let prompter = Prompter::new(&Letters, ModeRequest::Auto).unwrap();
    let runner = Runner { run: "run", suite, plan, prompter: &prompter, generation: &generation, fail_on_error, stop };
    runner.run(engine, &mut store.writer(&run), &progress, reporter)
}

fn whole(results: &Path, suite: &Suite, plan: Plan, engine: &mut Scripted<'_>) -> Vec<Sample> {
    let ended = session(results, suite, plan, engine, &AtomicBool::new(false), &mut ()).unwrap();
    assert_eq!(ended, Ended::Finished);
    samples(results)
}

fn samples(results: &Path) -> Vec<Sample> {
    let store = Store::open(results).unwrap();
    let run = store.run("run").unwrap();
    store.samples(&run, Filter::default()).collect::<Result<_, _>>().unwrap()
}

fn rows(results: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sample in samples(results) {
        write_jsonl(&mut bytes, &sample).unwrap();
    }
    bytes
}

#[test]
fn rows_are_in_the_order_of_the_plan_and_judged() {
    let results = tempfile::tempdir().unwrap();
    let samples = whole(results.path(), &sums(23), PLAN, &mut Scripted::new());
    assert_eq!(samples.len(), 23);
    for (number, sample) in samples.iter().enumerate() {
        assert_eq!(sample.covariates["length"], number);
        assert!(sample.score.as_ref().unwrap().correct);
        assert_eq!(sample.truncated(), number % 5 == 4);
        // What JSON can not hold is not written.
        assert_eq!(sample.score.as_ref().unwrap().metrics.names().collect::<Vec<_>>(), ["length"]);
    }
}

#[test]
fn a_run_stopped_after_any_number_of_samples_ends_with_the_same_rows() {
    let suite = sums(12);
    let plan = Plan { samples: 2, ..PLAN };
    let unbroken = tempfile::tempdir().unwrap();
    whole(unbroken.path(), &suite, plan, &mut Scripted::new());
    for after in 0..24 {
        let results = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(after == 0);
        let mut first = Scripted { stop_after: Some((after, &stop)), ..Scripted::new() };
        let ended = session(results.path(), &suite, plan, &mut first, &stop, &mut ()).unwrap();
        let kept = samples(results.path()).len();
        assert!((after..=after + 1).contains(&kept), "{kept} rows after {after}");
        assert_eq!(ended, Ended::Stopped);
        let mut second = Scripted::new();
        whole(results.path(), &suite, plan, &mut second);
        assert_eq!(rows(results.path()), rows(unbroken.path()), "stopped after {after}");
        assert_eq!(second.asked.len(), 24 - kept, "answered samples are not asked again");
    }
}

#[test]
fn no_row_is_without_its_question_wherever_a_run_of_several_packs_stopped() {
    let suite = sums(1_100);
    for (samples, shard) in [(1, None), (2, Some(Shard { part: 2, of: 2 }))] {
        let plan = Plan { samples, shard, ..PLAN };
        for after in [1, 511, 700, 1_090] {
            let results = tempfile::tempdir().unwrap();
            let stop = AtomicBool::new(false);
            let mut first = Scripted { stop_after: Some((after, &stop)), ..Scripted::new() };
            session(results.path(), &suite, plan, &mut first, &stop, &mut ()).unwrap();
            let store = Store::open(results.path()).unwrap();
            let run = store.run("run").unwrap();
            assert!(store.has_questions(&run).unwrap(), "stopped after {after}");
            whole(results.path(), &suite, plan, &mut Scripted::new());
            let mut questions = store.questions(&run);
            for planned in plan.walk(&suite) {
                let asked = questions.at(planned.index).unwrap().unwrap();
                assert_eq!(asked.prompt.as_ref(), Some(&planned.item.segments.question));
                assert_eq!(asked.item, planned.item);
            }
        }
    }
}

#[test]
fn an_engine_that_breaks_loses_nothing_that_was_answered() {
    let suite = sums(12);
    let unbroken = tempfile::tempdir().unwrap();
    whole(unbroken.path(), &suite, PLAN, &mut Scripted::new());
    let results = tempfile::tempdir().unwrap();
    let mut broken = Scripted { break_after: Some(5), ..Scripted::new() };
    let error = session(results.path(), &suite, PLAN, &mut broken, &AtomicBool::new(false), &mut ()).unwrap_err();
    assert!(matches!(error, RunError::Engine(_)) && error.help().is_some(), "{error}");
    let kept = samples(results.path()).len();
    assert!((5..=6).contains(&kept));
    whole(results.path(), &suite, PLAN, &mut Scripted::new());
    assert_eq!(rows(results.path()), rows(unbroken.path()));
}

#[test]
fn parts_have_every_item_once_and_stay_balanced() {
    let suite = sums(11);
    let all = tempfile::tempdir().unwrap();
    let unbroken = whole(all.path(), &suite, Plan { samples: 2, ..PLAN }, &mut Scripted::new());
    let mut joined: Vec<(usize, Sample)> = Vec::new();
    for part in 1..=3 {
        let results = tempfile::tempdir().unwrap();
        let plan = Plan { samples: 2, shard: Some(Shard { part, of: 3 }), ..PLAN };
        let found = whole(results.path(), &suite, plan, &mut Scripted::new());
        assert_eq!(found.len(), plan.len(&suite));
        assert!((6..=8).contains(&found.len()));
        let store = Store::open(results.path()).unwrap();
        let run = store.run("run").unwrap();
        joined.extend(store.samples(&run, Filter::default()).indexed().map(Result::unwrap));
    }
    joined.sort_by_key(|(place, _)| *place);
    assert!(joined.iter().map(|(place, _)| *place).eq(0..22));
    assert_eq!(joined.into_iter().map(|(_, sample)| sample).collect::<Vec<_>>(), unbroken);
    assert_eq!("2/3".parse(), Ok(Shard { part: 2, of: 3 }));
    for wrong in ["0/3", "4/3", "1", "1/0", "a/b", ""] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}

#[test]
fn a_run_stops_when_more_samples_fail_than_may() {
    let suite = sums(200);
    let fate = |prompt: &str| {
        let odd = prompt.split('+').next().and_then(|n| n.parse::<usize>().ok()).is_some_and(|n| n % 2 == 1);
        if odd { Fate::Fail { times: 9, retryable: false } } else { Fate::Answer }
    };
    let run = |fraction| {
        let results = tempfile::tempdir().unwrap();
        let mut engine = Scripted { fate: Box::new(fate), ..Scripted::new() };
        let never = AtomicBool::new(false);
        let ended = bounded(results.path(), &suite, PLAN, &mut engine, &never, &mut (), fraction).unwrap();
        (ended, samples(results.path()).len())
    };
    // Several failures may be counted at once, where the machine is busy.
    assert!(matches!(run(Some(0.0)), (Ended::TooManyFailures { failed: 1..=30 }, rows) if rows < 200));
    assert!(matches!(run(Some(0.2)), (Ended::TooManyFailures { failed: 41..=80 }, rows) if rows < 200));
    assert_eq!(run(Some(0.5)), (Ended::Finished, 200));
    assert_eq!(run(None), (Ended::Finished, 200));
}

/// Wants the session to stop after so many samples.
struct Impatient<'a> {
    samples: usize,
    stop: &'a AtomicBool,
}

impl Reporter for Impatient<'_> {
    fn event(&mut self, event: &RunEvent<'_>) {
        if let RunEvent::Sample(_) = event {
            self.samples -= 1;
            if self.samples == 0 {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn samples_that_are_never_in_the_engine_do_not_keep_a_session_from_ending() {
    let suite = sums(300);
    let never = AtomicBool::new(false);
    let results = tempfile::tempdir().unwrap();
    // No prompt fits this context. Each session stops at its first failure and goes on behind those that failed for good.
    for rows in 1..4 {
        let mut engine = Scripted { context: 2, ..Scripted::new() };
        let ended = bounded(results.path(), &suite, PLAN, &mut engine, &never, &mut (), Some(0.0)).unwrap();
        assert_eq!((ended, samples(results.path()).len()), (Ended::TooManyFailures { failed: 1 }, rows));
    }
    let mut engine = Scripted { context: 2, ..Scripted::new() };
    let ended = bounded(results.path(), &suite, PLAN, &mut engine, &never, &mut (), Some(0.1)).unwrap();
    assert_eq!((ended, samples(results.path()).len()), (Ended::TooManyFailures { failed: 31 }, 34));
    let stop = AtomicBool::new(false);
    let mut impatient = Impatient { samples: 7, stop: &stop };
    let ended = session(results.path(), &suite, PLAN, &mut engine, &stop, &mut impatient).unwrap();
    assert_eq!((ended, samples(results.path()).len()), (Ended::Stopped, 41));
    whole(results.path(), &suite, PLAN, &mut engine);
    assert_eq!(samples(results.path()).len(), 300);

    // Refused ones are asked again, and stop each session at the same place.
    let results = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut engine = Scripted { fate: Box::new(|_| Fate::Refuse), ..Scripted::new() };
        let ended = bounded(results.path(), &suite, PLAN, &mut engine, &never, &mut (), Some(0.0)).unwrap();
        assert_eq!((ended, samples(results.path()).len()), (Ended::TooManyFailures { failed: 1 }, 1));
    }
}

/// Sums that count how many of them were made, each after a while.
struct Watched {
    sums: Sums,
    made: AtomicUsize,
    pause: Duration,
}

impl Items for Watched {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(self.sums.iter().inspect(|_| {
            self.made.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(self.pause);
        }))
    }
    fn len(&self) -> usize {
        self.sums.len()
    }
}

#[test]
fn a_stopped_session_does_not_walk_over_what_was_asked_before() {
    let results = tempfile::tempdir().unwrap();
    whole(results.path(), &sums(300), PLAN, &mut Scripted::new());
    let (made, pause) = (AtomicUsize::new(0), Duration::from_millis(10));
    let watched = Arc::new(Watched { sums: Sums { items: 301, long: None }, made, pause });
    let suite = Suite { items: watched.clone(), ..sums(301) };
    let stop = AtomicBool::new(true);
    let ended = session(results.path(), &suite, PLAN, &mut Scripted::new(), &stop, &mut ()).unwrap();
    assert_eq!(ended, Ended::Stopped);
    let made = watched.made.load(Ordering::Relaxed);
    assert!(made < 150, "{made} of 301 questions were made for nobody");
    // Also where the session waits for the first one that has no row.
    stop.store(false, Ordering::Relaxed);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
        });
        session(results.path(), &suite, PLAN, &mut Scripted::new(), &stop, &mut ()).unwrap()
    });
    assert_eq!((ended, samples(results.path()).len()), (Ended::Stopped, 300));
    assert!(watched.made.load(Ordering::Relaxed) - made < 250);
}

#[test]
fn limit_takes_the_first_items_and_samples_repeat_each() {
    let results = tempfile::tempdir().unwrap();
    let plan = Plan { limit: Some(3), samples: 3, shard: None };
    let suite = sums(10);
    let samples = whole(results.path(), &suite, plan, &mut Scripted::new());
    let keys: Vec<_> = samples.iter().map(|sample| (sample.task.as_str(), sample.sample)).collect();
    let expected: Vec<_> =
        ["small", "large", "small"].iter().flat_map(|&task| (0..3).map(move |n| (task, n))).collect();
    assert_eq!(keys, expected);
    let texts: Vec<_> = samples[..3].iter().map(|sample| &sample.completion.as_ref().unwrap().text).collect();
    assert!(texts[0] != texts[1] && texts[1] != texts[2], "every sample has a key of its own: {texts:?}");
    assert_eq!(Plan { limit: Some(99), ..PLAN }.len(&suite), 10);
    assert_eq!(whole(tempfile::tempdir().unwrap().path(), &sums(0), PLAN, &mut Scripted::new()), []);
}

#[test]
fn a_prompt_beyond_the_context_is_a_failed_row_and_the_run_goes_on() {
    for (characters, max_tokens) in [(64, None), (65, None), (1000, None), (63, Some(1)), (60, Some(4))] {
        let results = tempfile::tempdir().unwrap();
        let suite = Suite::new(Sums { items: 5, long: Some((2, characters)) });
        let samples = whole(results.path(), &suite, PLAN, &mut Scripted::new());
        assert_eq!(samples.len(), 5);
        let long = &samples[2];
        assert_eq!(long.prompt_tokens, characters);
        assert_eq!(long.budget, 8);
        match max_tokens {
            None => {
                let failure = long.failure.as_ref().unwrap();
                assert_eq!(failure.kind, FailureKind::BeyondContext);
                assert!(!failure.retryable && failure.message.contains(&characters.to_string()), "{failure:?}");
                assert!(long.completion.is_none() && long.score.is_none() && !long.truncated());
            }
            Some(room) => {
                assert!(long.failure.is_none());
                assert_eq!((long.max_tokens, long.clipped()), (room, true));
            }
        }
        assert!(samples.iter().filter(|sample| sample.item != long.item).all(|sample| !sample.clipped()));
        // A second session has nothing to ask.
        let mut again = Scripted::new();
        whole(results.path(), &suite, PLAN, &mut again);
        assert_eq!(again.asked, Vec::<String>::new());
    }
}

#[test]
fn retryable_failures_are_asked_twice_then_again_in_the_next_session() {
    let fate = |times, retryable| {
        move |prompt: &str| if prompt == "1+1=" { Fate::Fail { times, retryable } } else { Fate::Answer }
    };
    let suite = sums(4);
    let run = |times, retryable| {
        let results = tempfile::tempdir().unwrap();
        let mut engine = Scripted { fate: Box::new(fate(times, retryable)), ..Scripted::new() };
        let samples = whole(results.path(), &suite, PLAN, &mut engine);
        (results, samples, engine.asked.iter().filter(|prompt| *prompt == "1+1=").count())
    };
    let (_, recovered, asked) = run(1, true);
    assert!(recovered[1].failure.is_none());
    assert_eq!(asked, 2);
    let (_, hopeless, asked) = run(1, false);
    assert_eq!((hopeless[1].failure.as_ref().unwrap().kind, asked), (FailureKind::Engine, 1));
    let (results, given_up, asked) = run(9, true);
    assert_eq!(asked, 2);
    assert!(given_up[1].failure.as_ref().unwrap().retryable);
    let mut next = Scripted::new();
    let samples = whole(results.path(), &suite, PLAN, &mut next);
    assert_eq!(next.asked, ["1+1="]);
    assert!(samples[1].failure.is_none() && samples.len() == 4);
}

#[test]
fn a_refused_request_is_a_failed_row_with_the_numbers() {
    let results = tempfile::tempdir().unwrap();
    let refuse = |prompt: &str| if prompt.starts_with('0') { Fate::Refuse } else { Fate::Answer };
    let mut engine = Scripted { fate: Box::new(refuse), ..Scripted::new() };
    let samples = whole(results.path(), &sums(3), PLAN, &mut engine);
    let failure = samples[0].failure.as_ref().unwrap();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Refused, true));
    assert!(failure.message.contains("`kv_memory`"), "{}", failure.message);
    assert_eq!(samples[1].completion.as_ref().unwrap().finish, FinishReason::StopString);
}

#[test]
fn the_engine_is_fed_ahead_but_not_without_bound() {
    let results = tempfile::tempdir().unwrap();
    let mut engine = Scripted::new();
    whole(results.path(), &sums(200), PLAN, &mut engine);
    assert_eq!(engine.most_in_flight, 6);
}

#[test]
fn events_tell_the_whole_story() {
    #[derive(Default)]
    struct Story(Vec<&'static str>, Vec<Notice>);
    impl Reporter for Story {
        fn event(&mut self, event: &RunEvent<'_>) {
            self.0.push(match event {
                RunEvent::Started { planned: 3, progress, .. } if progress.settled() == 0 => "started",
                RunEvent::Progress { .. } => return,
                RunEvent::Notice(notice) => return self.1.push(notice.clone()),
                RunEvent::Sample(_) => "sample",
                RunEvent::Ended(Some(Ended::Finished)) => "ended",
                _ => "unexpected",
            });
        }
    }
    let results = tempfile::tempdir().unwrap();
    let mut story = Story::default();
    let never = AtomicBool::new(false);
    session(results.path(), &sums(3), PLAN, &mut Scripted::new(), &never, &mut story).unwrap();
    assert_eq!(story.0, ["started", "sample", "sample", "sample", "ended"]);
    assert!(!never.load(Ordering::Relaxed) && story.1.is_empty(), "{:?}", story.1);

    // A failure that is asked again is told, with its facts.
    let again = tempfile::tempdir().unwrap();
    let fate = |prompt: &str| if prompt == "1+1=" { Fate::Fail { times: 1, retryable: true } } else { Fate::Answer };
    let mut engine = Scripted { fate: Box::new(fate), ..Scripted::new() };
    let mut story = Story::default();
    session(again.path(), &sums(3), PLAN, &mut engine, &never, &mut story).unwrap();
    assert_eq!(story.0, ["started", "sample", "sample", "sample", "ended"]);
    let [notice @ Notice::Run(RunNotice::Retried { .. })] = &story.1[..] else { panic!("{:?}", story.1) };
    assert!(notice.level() == Level::Engine && notice.to_string().ends_with("retrying once"), "{notice}");
}

/// Scores of sums that wait until the engine has finished everything.
struct Slow {
    sums: Sums,
    finished: Arc<AtomicUsize>,
}

impl Scoring for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }
    fn version(&self) -> &'static str {
        "1"
    }
    fn options(&self) -> serde_json::Value {
        serde_json::json!({})
    }
    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.finished.load(Ordering::Relaxed) < 2 * self.sums.items {
            assert!(Instant::now() < deadline, "the engine waits for verdicts");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.sums.score(item, answered)
    }
    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        self.sums.summarise(samples)
    }
}

#[test]
fn the_engine_does_not_wait_for_verdicts() {
    let finished = Arc::new(AtomicUsize::new(0));
    let slow = Slow { sums: Sums { items: 24, long: None }, finished: finished.clone() };
    let suite = Suite { scoring: Arc::new(slow), ..sums(24) };
    // A prompt is looked at when it is asked and when it is answered.
    let fate = |_: &str| {
        finished.fetch_add(1, Ordering::Relaxed);
        Fate::Answer
    };
    let results = tempfile::tempdir().unwrap();
    let mut engine = Scripted { fate: Box::new(fate), ..Scripted::new() };
    let samples = whole(results.path(), &suite, PLAN, &mut engine);
    assert_eq!(samples.len(), 24);
    assert!(samples.iter().all(|sample| sample.score.as_ref().unwrap().correct));
}

/// Scores of sums with a defect.
struct Defective(Sums);

impl Scoring for Defective {
    fn name(&self) -> &'static str {
        "defective"
    }
    fn version(&self) -> &'static str {
        "1"
    }
    fn options(&self) -> serde_json::Value {
        serde_json::json!({})
    }
    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        assert!(item.gold != "4", "a defect of the suite");
        self.0.score(item, answered)
    }
    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        self.0.summarise(samples)
    }
}

/// Sums whose seventh question cannot be made.
struct Unmakeable(Sums);

impl Items for Unmakeable {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(self.0.iter().enumerate().map(|(index, item)| {
            assert!(index != 6, "a defect of the generator");
            item
        }))
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn what_was_answered_before_a_defect_is_written() {
    let results = tempfile::tempdir().unwrap();
    let suite = Suite { items: Arc::new(Unmakeable(Sums { items: 12, long: None })), ..sums(12) };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session(results.path(), &suite, PLAN, &mut Scripted::new(), &AtomicBool::new(false), &mut ())
    }));
    assert!(ended.is_err(), "a panic while questions are made ends the session");
    assert_eq!(samples(results.path()).len(), 6);
}

#[test]
fn a_defect_of_a_suite_is_not_swallowed() {
    let results = tempfile::tempdir().unwrap();
    let suite = Suite { scoring: Arc::new(Defective(Sums { items: 12, long: None })), ..sums(12) };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session(results.path(), &suite, PLAN, &mut Scripted::new(), &AtomicBool::new(false), &mut ())
    }));
    assert!(ended.is_err(), "a panic in score ends the session");
    // What was answered by then is there.
    let there: Vec<_> = samples(results.path()).iter().map(|sample| sample.score.as_ref().unwrap().correct).collect();
    assert!((1..12).contains(&there.len()), "{there:?}");
}
