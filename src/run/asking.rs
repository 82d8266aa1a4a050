//! Prompts made beside the engine: questions are generated, rendered and tokenised on a thread of their own, so that no step
//! waits for the next prompt's text.
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::Scope;

use super::store::Standing;
use super::{Plan, PlannedSample, RunError};
use crate::prompt::{PromptError, Prompter, Rendered};
use crate::suite::Suite;

/// Prompts that may be ready before the engine takes them: enough for a step's new sequences, so few that memory does not
/// grow with the plan.
const READY: usize = 256;

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

/// The prompts of a session, in the order of the plan. The thread ends when this is dropped.
pub(super) struct Prompts {
    made: Receiver<Result<Box<Asked>, RunError>>,
}

impl Prompts {
    /// Starts the thread.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: Plan,
        suite: &'scope dyn Suite,
        prompter: &'scope Prompter<'scope>,
        standing: &'scope Standing,
    ) -> Self {
        let (send, made) = sync_channel(READY);
        scope.spawn(move || {
            let mut seen = HashSet::new();
            for planned in plan.walk(suite) {
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
        });
        Prompts { made }
    }

    /// The next prompt; if `wait`, however long it takes to make.
    pub(super) fn next(&self, wait: bool) -> Result<Next, RunError> {
        let received =
            if wait { self.made.recv().map_err(|_| TryRecvError::Disconnected) } else { self.made.try_recv() };
        match received {
            Ok(asked) => Ok(Next::Ready(asked?)),
            Err(TryRecvError::Empty) => Ok(Next::NotYet),
            // The thread's panic, if that is why, is passed on when its scope ends.
            Err(TryRecvError::Disconnected) => Ok(Next::None),
        }
    }
}
