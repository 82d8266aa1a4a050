//! Judging beside the engine: a verdict may take seconds (a suite may run a model's program), and no step waits for it.
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, Scope};

use super::judge::threads;
use super::{RunError, Sample, judge};
use crate::engine::EngineError;
use crate::suite::{Item, Suite};

/// Completions that may wait for their verdicts before the engine has to; a run that is stopped still judges these.
const MOST_WAITING: usize = 64;

/// A completion without its verdict.
pub struct Unjudged {
    /// Its place in the plan.
    pub place: usize,
    pub item: Item,
    pub opened_thinking: Option<&'static str>,
    /// The row, with its completion.
    pub sample: Sample,
}

/// A row with its verdict, and its place in the plan.
pub type Judged = (usize, Sample);

/// Threads that judge. They end when this is dropped.
pub struct Judges {
    work: Sender<Unjudged>,
    judged: Receiver<thread::Result<Judged>>,
    waiting: usize,
}

impl Judges {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`RunError::Engine`] if the system gives no thread.
    pub fn start<'scope>(scope: &'scope Scope<'scope, '_>, suite: &'scope dyn Suite) -> Result<Self, RunError> {
        let (work, todo) = channel::<Unjudged>();
        let todo = Arc::new(Mutex::new(todo));
        let (done, judged) = channel();
        for _ in 0..threads() {
            let (todo, done) = (Arc::clone(&todo), done.clone());
            named("judge", scope, move || {
                // The lock is held while waiting, and freed before work begins.
                let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(unjudged) = next() {
                    // A panic is a defect of the suite: it is passed on, so that the session ends with it.
                    let judged = catch_unwind(AssertUnwindSafe(|| with_verdict(suite, unjudged)));
                    if done.send(judged).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok(Judges { work, judged, waiting: 0 })
    }

    /// Hands a completion over.
    pub fn submit(&mut self, unjudged: Unjudged) {
        // Fails only if every thread has ended, which they do after this is dropped.
        if self.work.send(unjudged).is_ok() {
            self.waiting += 1;
        }
    }

    /// A row that is ready; waits for one only where too many are not.
    pub fn ready(&mut self) -> Option<Judged> {
        if self.waiting > MOST_WAITING { self.next() } else { self.take(self.judged.try_recv().ok()) }
    }

    /// The next row, however long it takes; none if none is waiting.
    pub fn next(&mut self) -> Option<Judged> {
        if self.waiting == 0 { None } else { self.take(self.judged.recv().ok()) }
    }

    fn take(&mut self, judged: Option<thread::Result<Judged>>) -> Option<Judged> {
        let judged = judged?;
        self.waiting -= 1;
        Some(judged.unwrap_or_else(|panic| resume_unwind(panic)))
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

fn with_verdict(suite: &dyn Suite, unjudged: Unjudged) -> Judged {
    let Unjudged { place, item, opened_thinking, mut sample } = unjudged;
    let truncated = sample.truncated();
    sample.verdict =
        sample.completion.as_ref().map(|completion| judge(suite, &item, opened_thinking, &completion.text, truncated));
    (place, sample)
}
