//! Accepting of connections, and serving of one.
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::connections::{Connections, Place};
use super::timed_stream::TimedStream;

/// Largest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 64;
/// Timeout of a write to a client that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Stages of a server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Stage {
    /// Requests are answered.
    Serving,
    /// New requests are refused; those in flight are finished.
    Draining,
    /// The engine has stopped.
    Stopped,
}

/// What all connections of a server share.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Table of the open connections.
    pub connections: Arc<Connections>,
    /// Timeout of a request's head, also while a connection is idle.
    pub read_timeout: Duration,
    /// Answer to a connection for which there is no place, and from which nothing is read: [`unavailable`].
    pub refusal: Arc<str>,
}

/// Accepts and serves connections until the server drains; then waits for those that are open until a second after it has stopped.
pub async fn serve(listener: TcpListener, router: Router, terms: Terms, stage: watch::Receiver<Stage>) {
    let mut stopping = stage.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => start(stream, peer, &router, &terms, &stage),
                // The client has left already.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of file descriptors: there are more connections than the system lets this process have.
                    terms.connections.evict_any();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
            () = reached(&mut stopping, Stage::Draining) => break,
        }
    }
    drop(listener);
    reached(&mut stopping, Stage::Stopped).await;
    for _ in 0..100 {
        if terms.connections.open() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn start(stream: TcpStream, peer: SocketAddr, router: &Router, terms: &Terms, stage: &watch::Receiver<Stage>) {
    let Some(place) = terms.connections.admit(peer.ip()) else {
        // A client that does not get it learns that from the closed connection.
        let _ = stream.try_write(terms.refusal.as_bytes());
        return;
    };
    let place = Arc::new(place);
    let connection = serve_one(stream, router.clone(), Arc::clone(&place), terms.read_timeout, stage.clone());
    place.set_task(tokio::spawn(connection).abort_handle());
}

/// Returns an answer of status 503 as it is sent, which asks to come back in a second.
pub fn unavailable(content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Waits until the server has reached a stage.
async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    // The sender outlives all connections, and sets the last stage before it goes.
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}

/// Serves the requests of a connection, one after another.
async fn serve_one(
    stream: TcpStream,
    router: Router,
    place: Arc<Place>,
    read_timeout: Duration,
    mut stage: watch::Receiver<Stage>,
) {
    // Events are small, and clients wait for each. Without it they only come later.
    let _ = stream.set_nodelay(true);
    let service = WithPlace { router: TowerToHyperService::new(router), place };
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also the longest pause between two requests.
        .header_read_timeout(read_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(TimedStream::new(stream, WRITE_TIMEOUT)), service);
    let served = tokio::select! {
        served = std::future::poll_fn(|context| connection.poll_without_shutdown(context)) => served,
        () = reached(&mut stage, Stage::Draining) => {
            Pin::new(&mut connection).graceful_shutdown();
            std::future::poll_fn(|context| connection.poll_without_shutdown(context)).await
        }
    };
    // A client that has left or was silent for too long gets no more answers.
    let answered = served.as_ref().err().is_none_or(hyper::Error::is_parse);
    let stream = connection.into_parts().io.into_inner().into_inner();
    if answered {
        drain(stream).await;
    }
}

/// Reads and discards what the client is still sending: closing with unread data would reset the connection, and the client might lose the
/// response.
async fn drain(mut stream: TcpStream) {
    const MAX_BYTES: usize = 16 << 20;
    if stream.shutdown().await.is_err() {
        return;
    }
    let discard = async {
        let (mut part, mut discarded) = (vec![0; 16 << 10], 0);
        while discarded < MAX_BYTES {
            match stream.read(&mut part).await {
                Ok(count) if count > 0 => discarded += count,
                _ => return,
            }
        }
    };
    // Whoever sends for longer loses the response.
    let _ = tokio::time::timeout(Duration::from_secs(2), discard).await;
}

/// A router whose requests know their connection.
struct WithPlace {
    router: TowerToHyperService<Router>,
    place: Arc<Place>,
}

impl Service<Request<Incoming>> for WithPlace {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.place.receives();
        request.extensions_mut().insert(Arc::clone(&self.place));
        Box::pin(self.router.call(request))
    }
}
