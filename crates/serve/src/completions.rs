//! Answers of `/v1/completions` and `/v1/chat/completions`, whole or as events.
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response as HttpResponse;
use hyper::body::Frame;
use tokio::sync::mpsc;

use super::body::{self, ReceivedBody};
use super::budget::{self, Budget, Grant};
use super::connections::Place;
use super::error::ApiError;
use super::queue::{InFlight, Update};
use super::request;
use super::response::{EventStream, Response};
use super::server::Shared;
use earnest_engine::Completion;
use earnest_engine::endpoint::Api;

/// Events that wait for a client that reads slowly.
const EVENTS_AHEAD: usize = 64;

/// Bytes of log-probabilities and of an answer that need no grant, as for small bodies.
const FREE_BYTES: usize = 64 << 10;

/// Answers a request for completions.
pub(crate) async fn complete(shared: Arc<Shared>, api: Api, http: Request) -> Result<HttpResponse, ApiError> {
    let (head, received) = http.into_parts();
    let length = body::check_head(&head, shared.limits.body_bytes)?;
    if shared.queue.is_stopping() {
        return Err(ApiError::stopping());
    }
    let place: Option<Arc<Place>> = head.extensions.get().cloned();
    let ReceivedBody { bytes, grant } =
        body::receive(received, length, &shared.budget, shared.limits.read_timeout).await?;
    let mut hold = Hold::new(place, grant);

    let model = Arc::clone(&shared.model);
    let (request, response_bytes) = compute(move || {
        let request = match api {
            Api::Completions => request::completions(&bytes, &model),
            Api::Chat => request::chat(&bytes, &model),
        }?;
        // Events are sent as they arise, and take no memory together.
        let most = if request.stream { 0 } else { request.response_bytes(&model, |_| request.max_tokens()) };
        Ok((request, most))
    })
    .await??;
    // Known beforehand, not after all has been generated.
    shared.budget.check(response_bytes)?;
    hold.take(&shared.budget, request.generation_bytes(), budget::AT_FIRST).await?;

    let in_flight = shared.queue.submit(&request.choices, request.stream)?;
    let completions = std::iter::repeat_with(|| None).take(request.choices.len()).collect();
    let generation = Generation { in_flight, missing: request.choices.len(), completions };
    let number = shared.responses.fetch_add(1, Ordering::Relaxed);
    let request = Arc::new(request);
    let response = Response { api, number, request: Arc::clone(&request), model: Arc::clone(&shared.model) };
    if request.stream {
        events(generation, response, hold).await
    } else {
        whole(generation, response, &shared.budget, hold).await
    }
}

/// Runs work that takes long, away from the thread that serves all connections.
async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ApiError::internal("the request could not be processed: please report this"))
}

/// Choices in flight and those that have finished.
struct Generation {
    in_flight: InFlight,
    missing: usize,
    completions: Vec<Option<Completion>>,
}

impl Generation {
    /// Waits for the next update, which is kept if it is a completion; none after the last one.
    async fn next(&mut self) -> Result<Option<(usize, Progress)>, ApiError> {
        if self.missing == 0 {
            return Ok(None);
        }
        let (index, update) = self.in_flight.next().await?;
        Ok(Some(match update {
            Update::Delta(delta) => (index, Progress::Delta(delta)),
            Update::Finished(outcome) => {
                self.completions[index] = Some(*outcome?);
                self.missing -= 1;
                (index, Progress::Finished)
            }
        }))
    }

    fn into_completions(self) -> Vec<Completion> {
        self.completions.into_iter().flatten().collect()
    }
}

/// Progress of a choice.
enum Progress {
    Delta(super::queue::Delta),
    Finished,
}

/// Answers with all choices at once. If the client disconnects, hyper drops this, and with it what is in flight.
async fn whole(
    mut generation: Generation,
    response: Response,
    budget: &Budget,
    mut hold: Hold,
) -> Result<HttpResponse, ApiError> {
    while generation.next().await?.is_some() {}
    let completions = generation.into_completions();
    let tokens = |index: usize| completions.get(index).map_or(0, |completion: &Completion| completion.ids.len());
    let bytes = response.request.response_bytes(&response.model, tokens);
    hold.take(budget, bytes, budget::AT_LAST).await?;
    let text = compute(move || response.json(&completions).to_string()).await?;
    let mut http = HttpResponse::new(Body::new(HeldBody { content: Content::Whole(Some(text.into())), _hold: hold }));
    http.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(http)
}

/// Answers with events as tokens are generated. An error before the first event is answered with its status; a later one becomes an event.
async fn events(mut generation: Generation, response: Response, hold: Hold) -> Result<HttpResponse, ApiError> {
    let mut stream = EventStream::new(response);
    let first = next_event(&mut generation, &mut stream).await?;
    let (sender, receiver) = mpsc::channel(EVENTS_AHEAD);
    tokio::spawn(async move {
        let mut event = first;
        while let Some(data) = event {
            if sender.send(framed(&data)).await.is_err() {
                return;
            }
            let next = tokio::select! {
                next = next_event(&mut generation, &mut stream) => next,
                () = sender.closed() => return,
            };
            event = match next {
                Ok(next) => next,
                Err(error) => {
                    // Without [DONE], so that clients do not mistake the stream for a complete one.
                    drop(sender.send(framed(&error.json().to_string())).await);
                    return;
                }
            };
        }
        for data in stream.end(&generation.into_completions()) {
            if sender.send(framed(&data)).await.is_err() {
                return;
            }
        }
    });
    let mut http = HttpResponse::new(Body::new(HeldBody { content: Content::Events(receiver), _hold: hold }));
    http.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    http.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(http)
}

/// Waits for the next event; none after the last choice has finished.
async fn next_event(generation: &mut Generation, stream: &mut EventStream) -> Result<Option<String>, ApiError> {
    while let Some((index, progress)) = generation.next().await? {
        let event = match (progress, &generation.completions[index]) {
            (Progress::Delta(delta), _) => stream.delta(index, &delta),
            (Progress::Finished, Some(completion)) => Some(stream.finish(index, completion)),
            (Progress::Finished, None) => None,
        };
        if event.is_some() {
            return Ok(event);
        }
    }
    Ok(None)
}

fn framed(data: &str) -> Bytes {
    format!("data: {data}\n\n").into()
}

/// Resources of a request until its answer is sent: memory, and a connection that is not closed for others.
struct Hold {
    place: Option<Arc<Place>>,
    grants: Vec<Grant>,
}

impl Hold {
    fn new(place: Option<Arc<Place>>, grant: Option<Grant>) -> Hold {
        if let Some(place) = &place {
            place.answers();
        }
        Hold { place, grants: grant.into_iter().collect() }
    }

    /// Takes memory, if it is more than a little.
    async fn take(&mut self, budget: &Budget, bytes: usize, patience: Duration) -> Result<(), ApiError> {
        if bytes > FREE_BYTES {
            self.grants.push(budget.take(bytes, patience).await?);
        }
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            place.receives();
        }
    }
}

/// A body that holds something until it is sent.
struct HeldBody {
    content: Content,
    _hold: Hold,
}

enum Content {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Bytes>),
}

impl hyper::body::Body for HeldBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let data = match &mut self.content {
            Content::Whole(text) => Poll::Ready(text.take()),
            Content::Events(events) => events.poll_recv(context),
        };
        data.map(|data| data.map(|data| Ok(Frame::data(data))))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match &self.content {
            Content::Whole(text) => {
                hyper::body::SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Content::Events(_) => hyper::body::SizeHint::default(),
        }
    }
}
