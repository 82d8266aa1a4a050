//! Error responses in OpenAI's schema.
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error with its HTTP status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub status: u16,
    pub message: String,
    /// OpenAI's `type`.
    kind: &'static str,
    /// OpenAI's `code`.
    code: Option<&'static str>,
    /// OpenAI's `param`: the invalid field.
    param: Option<&'static str>,
    /// Value of the `Retry-After` header, in seconds.
    retry_after: Option<u32>,
    /// Value of the `Allow` header.
    allow: Option<&'static str>,
}

impl ApiError {
    fn new(status: u16, kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, message: message.into(), kind, code: None, param: None, retry_after: None, allow: None }
    }

    /// An invalid request.
    pub fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(400, "invalid_request_error", message)
    }

    /// An invalid field of the body.
    pub fn field(param: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { param: Some(param), ..ApiError::invalid(format!("{param}: {}", message.into())) }
    }

    pub fn unauthorized() -> ApiError {
        let message = "the API key is missing or wrong: send it as `Authorization: Bearer KEY`";
        ApiError { code: Some("invalid_api_key"), ..ApiError::new(401, "authentication_error", message) }
    }

    pub fn unknown_path(method: &str, path: &str) -> ApiError {
        ApiError::new(404, "invalid_request_error", format!("unknown path: {method} {path}"))
    }

    pub fn unknown_model(requested: &str, served: &str) -> ApiError {
        let message = format!("the model {requested} is not served here; {served} is");
        ApiError {
            code: Some("model_not_found"),
            param: Some("model"),
            ..ApiError::new(404, "invalid_request_error", message)
        }
    }

    pub fn method_not_allowed(method: &str, path: &str, allowed: &'static str) -> ApiError {
        let message = format!("{path} does not accept {method}: use {allowed}");
        ApiError { allow: Some(allowed), ..ApiError::new(405, "invalid_request_error", message) }
    }

    /// A request that is refused for its head or exceeds a limit.
    pub fn transport(status: u16, message: impl Into<String>) -> ApiError {
        ApiError::new(status, "invalid_request_error", message)
    }

    /// A request that would fit later: the memory for requests is taken by others.
    pub fn out_of_memory(bytes: usize) -> ApiError {
        let message =
            format!("the requests in flight leave no room for {bytes} more bytes: send fewer at once, or try again");
        ApiError {
            retry_after: Some(1),
            code: Some("rate_limit_exceeded"),
            ..ApiError::new(429, "rate_limit_error", message)
        }
    }

    pub fn busy(in_flight: usize) -> ApiError {
        let message = format!("too many requests: {in_flight} completions are already in flight");
        ApiError {
            retry_after: Some(1),
            code: Some("rate_limit_exceeded"),
            ..ApiError::new(429, "rate_limit_error", message)
        }
    }

    /// A failure of the engine. Clients retry after any 5xx, so one that is not `retryable` is 422.
    pub fn engine(message: impl Into<String>, retryable: bool) -> ApiError {
        ApiError::new(if retryable { 500 } else { 422 }, "server_error", message)
    }

    pub fn stopping() -> ApiError {
        ApiError::new(503, "server_error", "the server is shutting down")
    }

    /// A defect of this program, for instance a tokenizer that panics.
    pub fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(500, "server_error", message)
    }

    /// The body in OpenAI's schema.
    pub fn json(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(method) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(method));
        }
        if self.status == 401 {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        (status, headers, self.json().to_string()).into_response()
    }
}
