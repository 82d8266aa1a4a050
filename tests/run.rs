//! Runs with a scripted engine: what is asked, what is written, how it continues.
mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use earnest::engine::{FinishReason, Sampling};
use earnest::prompt::{ModeRequest, Prompter};
use earnest::run::{
    Ended, FailureKind, Generation, Plan, Reporter, RunError, RunEvent, RunFolder, Runner, Sample, SampleLog,
};
use earnest::suite::Suite;
use support::{Fate, Letters, Scripted, Sums};

const PLAN: Plan = Plan { limit: None, samples: 1 };

/// One session in the folder `run` below `results`, rows arranged if it finished, as the command does it.
fn session(
    results: &Path,
    suite: &dyn Suite,
    plan: Plan,
    engine: &mut Scripted<'_>,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<Ended, RunError> {
    let generation =
        Generation { sampling: Sampling::GREEDY, seed: 1, stop_ids: vec![0], max_tokens: None, thinking: false };
    let mut folder = RunFolder::locate(results, "run", false);
    folder.lock()?;
    let standing = folder.standing()?;
    let mut log = SampleLog::append(&folder.samples_path(), standing.end)?;
    let prompter = Prompter::new(&Letters, ModeRequest::Auto).unwrap();
    let runner = Runner { run: "run", suite, plan, prompter: &prompter, generation: &generation, stop };
    let ended = runner.run(engine, &mut log, &standing, reporter)?;
    if ended == Ended::Finished {
        let places = plan.walk(suite).map(|planned| ((planned.item.id, planned.sample), planned.index)).collect();
        SampleLog::arrange(&folder.samples_path(), "run", &places)?;
    }
    Ok(ended)
}

fn whole(results: &Path, suite: &dyn Suite, plan: Plan, engine: &mut Scripted<'_>) -> Vec<Sample> {
    let ended = session(results, suite, plan, engine, &AtomicBool::new(false), &mut ()).unwrap();
    assert_eq!(ended, Ended::Finished);
    RunFolder::locate(results, "run", false).samples().unwrap()
}

fn rows(results: &Path) -> Vec<u8> {
    std::fs::read(results.join("run/samples.jsonl")).unwrap()
}

#[test]
fn rows_are_in_the_order_of_the_plan_and_judged() {
    let results = tempfile::tempdir().unwrap();
    let samples = whole(results.path(), &Sums { items: 23, long: None }, PLAN, &mut Scripted::new());
    assert_eq!(samples.len(), 23);
    for (number, sample) in samples.iter().enumerate() {
        assert_eq!(sample.covariates["length"], number);
        assert!(sample.verdict.as_ref().unwrap().correct);
        assert_eq!(sample.truncated(), number % 5 == 4);
        // What JSON can not hold is not written.
        assert_eq!(sample.verdict.as_ref().unwrap().metrics.keys().collect::<Vec<_>>(), ["length"]);
    }
}

#[test]
fn a_run_stopped_after_any_number_of_samples_ends_with_the_same_rows() {
    let suite = Sums { items: 12, long: None };
    let plan = Plan { samples: 2, ..PLAN };
    let unbroken = tempfile::tempdir().unwrap();
    whole(unbroken.path(), &suite, plan, &mut Scripted::new());
    for after in 0..24 {
        let results = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(after == 0);
        let mut first = Scripted { stop_after: Some((after, &stop)), ..Scripted::new() };
        let ended = session(results.path(), &suite, plan, &mut first, &stop, &mut ()).unwrap();
        let kept = RunFolder::locate(results.path(), "run", false).samples().unwrap().len();
        assert!((after..=after + 1).contains(&kept), "{kept} rows after {after}");
        assert_eq!(ended, Ended::Stopped);
        let mut second = Scripted::new();
        whole(results.path(), &suite, plan, &mut second);
        assert_eq!(rows(results.path()), rows(unbroken.path()), "stopped after {after}");
        assert_eq!(second.asked.len(), 24 - kept, "answered samples are not asked again");
    }
}

#[test]
fn an_engine_that_breaks_loses_nothing_that_was_answered() {
    let suite = Sums { items: 12, long: None };
    let unbroken = tempfile::tempdir().unwrap();
    whole(unbroken.path(), &suite, PLAN, &mut Scripted::new());
    let results = tempfile::tempdir().unwrap();
    let mut broken = Scripted { break_after: Some(5), ..Scripted::new() };
    let error = session(results.path(), &suite, PLAN, &mut broken, &AtomicBool::new(false), &mut ()).unwrap_err();
    assert!(matches!(error, RunError::Engine(_)) && error.help().is_some(), "{error}");
    let kept = RunFolder::locate(results.path(), "run", false).samples().unwrap().len();
    assert!((5..=6).contains(&kept));
    whole(results.path(), &suite, PLAN, &mut Scripted::new());
    assert_eq!(rows(results.path()), rows(unbroken.path()));
}

