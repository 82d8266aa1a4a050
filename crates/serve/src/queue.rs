//! Queue between connection threads and the engine, which lives on one thread and batches whatever is in flight.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::error::ApiError;
use earnest_engine::{Completion, Engine, EngineError, Event, Request, RequestId, TokenLogprobs};

/// A message from a connection to the engine's thread.
enum Command {
    Submit {
        request: Box<Request>,
        /// Index of the choice within its HTTP request.
        index: usize,
        /// Send output as it is generated.
        stream: bool,
        updates: Sender<(usize, Update)>,
    },
    /// The client has disconnected.
    Cancel(RequestId),
}

/// A message from the engine's thread about one request.
pub(super) enum Update {
    /// New output of a streamed request.
    Delta(Delta),
    /// The completion, or the reason why there is none.
    Finished(Result<Box<Completion>, ApiError>),
}

/// Output of a request since its previous delta.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Delta {
    pub ids: Vec<u32>,
    pub text: String,
    pub logprobs: Option<Vec<TokenLogprobs>>,
}

/// The connections' end of the queue.
pub(super) struct EngineQueue {
    commands: Sender<Command>,
    next_id: AtomicU64,
    in_flight: AtomicUsize,
    max_in_flight: usize,
    stop: Arc<AtomicBool>,
    /// Completions delivered to connections.
    pub completed: AtomicU64,
}

/// A submitted request. Dropping it before [`InFlight::finish`] cancels the request.
pub(super) struct InFlight<'a> {
    queue: &'a EngineQueue,
    id: RequestId,
    finished: bool,
}

impl EngineQueue {
    pub fn new(max_in_flight: usize, stop: Arc<AtomicBool>) -> (EngineQueue, EngineLoop) {
        let (sender, receiver) = channel();
        let queue = EngineQueue {
            commands: sender,
            next_id: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            max_in_flight,
            stop,
            completed: AtomicU64::new(0),
        };
        (queue, EngineLoop { commands: receiver })
    }

    /// Submits a request and assigns its id. Updates arrive through `updates` with `index`: deltas if `stream` is set and the
    /// engine streams, then the completion.
    pub fn submit(
        &self,
        mut request: Request,
        index: usize,
        stream: bool,
        updates: &Sender<(usize, Update)>,
    ) -> Result<InFlight<'_>, ApiError> {
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let id = RequestId(self.next_id.fetch_add(1, Ordering::Relaxed));
        request.id = id;
        let mut in_flight = InFlight { queue: self, id, finished: false };
        if before >= self.max_in_flight {
            // It was never submitted, so there is nothing to cancel.
            in_flight.finished = true;
            return Err(ApiError::busy(before));
        }
        let command = Command::Submit { request: Box::new(request), index, stream, updates: updates.clone() };
        self.commands.send(command).map_err(|_| ApiError::stopping())?;
        Ok(in_flight)
    }

    /// True while a connection waits for a completion.
    pub fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl InFlight<'_> {
    /// Records that the final update has arrived.
    pub fn finish(&mut self, outcome: &Result<Box<Completion>, ApiError>) {
        self.finished = true;
        self.queue.completed.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.queue.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.finished {
            // If the engine's thread has ended, there is nothing left to cancel.
            let _ = self.queue.commands.send(Command::Cancel(self.id));
        }
    }
}

/// The engine's end of the queue.
pub(super) struct EngineLoop {
    commands: Receiver<Command>,
}

impl EngineLoop {
    /// Runs the engine until `queue` is stopping. Connections that still wait then find their channel closed.
    pub fn run(self, engine: &mut dyn Engine, queue: &EngineQueue) -> Result<(), EngineError> {
        let mut in_flight: HashMap<RequestId, (usize, Sender<(usize, Update)>)> = HashMap::new();
        while !queue.is_stopping() {
            let mut next = if in_flight.is_empty() {
                match self.commands.recv_timeout(Duration::from_millis(50)) {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            } else {
                self.commands.try_recv().ok()
            };
            while let Some(command) = next {
                match command {
                    Command::Submit { request, index, stream, updates } => {
                        let id = request.id;
                        match engine.submit(*request) {
                            Ok(()) => {
                                if stream {
                                    // An engine that does not stream sends the completion alone.
                                    engine.follow(id);
                                }
                                in_flight.insert(id, (index, updates));
                            }
                            // A send fails only if the client has disconnected.
                            Err(rejected) => {
                                let error = ApiError::invalid(rejected.to_string());
                                drop(updates.send((index, Update::Finished(Err(error)))));
                            }
                        }
                    }
                    Command::Cancel(id) => {
                        in_flight.remove(&id);
                        engine.cancel(id);
                    }
                }
                next = self.commands.try_recv().ok();
            }
            for event in engine.poll()? {
                let (id, outcome) = match event {
                    Event::Finished(completion) => (completion.id, Ok(completion)),
                    Event::Failed { id, error, retryable } => (id, Err(ApiError::engine(error, retryable))),
                    Event::Generated { id, ids, text, logprobs } => {
                        if let Some((index, updates)) = in_flight.get(&id) {
                            drop(updates.send((*index, Update::Delta(Delta { ids, text, logprobs }))));
                        }
                        continue;
                    }
                    Event::Progress { .. } | Event::CapacityChanged { .. } => continue,
                };
                if let Some((index, updates)) = in_flight.remove(&id) {
                    drop(updates.send((index, Update::Finished(outcome))));
                }
            }
        }
        Ok(())
    }
}
