//! Description of an endpoint, asked for before the first request.
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Api;
use super::body::Form;
use super::client::{Bounds, Client, ExchangeError};

/// Extensions of the protocol that a server knows, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `earnest serve`.
    Earnest,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// llama.cpp's server.
    LlamaCpp,
    /// Only the protocol itself.
    Unknown,
}

impl Dialect {
    fn of(owner: &str) -> Dialect {
        match owner.to_ascii_lowercase().as_str() {
            "earnest" => Dialect::Earnest,
            "vllm" => Dialect::Vllm,
            "sglang" => Dialect::Sglang,
            "llamacpp" | "llama.cpp" => Dialect::LlamaCpp,
            _ => Dialect::Unknown,
        }
    }

    /// The server's name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Earnest => "earnest",
            Dialect::Vllm => "vllm",
            Dialect::Sglang => "sglang",
            Dialect::LlamaCpp => "llama.cpp",
            Dialect::Unknown => "unknown server",
        }
    }
}

/// A server and the model that was chosen of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Extensions of the protocol that it knows.
    pub dialect: Dialect,
    /// Its version, if it tells.
    pub version: Option<String>,
    /// The model's name there.
    pub model: String,
    /// Name of the underlying model (vLLM's `root`), if it tells.
    pub root: Option<String>,
    /// OpenAI's `system_fingerprint` of an answer, where nothing else tells one version from the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The longest sequence, in tokens, if it tells.
    pub context: Option<usize>,
    /// False if the server has no list of models, so that nobody knows whether it has this one.
    pub listed: bool,
}

impl Server {
    /// True if the server is known to pass `enable_thinking` on to its chat template.
    pub fn takes_thinking_switch(&self) -> bool {
        self.dialect != Dialect::Unknown
    }

    /// Identity of the server and the model behind its name, in words.
    pub fn identity(&self) -> String {
        let mut words = self.dialect.name().to_owned();
        for (what, value) in [("", &self.version), ("root ", &self.root), ("fingerprint ", &self.fingerprint)] {
            if let Some(value) = value {
                words.push_str(&format!(" {what}{value}"));
            }
        }
        words
    }
}

/// Reasons why no model could be selected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum ProbeError {
    #[error("{0}")]
    Exchange(#[from] ExchangeError),
    #[error("the endpoint has no model {asked}; it has {}", list(known))]
    NoSuchModel { asked: String, known: Vec<String> },
    #[error("the endpoint has several models: choose one with the setting `model_name`: {}", list(known))]
    SeveralModels { known: Vec<String> },
    #[error("the endpoint has no list of models: name one with the setting `model_name`")]
    NoList,
}

/// Names, not more than a screen holds.
fn list(names: &[String]) -> String {
    const MOST: usize = 12;
    match names {
        [] => "none".to_owned(),
        _ if names.len() <= MOST => names.join(", "),
        _ => format!("{} and {} more", names[..MOST].join(", "), names.len() - MOST),
    }
}

/// Longest name of a model, in bytes; the longest published ones have about 150.
const LONGEST_NAME: usize = 1000;

/// A word that a server says of itself, cut where it is longer than such words are.
pub(super) fn word(value: &Value) -> Option<String> {
    const LONGEST: usize = 300;
    value.as_str().map(|word| word.chars().take(LONGEST).collect())
}

/// Asks for the models and the version.
pub(super) fn probe(client: &Client, asked: Option<&str>) -> Result<Server, ProbeError> {
    let entries = match client.get(&client.address().path("models")) {
        Ok(reply) => match reply["data"].as_array() {
            Some(entries) => entries.clone(),
            None => {
                return Err(ExchangeError::Malformed("the list of models is not one of OpenAI's schema".into()).into());
            }
        },
        Err(ExchangeError::Closed { status: 404 | 405, .. } | ExchangeError::Refused { status: 501, .. }) => {
            let model = asked.ok_or(ProbeError::NoList)?.to_owned();
            return Ok(Server {
                dialect: Dialect::Unknown,
                version: None,
                model,
                root: None,
                fingerprint: None,
                context: None,
                listed: false,
            });
        }
        Err(failure) => return Err(failure.into()),
    };
    // A name is part of every record of the run.
    let id = |entry: &Value| entry["id"].as_str().filter(|id| id.len() <= LONGEST_NAME).map(str::to_owned);
    let known = || entries.iter().filter_map(id).collect::<Vec<_>>();
    let chosen = match asked {
        Some(asked) => entries
            .iter()
            .find(|entry| entry["id"] == asked)
            .ok_or_else(|| ProbeError::NoSuchModel { asked: asked.to_owned(), known: known() })?,
        None if entries.len() == 1 => &entries[0],
        None => return Err(ProbeError::SeveralModels { known: known() }),
    };
    let model = id(chosen)
        .ok_or(ExchangeError::Malformed(format!("a model of the endpoint has no id of 1 to {LONGEST_NAME} bytes")))?;
    let dialect = Dialect::of(chosen["owned_by"].as_str().unwrap_or_default());
    let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    let context = count(&chosen["max_model_len"]).or_else(|| count(&chosen["meta"]["n_ctx"]));
    let root = word(&chosen["root"]).filter(|root| *root != model).map(|root| client.redact(&root));
    let version = version(client, dialect);
    Ok(Server { dialect, version, model, root, fingerprint: None, context, listed: true })
}

/// The fingerprint of an answer to the shortest question, from servers that do not tell a version; none if they do not tell this
/// either. An endpoint that refuses everybody is an error.
pub(super) fn fingerprint(client: &Client, form: &Form) -> Result<Option<String>, ExchangeError> {
    let mut body = json!({"model": form.model});
    match form.api {
        Api::Completions => body["prompt"] = json!("1"),
        Api::Chat => body["messages"] = json!([{"role": "user", "content": "1"}]),
    }
    body[form.budget_field()] = json!(1);
    match client.post(form.api.path(), &body, Bounds::QUESTION) {
        Ok(reply) => Ok(word(&reply["system_fingerprint"]).map(|found| client.redact(&found))),
        Err(failure @ ExchangeError::Closed { .. }) => Err(failure),
        Err(_) => Ok(None),
    }
}

/// Each server tells its version in a place of its own; one that does not tell has none.
fn version(client: &Client, dialect: Dialect) -> Option<String> {
    let (path, field) = match dialect {
        Dialect::Earnest | Dialect::Vllm => ("version", "version"),
        Dialect::Sglang => ("get_server_info", "version"),
        Dialect::LlamaCpp => ("props", "build_info"),
        Dialect::Unknown => return None,
    };
    let reply = client.get(&client.address().beside(path)).ok()?;
    Some(client.redact(&word(&reply[field])?))
}
