//! The engine: many requests at an endpoint at once.
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::body::Form;
use super::client::{Bounds, Client};
use super::probe::{ProbeError, fingerprint, probe};
use super::reply::{Answer, answer};
use super::{Address, Api, Dialect, ExchangeError, NOT_TOLD, Retry, Secret, Server};
use crate::{
    Card, Completion, Engine, EngineError, Event, FinishReason, Input, Logprobs, Rejected, Request, RequestId,
    Statistics, Timings,
};
use earnest_models::checkpoint::ChatMessage;

/// Longest wait of a poll for a reply.
const POLL: Duration = Duration::from_millis(50);

/// Shortest time between two notices: requests that fail together are reported once.
const NOTICE_PERIOD: Duration = Duration::from_secs(10);

/// An endpoint that was silent in so many exchanges of a request in a row, and answered nobody else meanwhile, is gone: each of them
/// took the user's whole time limit. Refused connections, cut replies and unusable ones are tried as often as the settings say.
const SILENT_TRIES: u32 = 3;

/// Limits on the requests sent to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// Requests at the endpoint at once.
    pub requests: usize,
    /// Exchanges begun in a minute, at most.
    pub per_minute: Option<f64>,
}

/// Settings of the engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of the API.
    pub address: Address,
    /// Key, if the endpoint wants one.
    pub key: Option<Secret>,
    /// The model's name; without one, the endpoint's only model.
    pub model: Option<String>,
    /// API that is used.
    pub api: Api,
    /// Limits on the requests sent.
    pub concurrency: Concurrency,
    /// Retry policy.
    pub retry: Retry,
    /// Time limit of one exchange.
    pub timeout: Duration,
    /// The longest sequence in tokens, where the endpoint does not say or says too much.
    pub context: Option<usize>,
    /// The chat template's switch, for endpoints that apply the template and know it.
    pub enable_thinking: Option<bool>,
}

impl Options {
    fn client(&self) -> Client {
        Client::new(self.address.clone(), self.key.clone(), self.timeout)
    }

    fn form(&self, server: &Server) -> Form {
        Form {
            model: server.model.clone(),
            api: self.api,
            dialect: server.dialect,
            max_completion_tokens: self.address.is_openai() && self.api == Api::Chat,
            enable_thinking: self.enable_thinking,
        }
    }

    fn failed(&self, reason: String) -> ConnectError {
        ConnectError { address: self.address.as_str().to_owned(), reason }
    }
}

/// An endpoint that can not be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("cannot use the endpoint {address}: {reason}")]
pub struct ConnectError {
    /// The endpoint's address.
    pub address: String,
    /// The reason, for people.
    pub reason: String,
}

/// Reasons why an endpoint answers no more requests.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EndpointError {
    /// It is not what it was when the session began.
    #[error("{address}: {failure}")]
    Changed {
        /// The endpoint's address.
        address: String,
        /// Its identities then and now.
        failure: ExchangeError,
    },
    /// It refuses every request.
    #[error("{address} refuses: {failure}{}", hint(failure))]
    Refuses {
        /// The endpoint's address.
        address: String,
        /// Its refusal.
        failure: ExchangeError,
    },
    /// It answered nobody while one request was tried again and again.
    #[error(
        "{address} {silence}: {failure} (after {tries} tries in {seconds:.0} s, while no other request was answered)"
    )]
    Gone {
        /// The endpoint's address.
        address: String,
        /// Its behaviour.
        silence: Silence,
        /// The last exchange.
        failure: ExchangeError,
        /// Exchanges of the request.
        tries: u32,
        /// Seconds since the first of them.
        seconds: f64,
    },
    /// The threads that ask it ended.
    #[error("the threads that ask the endpoint ended; please report this")]
    ThreadsEnded,
}

/// Ways in which an endpoint fails to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Nothing whole came back.
    NoAnswer,
    /// Replies were unusable.
    NoUsableAnswer,
}

impl std::fmt::Display for Silence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Silence::NoAnswer => "gives no answer",
            Silence::NoUsableAnswer => "gives no usable answer",
        })
    }
}

/// Advice for a refused key.
fn hint(failure: &ExchangeError) -> &'static str {
    match failure {
        ExchangeError::Closed { status: 401 | 403, .. } => " (the key is read from EARNEST_API_KEY or OPENAI_API_KEY)",
        _ => "",
    }
}

