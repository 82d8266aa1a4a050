//! Prompts made beside the engine: questions are generated, rendered and tokenised on a thread of their own, so that no step
//! waits for the next prompt's text.
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use super::scorers::named;
use super::store::Standing;
use super::{Plan, PlannedSample, RunError};
use crate::prompt::{PromptError, Prompter, Rendered};
use earnest_tasks::suite::Suite;

/// Prompts that may be ready before the engine takes them: enough for a step's new sequences, so few that memory does not
/// grow with the plan.
const READY: usize = 256;

/// How often a session that waits for a prompt looks whether the user wants it to stop.
const STOP_PERIOD: Duration = Duration::from_millis(50);

/// A sample of the plan that has no row yet, and its prompt.
pub(super) struct Asked {
    pub(super) planned: PlannedSample,
    pub(super) rendered: Result<Rendered, PromptError>,
}

/// What comes next.
pub(super) enum Next {
    Ready(Box<Asked>),
    /// Another one is being made.
    NotYet,
    /// The plan has no more.
    None,
}

/// The prompts of a session, in the order of the plan. The thread ends when this is dropped, at once also where it walks over
/// samples that have their rows.
pub(super) struct Prompts {
    made: Receiver<Result<Box<Asked>, RunError>>,
    dropped: Arc<AtomicBool>,
}

impl Drop for Prompts {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl Prompts {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`RunError::Engine`] if the system gives no thread.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: Plan,
        suite: &'scope dyn Suite,
        prompter: &'scope Prompter<'scope>,
        standing: &'scope Standing,
    ) -> Result<Self, RunError> {
        let (send, made) = sync_channel(READY);
        let dropped = Arc::new(AtomicBool::new(false));
        let unheard = Arc::clone(&dropped);
        named("prompts", scope, move || {
            let mut seen = HashSet::new();
            for planned in plan.walk(suite) {
                if unheard.load(Ordering::Relaxed) {
                    return;
                }
                let asked = if planned.sample == 0 && !seen.insert(planned.item.id.clone()) {
                    Err(RunError::RepeatedItem { item: planned.item.id })
                } else if standing.settles(planned.index) {
                    continue;
                } else {
                    let rendered = prompter.render(&planned.item.segments);
                    Ok(Box::new(Asked { planned, rendered }))
                };
                // Nobody listens any more once the session has ended.
                if send.send(asked).is_err() {
                    return;
                }
            }
        })?;
        Ok(Prompts { made, dropped })
    }

    /// The next prompt; if `wait`, however long it takes to make, unless `stop` is set meanwhile.
    pub(super) fn next(&self, wait: bool, stop: &AtomicBool) -> Result<Next, RunError> {
        loop {
            let received = if wait {
                self.made.recv_timeout(STOP_PERIOD).map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                })
            } else {
                self.made.try_recv()
            };
            match received {
                Ok(asked) => return Ok(Next::Ready(asked?)),
                Err(TryRecvError::Empty) if wait && !stop.load(Ordering::Relaxed) => {}
                Err(TryRecvError::Empty) => return Ok(Next::NotYet),
                // The thread's panic, if that is why, is passed on when its scope ends.
                Err(TryRecvError::Disconnected) => return Ok(Next::None),
            }
        }
    }
}
