//! One exchange with an endpoint.
use std::io::Read;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use earnest_models::json::{self, Wanted};
use serde_json::Value;
use ureq::Agent;

use super::retry::retry_after;
use super::{Address, Secret};
use crate::Request;

/// Bytes of a reply from which on it is read, and held, with no other of this size: many replies are at hand at once.
const LARGE_REPLY: usize = 1 << 20;
/// Bytes of an error reply of which the message is taken.
const LONGEST_ERROR: u64 = 64 << 10;
/// Fields of the protocol that are read; all others of a reply are skipped.
const FIELDS: [&str; 36] = [
    "build_info",
    "cached_tokens",
    "choices",
    "completion_tokens",
    "content",
    "data",
    "detail",
    "earnest_finish",
    "error",
    "finish_reason",
    "id",
    "logprob",
    "logprobs",
    "matched_stop",
    "max_model_len",
    "message",
    "meta",
    "model",
    "n_ctx",
    "owned_by",
    "prompt_tokens",
    "prompt_tokens_details",
    "reasoning",
    "reasoning_content",
    "refusal",
    "root",
    "stop_reason",
    "system_fingerprint",
    "text",
    "token",
    "token_ids",
    "token_logprobs",
    "tokens",
    "top_logprobs",
    "usage",
    "version",
];

/// Limits on a reply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    /// Bytes.
    pub bytes: u64,
    /// Values that are kept of it.
    pub values: usize,
}

impl Bounds {
    /// Limits on the answer to a question about the server; the longest published lists of models have 2 MB.
    pub const QUESTION: Bounds = Bounds { bytes: 16 << 20, values: 200_000 };

    /// Limits on the reply to a request: what the tokens that it asks for can need, several times over.
    pub fn of(request: &Request) -> Bounds {
        // Servers may repeat the prompt and their settings.
        const OF_ANY: usize = 1 << 20;
        // The longest tokens of known vocabularies have 128 letters, and a mean of 4.
        const OF_A_TOKEN: usize = 256;
        // A name, a number and a list of bytes, with their own names.
        const OF_A_LOGPROB: usize = 512;
        const VALUES_OF_A_LOGPROB: usize = 16;
        let prompt = request.input.longest();
        let scored = if request.logprobs.prompt_from.is_some() { prompt } else { 0 };
        let generated = request.max_tokens.saturating_add(1);
        let each = if request.logprobs.top > 0 { request.logprobs.top.saturating_add(1) } else { 0 };
        let logprobs = generated.saturating_mul(each).saturating_add(scored);
        let bytes = OF_ANY
            .saturating_add(prompt.saturating_mul(16))
            .saturating_add(generated.saturating_mul(OF_A_TOKEN))
            .saturating_add(logprobs.saturating_mul(OF_A_LOGPROB));
        let values =
            10_000_usize.saturating_add(generated).saturating_add(logprobs.saturating_mul(VALUES_OF_A_LOGPROB));
        Bounds { bytes: (bytes as u64).min(LONGEST_REPLY), values: values.min(MOST_VALUES) }
    }
}

/// The longest reply that is read, in bytes, whatever was asked for.
const LONGEST_REPLY: u64 = 128 << 20;
/// Most values that are kept of a reply, whatever was asked for.
const MOST_VALUES: usize = 4_000_000;

/// What is kept of a reply. A large one is the only large one at hand until it is dropped.
pub(super) struct Document<'a> {
    value: Value,
    _alone: Option<MutexGuard<'a, ()>>,
}