/// Requests at an OpenAI-compatible endpoint. Answers are not bit-identical from run to run: that is up to the server.
pub struct EndpointEngine {
    shared: Arc<Shared>,
    replies: Receiver<(RequestId, Reply)>,
    /// Requests in flight; false once cancelled, and their reply is dropped.
    requests: HashMap<RequestId, bool>,
    ended: Vec<Event>,
    /// The error that ends the engine; reported once all earlier answers are.
    fatal: Option<EndpointError>,
    server: Server,
    context: Option<usize>,
    concurrency: Concurrency,
    statistics: Statistics,
}

/// State shared by the threads.
struct Shared {
    client: Client,
    form: Form,
    /// Description of the endpoint when the session began.
    server: Server,
    retry: Retry,
    state: Mutex<State>,
    wake: Condvar,
    stop: AtomicBool,
    answered: AtomicU64,
    retries: AtomicU64,
    per_minute: Option<f64>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<(Request, Instant)>,
    /// No exchange begins before this.
    not_before: Option<Instant>,
    /// The name under which the endpoint answers, once it has.
    answers_as: Option<String>,
    /// Fingerprints of answers, in order of appearance.
    fingerprints: Vec<String>,
    failures: Failures,
}

/// Failed exchanges that were not reported yet.
#[derive(Default)]
struct Failures {
    /// The newest of them.
    text: Option<String>,
    count: u64,
    reported: Option<Instant>,
}

impl Failures {
    fn add(&mut self, text: String) {
        self.text = Some(text);
        self.count += 1;
    }

    /// Takes the notice that is due now: the first failure at once, later ones together.
    fn take(&mut self) -> Option<String> {
        if self.reported.is_some_and(|told| told.elapsed() < NOTICE_PERIOD) {
            return None;
        }
        let text = self.text.take()?;
        let count = std::mem::take(&mut self.count);
        self.reported = Some(Instant::now());
        Some(if count > 1 { format!("{text}; {count} exchanges failed since the last such line") } else { text })
    }
}

/// Outcome of a request.
enum Reply {
    Answered(Box<Answer>),
    Failed {
        failure: ExchangeError,
        tries: u32,
    },
    /// No request can be answered any more.
    Fatal(EndpointError),
}

impl EndpointEngine {
    /// Connects to an endpoint: asks for its description and starts the threads.
    ///
    /// # Errors
    /// [`ConnectError`] if it can not be used.
    pub fn connect(options: Options) -> Result<EndpointEngine, ConnectError> {
        let server = EndpointEngine::probe(&options)?;
        EndpointEngine::start(options, server)
    }

    /// Asks an endpoint for its description.
    ///
    /// # Errors
    /// [`ConnectError`] if it can not be used.
    pub fn probe(options: &Options) -> Result<Server, ConnectError> {
        let client = options.client();
        let failed = |error: &dyn std::fmt::Display| options.failed(client.redact(&error.to_string()));
        let mut attempt = 0;
        // The run has not begun, so somebody is watching: a few quick tries, not the long ones.
        let mut server = loop {
            match probe(&client, options.model.as_deref()) {
                Ok(server) => break server,
                Err(ProbeError::Exchange(ExchangeError::Busy { .. } | ExchangeError::Malformed(_)))
                    if attempt < options.retry.times.min(3) =>
                {
                    attempt += 1;
                    std::thread::sleep(
                        options.retry.wait(attempt, Default::default(), None).min(Duration::from_secs(2)),
                    );
                }
                Err(error) => return Err(failed(&error)),
            }
        };
        if server.version.is_none() {
            server.fingerprint = fingerprint(&client, &options.form(&server)).map_err(|failure| failed(&failure))?;
        }
        Ok(server)
    }

