//! Parsing of request bodies into engine requests.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::error::ApiError;
use earnest_engine::{Input, Logprobs, Request, RequestId, Sampling, SamplingKey};
use earnest_models::checkpoint::{ChatMessage, Checkpoint};

/// Largest number of completions of one HTTP request.
const MAX_COMPLETIONS: usize = 256;
/// Largest number of alternatives at each token, OpenAI's limit.
const MAX_LOGPROBS: u64 = 20;
/// `max_tokens` of `/v1/completions` if absent, OpenAI's default.
const DEFAULT_MAX_TOKENS: usize = 16;

/// The served model.
pub(super) struct ServedModel {
    pub checkpoint: Checkpoint,
    /// Name for clients.
    pub name: String,
    /// Longest sequence in tokens.
    pub context: usize,
}

/// The parsed body of a completion request.
#[derive(Debug)]
pub(super) struct ApiRequest {
    /// `n` requests for each prompt, in order; [`super::queue::EngineQueue::submit`] assigns their ids.
    pub requests: Vec<Request>,
    pub stream: bool,
    /// `stream_options.include_usage`: the stream ends with a chunk of token counts.
    pub stream_usage: bool,
    /// Number of alternatives at each token; none without log-probabilities.
    pub logprobs: Option<usize>,
    /// `echo`: the text begins with the prompt, and the log-probabilities with those of its tokens.
    pub echo: bool,
    /// `return_token_ids`.
    pub token_ids: bool,
    /// `return_tokens_as_token_ids`: log-probabilities name tokens as `token_id:17`.
    pub tokens_as_ids: bool,
}

/// Unsupported fields that would change the text, each with the values that leave it unchanged.
const UNSUPPORTED: [(&str, &[&str]); 9] = [
    ("suffix", &["\"\""]),
    ("best_of", &["1"]),
    ("frequency_penalty", &["0", "0.0"]),
    ("presence_penalty", &["0", "0.0"]),
    ("logit_bias", &["{}"]),
    ("tools", &["[]"]),
    ("response_format", &["{\"type\":\"text\"}"]),
    ("prompt_logprobs", &["false"]),
    ("guided_json", &[]),
];

/// Typed access to the fields of a body.
struct Body<'a>(&'a Map<String, Value>);

impl<'a> Body<'a> {
    /// A field; null counts as absent.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn number(&self, name: &'static str, default: f32) -> Result<f32, ApiError> {
        let Some(value) = self.get(name) else { return Ok(default) };
        value.as_f64().map(|value| value as f32).ok_or_else(|| ApiError::field(name, "must be a number"))
    }

    fn count(&self, name: &'static str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| ApiError::field(name, "must be a non-negative integer"))
    }

    fn flag(&self, name: &'static str) -> Result<bool, ApiError> {
        let Some(value) = self.get(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| ApiError::field(name, "must be true or false"))
    }
}

/// Parses the body of `/v1/completions`.
pub(super) fn completions(body: &[u8], model: &ServedModel) -> Result<ApiRequest, ApiError> {
    let parsed = object(body)?;
    let fields = Body(&parsed);
    let prompt =
        fields.get("prompt").ok_or_else(|| ApiError::field("prompt", "must be a string or a list of token ids"))?;
    let prompts = parse_prompts(prompt, model)?;
    let logprobs = fields.count("logprobs")?;
    let mut request = parse_common(&fields, prompts, logprobs, &|_| DEFAULT_MAX_TOKENS, model)?;
    request.echo = fields.flag("echo")?;
    if request.echo && request.stream {
        return Err(ApiError::field("echo", "is not supported with stream"));
    }
    if request.echo && logprobs.is_some() {
        request.requests.iter_mut().for_each(|request| request.logprobs.prompt_from = Some(1));
    }
    Ok(request)
}

