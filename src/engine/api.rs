//! The trait every engine implements.
use serde::{Deserialize, Serialize};

use super::{Event, Request, RequestId};

/// Runs requests. Calls never block for longer than one step of work; a caller submits, then polls until nothing is in
/// flight.
pub trait Engine {
    /// Takes a request. It is refused if it can never be run; a request that must only wait is accepted and queued.
    fn submit(&mut self, request: Request) -> Result<(), Rejected>;

    /// Does one step of work and says what happened. An empty answer means that nothing is in flight. An error is fatal
    /// for the engine; what concerns one request only comes as [`Event::Failed`].
    fn poll(&mut self) -> Result<Vec<Event>, EngineError>;

    /// Reports what a request generates from now on as [`Event::Generated`], before it is whole. False if this engine has no such
    /// news, or the request is unknown; its completion comes all the same.
    fn follow(&mut self, _id: RequestId) -> bool {
        false
    }

    /// Something that whoever waits should know and that ends nothing, once: what an endpoint does wrong while it is asked again.
    fn notice(&mut self) -> Option<String> {
        None
    }

    /// Ends a request: its completion, with what was generated so far, comes with the next poll. False if it is unknown.
    fn cancel(&mut self, id: RequestId) -> bool;

    /// Empties the prefix cache, so that measurements do not profit from earlier ones. Does nothing while requests are in flight, or
    /// where there is none.
    fn forget_prompts(&mut self) {}

    /// What this engine is.
    fn card(&self) -> Card;

    /// Counters since the engine was made.
    fn statistics(&self) -> Statistics;
}

/// What an engine is and can do; part of a run's manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// `native`, ...
    pub engine: String,
    /// Its version.
    pub version: String,
    /// Human-readable names of the devices in use.
    pub devices: Vec<String>,
    /// How weights are held, e.g. `f32`.
    pub weights_dtype: String,
    /// Longest sequence, prompt and generation together, in tokens; 0 if an endpoint does not say.
    pub context: usize,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Bytes reserved for keys and values, and the tokens that fit.
    pub kv_bytes: u64,
    pub kv_tokens: usize,
    /// Requests that can usefully be in flight.
    pub in_flight: usize,
    /// The same request gives the same bits in any batch.
    pub deterministic: bool,
    /// Sampling honours the request's key.
    pub seeded: bool,
    /// Log-probabilities are available.
    pub logprobs: bool,
}

/// Counters of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Prompt tokens of all accepted requests.
    pub prompt_tokens: u64,
    /// Prompt tokens computed.
    pub prefilled_tokens: u64,
    /// Prompt tokens read from the prefix cache.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub decoded_tokens: u64,
    /// Steps run.
    pub steps: u64,
    /// Requests running and waiting now.
    pub running: usize,
    pub waiting: usize,
    /// KV blocks in use, cached but free to be evicted, and in all.
    pub blocks_used: usize,
    pub blocks_cached: usize,
    pub blocks_total: usize,
    /// Cached blocks evicted, running requests set back for want of blocks.
    pub evictions: u64,
    pub preemptions: u64,
    /// Exchanges with an endpoint that had to be repeated.
    #[serde(default)]
    pub retries: u64,
}

/// Why a request was refused. Every message names the numbers.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejected {
    /// The prompt has no tokens.
    #[error("the prompt is empty (0 tokens): there is nothing to continue")]
    EmptyPrompt,
    /// `max_tokens` is 0 and no prompt log-probabilities were asked for.
    #[error("max_tokens is 0: nothing would be generated")]
    NothingToDo,
    /// Prompt and generation together exceed the model's context.
    #[error("{prompt} prompt tokens + {max_tokens} new tokens = {} exceed the context of {context} tokens", prompt.saturating_add(*max_tokens))]
    BeyondContext { prompt: usize, max_tokens: usize, context: usize },
    /// The request would not fit into the KV cache even alone.
    #[error(
        "{prompt} prompt tokens + {max_tokens} new tokens need {needed_blocks} KV blocks, the cache has {total_blocks} ({total_tokens} tokens): raise --kv-memory to at least {needed_mib} MiB"
    )]
    LargerThanCache {
        prompt: usize,
        max_tokens: usize,
        needed_blocks: usize,
        total_blocks: usize,
        total_tokens: usize,
        needed_mib: u64,
    },
    /// A token id the model does not have.
    #[error("token id {id} at position {position} is outside the vocabulary of {vocab}")]
    UnknownToken { id: u32, position: usize, vocab: usize },
    /// The engine can not take this kind of input or setting.
    #[error("{0}")]
    Unsupported(String),
    /// The id is already in flight.
    #[error("request {} is already in flight", .0.0)]
    DuplicateId(RequestId),
}

/// A failure of the whole engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A worker thread could not be started, memory could not be had, ...
    #[error("{0}")]
    Fatal(String),
}
