//! The server: accepts connections, routes paths, answers with the engine.
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::error::ApiError;
use super::http::{Connection, HttpRequest, ReadError, ReadLimits};
use super::queue::{Delta, EngineQueue, Update};
use super::request::{self, ApiRequest, ServedModel};
use super::response::{EventStream, Response};
use earnest_engine::endpoint::Api;
use earnest_engine::{Card, Completion, Engine, EngineError};
use earnest_models::checkpoint::Checkpoint;

/// Poll interval for detecting a disconnected client.
const DISCONNECT_POLL: Duration = Duration::from_millis(200);

/// Timeout of an idle connection between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Limits on clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest body of a request, in bytes.
    pub body_bytes: usize,
    /// Largest number of open connections.
    pub connections: usize,
    /// Largest number of completions in flight.
    pub in_flight: usize,
    /// Timeout from a request's first byte to its last.
    pub read_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { body_bytes: 8 << 20, connections: 512, in_flight: 4096, read_timeout: Duration::from_secs(30) }
    }
}

/// Reasons why a server cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    /// The engine failed as a whole.
    #[error("the engine failed: {0}")]
    Engine(#[from] EngineError),
}

/// A server that is bound to its port; [`Server::run`] starts answering.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    /// Address of the listener, with the actual port if port 0 was requested.
    pub address: SocketAddr,
}

/// Totals of a server that has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeSummary {
    /// Completions that were sent.
    pub completions: u64,
}

impl Server {
    /// Binds a port; 0 takes a free one.
    ///
    /// # Errors
    /// [`ServeError::Listen`].
    pub fn bind(host: &str, port: u16) -> Result<Server, ServeError> {
        let failed = |source| ServeError::Listen { address: format!("{host}:{port}"), source };
        let listener = TcpListener::bind((host, port)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address })
    }

    /// Answers with `engine`, on this thread, until `stop` is set. `name` is the model's for clients, who must send `key` if
    /// there is one.
    ///
    /// # Errors
    /// [`ServeError::Engine`].
    pub fn run(
        self,
        engine: &mut dyn Engine,
        checkpoint: Checkpoint,
        name: &str,
        key: Option<&str>,
        limits: Limits,
        stop: &Arc<AtomicBool>,
    ) -> Result<ServeSummary, ServeError> {
        let (queue, engine_loop) = EngineQueue::new(limits.in_flight, Arc::clone(stop));
        let card = engine.card();
        let shared = Arc::new(Shared {
            queue,
            model: ServedModel { checkpoint, name: name.to_owned(), context: card.context },
            authorization: key.map(|key| format!("Bearer {key}")),
            limits,
            connections: AtomicUsize::new(0),
            responses: AtomicU64::new(0),
            version: version(&card),
        });
        let address = self.address;
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.accept_loop(&self.listener))
        };
        let outcome = engine_loop.run(engine, &shared.queue);
        stop.store(true, Ordering::Relaxed);
        // The acceptor blocks in `accept`; a connection wakes it.
        if TcpStream::connect_timeout(&reachable(address), Duration::from_secs(1)).is_ok() {
            drop(acceptor.join());
        }
        // Connections that still wait get their 503.
        let deadline = Instant::now() + Duration::from_secs(1);
        while shared.queue.is_busy() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        outcome?;
        Ok(ServeSummary { completions: shared.queue.completed.load(Ordering::Relaxed) })
    }
}

/// Returns the text of `/version`: this program's version, and the engine's if it differs.
fn version(card: &Card) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let Card { engine, version, .. } = card;
    if version == own { format!("{own} ({engine})") } else { format!("{own} ({engine} {version})") }
}

/// Returns an address to connect to: the loopback for a listener on all interfaces.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { [0, 0, 0, 0, 0, 0, 0, 1].into() });
    }
    address
}

/// State that all connections share.
struct Shared {
    queue: EngineQueue,
    model: ServedModel,
    /// Required value of `Authorization`, if there is a key.
    authorization: Option<String>,
    limits: Limits,
    /// Open connections.
    connections: AtomicUsize,
    /// Completion responses so far; numbers them.
    responses: AtomicU64,
    /// Text of `/version`.
    version: String,
}

