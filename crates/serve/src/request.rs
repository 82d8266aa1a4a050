//! Parsing of request bodies into engine requests.
use std::sync::Arc;

use serde_json::Value;

use super::error::ApiError;
use super::fields::Fields;
use super::{generation, messages, prompt};
use earnest_engine::{Input, Logprobs, Rejected, Request, RequestId, Sampling, SamplingKey, TokenLogprobs};
use earnest_models::checkpoint::Checkpoint;

/// Largest number of completions of one HTTP request.
pub(crate) const MAX_COMPLETIONS: usize = 256;
/// Largest number of alternatives at each token, OpenAI's limit.
const MAX_LOGPROBS: u64 = 20;
/// `max_tokens` of `/v1/completions` if absent, OpenAI's default.
const DEFAULT_MAX_TOKENS: usize = 16;

/// Estimates of the memory that parts of a response take, in bytes: a log-probability with its token's name, and a token id, both as JSON values.
const BYTES_PER_LOGPROB: usize = 256;
const BYTES_PER_ID: usize = 48;

pub(crate) struct ServedModel {
    pub checkpoint: Checkpoint,
    /// Name for clients.
    pub name: String,
    /// Longest sequence in tokens.
    pub context: usize,
}

/// The checks that a request's body passes before the engine sees it, for programs that try bodies without a server.
pub struct Checker(ServedModel);

impl Checker {
    /// Checks for a model of this name and context.
    pub fn new(checkpoint: Checkpoint, name: impl Into<String>, context: usize) -> Checker {
        Checker(ServedModel { checkpoint, name: name.into(), context })
    }

    /// Returns the number of completions that a body for `/v1/completions` asks for.
    ///
    /// # Errors
    /// The message for the client.
    pub fn completions(&self, body: &[u8]) -> Result<usize, String> {
        let request = completions(body, &self.0).map_err(|error| error.message)?;
        Ok(request.choices.len())
    }

    /// Returns the number of completions that a body for `/v1/chat/completions` asks for.
    ///
    /// # Errors
    /// The message for the client.
    pub fn chat(&self, body: &[u8]) -> Result<usize, String> {
        let request = chat(body, &self.0).map_err(|error| error.message)?;
        Ok(request.choices.len())
    }
}

/// The parsed body of a completion request.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    /// `n` choices for each prompt, in order.
    pub choices: Vec<Choice>,
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

/// A choice to generate. Choices share what they have in common: there may be many, and they wait here rather than in the engine.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub prompt: Arc<[u32]>,
    generation: Arc<Generation>,
    key: SamplingKey,
}

/// Parameters that the choices of a request share.
#[derive(Debug)]
struct Generation {
    sampling: Sampling,
    stop_strings: Vec<String>,
    keep_stop: bool,
    stop_ids: Vec<u32>,
    max_tokens: usize,
    logprobs: Logprobs,
}

impl Choice {
    /// Returns the engine's request for the choice.
    pub fn request(&self, id: RequestId) -> Request {
        let Generation { sampling, stop_strings, keep_stop, stop_ids, max_tokens, logprobs } = &*self.generation;
        Request {
            id,
            input: Input::Ids(self.prompt.to_vec()),
            sampling: sampling.clone(),
            sampling_key: self.key,
            stop_strings: stop_strings.clone(),
            keep_stop: *keep_stop,
            stop_ids: stop_ids.clone(),
            max_tokens: *max_tokens,
            logprobs: *logprobs,
        }
    }
}

impl ApiRequest {
    /// Largest number of tokens of a choice.
    pub fn max_tokens(&self) -> usize {
        self.choices.first().map_or(0, |choice| choice.generation.max_tokens)
    }

    /// Estimates the bytes that the engine keeps for log-probabilities while it generates. Tokens and texts are in proportion to its KV cache.
    pub fn generation_bytes(&self) -> usize {
        let Some(top) = self.logprobs else { return 0 };
        let tokens =
            |choice: &Choice| self.max_tokens().saturating_add(if self.echo { choice.prompt.len() } else { 0 });
        let tokens: usize = self.choices.iter().map(tokens).fold(0, usize::saturating_add);
        tokens.saturating_mul((top + 1) * size_of::<(u32, f32)>() + size_of::<TokenLogprobs>())
    }