impl Deref for Document<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}
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
    /// Held by the one large reply that is at hand.
    large: Mutex<()>,
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
        Client { agent: earnest_models::agent(config.build()), address, key, timeout, large: Mutex::default() }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Asks a question about the server.
    pub fn get(&self, url: &str) -> Result<Document<'_>, ExchangeError> {
        let mut request = self.agent.get(url).config().timeout_global(Some(self.timeout.min(LONGEST_QUESTION))).build();
        if let Some(key) = &self.key {
            request = request.header("Authorization", key.authorization());
        }
        self.read(request.call(), Bounds::QUESTION)
    }

    /// Sends a body, whose reply has bounds.
    pub fn post(&self, path: &str, body: &Value, bounds: Bounds) -> Result<Document<'_>, ExchangeError> {
        let mut request = self.agent.post(self.address.path(path)).header("Content-Type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("Authorization", key.authorization());
        }
        self.read(request.send(body.to_string().as_bytes()), bounds)
    }

    fn read(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        bounds: Bounds,
    ) -> Result<Document<'_>, ExchangeError> {
        let mut response = answer.map_err(|error| self.broken(&error))?;
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok())
            .and_then(|value| retry_after(value, SystemTime::now()));
        let reader = response.body_mut().as_reader();
        if status == 200 {
            return self.document(reader, bounds);
        }
        let mut bytes = Vec::new();
        reader.take(LONGEST_ERROR).read_to_end(&mut bytes).map_err(|error| self.broken(&error.into()))?;
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

    /// Reads a reply's body.
    fn document(&self, mut reader: impl Read, bounds: Bounds) -> Result<Document<'_>, ExchangeError> {
        let broken = |error: std::io::Error| self.broken(&error.into());
        let mut bytes = Vec::new();
        (&mut reader).take(LARGE_REPLY as u64).read_to_end(&mut bytes).map_err(broken)?;
        let alone = (bytes.len() >= LARGE_REPLY).then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner));
        if alone.is_some() {
            let rest = bounds.bytes.saturating_sub(LARGE_REPLY as u64);
            reader.take(rest.saturating_add(1)).read_to_end(&mut bytes).map_err(broken)?;
        }
        if bytes.len() as u64 > bounds.bytes {
            let limit = bounds.bytes;
            return Err(ExchangeError::Malformed(format!(
                "the reply is longer than {limit} bytes, the most that a reply to this request may have"
            )));
        }
        match json::read(&bytes, Wanted { fields: &FIELDS, whole: &["top_logprobs"], values: bounds.values }) {
            Ok(value) => Ok(Document { value, _alone: alone }),
            Err(error) => {
                let said = message(&bytes);
                Err(ExchangeError::Malformed(self.redact(&format!("the reply cannot be read ({error}): {said}"))))
            }
        }
    }

    fn broken(&self, error: &ureq::Error) -> ExchangeError {
        let what = match error {
            ureq::Error::Timeout(timeout) => {
                return ExchangeError::Silent(format!("no answer in time ({timeout})"));
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
    let bytes = &bytes[..bytes.len().min(LONGEST_ERROR as usize)];
    let wanted = Wanted { fields: &["error", "message", "detail"], whole: &[], values: 1000 };
    let parsed = json::read(bytes, wanted).ok();
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
    fn a_reply_is_as_long_as_what_was_asked_for() {
        let client = Client::new(Address::parse("http://127.0.0.1:1").unwrap(), None, Duration::from_secs(1));
        let bounds = Bounds { bytes: 3 << 20, values: 100 };
        let read = |text: &str| client.document(text.as_bytes(), bounds).map(|document| document.value.clone());
        let said = |text: &str| read(text).unwrap_err().to_string();
        // Large replies are read one after another, and what is not of the protocol is not held.
        let unknown = format!("{{\"x\": [{}0], \"model\": \"m\"}}", "0,".repeat(1 << 20));
        for _ in 0..2 {
            assert_eq!(read(&unknown).unwrap(), serde_json::json!({"model": "m"}));
        }
        assert!(said(&format!("\"{}\"", "x".repeat(3 << 20))).contains("longer than 3145728 bytes"));
        assert!(said(&format!("{{\"choices\": [{}0]}}", "[],".repeat(100))).contains("more than 100 values"));
        let request = |tokens| Request::greedy(crate::RequestId(0), vec![1; 1000], tokens);
        let of = |tokens| Bounds::of(&request(tokens));
        assert!(of(64).bytes < 2 << 20 && of(1 << 18).bytes > 64 << 20 && of(usize::MAX).bytes == LONGEST_REPLY);
        assert!(of(usize::MAX).values == MOST_VALUES && of(64).values < 20_000);
    }

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