#[test]
fn a_file_cut_at_any_byte_ends_with_the_same_rows() {
    let suite = Sums { items: 4, long: None };
    let unbroken = tempfile::tempdir().unwrap();
    whole(unbroken.path(), &suite, PLAN, &mut Scripted::new());
    let bytes = rows(unbroken.path());
    // A stride that is prime to the rows' length meets every part of a row.
    for cut in (0..bytes.len()).step_by(7) {
        let results = tempfile::tempdir().unwrap();
        std::fs::create_dir(results.path().join("run")).unwrap();
        std::fs::write(results.path().join("run/samples.jsonl"), &bytes[..cut]).unwrap();
        let mut engine = Scripted::new();
        whole(results.path(), &suite, PLAN, &mut engine);
        assert_eq!(rows(results.path()), bytes, "cut at {cut}");
        let complete = bytes[..cut].iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(engine.asked.len(), 4 - complete);
    }
}

#[test]
fn limit_takes_the_first_items_and_samples_repeat_each() {
    let results = tempfile::tempdir().unwrap();
    let plan = Plan { limit: Some(3), samples: 3 };
    let suite = Sums { items: 10, long: None };
    let samples = whole(results.path(), &suite, plan, &mut Scripted::new());
    let keys: Vec<_> = samples.iter().map(|sample| (sample.task.as_str(), sample.sample)).collect();
    let expected: Vec<_> =
        ["small", "large", "small"].iter().flat_map(|&task| (0..3).map(move |n| (task, n))).collect();
    assert_eq!(keys, expected);
    let texts: Vec<_> = samples[..3].iter().map(|sample| &sample.completion.as_ref().unwrap().text).collect();
    assert!(texts[0] != texts[1] && texts[1] != texts[2], "every sample has a key of its own: {texts:?}");
    assert_eq!(Plan { limit: Some(99), samples: 1 }.len(&suite), 10);
    assert_eq!(
        whole(tempfile::tempdir().unwrap().path(), &Sums { items: 0, long: None }, PLAN, &mut Scripted::new()),
        []
    );
}

#[test]
fn a_prompt_beyond_the_context_is_a_failed_row_and_the_run_goes_on() {
    for (characters, max_tokens) in [(64, None), (65, None), (1000, None), (63, Some(1)), (60, Some(4))] {
        let results = tempfile::tempdir().unwrap();
        let suite = Sums { items: 5, long: Some((2, characters)) };
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
                assert!(long.completion.is_none() && long.verdict.is_none() && !long.truncated());
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
    let suite = Sums { items: 4, long: None };
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
    let samples = whole(results.path(), &Sums { items: 3, long: None }, PLAN, &mut engine);
    let failure = samples[0].failure.as_ref().unwrap();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Refused, true));
    assert!(failure.message.contains("--kv-memory"), "{}", failure.message);
    assert_eq!(samples[1].completion.as_ref().unwrap().finish, FinishReason::StopString);
}

#[test]
fn the_engine_is_fed_ahead_but_not_without_bound() {
    let results = tempfile::tempdir().unwrap();
    let mut engine = Scripted::new();
    whole(results.path(), &Sums { items: 200, long: None }, PLAN, &mut engine);
    assert_eq!(engine.most_in_flight, 6);
}

#[test]
fn events_tell_the_whole_story() {
    #[derive(Default)]
    struct Story(Vec<&'static str>);
    impl Reporter for Story {
        fn event(&mut self, event: &RunEvent<'_>) {
            self.0.push(match event {
                RunEvent::Started { planned: 3, recorded: 0, .. } => "started",
                RunEvent::Progress { .. } => return,
                RunEvent::Sample(_) => "sample",
                RunEvent::Ended => "ended",
                _ => "unexpected",
            });
        }
    }
    let results = tempfile::tempdir().unwrap();
    let mut story = Story::default();
    let never = AtomicBool::new(false);
    session(results.path(), &Sums { items: 3, long: None }, PLAN, &mut Scripted::new(), &never, &mut story).unwrap();
    assert_eq!(story.0, ["started", "sample", "sample", "sample", "ended"]);
    assert!(!never.load(Ordering::Relaxed));
}