    /// Estimates the bytes of a response that is not streamed, with so many tokens in each choice: log-probabilities, token ids, and
    /// prompts that are repeated with every choice. Other responses are short.
    pub fn response_bytes(&self, model: &ServedModel, tokens: impl Fn(usize) -> usize) -> usize {
        let mut bytes: usize = 0;
        let mut echoed: Option<(&Arc<[u32]>, usize)> = None;
        for (index, choice) in self.choices.iter().enumerate() {
            let (prompt, tokens) = (choice.prompt.len(), tokens(index));
            if self.echo {
                let text = match echoed {
                    Some((of, length)) if Arc::ptr_eq(of, &choice.prompt) => length,
                    _ => text_bytes(&choice.prompt, model),
                };
                echoed = Some((&choice.prompt, text));
                // As text, and as JSON.
                bytes = bytes.saturating_add(text.saturating_mul(2));
            }
            if let Some(top) = self.logprobs {
                let named = if self.echo { prompt.saturating_add(tokens) } else { tokens };
                bytes = bytes.saturating_add(named.saturating_mul((top + 1) * BYTES_PER_LOGPROB));
            }
            if self.token_ids {
                bytes = bytes.saturating_add(prompt.saturating_add(tokens).saturating_mul(BYTES_PER_ID));
            }
        }
        bytes
    }
}

/// Returns the length of a prompt's text, without making it.
fn text_bytes(ids: &[u32], model: &ServedModel) -> usize {
    let mut stream = model.checkpoint.tokenizer.whole_stream();
    ids.iter().map(|id| stream.push(*id).len()).sum()
}

/// Unsupported fields that would change the text, each with the values that leave it unchanged.
const UNSUPPORTED: [(&str, &[&str]); 10] = [
    ("suffix", &["\"\""]),
    ("best_of", &["1"]),
    ("frequency_penalty", &["0", "0.0"]),
    ("presence_penalty", &["0", "0.0"]),
    ("logit_bias", &["{}"]),
    ("tools", &["[]"]),
    ("functions", &["[]"]),
    ("response_format", &["{\"type\":\"text\"}"]),
    ("prompt_logprobs", &["false"]),
    ("guided_json", &[]),
];

/// All fields that are read.
const KNOWN: &[&str] = &[
    "best_of",
    "chat_template_kwargs",
    "echo",
    "frequency_penalty",
    "functions",
    "guided_json",
    "ignore_eos",
    "include_stop_str_in_output",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "min_p",
    "model",
    "n",
    "presence_penalty",
    "prompt",
    "prompt_logprobs",
    "repetition_penalty",
    "response_format",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "sampling_key",
    "seed",
    "stop",
    "stop_token_ids",
    "stream",
    "stream_options",
    "suffix",
    "temperature",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
];

/// Parses the body of `/v1/completions`.
pub(crate) fn completions(body: &[u8], model: &ServedModel) -> Result<ApiRequest, ApiError> {
    let fields = Fields::of_body(body, KNOWN)?;
    check_model(&fields, model)?;
    let prompt =
        fields.raw("prompt").ok_or_else(|| ApiError::field("prompt", "must be a string or a list of token ids"))?;
    let logprobs = fields.count("logprobs")?;
    let echo = fields.flag("echo")?;
    let mut common = parse_common(&fields, logprobs, model)?;
    if echo && common.stream {
        return Err(ApiError::field("echo", "is not supported with stream"));
    }
    if echo && logprobs.is_some() {
        common.generation.logprobs.prompt_from = Some(1);
    }
    let max_tokens = common.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    common.into_request(&fields, prompt::parse(prompt, model)?, max_tokens, echo, model)
}

/// Parses the body of `/v1/chat/completions`.
pub(crate) fn chat(body: &[u8], model: &ServedModel) -> Result<ApiRequest, ApiError> {
    let fields = Fields::of_body(body, KNOWN)?;
    check_model(&fields, model)?;
    if fields.flag("echo")? {
        return Err(ApiError::field("echo", "is a field of /v1/completions"));
    }
    let messages = messages::parse(&fields)?;
    let logprobs = match (fields.flag("logprobs")?, fields.count("top_logprobs")?) {
        (true, top) => Some(top.unwrap_or(0)),
        (false, None | Some(0)) => None,
        (false, Some(_)) => return Err(ApiError::field("top_logprobs", "requires logprobs: true")),
    };
    let common = parse_common(&fields, logprobs, model)?;
    let template = model.checkpoint.chat_template.as_ref();
    let template = template.ok_or_else(|| ApiError::invalid("the model has no chat template: use /v1/completions"))?;
    let given = fields.get("chat_template_kwargs")?;
    let thinking = match given.as_ref().and_then(|given| given.get("enable_thinking")) {
        None | Some(Value::Null) => None,
        Some(Value::Bool(on)) => Some(*on),
        Some(_) => return Err(ApiError::field("chat_template_kwargs", "enable_thinking must be true or false")),
    };
    let text = template.render_thinking(&messages, true, thinking);
    let text = text.map_err(|error| ApiError::field("messages", error.to_string()))?;
    let prompt = prompt::encode(&text, "messages", model)?;
    let rest_of_context = model.context.saturating_sub(prompt.len());
    let max_tokens = common.max_tokens.unwrap_or(rest_of_context);
    common.into_request(&fields, vec![prompt], max_tokens, false, model)
}

