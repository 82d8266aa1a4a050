//! What a client sends becomes requests.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::problem::Problem;
use earnest_engine::{Input, Logprobs, Request, RequestId, Sampling, SamplingKey};
use earnest_models::checkpoint::{ChatMessage, Checkpoint};

/// Completions that one HTTP request may ask for.
const MOST_COMPLETIONS: usize = 256;
/// Alternatives that may be asked for at each token, as at OpenAI.
const MOST_LOGPROBS: u64 = 20;
/// Tokens of a completion whose request does not say how many, as at OpenAI.
const DEFAULT_TOKENS: usize = 16;

/// What is served.
pub(super) struct Served {
    pub checkpoint: Checkpoint,
    /// The model's name.
    pub name: String,
    /// Longest sequence in tokens.
    pub context: usize,
}

/// One HTTP request's wish.
#[derive(Debug)]
pub(super) struct Asked {
    /// `n` of each prompt, in order; their ids are chosen later.
    pub requests: Vec<Request>,
    pub stream: bool,
    /// The stream ends with a count of tokens.
    pub stream_usage: bool,
    /// Alternatives to return at each token, if log-probabilities are asked for.
    pub logprobs: Option<usize>,
    pub token_ids: bool,
    /// Tokens in log-probabilities are named `token_id:17`.
    pub names_are_ids: bool,
}

/// Fields that would change the text and are not supported; what they are worth when they change nothing.
const UNSUPPORTED: [(&str, &[&str]); 10] = [
    ("echo", &["false"]),
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

/// The fields of a body.
struct Body<'a>(&'a Map<String, Value>);

impl<'a> Body<'a> {
    /// A field; null is as good as none.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn number(&self, name: &'static str, default: f32) -> Result<f32, Problem> {
        let Some(value) = self.get(name) else { return Ok(default) };
        value.as_f64().map(|value| value as f32).ok_or_else(|| Problem::field(name, "a number is needed"))
    }

    fn count(&self, name: &'static str) -> Result<Option<u64>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| Problem::field(name, "a whole number, not negative, is needed"))
    }

    fn flag(&self, name: &'static str) -> Result<bool, Problem> {
        let Some(value) = self.get(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| Problem::field(name, "true or false is needed"))
    }
}

/// Reads the body of `/v1/completions`.
pub(super) fn completions(body: &[u8], served: &Served) -> Result<Asked, Problem> {
    let parsed = object(body)?;
    let fields = Body(&parsed);
    let prompt =
        fields.get("prompt").ok_or_else(|| Problem::field("prompt", "a string or a list of token ids is needed"))?;
    let prompts = prompts(prompt, served)?;
    let logprobs = fields.count("logprobs")?;
    let default = |_| DEFAULT_TOKENS;
    asked(&fields, prompts, logprobs, &default, served)
}

/// Reads the body of `/v1/chat/completions`.
pub(super) fn chat(body: &[u8], served: &Served) -> Result<Asked, Problem> {
    let parsed = object(body)?;
    let fields = Body(&parsed);
    let messages = fields.get("messages").and_then(Value::as_array).filter(|list| !list.is_empty());
    let messages = messages.ok_or_else(|| Problem::field("messages", "a list of messages is needed"))?;
    let messages: Vec<ChatMessage> = messages.iter().map(message).collect::<Result<_, _>>()?;
    let template = served.checkpoint.chat_template.as_ref();
    let template = template.ok_or_else(|| Problem::invalid("the model has no chat template: use /v1/completions"))?;
    let thinking = match fields.get("chat_template_kwargs").and_then(|given| given.get("enable_thinking")) {
        None | Some(Value::Null) => None,
        Some(Value::Bool(on)) => Some(*on),
        Some(_) => return Err(Problem::field("chat_template_kwargs", "enable_thinking is true or false")),
    };
    let text = template.render_thinking(&messages, true, thinking);
    let text = text.map_err(|error| Problem::field("messages", error.to_string()))?;
    let ids = served.checkpoint.encode_prompt(&text).map_err(|error| Problem::field("messages", error.to_string()))?;
    let logprobs = match (fields.flag("logprobs")?, fields.count("top_logprobs")?) {
        (true, top) => Some(top.unwrap_or(0)),
        (false, None | Some(0)) => None,
        (false, Some(_)) => return Err(Problem::field("top_logprobs", "needs logprobs: true")),
    };
    let room = |prompt: usize| served.context.saturating_sub(prompt);
    asked(&fields, vec![ids], logprobs, &room, served)
}

/// The model that a body asks for, read before anything else of it.
pub(super) fn model(body: &[u8]) -> Result<Option<String>, Problem> {
    match object(body)?.get("model") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone())),
        Some(_) => Err(Problem::field("model", "a string is needed")),
    }
}

fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Problem::invalid("the body is no JSON object")),
        Err(error) => Err(Problem::invalid(format!("the body is not JSON: {error}"))),
    }
}

fn message(value: &Value) -> Result<ChatMessage, Problem> {
    let role = value["role"].as_str().ok_or_else(|| Problem::field("messages", "every message needs a role"))?;
    let wrong = || Problem::field("messages", "the content of a message is a string or a list of parts of type text");
    let content = match &value["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| if part["type"] == "text" { part["text"].as_str() } else { None })
            .collect::<Option<Vec<&str>>>()
            .ok_or_else(wrong)?
            .concat(),
        _ => return Err(wrong()),
    };
    Ok(ChatMessage::new(role, content))
}

