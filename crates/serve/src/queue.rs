//! Queue between requests and the engine, which lives on one thread and batches whatever is in flight.
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::error::ApiError;
use super::request::Choice;
use earnest_engine::{Completion, Engine, EngineError, Event, RequestId, Statistics, TokenLogprobs};

/// A message to the engine's thread.
enum Command {
    Submit(Submitted),
    /// Nobody waits for the choice any more.
    Cancel(RequestId),
}

/// A choice on its way to the engine.
struct Submitted {
    id: RequestId,
    choice: Choice,
    /// Index of the choice within its HTTP request.
    index: usize,
    /// Send output as it is generated.
    stream: bool,
    updates: UnboundedSender<(usize, Update)>,
}

/// A message from the engine's thread about one request.
pub(crate) enum Update {
    /// New output of a streamed request.
    Delta(Delta),
    /// The completion, or the reason why there is none.
    Finished(Result<Box<Completion>, ApiError>),
}

/// Output of a request since its previous delta.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Delta {
    pub ids: Vec<u32>,
    pub text: String,
    pub logprobs: Option<Vec<TokenLogprobs>>,
}

/// The requests' end of the queue.
pub(crate) struct EngineQueue {
    commands: Sender<Command>,
    next_id: AtomicU64,
    in_flight: AtomicUsize,
    max_in_flight: usize,
    stop: Arc<AtomicBool>,
    /// Completions delivered.
    pub completed: AtomicU64,
    /// The engine's counters after its latest step.
    statistics: Mutex<Statistics>,
}

/// The choices of a request, in flight. Dropping it cancels those that have not finished.
pub(crate) struct InFlight {
    queue: Arc<EngineQueue>,
    /// Ids of the choices that have not finished, in order.
    ids: Vec<Option<RequestId>>,
    updates: UnboundedReceiver<(usize, Update)>,
}

impl EngineQueue {
    pub fn new(max_in_flight: usize, stop: Arc<AtomicBool>) -> (Arc<EngineQueue>, EngineLoop) {
        let (sender, receiver) = channel();
        let queue = Arc::new(EngineQueue {
            commands: sender,
            next_id: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            max_in_flight,
            stop,
            completed: AtomicU64::new(0),
            statistics: Mutex::default(),
        });
        (
            Arc::clone(&queue),
            EngineLoop { commands: receiver, queue, waiting: VecDeque::new(), running: HashMap::new() },
        )
    }

