//! One exchange with an endpoint.
use std::time::{Duration, SystemTime};

use serde_json::Value;
use ureq::Agent;

use super::retry::retry_after;
use super::{Address, Secret};

/// The longest reply that is read.
const LONGEST_REPLY: u64 = 64 << 20;
/// Time limit of questions about the server, which are answered at once; only completions have the user's.
const LONGEST_QUESTION: Duration = Duration::from_secs(30);
/// Characters of a server's own message that are repeated.
const LONGEST_MESSAGE: usize = 400;

/// Failures of an exchange.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExchangeError {
    /// No connection, or a cut one.
    #[error("{0}")]
    Connection(String),
    /// No answer in time.
    #[error("{0}")]
    Silent(String),
    /// The endpoint asks the client to wait, or had a fault of its own.
    #[error("HTTP {status}: {message}")]
    Busy {
        /// HTTP status.
        status: u16,
        /// The endpoint's words.
        message: String,
        /// Wait that the endpoint asks for.
        retry_after: Option<Duration>,
    },
    /// The reply is not one of the protocol, or not from the model that was asked.
    #[error("{0}")]
    Malformed(String),
    /// The endpoint refuses this request.
    #[error("HTTP {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The endpoint's words.
        message: String,
    },
    /// The endpoint is not what it was when the session began.
    #[error(
        "the endpoint was {was} when this session began, it is {is} now; the same command begins a new run with it"
    )]
    Changed {
        /// Its identity then.
        was: String,
        /// Its identity now.
        is: String,
    },
    /// The endpoint refuses every request: a wrong key, model or address.
    #[error("HTTP {status}: {message}")]
    Closed {
        /// HTTP status.
        status: u16,
        /// The endpoint's words.
        message: String,
    },
}

impl ExchangeError {
    /// True if nothing whole came back.
    pub fn is_no_reply(&self) -> bool {
        matches!(self, ExchangeError::Connection(_) | ExchangeError::Silent(_))
    }

    /// True if the same request may be answered another time.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            ExchangeError::Connection(_)
                | ExchangeError::Silent(_)
                | ExchangeError::Busy { .. }
                | ExchangeError::Malformed(_)
        )
    }
}

/// An HTTP client for one endpoint. Nothing that it returns contains the key.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    address: Address,
    key: Option<Secret>,
    timeout: Duration,
}

impl Client {
    pub fn new(address: Address, key: Option<Secret>, timeout: Duration) -> Client {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirection would take the prompts, or the key, somewhere else than the user said.
            .max_redirects(0)
            .timeout_global(Some(timeout))
            .timeout_connect(Some(timeout.min(Duration::from_secs(15))))
            .max_idle_connections(256)
            .max_idle_connections_per_host(256)
            .user_agent(concat!("earnest/", env!("CARGO_PKG_VERSION")));
        // What stays on this machine goes through no proxy.
        let config = if address.is_loopback() { config.proxy(None) } else { config };
        Client { agent: config.build().into(), address, key, timeout }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn get(&self, url: &str) -> Result<Value, ExchangeError> {
        let mut request = self.agent.get(url).config().timeout_global(Some(self.timeout.min(LONGEST_QUESTION))).build();
        if let Some(key) = &self.key {
            request = request.header("Authorization", key.authorization());
        }
        self.read(request.call())
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ExchangeError> {
        let mut request = self.agent.post(self.address.path(path)).header("Content-Type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("Authorization", key.authorization());
        }
        self.read(request.send(body.to_string().as_bytes()))
    }

    fn read(&self, answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value, ExchangeError> {
        let mut response = answer.map_err(|error| self.broken(&error))?;
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok())
            .and_then(|value| retry_after(value, SystemTime::now()));
        let bytes = response
            .body_mut()
            .with_config()
            .limit(LONGEST_REPLY)
            .read_to_vec()
            .map_err(|error| self.broken(&error))?;
        if status == 200 {
            return serde_json::from_slice(&bytes).map_err(|error| {
                let said = message(&bytes);
                ExchangeError::Malformed(self.redact(&format!("the reply is not JSON ({error}): {said}")))
            });
        }
        let message = self.redact(&message(&bytes));
        Err(match status {
            408 | 409 | 425 | 429 | 500..=599 => ExchangeError::Busy { status, message, retry_after },
            300..=399 => ExchangeError::Closed {
                status,
                message: format!("the endpoint redirects, which is not followed: {message}"),
            },
            401 | 403 | 404 | 405 => ExchangeError::Closed { status, message },
            200..=299 => ExchangeError::Malformed(format!("HTTP {status} where 200 is expected: {message}")),
            _ => ExchangeError::Refused { status, message },
        })
    }

    fn broken(&self, error: &ureq::Error) -> ExchangeError {
        let what = match error {
            ureq::Error::Timeout(timeout) => {
                return ExchangeError::Silent(format!("no answer in time ({timeout})"));
            }
            ureq::Error::BodyExceedsLimit(limit) => {
                return ExchangeError::Malformed(format!("the reply is longer than {limit} bytes"));
            }
            other => other.to_string(),
        };
        ExchangeError::Connection(self.redact(&what))
    }

    /// A message without the key.
    pub fn redact(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }

    /// A model's text without the key.
    pub fn redact_text(&self, text: String) -> String {
        match &self.key {
            Some(key) => key.redact_text(text),
            None => text,
        }
    }
}

/// The message of an error reply, in one line: OpenAI's schema, or the text itself.
fn message(bytes: &[u8]) -> String {
    let parsed: Option<Value> = serde_json::from_slice(bytes).ok();
    let found = parsed.as_ref().and_then(|value| {
        let places = [&value["error"]["message"], &value["message"], &value["detail"], &value["error"]];
        places.into_iter().find_map(Value::as_str)
    });
    let text = found.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), str::to_owned);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "no message".to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_servers() {
        assert_eq!(message(br#"{"error": {"message": "too\n long"}}"#), "too long");
        assert_eq!(message(br#"{"object": "error", "message": "no"}"#), "no");
        assert_eq!(message(b"<html>Bad Gateway</html>"), "<html>Bad Gateway</html>");
        assert_eq!(message(b" \n"), "no message");
        assert_eq!(message("é".repeat(1000).as_bytes()).chars().count(), LONGEST_MESSAGE + 1);
    }

    #[test]
    fn only_passing_trouble_is_tried_again() {
        let busy = ExchangeError::Busy { status: 429, message: "slow down".into(), retry_after: None };
        let refused = ExchangeError::Refused { status: 400, message: "too long".into() };
        let closed = ExchangeError::Closed { status: 401, message: "who are you".into() };
        assert!(busy.may_pass() && ExchangeError::Connection("cut".into()).may_pass());
        assert!(ExchangeError::Silent("late".into()).may_pass());
        assert!(!refused.may_pass() && !closed.may_pass());
    }
}