/// A text, a list of ids, or a list of either.
fn prompts(value: &Value, served: &Served) -> Result<Vec<Vec<u32>>, Problem> {
    let wrong =
        || Problem::field("prompt", "a string, a list of token ids, or a list of strings or of such lists is needed");
    let one = |value: &Value| match value {
        Value::String(text) => {
            served.checkpoint.encode_prompt(text).map_err(|error| Problem::field("prompt", error.to_string()))
        }
        Value::Array(ids) => {
            let read = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
            ids.iter().map(read).collect::<Option<Vec<u32>>>().ok_or_else(wrong)
        }
        _ => Err(wrong()),
    };
    match value {
        Value::Array(list) if list.first().is_some_and(|first| !first.is_number()) => list.iter().map(one).collect(),
        other => Ok(vec![one(other)?]),
    }
}

fn asked(
    fields: &Body<'_>,
    prompts: Vec<Vec<u32>>,
    logprobs: Option<u64>,
    default_tokens: &dyn Fn(usize) -> usize,
    served: &Served,
) -> Result<Asked, Problem> {
    for (name, harmless) in UNSUPPORTED {
        if let Some(value) = fields.get(name)
            && !harmless.contains(&value.to_string().as_str())
        {
            return Err(Problem::field(name, "is not supported here"));
        }
    }
    let count = fields.count("n")?.unwrap_or(1);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 || count.saturating_mul(prompts.len()) > MOST_COMPLETIONS {
        return Err(Problem::field("n", format!("1 to {MOST_COMPLETIONS} completions can be asked for at once")));
    }
    if logprobs.is_some_and(|top| top > MOST_LOGPROBS) {
        return Err(Problem::field("logprobs", format!("at most {MOST_LOGPROBS} alternatives are returned")));
    }
    let most = match fields.count("max_completion_tokens")? {
        Some(most) => Some(most),
        None => fields.count("max_tokens")?,
    };
    let sampling = Sampling {
        temperature: fields.number("temperature", 1.0)?,
        top_k: top_k(fields)?,
        top_p: fields.number("top_p", 1.0)?,
        min_p: fields.number("min_p", 0.0)?,
        repetition_penalty: fields.number("repetition_penalty", 1.0)?,
    };
    let stop_ids = stop_ids(fields, served)?;
    let stop_strings = stop_strings(fields)?;
    let top = logprobs.map(|top| usize::try_from(top).unwrap_or(0));
    let mut requests = Vec::with_capacity(prompts.len() * count);
    for prompt in prompts {
        let max_tokens =
            most.map_or_else(|| default_tokens(prompt.len()), |most| usize::try_from(most).unwrap_or(usize::MAX));
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
                // The chosen token's own is wanted even without alternatives.
                logprobs: Logprobs { top: top.map_or(0, |top| top.max(1)), prompt: false },
            });
        }
    }
    Ok(Asked {
        requests,
        stream: fields.flag("stream")?,
        stream_usage: fields.get("stream_options").is_some_and(|options| options["include_usage"] == true),
        logprobs: top,
        token_ids: fields.flag("return_token_ids")?,
        names_are_ids: fields.flag("return_tokens_as_token_ids")?,
    })
}

/// -1 and 0 keep all.
fn top_k(fields: &Body<'_>) -> Result<usize, Problem> {
    match fields.get("top_k").map(|value| value.as_i64()) {
        None | Some(Some(-1)) => Ok(0),
        Some(Some(k)) => usize::try_from(k).map_err(|_| Problem::field("top_k", "is -1, 0 or more")),
        Some(None) => Err(Problem::field("top_k", "a whole number is needed")),
    }
}

fn stop_strings(fields: &Body<'_>) -> Result<Vec<String>, Problem> {
    let wrong = || Problem::field("stop", "a string or a list of strings is needed");
    match fields.get("stop") {
        None => Ok(Vec::new()),
        Some(Value::String(stop)) => Ok(vec![stop.clone()]),
        Some(Value::Array(stops)) => {
            stops.iter().map(|stop| stop.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

/// The model's own and those that are asked for.
fn stop_ids(fields: &Body<'_>, served: &Served) -> Result<Vec<u32>, Problem> {
    let mut ids = if fields.flag("ignore_eos")? { Vec::new() } else { served.checkpoint.generation.eos_ids.clone() };
    if let Some(given) = fields.get("stop_token_ids") {
        let read = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
        let given = given.as_array().and_then(|given| given.iter().map(read).collect::<Option<Vec<u32>>>());
        ids.extend(given.ok_or_else(|| Problem::field("stop_token_ids", "a list of token ids is needed"))?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// The key itself (64 hexadecimal digits, which gives the draws of `earnest run`), or one of the seed, or a new one.
fn sampling_key(fields: &Body<'_>, place: usize) -> Result<SamplingKey, Problem> {
    static UNSEEDED: AtomicU64 = AtomicU64::new(0);
    if let Some(given) = fields.get("sampling_key") {
        let wrong = || Problem::field("sampling_key", "64 hexadecimal digits are needed");
        let digits = given.as_str().filter(|digits| digits.len() == 64 && digits.is_ascii()).ok_or_else(wrong)?;
        let mut key = [0; 32];
        for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong())?;
        }
        if place == 0 {
            return Ok(SamplingKey(key));
        }
        return Ok(SamplingKey(earnest_digest::sha256(&[&key[..], &(place as u64).to_le_bytes()].concat())));
    }
    let mut bytes = Vec::with_capacity(32);
    match fields.get("seed") {
        Some(seed) => {
            let seed = seed.as_i64().ok_or_else(|| Problem::field("seed", "a whole number is needed"))?;
            bytes.extend(b"seed");
            bytes.extend(seed.to_le_bytes());
        }
        None => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            bytes.extend(now.as_nanos().to_le_bytes());
            bytes.extend(UNSEEDED.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        }
    }
    bytes.extend((place as u64).to_le_bytes());
    Ok(SamplingKey(earnest_digest::sha256(&bytes)))
}
