//! Prompts rendered ahead of the engine: a thread generates, renders and tokenises questions, so that no engine step waits for
//! them.
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use super::scorers::spawn_named;
use crate::prompt::{Continuation, PromptError, Prompter, Rendered};
use earnest_results::store::RunProgress;
use earnest_results::{Plan, PlannedSample, RunError};
use earnest_tasks::suite::Suite;

/// Capacity of the queue: enough for a step's new sequences, with memory independent of the plan.
const READY: usize = 256;

/// Poll interval for the stop flag while waiting for a prompt.
const STOP_PERIOD: Duration = Duration::from_millis(50);

/// A sample without a row, and its prompt.
pub(super) struct PendingSample {
    pub(super) planned: PlannedSample,
    /// The prompt, and the continuations to score after it; none where text is generated.
    pub(super) rendered: Result<(Rendered, Vec<Continuation>), PromptError>,
}

/// Result of polling the queue.
pub(super) enum Next {
    Ready(Box<PendingSample>),
    /// The next prompt is being rendered.
    NotYet,
    /// End of the plan.
    None,
}

/// Prompts of a session in the order of the plan. Dropping it ends the thread.
pub(super) struct PromptQueue {
    rendered: Receiver<Result<Box<PendingSample>, RunError>>,
    dropped: Arc<AtomicBool>,
}

impl Drop for PromptQueue {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl PromptQueue {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`RunError::Engine`] if no thread could be started.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: Plan,
        suite: &'scope Suite,
        prompter: &'scope Prompter<'scope>,
        progress: &'scope RunProgress,
    ) -> Result<Self, RunError> {
        let (send, rendered) = sync_channel(READY);
        let dropped = Arc::new(AtomicBool::new(false));
        let cancelled = Arc::clone(&dropped);
        spawn_named("prompts", scope, move || {
            let mut seen = HashSet::new();
            for planned in plan.walk(suite) {
                if cancelled.load(Ordering::Relaxed) {
                    return;
                }
                let pending = if planned.sample == 0 && !seen.insert(planned.item.id.clone()) {
                    Err(RunError::RepeatedItem { item: planned.item.id })
                } else if progress.is_settled(planned.index) {
                    continue;
                } else {
                    let rendered = prompter.render_item(&planned.item);
                    Ok(Box::new(PendingSample { planned, rendered }))
                };
                // The receiver is gone once the session has ended.
                if send.send(pending).is_err() {
                    return;
                }
            }
        })?;
        Ok(PromptQueue { rendered, dropped })
    }

    /// Returns the next prompt; with `wait`, blocks until it is rendered or `stop` is set.
    pub(super) fn next(&self, wait: bool, stop: &AtomicBool) -> Result<Next, RunError> {
        loop {
            let received = if wait {
                self.rendered.recv_timeout(STOP_PERIOD).map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                })
            } else {
                self.rendered.try_recv()
            };
            match received {
                Ok(pending) => return Ok(Next::Ready(pending?)),
                Err(TryRecvError::Empty) if wait && !stop.load(Ordering::Relaxed) => {}
                Err(TryRecvError::Empty) => return Ok(Next::NotYet),
                // A panic of the thread propagates when its scope ends.
                Err(TryRecvError::Disconnected) => return Ok(Next::None),
            }
        }
    }
}
