//! Requests, completions and events.
use serde::{Deserialize, Serialize};

use earnest_models::checkpoint::ChatMessage;

/// A caller's name for a request; unique among the requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// Prompt of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Token ids, exactly as the model will see them (BOS included if wanted).
    Ids(Vec<u32>),
    /// Raw text, for engines that tokenise themselves.
    Text(String),
    /// A conversation, for engines that apply the chat template themselves.
    Messages(Vec<ChatMessage>),
}

impl Input {
    /// Returns the most tokens that it can have before a template is applied: its ids, or its bytes.
    pub(crate) fn longest(&self) -> usize {
        match self {
            Input::Ids(ids) => ids.len(),
            Input::Text(text) => text.len(),
            Input::Messages(messages) => {
                let lengths = messages.iter().map(|message| message.role.len() + message.content.len());
                lengths.fold(0, usize::saturating_add)
            }
        }
    }
}

/// Sampling parameters. The filters apply in the order of transformers' `generate`: repetition penalty,
/// temperature, top-k, top-p, min-p.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// 0 is greedy: the largest logit, the smallest id on ties.
    pub temperature: f32,
    /// Keep the k largest logits; 0 keeps all.
    pub top_k: usize,
    /// Keep the smallest set of tokens whose probability reaches this; 1 keeps all.
    pub top_p: f32,
    /// Drop tokens less probable than this fraction of the most probable one; 0 drops none.
    pub min_p: f32,
    /// Divide (multiply, if negative) the logits of tokens already seen in prompt or output; 1 changes nothing.
    pub repetition_penalty: f32,
}

impl Sampling {
    /// Always the most probable token.
    pub const GREEDY: Sampling =
        Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0 };

    /// True when the choice needs no random number.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }
}

/// Key of a request's random numbers. The same key draws the same numbers whatever else is in flight; `run` derives it
/// from (seed, item id, sample number).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplingKey(pub [u8; 32]);

/// A request to continue a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Id, unique among the requests in flight.
    pub id: RequestId,
    /// Prompt.
    pub input: Input,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// Key of its random numbers.
    pub sampling_key: SamplingKey,
    /// Generation ends at the first of these strings.
    pub stop_strings: Vec<String>,
    /// The text ends with the stop string that ended it; otherwise it ends before.
    pub keep_stop: bool,
    /// Generation ends at these ids (the checkpoint's end-of-sequence ids, unless the caller decides otherwise).
    pub stop_ids: Vec<u32>,
    /// Most tokens to generate; 0 only with log-probabilities of the prompt.
    pub max_tokens: usize,
    /// Log-probabilities to return.
    pub logprobs: Logprobs,
}

impl Request {
    /// A request that takes the most probable token `max_tokens` times, whatever it is.
    pub fn greedy(id: RequestId, prompt: Vec<u32>, max_tokens: usize) -> Request {
        Request {
            id,
            input: Input::Ids(prompt),
            sampling: Sampling::GREEDY,
            sampling_key: SamplingKey::default(),
            stop_strings: vec![],
            keep_stop: false,
            stop_ids: vec![],
            max_tokens,
            logprobs: Logprobs::default(),
        }
    }
}

/// Log-probabilities to return. They are of the model's own distribution (before sampling filters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Logprobs {
    /// For each generated token, this many of the most probable ones (and always the chosen one) if not 0; likewise for each
    /// prompt token whose log-probability is asked for.
    pub top: usize,
    /// The log-probability of each prompt token given those before it, from this one on. The prompt up to the token before it may
    /// come from the prefix cache. The unit is the input's: tokens, or bytes where the engine tokenises a text itself; a token counts
    /// if it reaches beyond the byte. The first token of a sequence has no log-probability.
    pub prompt_from: Option<usize>,
}

/// Reason why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// A stop id (end of sequence).
    Eos,
    /// A stop string.
    StopString,
    /// `max_tokens` were generated: the answer may be cut. Also the end of a request that generates nothing.
    Length,
    /// The caller cancelled it.
    Cancelled,
}

/// Log-probabilities at the place of one token, generated or of the prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprobs {
    /// The token's natural-log probability.
    pub chosen: f32,
    /// The most probable tokens, best first: (id, natural-log probability).
    pub top: Vec<(u32, f32)>,
}

/// Durations of a request's phases, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timings {
    /// From submission to the first scheduled prompt token.
    pub queued_s: f64,
    /// From the first scheduled prompt token to the first generated token; where none is generated, to the prompt's last
    /// log-probability.
    pub prefill_s: f64,
    /// From the first to the last generated token.
    pub decode_s: f64,
}

/// A finished request.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Id of the request.
    pub id: RequestId,
    /// The generated ids, the stop id included if one ended it.
    pub ids: Vec<u32>,
    /// Number of generated tokens by the usage of an endpoint that returns no ids, else 0.
    pub counted_tokens: usize,
    /// The generated text, special tokens skipped, cut at the stop string.
    pub text: String,
    /// Reason why it ended.
    pub finish: FinishReason,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that were read from the prefix cache instead of computed.
    pub cached_tokens: usize,
    /// One entry a generated token, if asked for.
    pub logprobs: Option<Vec<TokenLogprobs>>,
    /// One entry a prompt token from [`Logprobs::prompt_from`] on, if asked for.
    pub prompt_logprobs: Option<Vec<TokenLogprobs>>,
    /// One hash a generated token: FNV-1a over the bits of the logits it was chosen from (only in traced engines).
    pub logits_hashes: Option<Vec<u64>>,
    /// Durations of its phases.
    pub timings: Timings,
}

/// An event since the last poll.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Work was done: tokens computed in this step, for progress displays.
    Progress {
        /// Prompt tokens computed.
        prefilled: usize,
        /// Tokens generated.
        decoded: usize,
    },
    /// More of a request that is followed ([`super::Engine::follow`]): tokens and text since the last such event. Text that a stop string
    /// may still cut comes later, the rest with the completion.
    Generated {
        /// Id of the request.
        id: RequestId,
        /// Generated ids.
        ids: Vec<u32>,
        /// Generated text.
        text: String,
        /// Log-probabilities of the ids, if asked for.
        logprobs: Option<Vec<TokenLogprobs>>,
    },
    /// A request ended.
    Finished(Box<Completion>),
    /// A request can not be completed.
    Failed {
        /// Id of the request.
        id: RequestId,
        /// Reason, for people.
        error: String,
        /// Trying again may help.
        retryable: bool,
    },
    /// The number of requests that can usefully be in flight changed.
    CapacityChanged {
        /// The new number.
        in_flight: usize,
    },
}
