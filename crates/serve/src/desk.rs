//! Where connections hand requests to the engine, which lives on one thread and batches whatever is there.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::problem::Problem;
use earnest_engine::{Completion, Engine, EngineError, Event, Request, RequestId, TokenLogprobs};

/// What a connection says to the engine's thread.
enum Call {
    Ask {
        request: Box<Request>,
        /// Its place among those that the connection waits for.
        place: usize,
        follow: bool,
        answer: Sender<(usize, Said)>,
    },
    /// The client is gone.
    Cancel(RequestId),
}

/// What a connection hears of a request.
pub(super) enum Said {
    /// More of it, if it is followed.
    Part(Part),
    /// Its end.
    Whole(Result<Box<Completion>, Problem>),
}

/// A part of a completion: tokens and text since the last one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Part {
    pub ids: Vec<u32>,
    pub text: String,
    pub logprobs: Option<Vec<TokenLogprobs>>,
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

/// A request that is being worked on. Dropping it before it is [`Held::done`] takes it back.
pub(super) struct Held<'a> {
    desk: &'a Desk,
    id: RequestId,
    done: bool,
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

    /// Hands a request in; its id is chosen here. What is said of it comes through `answer` with its `place`: parts if they are to
    /// `follow` and the engine has them, then the whole.
    pub fn ask(
        &self,
        mut request: Request,
        place: usize,
        follow: bool,
        answer: &Sender<(usize, Said)>,
    ) -> Result<Held<'_>, Problem> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let id = RequestId(self.next.fetch_add(1, Ordering::Relaxed));
        request.id = id;
        let mut held = Held { desk: self, id, done: false };
        if waiting >= self.most_waiting {
            // It was never handed in.
            held.done = true;
            return Err(Problem::busy(waiting));
        }
        let call = Call::Ask { request: Box::new(request), place, follow, answer: answer.clone() };
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

impl Held<'_> {
    /// Notes that its end was heard.
    pub fn done(&mut self, outcome: &Result<Box<Completion>, Problem>) {
        self.done = true;
        self.desk.served.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.desk.waiting.fetch_sub(1, Ordering::Relaxed);
        if !self.done {
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
        let mut waiting: HashMap<RequestId, (usize, Sender<(usize, Said)>)> = HashMap::new();
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
                    Call::Ask { request, place, follow, answer } => {
                        let id = request.id;
                        match engine.submit(*request) {
                            Ok(()) => {
                                if follow {
                                    // An engine without such news gives the whole at once.
                                    engine.follow(id);
                                }
                                waiting.insert(id, (place, answer));
                            }
                            // A client that is gone does not hear the refusal.
                            Err(refusal) => {
                                drop(answer.send((place, Said::Whole(Err(Problem::invalid(refusal.to_string()))))));
                            }
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
                    Event::Failed { id, error, retryable } => (id, Err(Problem::engine(error, retryable))),
                    Event::Generated { id, ids, text, logprobs } => {
                        if let Some((place, answer)) = waiting.get(&id) {
                            drop(answer.send((*place, Said::Part(Part { ids, text, logprobs }))));
                        }
                        continue;
                    }
                    Event::Progress { .. } | Event::CapacityChanged { .. } => continue,
                };
                if let Some((place, answer)) = waiting.remove(&id) {
                    drop(answer.send((place, Said::Whole(outcome))));
                }
            }
        }
        Ok(())
    }
}
