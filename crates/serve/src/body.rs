//! Reading of request bodies.
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::request::Parts;

use super::budget::{self, Budget, Grant};
use super::error::ApiError;

/// Bytes of a body that need no grant: connections are few, so these are bounded already, and large bodies cannot hold up small ones.
const FREE_BYTES: usize = 16 << 10;

/// Bytes held for a byte of a body: the body itself, then its text, then its token ids, here and in the engine.
const BYTES_PER_BYTE: usize = 8;

pub(crate) struct ReceivedBody {
    pub bytes: Vec<u8>,
    /// Memory for it and for what is made of it.
    pub grant: Option<Grant>,
}

/// Checks what a head says about its body, and returns the body's length.
///
/// # Errors
/// 415 for other types than JSON: a page in a browser may send those to any server without asking it first. 411 and 413.
pub(crate) fn check_head(head: &Parts, limit: usize) -> Result<usize, ApiError> {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let given = if kind.is_empty() { "missing".to_owned() } else { format!("{kind:?}") };
        let message = format!("the Content-Type is {given}: send the body as `Content-Type: application/json`");
        return Err(ApiError::transport(415, message));
    }
    if head.headers.contains_key(TRANSFER_ENCODING) {
        return Err(ApiError::transport(411, "chunked request bodies are not supported: send a Content-Length"));
    }
    let length = match head.headers.get(CONTENT_LENGTH) {
        Some(value) => value.to_str().ok().and_then(|text| text.parse().ok()),
        None => Some(0),
    };
    let length = length.ok_or_else(|| ApiError::transport(400, "Content-Length is not a number"))?;
    if length > limit {
        return Err(ApiError::transport(413, format!("the body has {length} bytes; the limit is {limit}")));
    }
    Ok(length)
}

/// Reads a body of `length` bytes. Memory for what exceeds a little is taken from the budget once that little has arrived.
///
/// # Errors
/// 408 if it takes longer than `timeout`, and the budget's.
pub(crate) async fn receive(
    mut body: Body,
    length: usize,
    budget: &Budget,
    timeout: Duration,
) -> Result<ReceivedBody, ApiError> {
    let mut received = ReceivedBody { bytes: Vec::with_capacity(length.min(FREE_BYTES)), grant: None };
    let deadline = tokio::time::Instant::now() + timeout;
    let late = |_| ApiError::transport(408, "timed out while reading the request");
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Some(frame) = tokio::time::timeout_at(deadline, frame).await.map_err(late)? else { break };
        let frame = frame.map_err(|error| ApiError::transport(400, format!("the body could not be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if received.grant.is_none() && received.bytes.len() + data.len() > FREE_BYTES {
            let wanted = length.saturating_sub(FREE_BYTES).saturating_mul(BYTES_PER_BYTE);
            received.grant = Some(budget.take(wanted, budget::AT_FIRST).await?);
            received.bytes.reserve_exact(length.saturating_sub(received.bytes.len()));
        }
        received.bytes.extend_from_slice(&data);
    }
    Ok(received)
}
