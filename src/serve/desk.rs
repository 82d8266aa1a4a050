//! Where connections hand requests to the engine, which lives on one thread and batches whatever is there.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::problem::Problem;
use crate::engine::{Completion, Engine, EngineError, Event, Request, RequestId};

/// What a connection says to the engine's thread.
enum Call {
    Ask {
        request: Box<Request>,
        answer: Sender<Result<Box<Completion>, Problem>>,
    },
    /// The client is gone.
    Cancel(RequestId),
}

/// The connections' side.
pub(super) struct Desk {
    calls: Sender<Call>,
    next: AtomicU64,
    waiting: AtomicUsize,
    most_waiting: usize,
    stop: Arc<AtomicBool>,
    /// Completions handed out.
    pub served: AtomicU64,
}

/// A request that is being worked on. Dropping it unanswered takes it back.
pub(super) struct Waiting<'a> {
    desk: &'a Desk,
    id: RequestId,
    answer: Receiver<Result<Box<Completion>, Problem>>,
    answered: bool,
}

impl Desk {
    pub fn new(most_waiting: usize, stop: Arc<AtomicBool>) -> (Desk, Calls) {
        let (calls, taken) = channel();
        let desk = Desk {
            calls,
            next: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            most_waiting,
            stop,
            served: AtomicU64::new(0),
        };
        (desk, Calls { taken })
    }

    /// Hands a request in; its id is chosen here.
    pub fn ask(&self, mut request: Request) -> Result<Waiting<'_>, Problem> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let id = RequestId(self.next.fetch_add(1, Ordering::Relaxed));
        request.id = id;
        let (sender, answer) = channel();
        let held = Waiting { desk: self, id, answer, answered: false };
        if waiting >= self.most_waiting {
            return Err(Problem::busy(waiting));
        }
        let call = Call::Ask { request: Box::new(request), answer: sender };
        self.calls.send(call).map_err(|_| Problem::stopping())?;
        Ok(held)
    }

    /// True while somebody waits for an answer.
    pub fn busy(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Waiting<'_> {
    /// The answer, or none if it is not there after `patience`.
    pub fn wait(&mut self, patience: Duration) -> Option<Result<Box<Completion>, Problem>> {
        match self.answer.recv_timeout(patience) {
            Ok(answer) => {
                self.answered = true;
                self.desk.served.fetch_add(u64::from(answer.is_ok()), Ordering::Relaxed);
                Some(answer)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.answered = true;
                Some(Err(Problem::stopping()))
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.desk.waiting.fetch_sub(1, Ordering::Relaxed);
        if !self.answered {
            // Nobody listens any more when the engine has ended, and then there is nothing to take back.
            let _ = self.desk.calls.send(Call::Cancel(self.id));
        }
    }
}

/// The engine's side.
pub(super) struct Calls {
    taken: Receiver<Call>,
}

impl Calls {
    /// Runs the engine until `desk` stops. What is in flight then is answered as stopping.
    pub fn work(self, engine: &mut dyn Engine, desk: &Desk) -> Result<(), EngineError> {
        let mut waiting: HashMap<RequestId, Sender<Result<Box<Completion>, Problem>>> = HashMap::new();
        while !desk.is_stopping() {
            let mut next = if waiting.is_empty() {
                match self.taken.recv_timeout(Duration::from_millis(50)) {
                    Ok(call) => Some(call),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            } else {
                self.taken.try_recv().ok()
            };
            while let Some(call) = next {
                match call {
                    Call::Ask { request, answer } => {
                        let id = request.id;
                        match engine.submit(*request) {
                            Ok(()) => {
                                waiting.insert(id, answer);
                            }
                            // A client that is gone does not hear the refusal.
                            Err(refusal) => drop(answer.send(Err(Problem::invalid(refusal.to_string())))),
                        }
                    }
                    Call::Cancel(id) => {
                        waiting.remove(&id);
                        engine.cancel(id);
                    }
                }
                next = self.taken.try_recv().ok();
            }
            for event in engine.poll()? {
                let (id, outcome) = match event {
                    Event::Finished(completion) => (completion.id, Ok(completion)),
                    Event::Failed { id, error, .. } => (id, Err(Problem::engine(error))),
                    Event::Progress { .. } | Event::CapacityChanged { .. } => continue,
                };
                if let Some(answer) = waiting.remove(&id) {
                    drop(answer.send(outcome));
                }
            }
        }
        Ok(())
    }
}