    /// Asks for the log-probabilities of a short prompt, as runs that score given continuations do of theirs.
    ///
    /// # Errors
    /// [`ConnectError`] if the endpoint does not give them.
    pub fn probe_prompt_logprobs(options: &Options, server: &Server, prompt: Input) -> Result<(), ConnectError> {
        let client = options.client();
        let logprobs = Logprobs { top: 0, prompt_from: Some(1) };
        let request = Request { input: prompt, logprobs, ..Request::greedy(RequestId(0), Vec::new(), 0) };
        let form = options.form(server);
        let body = form.body(&request).map_err(|rejected| options.failed(rejected.to_string()))?;
        let reply = client
            .post(form.api.path(), &body, Bounds::of(&request))
            .and_then(|reply| answer(&reply, &request, form.api, form.dialect));
        match reply {
            Ok(_) => Ok(()),
            Err(failure) => {
                Err(options.failed(client.redact(&format!("it gives no log-probabilities of a prompt ({failure})"))))
            }
        }
    }

    /// Starts the threads for an endpoint that was probed with the same options.
    ///
    /// # Errors
    /// [`ConnectError`] if the system refuses a thread.
    pub fn start(options: Options, server: Server) -> Result<EndpointEngine, ConnectError> {
        let shared = Arc::new(Shared {
            client: options.client(),
            form: options.form(&server),
            server: server.clone(),
            retry: options.retry,
            state: Mutex::default(),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            per_minute: options.concurrency.per_minute,
        });
        let (sender, replies) = channel();
        for number in 0..options.concurrency.requests.max(1) {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            std::thread::Builder::new()
                .name(format!("endpoint-{number}"))
                .spawn(move || shared.work(&sender))
                .map_err(|error| options.failed(format!("a thread could not be started: {error}")))?;
        }
        Ok(EndpointEngine {
            shared,
            replies,
            requests: HashMap::new(),
            ended: Vec::new(),
            fatal: None,
            context: options.context.or(server.context),
            server,
            concurrency: options.concurrency,
            statistics: Statistics::default(),
        })
    }

    /// The endpoint's description of itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Takes a reply; none if it is of a cancelled request, or the end of all.
    fn take(&mut self, id: RequestId, reply: Reply) -> Option<Event> {
        if let Reply::Fatal(error) = reply {
            self.fatal.get_or_insert(error);
            return None;
        }
        // An exchange that ended meanwhile may be the other server's.
        if let (Reply::Answered(_), Some(EndpointError::Changed { .. })) = (&reply, &self.fatal) {
            return None;
        }
        // A request is reported once, whatever its threads do.
        let Some(true) = self.requests.remove(&id) else { return None };
        Some(match reply {
            Reply::Answered(answer) => {
                let (prompt, cached) = (answer.completion.prompt_tokens, answer.completion.cached_tokens);
                let all = &mut self.statistics;
                all.decoded_tokens = all.decoded_tokens.saturating_add(answer.generated);
                all.prompt_tokens = all.prompt_tokens.saturating_add(prompt as u64);
                all.prefilled_tokens = all.prefilled_tokens.saturating_add(prompt.saturating_sub(cached) as u64);
                all.cached_tokens = all.cached_tokens.saturating_add(cached as u64);
                Event::Finished(Box::new(answer.completion))
            }
            Reply::Failed { failure, tries } => {
                let retryable = failure.may_pass();
                let error = if tries > 1 { format!("{failure} (after {tries} tries)") } else { failure.to_string() };
                Event::Failed { id, error, retryable }
            }
            Reply::Fatal(_) => return None,
        })
    }
}