/// Checks the `model` field, before any other.
fn check_model(fields: &Fields<'_>, model: &ServedModel) -> Result<(), ApiError> {
    match fields.get("model")? {
        None => Ok(()),
        Some(Value::String(name)) if name == model.name => Ok(()),
        Some(Value::String(name)) => Err(ApiError::unknown_model(&name, &model.name)),
        Some(_) => Err(ApiError::field("model", "must be a string")),
    }
}

/// Fields that both paths share.
struct CommonFields {
    n: usize,
    stream: bool,
    stream_usage: bool,
    logprobs: Option<usize>,
    token_ids: bool,
    tokens_as_ids: bool,
    max_tokens: Option<usize>,
    /// Without `max_tokens`, whose default depends on the path.
    generation: Generation,
}

fn parse_common(fields: &Fields<'_>, logprobs: Option<u64>, model: &ServedModel) -> Result<CommonFields, ApiError> {
    for (name, neutral) in UNSUPPORTED {
        // What is longer is no neutral value, and is not worth parsing.
        const LONGEST: usize = 64;
        let Some(text) = fields.raw(name) else { continue };
        let value = (text.len() <= LONGEST).then(|| serde_json::from_str::<Value>(text).ok()).flatten();
        if !value.is_some_and(|value| neutral.contains(&value.to_string().as_str())) {
            return Err(ApiError::field(name, "is not supported"));
        }
    }
    let n = fields.count("n")?.unwrap_or(1);
    let n = usize::try_from(n).ok().filter(|n| (1..=MAX_COMPLETIONS).contains(n)).ok_or_else(too_many_choices)?;
    if logprobs.is_some_and(|top| top > MAX_LOGPROBS) {
        return Err(ApiError::field("logprobs", format!("at most {MAX_LOGPROBS} alternatives are supported")));
    }
    let logprobs = logprobs.map(|top| usize::try_from(top).unwrap_or(0));
    let max_tokens = match fields.count("max_completion_tokens")? {
        Some(count) => Some(count),
        None => fields.count("max_tokens")?,
    };
    let sampling = Sampling {
        temperature: fields.number("temperature", 1.0)?,
        top_k: generation::top_k(fields)?,
        top_p: fields.number("top_p", 1.0)?,
        min_p: fields.number("min_p", 0.0)?,
        repetition_penalty: fields.number("repetition_penalty", 1.0)?,
    };
    let generation = Generation {
        sampling,
        stop_strings: generation::stop_strings(fields)?,
        keep_stop: fields.flag("include_stop_str_in_output")?,
        stop_ids: generation::stop_ids(fields, model)?,
        max_tokens: 0,
        // At least one, so that the chosen token's own is computed.
        logprobs: Logprobs { top: logprobs.map_or(0, |top| top.max(1)), prompt_from: None },
    };
    Ok(CommonFields {
        n,
        stream: fields.flag("stream")?,
        stream_usage: fields.get("stream_options")?.is_some_and(|options| options["include_usage"] == true),
        logprobs,
        token_ids: fields.flag("return_token_ids")?,
        tokens_as_ids: fields.flag("return_tokens_as_token_ids")?,
        max_tokens: max_tokens.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        generation,
    })
}

fn too_many_choices() -> ApiError {
    ApiError::field("n", format!("a request may ask for 1 to {MAX_COMPLETIONS} completions"))
}

impl CommonFields {
    /// Makes the choices of a request, after a check of every prompt against the context.
    fn into_request(
        self,
        fields: &Fields<'_>,
        prompts: Vec<Arc<[u32]>>,
        max_tokens: usize,
        echo: bool,
        model: &ServedModel,
    ) -> Result<ApiRequest, ApiError> {
        if self.n.saturating_mul(prompts.len()) > MAX_COMPLETIONS {
            return Err(too_many_choices());
        }
        let context = model.context;
        if let Some(prompt) = prompts.iter().find(|prompt| prompt.len().saturating_add(max_tokens) > context) {
            let rejected = Rejected::BeyondContext { prompt: prompt.len(), max_tokens, context };
            return Err(ApiError::invalid(rejected.to_string()));
        }
        let generation = Arc::new(Generation { max_tokens, ..self.generation });
        let mut choices = Vec::with_capacity(prompts.len() * self.n);
        for prompt in &prompts {
            for _ in 0..self.n {
                let key = generation::sampling_key(fields, choices.len())?;
                choices.push(Choice { prompt: Arc::clone(prompt), generation: Arc::clone(&generation), key });
            }
        }
        Ok(ApiRequest {
            choices,
            stream: self.stream,
            stream_usage: self.stream_usage,
            logprobs: self.logprobs,
            echo,
            token_ids: self.token_ids,
            tokens_as_ids: self.tokens_as_ids,
        })
    }
}
