//! What is answered instead of a completion, in OpenAI's schema.
use serde_json::{Value, json};

/// An error with its HTTP status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub status: u16,
    pub message: String,
    /// OpenAI's `type`.
    kind: &'static str,
    /// OpenAI's `code`.
    code: Option<&'static str>,
    /// The field that is wrong.
    param: Option<&'static str>,
    /// Seconds after which it may be tried again.
    pub retry_after: Option<u32>,
}

impl Problem {
    fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), kind, code: None, param: None, retry_after: None }
    }

    /// A request that can not be meant.
    pub fn invalid(message: impl Into<String>) -> Problem {
        Problem::new(400, "invalid_request_error", message)
    }

    /// A field that has no such value.
    pub fn field(param: &'static str, message: impl Into<String>) -> Problem {
        Problem { param: Some(param), ..Problem::invalid(format!("{param}: {}", message.into())) }
    }

    pub fn unauthorised() -> Problem {
        let message = "the key is missing or wrong: send it as `Authorization: Bearer KEY`";
        Problem { code: Some("invalid_api_key"), ..Problem::new(401, "authentication_error", message) }
    }

    pub fn no_path(method: &str, path: &str) -> Problem {
        Problem::new(404, "invalid_request_error", format!("there is no {method} {path} here"))
    }

    pub fn no_model(asked: &str, served: &str) -> Problem {
        let message = format!("the model {asked} is not served here, {served} is");
        Problem {
            code: Some("model_not_found"),
            param: Some("model"),
            ..Problem::new(404, "invalid_request_error", message)
        }
    }

    pub fn method(method: &str, path: &str) -> Problem {
        Problem::new(405, "invalid_request_error", format!("{path} does not take {method}"))
    }

    /// A request that is no HTTP, or more of it than is read.
    pub fn transport(status: u16, message: impl Into<String>) -> Problem {
        Problem::new(status, "invalid_request_error", message)
    }

    pub fn busy(waiting: usize) -> Problem {
        let message = format!("{waiting} requests are waiting already");
        Problem {
            retry_after: Some(1),
            code: Some("rate_limit_exceeded"),
            ..Problem::new(429, "rate_limit_error", message)
        }
    }

    /// What the engine could not do. Asking again helps only if it is `retryable`, and clients ask again after any 500.
    pub fn engine(message: impl Into<String>, retryable: bool) -> Problem {
        Problem::new(if retryable { 500 } else { 422 }, "server_error", message)
    }

    pub fn stopping() -> Problem {
        Problem::new(503, "server_error", "the server is stopping")
    }

    /// OpenAI's schema.
    pub fn json(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}})
    }
}
