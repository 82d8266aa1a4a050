//! Judging beside the engine: a score may take seconds (a suite may run a model's program), and no step waits for it.
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, Scope};

use super::scoring::threads;
use super::{RunError, Sample, score_completion};
use earnest_engine::EngineError;
use earnest_tasks::suite::{Item, Suite};

/// Completions that may wait for their scores before the engine has to; a run that is stopped still scorers these.
const MOST_WAITING: usize = 64;

/// A completion without its score.
pub struct Unscored {
    /// Its place in the plan.
    pub place: usize,
    pub item: Item,
    pub opened_thinking: Option<&'static str>,
    /// The row, with its completion.
    pub sample: Sample,
}

/// A row with its score, and its place in the plan.
pub type ScoredSample = (usize, Sample);

/// Threads that score. They end when this is dropped.
pub struct Scorers {
    work: Sender<Unscored>,
    scored: Receiver<thread::Result<ScoredSample>>,
    waiting: usize,
}

impl Scorers {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`RunError::Engine`] if the system gives no thread.
    pub fn start<'scope>(scope: &'scope Scope<'scope, '_>, suite: &'scope dyn Suite) -> Result<Self, RunError> {
        let (work, todo) = channel::<Unscored>();
        let todo = Arc::new(Mutex::new(todo));
        let (done, scored) = channel();
        for _ in 0..threads() {
            let (todo, done) = (Arc::clone(&todo), done.clone());
            named("score", scope, move || {
                // The lock is held while waiting, and freed before work begins.
                let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(unscored) = next() {
                    // A panic is a defect of the suite: it is passed on, so that the session ends with it.
                    let scored = catch_unwind(AssertUnwindSafe(|| with_score(suite, unscored)));
                    if done.send(scored).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok(Scorers { work, scored, waiting: 0 })
    }

    /// Hands a completion over.
    pub fn submit(&mut self, unscored: Unscored) {
        // Fails only if every thread has ended, which they do after this is dropped.
        if self.work.send(unscored).is_ok() {
            self.waiting += 1;
        }
    }

    /// A row that is ready; waits for one only where too many are not.
    pub fn ready(&mut self) -> Option<ScoredSample> {
        if self.waiting > MOST_WAITING { self.next() } else { self.take(self.scored.try_recv().ok()) }
    }

    /// The next row, however long it takes; none if none is waiting.
    pub fn next(&mut self) -> Option<ScoredSample> {
        if self.waiting == 0 { None } else { self.take(self.scored.recv().ok()) }
    }

    fn take(&mut self, scored: Option<thread::Result<ScoredSample>>) -> Option<ScoredSample> {
        let scored = scored?;
        self.waiting -= 1;
        Some(scored.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

/// Starts a thread whose name profilers show.
pub fn named<'scope>(
    name: &str,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), RunError> {
    let started = Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
    started.map(drop).map_err(|error| EngineError::Fatal(format!("a thread cannot be started: {error}")).into())
}

fn with_score(suite: &dyn Suite, unscored: Unscored) -> ScoredSample {
    let Unscored { place, item, opened_thinking, mut sample } = unscored;
    let truncated = sample.truncated();
    sample.score = sample
        .completion
        .as_ref()
        .map(|completion| score_completion(suite, &item, opened_thinking, &completion.text, truncated));
    (place, sample)
}
