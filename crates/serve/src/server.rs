//! The server: binds a port, starts HTTP on a thread of its own, and runs the engine.
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::access::Access;
use super::budget::Budget;
use super::connection::{self, Stage, Terms};
use super::connections::Connections;
use super::error::ApiError;
use super::metrics::Metrics;
use super::queue::EngineQueue;
use super::request::ServedModel;
use super::routes;
use earnest_engine::{Card, Engine, EngineError};
use earnest_models::checkpoint::Checkpoint;

/// Limits on clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest body of a request, in bytes.
    pub body_bytes: usize,
    /// Memory for all requests in flight and their answers, in bytes. Requests wait for it for a few seconds.
    pub request_memory: usize,
    /// Largest number of open connections.
    pub connections: usize,
    /// Largest number of open connections from one address.
    pub connections_per_peer: usize,
    /// Largest number of completions in flight.
    pub in_flight: usize,
    /// Timeout of a request's head, also while a connection is idle, and of its body.
    pub read_timeout: Duration,
    /// Time for requests in flight once the server is told to stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 8 << 20,
            request_memory: 1 << 30,
            // Fewer than the 1,024 files that most systems let a process open.
            connections: 768,
            connections_per_peer: 512,
            in_flight: 4096,
            read_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(5),
        }
    }
}

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The model's name for clients.
    pub name: String,
    /// Key that clients must send; required for other addresses than the loopback.
    pub key: Option<String>,
    /// Names in `Host` and `Origin` that are accepted beside those of the loopback, without ports.
    pub allowed_hosts: Vec<String>,
    /// Limits on clients.
    pub limits: Limits,
}

/// Reasons why a server cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Host and port.
        address: String,
        /// Reason.
        source: io::Error,
    },
    /// Other machines could use the server, and no key is set.
    #[error("other machines can reach {0}, so clients must send a key, and none is set")]
    KeyRequired(SocketAddr),
    /// The thread or the sockets for HTTP cannot be set up.
    #[error("cannot start the HTTP server: {0}")]
    Http(#[source] io::Error),
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

    /// Checks that a key is set if other machines can reach the server. [`Server::run`] does so too; this is for callers that load a model between.
    ///
    /// # Errors
    /// [`ServeError::KeyRequired`].
    pub fn check_key(&self, key: Option<&str>) -> Result<(), ServeError> {
        if key.is_none() && !self.address.ip().to_canonical().is_loopback() {
            return Err(ServeError::KeyRequired(self.address));
        }
        Ok(())
    }

    /// Answers with `engine`, on this thread, until `stop` is set.
    ///
    /// # Errors
    /// [`ServeError::KeyRequired`], [`ServeError::Http`] and [`ServeError::Engine`].
    pub fn run(
        self,
        engine: &mut dyn Engine,
        checkpoint: Checkpoint,
        settings: &Settings,
        stop: &Arc<AtomicBool>,
    ) -> Result<ServeSummary, ServeError> {
        self.check_key(settings.key.as_deref())?;
        let limits = settings.limits.clone();
        let (queue, engine_loop) = EngineQueue::new(limits.in_flight, Arc::clone(stop));
        let card = engine.card();
        let shared = Arc::new(Shared {
            queue,
            model: Arc::new(ServedModel { checkpoint, name: settings.name.clone(), context: card.context }),
            access: Access::new(self.address, settings.key.as_deref(), &settings.allowed_hosts),
            budget: Budget::new(limits.request_memory),
            connections: Arc::new(Connections::new(limits.connections, limits.connections_per_peer)),
            metrics: Metrics::default(),
            responses: AtomicU64::new(0),
            version: version(&card),
            limits,
        });
        let (stage, watched) = watch::channel(Stage::Serving);
        let runtime = runtime().map_err(ServeError::Http)?;
        let listener = async_listener(self.listener, &runtime).map_err(ServeError::Http)?;
        let http = {
            let shared = Arc::clone(&shared);
            let serve = move || {
                let full = ApiError::transport(503, "too many connections are waiting for answers").json();
                let terms = Terms {
                    connections: Arc::clone(&shared.connections),
                    read_timeout: shared.limits.read_timeout,
                    refusal: connection::unavailable("application/json", &full.to_string()).into(),
                };
                let router = routes::router(shared);
                runtime.block_on(connection::serve(listener, router, terms, watched));
                // A prompt that is being tokenised need not be waited for.
                runtime.shutdown_background();
            };
            std::thread::Builder::new().name("http".into()).spawn(serve).map_err(ServeError::Http)?
        };
        let outcome = engine_loop.run(engine, shared.limits.grace, || {
            stage.send_replace(Stage::Draining);
        });
        // Also after a failure: who still asks gets 503.
        stop.store(true, Ordering::Relaxed);
        stage.send_replace(Stage::Stopped);
        drop(http.join());
        outcome?;
        Ok(ServeSummary { completions: shared.queue.completed.load(Ordering::Relaxed) })
    }
}

/// Returns a runtime of one thread for all connections, and a few for work that takes long.
fn runtime() -> io::Result<Runtime> {
    const MOST_WORKERS: usize = 4;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    // Few, because a long text takes much memory while it is tokenised.
    let workers = cores.min(MOST_WORKERS);
    crate::threads::runtime(workers)
}

fn async_listener(listener: TcpListener, runtime: &Runtime) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    let _context = runtime.enter();
    tokio::net::TcpListener::from_std(listener)
}

/// Returns the text of `/version`: this program's version, and the engine's if it differs.
fn version(card: &Card) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let Card { engine, version, .. } = card;
    if version == own { format!("{own} ({engine})") } else { format!("{own} ({engine} {version})") }
}

/// State that all requests share.
pub(crate) struct Shared {
    pub queue: Arc<EngineQueue>,
    pub model: Arc<ServedModel>,
    pub access: Access,
    pub budget: Budget,
    pub connections: Arc<Connections>,
    pub metrics: Metrics,
    pub limits: Limits,
    /// Completion responses so far; numbers them.
    pub responses: AtomicU64,
    /// Text of `/version`.
    pub version: String,
}