/// Parses the body of `/v1/chat/completions`.
pub(super) fn chat(body: &[u8], model: &ServedModel) -> Result<ApiRequest, ApiError> {
    let parsed = object(body)?;
    let fields = Body(&parsed);
    if fields.flag("echo")? {
        return Err(ApiError::field("echo", "is a field of /v1/completions"));
    }
    let messages = fields.get("messages").and_then(Value::as_array).filter(|list| !list.is_empty());
    let messages = messages.ok_or_else(|| ApiError::field("messages", "must be a non-empty list of messages"))?;
    let messages: Vec<ChatMessage> = messages.iter().map(parse_message).collect::<Result<_, _>>()?;
    let template = model.checkpoint.chat_template.as_ref();
    let template = template.ok_or_else(|| ApiError::invalid("the model has no chat template: use /v1/completions"))?;
    let thinking = match fields.get("chat_template_kwargs").and_then(|given| given.get("enable_thinking")) {
        None | Some(Value::Null) => None,
        Some(Value::Bool(on)) => Some(*on),
        Some(_) => return Err(ApiError::field("chat_template_kwargs", "enable_thinking must be true or false")),
    };
    let text = template.render_thinking(&messages, true, thinking);
    let text = text.map_err(|error| ApiError::field("messages", error.to_string()))?;
    let ids = model.checkpoint.encode_prompt(&text).map_err(|error| ApiError::field("messages", error.to_string()))?;
    let logprobs = match (fields.flag("logprobs")?, fields.count("top_logprobs")?) {
        (true, top) => Some(top.unwrap_or(0)),
        (false, None | Some(0)) => None,
        (false, Some(_)) => return Err(ApiError::field("top_logprobs", "requires logprobs: true")),
    };
    let rest_of_context = |prompt: usize| model.context.saturating_sub(prompt);
    parse_common(&fields, vec![ids], logprobs, &rest_of_context, model)
}

/// Returns the `model` field, which is checked before any other.
pub(super) fn requested_model(body: &[u8]) -> Result<Option<String>, ApiError> {
    match object(body)?.get("model") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone())),
        Some(_) => Err(ApiError::field("model", "must be a string")),
    }
}

fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(ApiError::invalid("the body is not a JSON object")),
        Err(error) => Err(ApiError::invalid(format!("the body is not JSON: {error}"))),
    }
}

fn parse_message(value: &Value) -> Result<ChatMessage, ApiError> {
    let role = value["role"].as_str().ok_or_else(|| ApiError::field("messages", "every message must have a role"))?;
    let invalid =
        || ApiError::field("messages", "the content of a message must be a string or a list of parts of type text");
    let content = match &value["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| if part["type"] == "text" { part["text"].as_str() } else { None })
            .collect::<Option<Vec<&str>>>()
            .ok_or_else(invalid)?
            .concat(),
        _ => return Err(invalid()),
    };
    Ok(ChatMessage::new(role, content))
}

/// Parses a text, a list of token ids, or a list of either.
fn parse_prompts(value: &Value, model: &ServedModel) -> Result<Vec<Vec<u32>>, ApiError> {
    let invalid = || ApiError::field("prompt", "must be a string, a list of token ids, or a list of either");
    let one = |value: &Value| match value {
        Value::String(text) => {
            model.checkpoint.encode_prompt(text).map_err(|error| ApiError::field("prompt", error.to_string()))
        }
        Value::Array(ids) => {
            let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
            ids.iter().map(id).collect::<Option<Vec<u32>>>().ok_or_else(invalid)
        }
        _ => Err(invalid()),
    };
    match value {
        Value::Array(list) if list.first().is_some_and(|first| !first.is_number()) => list.iter().map(one).collect(),
        other => Ok(vec![one(other)?]),
    }
}

/// Parses the fields that both paths share. `default_max_tokens` maps the length of a prompt to `max_tokens` if absent.
fn parse_common(
    fields: &Body<'_>,
    prompts: Vec<Vec<u32>>,
    logprobs: Option<u64>,
    default_max_tokens: &dyn Fn(usize) -> usize,
    model: &ServedModel,
) -> Result<ApiRequest, ApiError> {
    for (name, neutral) in UNSUPPORTED {
        if let Some(value) = fields.get(name)
            && !neutral.contains(&value.to_string().as_str())
        {
            return Err(ApiError::field(name, "is not supported"));
        }
    }
    let count = fields.count("n")?.unwrap_or(1);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 || count.saturating_mul(prompts.len()) > MAX_COMPLETIONS {
        return Err(ApiError::field("n", format!("a request may ask for 1 to {MAX_COMPLETIONS} completions")));
    }
    if logprobs.is_some_and(|top| top > MAX_LOGPROBS) {
        return Err(ApiError::field("logprobs", format!("at most {MAX_LOGPROBS} alternatives are supported")));
    }
    let max_tokens = match fields.count("max_completion_tokens")? {
        Some(count) => Some(count),
        None => fields.count("max_tokens")?,
    };
    let sampling = Sampling {
        temperature: fields.number("temperature", 1.0)?,
        top_k: top_k(fields)?,
        top_p: fields.number("top_p", 1.0)?,
        min_p: fields.number("min_p", 0.0)?,
        repetition_penalty: fields.number("repetition_penalty", 1.0)?,
    };
    let stop_ids = stop_ids(fields, model)?;
    let stop_strings = stop_strings(fields)?;
    let top = logprobs.map(|top| usize::try_from(top).unwrap_or(0));
    let mut requests = Vec::with_capacity(prompts.len() * count);
    for prompt in prompts {
        let max_tokens = max_tokens
            .map_or_else(|| default_max_tokens(prompt.len()), |count| usize::try_from(count).unwrap_or(usize::MAX));
        for _ in 0..count {
            requests.push(Request {
                id: RequestId(0),
                input: Input::Ids(prompt.clone()),
                sampling: sampling.clone(),
                sampling_key: sampling_key(fields, requests.len())?,
                stop_strings: stop_strings.clone(),
                keep_stop: fields.flag("include_stop_str_in_output")?,
                stop_ids: stop_ids.clone(),
                max_tokens,
                // At least one, so that the chosen token's own is computed.
                logprobs: Logprobs { top: top.map_or(0, |top| top.max(1)), prompt_from: None },
            });
        }
    }
    Ok(ApiRequest {
        requests,
        stream: fields.flag("stream")?,
        stream_usage: fields.get("stream_options").is_some_and(|options| options["include_usage"] == true),
        logprobs: top,
        echo: false,
        token_ids: fields.flag("return_token_ids")?,
        tokens_as_ids: fields.flag("return_tokens_as_token_ids")?,
    })
}

