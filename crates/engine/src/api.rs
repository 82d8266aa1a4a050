//! The engine trait, and its descriptions and errors.
use serde::{Deserialize, Serialize};

use super::{Event, Request, RequestId};
use crate::cuda::DeviceError;
use crate::endpoint::EndpointError;

/// Runs requests. Calls never block for longer than one step of work; a caller submits, then polls until nothing is in
/// flight.
pub trait Engine {
    /// Queues a request.
    ///
    /// # Errors
    /// [`Rejected`] if it can never run.
    fn submit(&mut self, request: Request) -> Result<(), Rejected>;

    /// Does one step of work and returns its events; none means that nothing is in flight.
    ///
    /// # Errors
    /// An error is fatal for the engine; a failure of one request comes as [`Event::Failed`].
    fn poll(&mut self) -> Result<Vec<Event>, EngineError>;

    /// Streams a request's output as [`Event::Generated`] from now on. False if this engine does not stream, or the request is unknown;
    /// its completion comes all the same.
    fn follow(&mut self, _id: RequestId) -> bool {
        false
    }

    /// Takes a notice for the user that ends nothing, e.g. that an endpoint is asked again.
    fn notice(&mut self) -> Option<String> {
        None
    }

    /// Ends a request: its completion, with what was generated so far, comes with the next poll. False if it is unknown.
    fn cancel(&mut self, id: RequestId) -> bool;

    /// Empties the prefix cache, so that measurements do not profit from earlier ones. Does nothing while requests are in flight, or
    /// where there is none.
    fn forget_prompts(&mut self) {}

    /// Describes the engine.
    fn card(&self) -> Card;

    /// Counters since the engine was made.
    fn statistics(&self) -> Statistics;
}

/// Description of an engine; part of a run's manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Name of the engine, e.g. `native`.
    pub engine: String,
    /// Version of the engine.
    pub version: String,
    /// Human-readable names of the devices in use.
    pub devices: Vec<String>,
    /// Element types of the weights, e.g. `f32`.
    pub weights_dtype: String,
    /// Longest sequence, prompt and generation together, in tokens; 0 if an endpoint does not say.
    pub context: usize,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Bytes reserved for keys and values.
    pub kv_bytes: u64,
    /// Tokens that fit.
    pub kv_tokens: usize,
    /// Requests that can usefully be in flight.
    pub in_flight: usize,
    /// A request gives the same bits in any batch.
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
    /// Requests running now.
    pub running: usize,
    /// Requests waiting now.
    pub waiting: usize,
    /// KV blocks in use, cached ones included.
    pub blocks_used: usize,
    /// KV blocks that only the prefix cache holds: free to be evicted.
    pub blocks_cached: usize,
    /// KV blocks in total.
    pub blocks_total: usize,
    /// Cached blocks evicted.
    pub evictions: u64,
    /// Running requests preempted for want of blocks.
    pub preemptions: u64,
    /// Exchanges with an endpoint that had to be repeated.
    #[serde(default)]
    pub retries: u64,
}

/// Reasons why a request is rejected. Every message names the numbers.
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
    BeyondContext {
        /// Tokens of the prompt.
        prompt: usize,
        /// Most tokens to generate.
        max_tokens: usize,
        /// Longest sequence of the model.
        context: usize,
    },
    /// The request would not fit into the KV cache even alone.
    #[error(
        "{prompt} prompt tokens + {max_tokens} new tokens need {needed_blocks} KV blocks, the cache has {total_blocks} ({total_tokens} tokens): raise the setting `kv_memory` to at least {needed_mib} MiB"
    )]
    LargerThanCache {
        /// Tokens of the prompt.
        prompt: usize,
        /// Most tokens to generate.
        max_tokens: usize,
        /// KV blocks that it needs.
        needed_blocks: usize,
        /// KV blocks of the cache.
        total_blocks: usize,
        /// Tokens that fit into the cache.
        total_tokens: usize,
        /// Size of a cache that is large enough.
        needed_mib: u64,
    },
    /// A token id the model does not have.
    #[error("token id {id} at position {position} is outside the vocabulary of {vocab}")]
    UnknownToken {
        /// The id.
        id: u32,
        /// Its position in the prompt.
        position: usize,
        /// Vocabulary size.
        vocab: usize,
    },
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
    /// The device failed.
    #[error("the GPU failed: {0}")]
    Device(#[from] DeviceError),
    /// The endpoint answers no more requests.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A request that is needed can not run.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// Requests are in flight, and the call needs an idle engine.
    #[error("logits can only be read while no request is in flight")]
    NotIdle,
    /// Requests are in flight and the scheduler runs none of them.
    #[error("{requests} requests are in flight but none can be scheduled; please report this")]
    NothingScheduled {
        /// Number of requests in flight.
        requests: usize,
    },
    /// Any other failure, in the engine's words.
    #[error("{0}")]
    Fatal(String),
}
