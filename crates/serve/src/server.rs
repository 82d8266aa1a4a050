//! Listens, and knows the paths.
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ask::{self, Asked};
use super::desk::{Desk, Part, Said};
use super::http::{Connection, Incoming, NoRequest, Reading};
use super::problem::Problem;
use super::reply::{Answer, Stream};
use earnest_engine::endpoint::Api;
use earnest_engine::{Card, Completion, Engine, EngineError};
use earnest_models::checkpoint::Checkpoint;

/// How long a connection waits for the engine before it looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(200);

/// What a server lets its clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a request's body.
    pub body: usize,
    /// Most connections at once.
    pub connections: usize,
    /// Most completions asked for and not answered.
    pub waiting: usize,
    /// Longest time from a request's first byte to its last.
    pub arrival: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { body: 8 << 20, connections: 512, waiting: 4096, arrival: Duration::from_secs(30) }
    }
}

/// Why a server can not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error("the engine failed: {0}")]
    Engine(#[from] EngineError),
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    /// Where it listens; the port is known here if 0 was asked for.
    pub address: SocketAddr,
}

/// What a server did until it was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    pub completions: u64,
}

/// Takes a port.
pub fn bind(host: &str, port: u16) -> Result<Bound, ServeError> {
    let failed = |source| ServeError::Listen { address: format!("{host}:{port}"), source };
    let listener = TcpListener::bind((host, port)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Bound { listener, address })
}

/// What all connections share.
struct House {
    desk: Desk,
    served: ask::Served,
    /// The value of `Authorization` that is wanted, if one is.
    authorization: Option<String>,
    limits: Limits,
    connections: AtomicUsize,
    number: AtomicU64,
    version: String,
}

impl Bound {
    /// Answers with `engine`, on this thread, until `stop` is set. `name` is the model's; `key`, if given, is asked of clients.
    pub fn run(
        self,
        engine: &mut dyn Engine,
        checkpoint: Checkpoint,
        name: &str,
        key: Option<&str>,
        limits: Limits,
        stop: &Arc<AtomicBool>,
    ) -> Result<Served, ServeError> {
        let (desk, calls) = Desk::new(limits.waiting, Arc::clone(stop));
        let card = engine.card();
        let house = Arc::new(House {
            desk,
            served: ask::Served { checkpoint, name: name.to_owned(), context: card.context },
            authorization: key.map(|key| format!("Bearer {key}")),
            limits,
            connections: AtomicUsize::new(0),
            number: AtomicU64::new(0),
            version: version(&card),
        });
        let address = self.address;
        let doorman = {
            let house = Arc::clone(&house);
            std::thread::spawn(move || house.welcome(&self.listener))
        };
        let outcome = calls.work(engine, &house.desk);
        stop.store(true, Ordering::Relaxed);
        // The thread that accepts notices when somebody comes.
        if TcpStream::connect_timeout(&reachable(address), Duration::from_secs(1)).is_ok() {
            drop(doorman.join());
        }
        // Those who wait hear that it is over.
        let until = Instant::now() + Duration::from_secs(1);
        while house.desk.busy() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        outcome?;
        Ok(Served { completions: house.desk.served.load(Ordering::Relaxed) })
    }
}

/// What `/version` says: this program's version, and the engine's where it is another program's.
fn version(card: &Card) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let Card { engine, version, .. } = card;
    if version == own { format!("{own} ({engine})") } else { format!("{own} ({engine} {version})") }
}

/// An address that listens on all interfaces is reached through the loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { [0, 0, 0, 0, 0, 0, 0, 1].into() });
    }
    address
}