/// Parses `top_k`; -1 and 0 keep all tokens.
fn top_k(fields: &Body<'_>) -> Result<usize, ApiError> {
    match fields.get("top_k").map(|value| value.as_i64()) {
        None | Some(Some(-1)) => Ok(0),
        Some(Some(k)) => usize::try_from(k).map_err(|_| ApiError::field("top_k", "must be -1 or more")),
        Some(None) => Err(ApiError::field("top_k", "must be an integer")),
    }
}

fn stop_strings(fields: &Body<'_>) -> Result<Vec<String>, ApiError> {
    let invalid = || ApiError::field("stop", "must be a string or a list of strings");
    match fields.get("stop") {
        None => Ok(Vec::new()),
        Some(Value::String(stop)) => Ok(vec![stop.clone()]),
        Some(Value::Array(stops)) => {
            stops.iter().map(|stop| stop.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(invalid)
        }
        Some(_) => Err(invalid()),
    }
}

/// Returns the ids that end a generation: the model's own, unless `ignore_eos`, and `stop_token_ids`.
fn stop_ids(fields: &Body<'_>, model: &ServedModel) -> Result<Vec<u32>, ApiError> {
    let mut ids = if fields.flag("ignore_eos")? { Vec::new() } else { model.checkpoint.generation.eos_ids.clone() };
    if let Some(given) = fields.get("stop_token_ids") {
        let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
        let given = given.as_array().and_then(|given| given.iter().map(id).collect::<Option<Vec<u32>>>());
        ids.extend(given.ok_or_else(|| ApiError::field("stop_token_ids", "must be a list of token ids"))?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Returns the key of the choice at `index`: from `sampling_key` (64 hexadecimal digits; gives the draws of `earnest run`), else
/// from `seed`, else a fresh one.
fn sampling_key(fields: &Body<'_>, index: usize) -> Result<SamplingKey, ApiError> {
    static UNSEEDED: AtomicU64 = AtomicU64::new(0);
    if let Some(given) = fields.get("sampling_key") {
        let invalid = || ApiError::field("sampling_key", "must be 64 hexadecimal digits");
        let digits = given.as_str().filter(|digits| digits.len() == 64 && digits.is_ascii()).ok_or_else(invalid)?;
        let mut key = [0; 32];
        for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| invalid())?;
        }
        if index == 0 {
            return Ok(SamplingKey(key));
        }
        return Ok(SamplingKey(earnest_digest::sha256(&[&key[..], &(index as u64).to_le_bytes()].concat())));
    }
    let mut bytes = Vec::with_capacity(32);
    match fields.get("seed") {
        Some(seed) => {
            let seed = seed.as_i64().ok_or_else(|| ApiError::field("seed", "must be an integer"))?;
            bytes.extend(b"seed");
            bytes.extend(seed.to_le_bytes());
        }
        None => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            bytes.extend(now.as_nanos().to_le_bytes());
            bytes.extend(UNSEEDED.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        }
    }
    bytes.extend((index as u64).to_le_bytes());
    Ok(SamplingKey(earnest_digest::sha256(&bytes)))
}