impl Shared {
    fn accept_loop(self: &Arc<Shared>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            if self.queue.is_stopping() {
                return;
            }
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    // Out of file descriptors, or the client has left already; others can still be served.
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            let handler = ConnectionHandler::new(self);
            let full = self.connections.load(Ordering::Relaxed) > self.limits.connections;
            let spawned = std::thread::Builder::new().name("connection".into()).spawn(move || {
                let mut connection = Connection::new(stream);
                if full {
                    let error = ApiError::transport(503, "too many connections");
                    drop(connection.send_json(error.status, &error.json(), Some(1), false));
                } else {
                    handler.shared.handle(&mut connection);
                }
                drop(handler);
            });
            drop(spawned);
        }
    }

    /// Serves the requests of a connection, one after another.
    fn handle(&self, connection: &mut Connection) {
        let limits = ReadLimits {
            max_body_bytes: self.limits.body_bytes,
            idle: IDLE_TIMEOUT,
            request: self.limits.read_timeout,
        };
        loop {
            let request = match connection.read(limits) {
                Ok(request) => request,
                Err(ReadError::Closed) => return,
                Err(ReadError::Invalid(error)) => {
                    if connection.send_json(error.status, &error.json(), None, false).is_ok() {
                        connection.drain();
                    }
                    return;
                }
            };
            let mut keep_alive = request.keep_alive && !self.queue.is_stopping();
            let sent = match self.route(&request, connection) {
                Some(Ok(Reply::Json(body))) => connection.send_json(200, &body, None, keep_alive),
                Some(Ok(Reply::Streamed)) => {
                    // Without chunks, only the end of the connection ends the events.
                    keep_alive &= request.chunked;
                    connection.end_events()
                }
                Some(Err(error)) => connection.send_json(error.status, &error.json(), error.retry_after, keep_alive),
                None => return,
            };
            if sent.is_err() || !keep_alive {
                return;
            }
        }
    }

    /// Routes a request; none if the client disconnected meanwhile.
    fn route(&self, request: &HttpRequest, connection: &mut Connection) -> Option<Result<Reply, ApiError>> {
        let path = request.path.trim_end_matches('/');
        let method = request.method.as_str();
        let allowed = match path {
            "/health" | "/version" | "/v1/models" => "GET",
            "/v1/completions" | "/v1/chat/completions" => "POST",
            _ => return Some(Err(ApiError::unknown_path(method, path))),
        };
        if method != allowed {
            return Some(Err(ApiError::method_not_allowed(method, path, allowed)));
        }
        if path == "/health" {
            return Some(Ok(Reply::Json(json!({"status": "ok"}))));
        }
        if !self.authorizes(request.authorization.as_deref()) {
            return Some(Err(ApiError::unauthorized()));
        }
        match path {
            "/version" => Some(Ok(Reply::Json(json!({"version": self.version})))),
            "/v1/models" => Some(Ok(Reply::Json(self.models()))),
            "/v1/completions" => self.complete(Api::Completions, request, connection),
            _ => self.complete(Api::Chat, request, connection),
        }
    }

    /// True if the header has the key. Takes the same time however much of the key is right.
    fn authorizes(&self, header: Option<&str>) -> bool {
        let Some(required) = &self.authorization else { return true };
        let digest = |text: &str| earnest_digest::sha256(text.as_bytes());
        let (required, given) = (digest(required), digest(header.unwrap_or_default()));
        required.iter().zip(&given).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }

    fn models(&self) -> Value {
        let ServedModel { name, context, .. } = &self.model;
        let model = json!({
            "id": name, "object": "model", "created": 0, "owned_by": "earnest", "root": name, "max_model_len": context
        });
        json!({"object": "list", "data": [model]})
    }

    fn complete(&self, api: Api, http: &HttpRequest, connection: &mut Connection) -> Option<Result<Reply, ApiError>> {
        let request = match self.parse(api, &http.body) {
            Ok(request) => request,
            Err(error) => return Some(Err(error)),
        };
        let number = self.responses.fetch_add(1, Ordering::Relaxed);
        let response = Response { api, number, request: &request, model: &self.model };
        if request.stream {
            return self.stream(response, http.keep_alive, connection);
        }
        let completions = self.generate(&request, connection, |_, _| Ok(()))?;
        Some(completions.map(|completions| Reply::Json(response.json(&completions))))
    }

    /// Sends events as tokens are generated. An error before the first event is answered with its status; a later one becomes
    /// an event.
    fn stream(
        &self,
        response: Response<'_>,
        keep_alive: bool,
        connection: &mut Connection,
    ) -> Option<Result<Reply, ApiError>> {
        let request = response.request;
        let mut stream = EventStream::new(response);
        let mut started = false;
        let completions = self.generate(request, connection, |connection, progress| {
            let event = match progress {
                Progress::Delta(index, delta) => stream.delta(index, delta),
                Progress::Finished(index, completion) => Some(stream.finish(index, completion)),
            };
            let Some(event) = event else { return Ok(()) };
            if !started {
                connection.begin_events(keep_alive && !self.queue.is_stopping())?;
                started = true;
            }
            connection.send_event(&event)
        })?;
        let last = match completions {
            Ok(completions) => stream.end(&completions),
            Err(error) if !started => return Some(Err(error)),
            // Without [DONE], so that clients do not mistake the stream for a complete one.
            Err(error) => vec![error.json().to_string()],
        };
        let sent: io::Result<()> = last.iter().try_for_each(|event| connection.send_event(event));
        sent.ok().map(|()| Ok(Reply::Streamed))
    }

    fn parse(&self, api: Api, body: &[u8]) -> Result<ApiRequest, ApiError> {
        if let Some(name) = request::requested_model(body)?.filter(|name| *name != self.model.name) {
            return Err(ApiError::unknown_model(&name, &self.model.name));
        }
        match api {
            Api::Completions => request::completions(body, &self.model),
            Api::Chat => request::chat(body, &self.model),
        }
    }

    /// Returns all completions, in order, and calls `on_progress` as deltas and completions arrive. None if the client
    /// disconnected; its requests are then cancelled.
    fn generate(
        &self,
        request: &ApiRequest,
        connection: &mut Connection,
        mut on_progress: impl FnMut(&mut Connection, Progress<'_>) -> io::Result<()>,
    ) -> Option<Result<Vec<Completion>, ApiError>> {
        let (sender, updates) = channel();
        let requests = request.requests.iter().cloned().enumerate();
        let submitted: Result<Vec<_>, _> =
            requests.map(|(index, one)| self.queue.submit(one, index, request.stream, &sender)).collect();
        // Only the engine's thread holds senders from here on, so its end disconnects the channel.
        drop(sender);
        let mut in_flight = match submitted {
            Ok(in_flight) => in_flight,
            Err(error) => return Some(Err(error)),
        };
        let mut completions: Vec<Option<Completion>> = in_flight.iter().map(|_| None).collect();
        let mut missing = completions.len();
        while missing > 0 {
            let sent = match updates.recv_timeout(DISCONNECT_POLL) {
                Ok((index, Update::Delta(delta))) => on_progress(connection, Progress::Delta(index, &delta)),
                Ok((index, Update::Finished(outcome))) => {
                    in_flight[index].finish(&outcome);
                    let completion = match outcome {
                        Ok(completion) => *completion,
                        Err(error) => return Some(Err(error)),
                    };
                    missing -= 1;
                    let sent = on_progress(connection, Progress::Finished(index, &completion));
                    completions[index] = Some(completion);
                    sent
                }
                Err(RecvTimeoutError::Timeout) if connection.is_closed() => return None,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Some(Err(ApiError::stopping())),
            };
            sent.ok()?;
        }
        Some(Ok(completions.into_iter().flatten().collect()))
    }
}

/// Progress of the choice with this index.
enum Progress<'a> {
    Delta(usize, &'a Delta),
    Finished(usize, &'a Completion),
}

/// A successful response.
enum Reply {
    /// A JSON body, not sent yet.
    Json(Value),
    /// Events, sent except for their end.
    Streamed,
}

/// Handler of one connection, counted while it exists.
struct ConnectionHandler {
    shared: Arc<Shared>,
}

impl ConnectionHandler {
    fn new(shared: &Arc<Shared>) -> ConnectionHandler {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionHandler { shared: Arc::clone(shared) }
    }
}

impl Drop for ConnectionHandler {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