impl House {
    fn welcome(self: &Arc<House>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            if self.desk.is_stopping() {
                return;
            }
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    // Out of file descriptors, or a client that left at once: others may still be served.
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            let guest = Guest::of(self);
            let full = self.connections.load(Ordering::Relaxed) > self.limits.connections;
            let spawned = std::thread::Builder::new().name("connection".into()).spawn(move || {
                let mut connection = Connection::new(stream);
                if full {
                    let problem = Problem::transport(503, "too many connections");
                    drop(connection.json(problem.status, &problem.json(), Some(1), false));
                } else {
                    guest.house.entertain(&mut connection);
                }
                drop(guest);
            });
            drop(spawned);
        }
    }

    /// A connection, from its first request to its last.
    fn entertain(&self, connection: &mut Connection) {
        let reading =
            Reading { longest_body: self.limits.body, idle: Duration::from_secs(60), whole: self.limits.arrival };
        loop {
            let incoming = match connection.read(reading) {
                Ok(incoming) => incoming,
                Err(NoRequest::Closed) => return,
                Err(NoRequest::Problem(problem)) => {
                    if connection.json(problem.status, &problem.json(), None, false).is_ok() {
                        connection.drain();
                    }
                    return;
                }
            };
            let keep = incoming.keep && !self.desk.is_stopping();
            let sent = match self.answer(&incoming, connection) {
                Some(Ok(Reply::Json(body))) => connection.json(200, &body, None, keep),
                Some(Ok(Reply::Streamed)) => connection.end_events(),
                Some(Err(problem)) => connection.json(problem.status, &problem.json(), problem.retry_after, keep),
                None => return,
            };
            if sent.is_err() || !keep {
                return;
            }
        }
    }

    /// None if the client left.
    fn answer(&self, incoming: &Incoming, connection: &mut Connection) -> Option<Result<Reply, Problem>> {
        let path = incoming.path.trim_end_matches('/');
        let method = incoming.method.as_str();
        let wanted = match path {
            "/health" | "/version" | "/v1/models" => "GET",
            "/v1/completions" | "/v1/chat/completions" => "POST",
            _ => return Some(Err(Problem::no_path(method, path))),
        };
        if method != wanted {
            return Some(Err(Problem::method(method, path)));
        }
        if path == "/health" {
            return Some(Ok(Reply::Json(json!({"status": "ok"}))));
        }
        if !self.admits(incoming.authorization.as_deref()) {
            return Some(Err(Problem::unauthorised()));
        }
        match path {
            "/version" => Some(Ok(Reply::Json(json!({"version": self.version})))),
            "/v1/models" => Some(Ok(Reply::Json(self.models()))),
            "/v1/completions" => self.complete(Api::Completions, incoming, connection),
            _ => self.complete(Api::Chat, incoming, connection),
        }
    }

    /// Compares in a time that does not depend on how much of the key is right.
    fn admits(&self, given: Option<&str>) -> bool {
        let Some(wanted) = &self.authorization else { return true };
        let given = given.unwrap_or_default();
        let (wanted, given) = (earnest_digest::sha256(wanted.as_bytes()), earnest_digest::sha256(given.as_bytes()));
        wanted.iter().zip(&given).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }

    fn models(&self) -> Value {
        let ask::Served { name, context, .. } = &self.served;
        let model = json!({
            "id": name, "object": "model", "created": 0, "owned_by": "earnest", "root": name, "max_model_len": context
        });
        json!({"object": "list", "data": [model]})
    }

    fn complete(&self, api: Api, incoming: &Incoming, connection: &mut Connection) -> Option<Result<Reply, Problem>> {
        let asked = match self.read(api, &incoming.body) {
            Ok(asked) => asked,
            Err(problem) => return Some(Err(problem)),
        };
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let answer = Answer { api, number, asked: &asked, served: &self.served };
        if asked.stream {
            return self.stream(answer, incoming.keep, connection);
        }
        let heard = self.generate(&asked, connection, |_, _| Ok(()))?;
        Some(heard.map(|completions| Reply::Json(answer.json(&completions))))
    }

    /// Sends events as tokens come. What goes wrong before the first is answered with its status; later, as an event.
    fn stream(&self, answer: Answer<'_>, keep: bool, connection: &mut Connection) -> Option<Result<Reply, Problem>> {
        let asked = answer.asked;
        let mut stream = Stream::new(answer);
        let mut begun = false;
        let heard = self.generate(asked, connection, |connection, news| {
            let event = match news {
                News::Part(place, part) => stream.part(place, part),
                News::End(place, completion) => Some(stream.end(place, completion)),
            };
            let Some(event) = event else { return Ok(()) };
            if !begun {
                connection.begin_events(keep && !self.desk.is_stopping())?;
                begun = true;
            }
            connection.event(&event)
        })?;
        let last = match heard {
            Ok(completions) => stream.close(&completions),
            Err(problem) if !begun => return Some(Err(problem)),
            // Without [DONE]: clients must not take it for whole.
            Err(problem) => vec![problem.json().to_string()],
        };
        let sent: std::io::Result<()> = last.iter().try_for_each(|event| connection.event(event));
        sent.ok().map(|()| Ok(Reply::Streamed))
    }

    fn read(&self, api: Api, body: &[u8]) -> Result<Asked, Problem> {
        if let Some(model) = ask::model(body)?.filter(|model| *model != self.served.name) {
            return Err(Problem::no_model(&model, &self.served.name));
        }
        match api {
            Api::Completions => ask::completions(body, &self.served),
            Api::Chat => ask::chat(body, &self.served),
        }
    }

    /// All completions, in order; `hear` is told of parts and ends as they come. None if the client left, whose requests are then
    /// taken back.
    fn generate(
        &self,
        asked: &Asked,
        connection: &mut Connection,
        mut hear: impl FnMut(&mut Connection, News<'_>) -> io::Result<()>,
    ) -> Option<Result<Vec<Completion>, Problem>> {
        let (sender, said) = channel();
        let requests = asked.requests.iter().cloned().enumerate();
        let held: Result<Vec<_>, _> =
            requests.map(|(place, request)| self.desk.ask(request, place, asked.stream, &sender)).collect();
        // From now on the engine's thread alone can speak; if it ends, that is heard.
        drop(sender);
        let mut held = match held {
            Ok(held) => held,
            Err(problem) => return Some(Err(problem)),
        };
        let mut completions: Vec<Option<Completion>> = held.iter().map(|_| None).collect();
        let mut missing = completions.len();
        while missing > 0 {
            let told = match said.recv_timeout(LOOK) {
                Ok((place, Said::Part(part))) => hear(connection, News::Part(place, &part)),
                Ok((place, Said::Whole(outcome))) => {
                    held[place].done(&outcome);
                    let completion = match outcome {
                        Ok(completion) => *completion,
                        Err(problem) => return Some(Err(problem)),
                    };
                    missing -= 1;
                    let told = hear(connection, News::End(place, &completion));
                    completions[place] = Some(completion);
                    told
                }
                Err(RecvTimeoutError::Timeout) if connection.is_gone() => return None,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Some(Err(Problem::stopping())),
            };
            told.ok()?;
        }
        Some(Ok(completions.into_iter().flatten().collect()))
    }
}

/// What a connection hears while it waits.
enum News<'a> {
    Part(usize, &'a Part),
    End(usize, &'a Completion),
}

/// What went or goes back.
enum Reply {
    Json(Value),
    /// Events were sent, all but their end.
    Streamed,
}

/// A connection that is counted while it lives.
struct Guest {
    house: Arc<House>,
}

impl Guest {
    fn of(house: &Arc<House>) -> Guest {
        house.connections.fetch_add(1, Ordering::Relaxed);
        Guest { house: Arc::clone(house) }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.house.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