impl Engine for EndpointEngine {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        if self.requests.contains_key(&request.id) {
            return Err(Rejected::DuplicateId(request.id));
        }
        if request.max_tokens == 0 && request.logprobs.prompt_from.is_none() {
            return Err(Rejected::NothingToDo);
        }
        if let Input::Ids(ids) = &request.input {
            if ids.is_empty() {
                return Err(Rejected::EmptyPrompt);
            }
            if let Some(context) = self.context
                && ids.len().saturating_add(request.max_tokens) > context
            {
                return Err(Rejected::BeyondContext { prompt: ids.len(), max_tokens: request.max_tokens, context });
            }
        }
        self.shared.form.body(&request)?;
        self.requests.insert(request.id, true);
        self.shared.state().queue.push_back((request, Instant::now()));
        self.shared.wake.notify_one();
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = std::mem::take(&mut self.ended);
        if self.requests.is_empty() {
            return Ok(events);
        }
        self.statistics.steps += 1;
        let before = self.statistics;
        let mut wait = if events.is_empty() { POLL } else { Duration::ZERO };
        loop {
            match self.replies.recv_timeout(wait) {
                Ok((id, reply)) => events.extend(self.take(id, reply)),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) if self.fatal.is_some() => break,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(EndpointError::ThreadsEnded.into());
                }
            }
            wait = Duration::ZERO;
        }
        // Answers that came before the end are rows; what ends the engine is said when there are none left.
        if let (true, Some(error)) = (events.is_empty(), &self.fatal) {
            return Err(error.clone().into());
        }
        let since = |now: u64, before: u64| usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX);
        events.push(Event::Progress {
            prefilled: since(self.statistics.prefilled_tokens, before.prefilled_tokens),
            decoded: since(self.statistics.decoded_tokens, before.decoded_tokens),
        });
        Ok(events)
    }

    fn notice(&mut self) -> Option<String> {
        self.shared.state().failures.take()
    }

    fn cancel(&mut self, id: RequestId) -> bool {
        let Some(wanted) = self.requests.get(&id).copied() else { return false };
        if !wanted {
            return false;
        }
        let mut state = self.shared.state();
        let queued = state.queue.len();
        state.queue.retain(|(request, _)| request.id != id);
        // A queued request is gone; one at the endpoint can not be called back, its reply is dropped.
        if state.queue.len() < queued {
            self.requests.remove(&id);
        } else {
            self.requests.insert(id, false);
        }
        drop(state);
        self.ended.push(Event::Finished(Box::new(Completion {
            id,
            ids: Vec::new(),
            counted_tokens: 0,
            text: String::new(),
            finish: FinishReason::Cancelled,
            prompt_tokens: 0,
            cached_tokens: 0,
            logprobs: None,
            prompt_logprobs: None,
            logits_hashes: None,
            timings: Timings::default(),
        })));
        true
    }

    fn card(&self) -> Card {
        let Server { dialect, version, model, root, .. } = &self.server;
        let (answers_as, fingerprints) = {
            let state = self.shared.state();
            (state.answers_as.clone(), state.fingerprints.join(" and "))
        };
        let fingerprints = Some(fingerprints).filter(|all| !all.is_empty());
        let mut name = format!("{model} at {}", self.shared.client.address().as_str());
        for (what, other) in [("root", root), ("answers as", &answers_as), ("fingerprint", &fingerprints)] {
            if let Some(other) = other.as_ref().filter(|other| *other != model) {
                name.push_str(&format!(", {what} {other}"));
            }
        }
        Card {
            engine: "openai".into(),
            version: match version {
                Some(version) => format!("{} {version}", dialect.name()),
                None => dialect.name().to_owned(),
            },
            devices: vec![name],
            weights_dtype: NOT_TOLD.into(),
            context: self.context.unwrap_or(0),
            weight_bytes: 0,
            kv_bytes: 0,
            kv_tokens: 0,
            in_flight: self.concurrency.requests.max(1),
            deterministic: false,
            seeded: *dialect != Dialect::Unknown,
            logprobs: matches!(dialect, Dialect::Earnest | Dialect::Vllm),
        }
    }

    fn statistics(&self) -> Statistics {
        let waiting = self.shared.state().queue.len();
        Statistics {
            running: self.requests.len().saturating_sub(waiting),
            waiting,
            retries: self.shared.retries.load(Ordering::Relaxed),
            ..self.statistics
        }
    }
}

impl Drop for EndpointEngine {
    fn drop(&mut self) {
        // Threads that wait end at once; one in an exchange ends after it and is not waited for.
        self.shared.end();
    }
}