    /// Submits all choices of a request, or none.
    ///
    /// # Errors
    /// 429 if there are too many, 503 if the server is stopping.
    pub fn submit(self: &Arc<Self>, choices: &[Choice], stream: bool) -> Result<InFlight, ApiError> {
        if self.is_stopping() {
            return Err(ApiError::stopping());
        }
        let (sender, updates) = unbounded_channel();
        let before = self.in_flight.fetch_add(choices.len(), Ordering::Relaxed);
        let mut in_flight = InFlight { queue: Arc::clone(self), ids: vec![None; choices.len()], updates };
        // One request is always taken, however many choices it has.
        if before > 0 && before + choices.len() > self.max_in_flight {
            return Err(ApiError::busy(before));
        }
        for (index, choice) in choices.iter().enumerate() {
            let id = RequestId(self.next_id.fetch_add(1, Ordering::Relaxed));
            let submitted = Submitted { id, choice: choice.clone(), index, stream, updates: sender.clone() };
            self.commands.send(Command::Submit(submitted)).map_err(|_| ApiError::stopping())?;
            in_flight.ids[index] = Some(id);
        }
        // Only the engine's thread holds senders from here on, so its end disconnects the channel.
        Ok(in_flight)
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn statistics(&self) -> Statistics {
        *self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlight {
    /// Waits for the next update of a choice.
    ///
    /// # Errors
    /// 503 if the engine's thread has ended.
    pub async fn next(&mut self) -> Result<(usize, Update), ApiError> {
        let (index, update) = self.updates.recv().await.ok_or_else(ApiError::stopping)?;
        if let Update::Finished(outcome) = &update {
            self.ids[index] = None;
            self.queue.completed.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
        }
        Ok((index, update))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.queue.in_flight.fetch_sub(self.ids.len(), Ordering::Relaxed);
        for id in self.ids.iter().flatten() {
            // If the engine's thread has ended, there is nothing left to cancel.
            let _ = self.queue.commands.send(Command::Cancel(*id));
        }
    }
}

/// The engine's end of the queue.
pub(crate) struct EngineLoop {
    commands: Receiver<Command>,
    queue: Arc<EngineQueue>,
    /// Choices that the engine has no room for. They share their prompts here; the engine has a copy for each.
    waiting: VecDeque<Submitted>,
    /// Choices in the engine.
    running: HashMap<RequestId, (usize, UnboundedSender<(usize, Update)>)>,
}

impl EngineLoop {
    /// Runs the engine until the queue is stopping and nothing is in flight, but no longer than `grace` after it. Requests that still wait then
    /// find their channel closed. Calls `on_stop` when it notices.
    pub fn run(mut self, engine: &mut dyn Engine, grace: Duration, on_stop: impl FnOnce()) -> Result<(), EngineError> {
        let room = engine.card().in_flight.max(1).saturating_mul(2);
        let mut on_stop = Some(on_stop);
        let mut deadline = None;
        loop {
            self.receive(engine);
            if self.queue.is_stopping() {
                on_stop.take().into_iter().for_each(|call| call());
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + grace);
                if self.is_idle() || Instant::now() >= deadline {
                    return Ok(());
                }
            }
            while self.running.len() < room
                && let Some(next) = self.waiting.pop_front()
            {
                self.start(next, engine);
            }
            for event in engine.poll()? {
                self.forward(event);
            }
            *self.queue.statistics.lock().unwrap_or_else(PoisonError::into_inner) = engine.statistics();
        }
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Takes the commands that have arrived; waits a little for one if there is nothing to do.
    fn receive(&mut self, engine: &mut dyn Engine) {
        if self.is_idle() {
            match self.commands.recv_timeout(Duration::from_millis(50)) {
                Ok(command) => self.take(command, engine),
                // The queue holds a sender itself.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
        while let Ok(command) = self.commands.try_recv() {
            self.take(command, engine);
        }
    }

    fn take(&mut self, command: Command, engine: &mut dyn Engine) {
        match command {
            Command::Submit(submitted) => self.waiting.push_back(submitted),
            Command::Cancel(id) if self.running.remove(&id).is_some() => {
                engine.cancel(id);
            }
            Command::Cancel(id) => self.waiting.retain(|waiting| waiting.id != id),
        }
    }

    fn start(&mut self, next: Submitted, engine: &mut dyn Engine) {
        let Submitted { id, choice, index, stream, updates } = next;
        match engine.submit(choice.request(id)) {
            Ok(()) => {
                if stream {
                    // An engine that does not stream sends the completion alone.
                    engine.follow(id);
                }
                self.running.insert(id, (index, updates));
            }
            // A send fails only if the client has disconnected.
            Err(rejected) => {
                drop(updates.send((index, Update::Finished(Err(ApiError::invalid(rejected.to_string()))))));
            }
        }
    }

    fn forward(&mut self, event: Event) {
        let (id, outcome) = match event {
            Event::Finished(completion) => (completion.id, Ok(completion)),
            Event::Failed { id, error, retryable } => (id, Err(ApiError::engine(error, retryable))),
            Event::Generated { id, ids, text, logprobs } => {
                if let Some((index, updates)) = self.running.get(&id) {
                    drop(updates.send((*index, Update::Delta(Delta { ids, text, logprobs }))));
                }
                return;
            }
            Event::Progress { .. } | Event::CapacityChanged { .. } => return,
        };
        if let Some((index, updates)) = self.running.remove(&id) {
            drop(updates.send((index, Update::Finished(outcome))));
        }
    }
}
