//! Scoring on separate threads: a score may take seconds (a suite may execute a model's program), and no engine step waits for
//! it.
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, Scope};

use earnest_engine::EngineError;
use earnest_results::{RunError, Sample, score_completion, scoring_threads};
use earnest_tasks::suite::{Item, Suite};

/// Limit of unscored completions, beyond which the engine waits; a stopped run still scores them.
const MOST_WAITING: usize = 64;

/// A completion without a score.
pub struct Unscored {
    /// Index in the plan.
    pub index: usize,
    pub item: Item,
    pub opened_thinking: Option<&'static str>,
    /// Row with its completion.
    pub sample: Sample,
}

/// Index in the plan and row with its score.
pub type ScoredSample = (usize, Sample);

/// Scoring threads. Dropping it ends them.
pub struct Scorers {
    work: Sender<Unscored>,
    scored: Receiver<thread::Result<ScoredSample>>,
    waiting: usize,
}

impl Scorers {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`RunError::Engine`] if no thread could be started.
    pub fn start<'scope>(scope: &'scope Scope<'scope, '_>, suite: &'scope Suite) -> Result<Self, RunError> {
        let (work, todo) = channel::<Unscored>();
        let todo = Arc::new(Mutex::new(todo));
        let (done, scored) = channel();
        for _ in 0..scoring_threads() {
            let (todo, done) = (Arc::clone(&todo), done.clone());
            spawn_named("score", scope, move || {
                // The lock is held only while waiting.
                let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(unscored) = next() {
                    // A panic is a bug in the suite and is propagated to end the session.
                    let scored = catch_unwind(AssertUnwindSafe(|| with_score(suite, unscored)));
                    if done.send(scored).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok(Scorers { work, scored, waiting: 0 })
    }

    /// Queues a completion.
    pub fn submit(&mut self, unscored: Unscored) {
        // Fails only if every thread has ended, which happens after this is dropped.
        if self.work.send(unscored).is_ok() {
            self.waiting += 1;
        }
    }

    /// Returns a scored row, if any; blocks if too many are unscored.
    pub fn ready(&mut self) -> Option<ScoredSample> {
        if self.waiting > MOST_WAITING { self.next() } else { self.take(self.scored.try_recv().ok()) }
    }

    /// Returns the next scored row, blocking; none if the queue is empty.
    pub fn next(&mut self) -> Option<ScoredSample> {
        if self.waiting == 0 { None } else { self.take(self.scored.recv().ok()) }
    }

    fn take(&mut self, scored: Option<thread::Result<ScoredSample>>) -> Option<ScoredSample> {
        let scored = scored?;
        self.waiting -= 1;
        Some(scored.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

/// Starts a named thread.
///
/// # Errors
/// [`RunError::Engine`] if no thread could be started.
pub fn spawn_named<'scope>(
    name: &str,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), RunError> {
    let started = Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
    started.map(drop).map_err(|error| EngineError::Fatal(format!("cannot start a thread: {error}")).into())
}

fn with_score(suite: &Suite, unscored: Unscored) -> ScoredSample {
    let Unscored { index, item, opened_thinking, mut sample } = unscored;
    let truncated = sample.truncated();
    sample.score = sample
        .completion
        .as_ref()
        .map(|completion| score_completion(suite, &item, opened_thinking, &completion.text, truncated));
    (index, sample)
}