impl Shared {
    /// The state; a thread that panicked while it held the lock left no half-made change in it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> String {
        self.client.address().as_str().to_owned()
    }

    /// Ends all threads.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.notify_all();
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A thread: takes requests and brings their replies until the engine is dropped.
    fn work(&self, replies: &Sender<(RequestId, Reply)>) {
        loop {
            let mut state = self.state();
            let (request, submitted) = loop {
                if self.stopped() {
                    return;
                }
                match state.queue.pop_front() {
                    Some(next) => break next,
                    None => state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            let Some(reply) = self.ask(&request, submitted) else { return };
            // No thread asks for more, least of all a server that is another one now.
            let last = matches!(reply, Reply::Fatal(_));
            if last {
                self.end();
            }
            if replies.send((request.id, reply)).is_err() || last {
                return;
            }
        }
    }

    /// Asks until there is an answer or no try is left; none if the engine ended meanwhile.
    fn ask(&self, request: &Request, submitted: Instant) -> Option<Reply> {
        let body = match self.form.body(request) {
            Ok(body) => body,
            Err(rejected) => {
                let failure = ExchangeError::Refused { status: 0, message: rejected.to_string() };
                return Some(Reply::Failed { failure, tries: 0 });
            }
        };
        let answered_before = self.answered.load(Ordering::Relaxed);
        let (mut silent_tries, mut answered_to_others) = (0, answered_before);
        let mut only_connections = true;
        let mut was_gone = false;
        let mut tries = 0;
        let mut first_failure = None;
        loop {
            self.wait_for_turn()?;
            let begun = Instant::now();
            tries += 1;
            let failure = match self.exchange(request, &body).and_then(|answer| {
                if was_gone {
                    self.check_server()?;
                }
                Ok(answer)
            }) {
                Ok(mut answer) => {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                    answer.completion.timings = Timings {
                        queued_s: (begun - submitted).as_secs_f64(),
                        // The endpoint does not say how its time divides.
                        prefill_s: 0.0,
                        decode_s: begun.elapsed().as_secs_f64(),
                    };
                    return Some(Reply::Answered(Box::new(answer)));
                }
                Err(failure) => failure,
            };
            only_connections &= failure.is_no_reply();
            was_gone |= failure.is_no_reply();
            if let ExchangeError::Changed { .. } = failure {
                return Some(Reply::Fatal(EndpointError::Changed { address: self.address(), failure }));
            }
            if let ExchangeError::Closed { .. } = failure {
                return Some(Reply::Fatal(EndpointError::Refuses { address: self.address(), failure }));
            }
            if !failure.may_pass() {
                return Some(Reply::Failed { failure, tries });
            }
            let since: Instant = *first_failure.get_or_insert(begun);
            let answered = self.answered.load(Ordering::Relaxed);
            let others_wait = answered == std::mem::replace(&mut answered_to_others, answered);
            silent_tries =
                if matches!(failure, ExchangeError::Silent(_)) && others_wait { silent_tries + 1 } else { 0 };
            if tries > self.retry.times || silent_tries >= SILENT_TRIES {
                // An endpoint that answered nobody in all that time is gone; asking it for the rest of the run would mark
                // every remaining sample as failed.
                let what = if silent_tries >= SILENT_TRIES || (only_connections && answered == answered_before) {
                    Some(Silence::NoAnswer)
                } else if answered == answered_before && !self.answers_a_short_question(request) {
                    Some(Silence::NoUsableAnswer)
                } else {
                    None
                };
                return Some(match what {
                    Some(silence) => {
                        let (address, seconds) = (self.address(), since.elapsed().as_secs_f64());
                        Reply::Fatal(EndpointError::Gone { address, silence, failure, tries, seconds })
                    }
                    None => Reply::Failed { failure, tries },
                });
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            let retry_after = match &failure {
                ExchangeError::Busy { retry_after, .. } => *retry_after,
                _ => None,
            };
            if let Some(retry_after) = retry_after {
                // It is the endpoint that is busy, not this request: all threads wait.
                let until = Instant::now() + retry_after.min(self.retry.longest);
                let mut state = self.state();
                state.not_before = Some(state.not_before.map_or(until, |other| other.max(until)));
            }
            let wait = self.retry.wait(tries, request.sampling_key, retry_after);
            let (address, times) = (self.client.address().as_str(), self.retry.times);
            let seconds = wait.as_secs_f64();
            self.state().failures.add(format!("{address}: {failure}; retry {tries} of {times} in {seconds:.1} s"));
            self.sleep_until(Instant::now() + wait)?;
        }
    }

    fn exchange(&self, request: &Request, body: &serde_json::Value) -> Result<Answer, ExchangeError> {
        let reply = self.client.post(self.form.api.path(), body, Bounds::of(request))?;
        let mut answer =
            answer(&reply, request, self.form.api, self.form.dialect).map_err(|failure| match failure {
                ExchangeError::Malformed(message) => ExchangeError::Malformed(self.client.redact(&message)),
                ExchangeError::Refused { status, message } => {
                    ExchangeError::Refused { status, message: self.client.redact(&message) }
                }
                other => other,
            })?;
        if let Some(model) = &answer.model {
            self.check_model(&self.client.redact(model))?;
        }
        if let Some(fingerprint) = answer.fingerprint.take() {
            let fingerprint = self.client.redact(&fingerprint);
            let mut state = self.state();
            // Providers answer from several installations at once: that is noted, and no reason to stop.
            if !state.fingerprints.contains(&fingerprint) && state.fingerprints.len() < 16 {
                state.fingerprints.push(fingerprint);
            }
        }
        answer.completion.text = self.client.redact_text(answer.completion.text);
        Ok(answer)
    }

    /// True if the endpoint answers something else than `request`, which it did not answer usably while nobody else was answered: one
    /// prompt may be too much for a server that answers all others. A refusal of this question says nothing of the endpoint.
    fn answers_a_short_question(&self, request: &Request) -> bool {
        let input = match &request.input {
            Input::Ids(ids) => Input::Ids(ids.iter().take(1).copied().collect()),
            Input::Text(_) => Input::Text("1".into()),
            Input::Messages(_) => Input::Messages(vec![ChatMessage::new("user", "1")]),
        };
        let short = Request { input, ..Request::greedy(request.id, Vec::new(), 1) };
        let Ok(body) = self.form.body(&short) else { return true };
        // Dropped meanwhile: nobody hears what is said here.
        if self.wait_for_turn().is_none() {
            return true;
        }
        match self.exchange(&short, &body) {
            Ok(_) | Err(ExchangeError::Refused { .. }) => true,
            Err(_) => false,
        }
    }

    /// A server that was away may have come back as another one, whose answers belong into another run.
    fn check_server(&self) -> Result<(), ExchangeError> {
        let mut now = match probe(&self.client, Some(&self.form.model)) {
            Ok(now) => now,
            Err(ProbeError::Exchange(failure)) => return Err(failure),
            Err(error) => return Err(ExchangeError::Changed { was: self.server.identity(), is: error.to_string() }),
        };
        // It costs a question, and every answer is looked at for it anyway.
        now.fingerprint.clone_from(&self.server.fingerprint);
        if now.identity() == self.server.identity() {
            return Ok(());
        }
        Err(ExchangeError::Changed { was: self.server.identity(), is: now.identity() })
    }

    /// An answer of another model is none: a gateway may send requests to the wrong backend. Providers answer under the
    /// dated name of what was asked for; that name must stay the same.
    fn check_model(&self, model: &str) -> Result<(), ExchangeError> {
        let asked = self.form.model.as_str();
        if model == asked {
            return Ok(());
        }
        let related = model.strip_prefix(asked).is_some_and(|rest| rest.starts_with(['-', '@', ':']))
            || asked.rsplit('/').next() == Some(model)
            || model.rsplit('/').next() == Some(asked);
        let mut state = self.state();
        let known = state.answers_as.get_or_insert_with(|| if related { model.to_owned() } else { asked.to_owned() });
        if known == model {
            return Ok(());
        }
        let known =
            if known == asked { asked.to_owned() } else { format!("{asked}, which answered as {known} before") };
        Err(ExchangeError::Malformed(format!("{model} answered, but {known} was asked")))
    }

    /// Waits for the rate limit and for the wait that the endpoint asked for.
    fn wait_for_turn(&self) -> Option<()> {
        loop {
            let now = Instant::now();
            let due = {
                let mut state = self.state();
                match state.not_before {
                    Some(due) if due > now => due,
                    _ => {
                        let pause = self.per_minute.map(|most| Duration::from_secs_f64(60.0 / most));
                        state.not_before = pause.map(|pause| now + pause);
                        return (!self.stopped()).then_some(());
                    }
                }
            };
            self.sleep_until(due)?;
        }
    }

    /// Waits until this moment; none if the engine was dropped meanwhile.
    fn sleep_until(&self, due: Instant) -> Option<()> {
        loop {
            if self.stopped() {
                return None;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(());
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}
