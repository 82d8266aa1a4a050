//! `earnest view`: pages on the runs of a results folder, in a browser on this machine.
//!
//! Read-only and on the loopback; every address begins with a token, which [`Viewer::address`] has. Connections are those of
//! `earnest serve`: bounded in number and time. Pages are made on the server from
//! templates (`templates/`); the script adds keys, copying and what changes while a run works. A request opens the results file, so that pages are as
//! new as the file, and reads at most a page of samples; only comparisons read whole runs.
//!
//! `app` (routes, token, errors), `work` (threads, and their end when a client leaves), `limits` (what a page shows at most), `pages` (one
//! module a page), `text` (thinking, marked readings, differences of two texts), `shape` (numbers
//! and bars for templates).

mod app;
mod failed;
mod limits;
mod pages;
mod routes;
mod shape;
mod text;
mod work;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use earnest_results::ResultsError;
use earnest_results::outcomes::results_of;
use earnest_results::store::Store;
use earnest_serve::http::{Connections, Stage, Terms, runtime, serve, unavailable};
use tokio::sync::watch;

/// Most open connections: a browser opens six, and a page waits for no other.
const CONNECTIONS: usize = 64;

/// Timeout of a request's head, also while a connection is idle.
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Reasons why a viewer cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The port cannot be bound.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        port: u16,
        /// Reason.
        source: io::Error,
    },
    /// The threads or sockets for HTTP cannot be set up, or failed.
    #[error("cannot serve pages: {0}")]
    Http(#[source] io::Error),
    /// The results cannot be opened.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// A viewer that is bound to its port; [`Viewer::run`] starts answering.
#[derive(Debug)]
pub struct Viewer {
    listener: TcpListener,
    /// The folder as the user named it.
    named: PathBuf,
    /// That folder, or the results that were made of its outcome files.
    results: PathBuf,
    token: String,
}

impl Viewer {
    /// Binds a port of the loopback for a results folder or one of outcome files; 0 takes a free port.
    ///
    /// # Errors
    /// [`ViewError::Results`] if there are no results, [`ViewError::Listen`].
    pub fn bind(folder: &Path, port: u16) -> Result<Viewer, ViewError> {
        let results = results_of(folder)?.into_owned();
        Store::open(&results).map_err(ResultsError::from)?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|source| ViewError::Listen { port, source })?;
        let token = format!("{:032x}", rand::random::<u128>());
        Ok(Viewer { listener, named: folder.to_owned(), results, token })
    }

    /// Returns the address of the first page; its token is the permission to see the others.
    ///
    /// # Errors
    /// [`ViewError::Http`].
    pub fn address(&self) -> Result<String, ViewError> {
        Ok(format!("http://{}/{}/", self.socket()?, self.token))
    }

    /// Returns the address of a run's page, for its full name.
    ///
    /// # Errors
    /// [`ViewError::Http`].
    pub fn address_of(&self, run: &str) -> Result<String, ViewError> {
        Ok(format!("{}run/{}", self.address()?, shape::path_segment(run)))
    }

    fn socket(&self) -> Result<SocketAddr, ViewError> {
        self.listener.local_addr().map_err(ViewError::Http)
    }

    /// Answers on this thread until `stop` is set.
    ///
    /// # Errors
    /// [`ViewError::Http`].
    pub fn run(self, stop: &Arc<AtomicBool>) -> Result<(), ViewError> {
        let stop = Arc::clone(stop);
        let connections = Arc::new(Connections::new(CONNECTIONS, CONNECTIONS));
        let router = routes::router(self.named, self.results, &self.token, Arc::clone(&connections));
        let full =
            unavailable("text/plain; charset=utf-8", "Too many connections wait for pages. Reload in a moment.\n");
        let terms = Terms { connections, read_timeout: READ_TIMEOUT, refusal: full.into() };
        let answer = async move {
            self.listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let (_stage, watched) = watch::channel(Stage::Serving);
            let stopped = async move {
                while !stop.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            // Open pages keep connections open; what they wait for need not be finished.
            tokio::select! {
                () = serve(listener, router, terms, watched) => {}
                () = stopped => {}
            }
            Ok(())
        };
        let runtime = runtime(work::THREADS).map_err(ViewError::Http)?;
        let outcome: io::Result<()> = runtime.block_on(answer);
        runtime.shutdown_background();
        outcome.map_err(ViewError::Http)
    }
}
