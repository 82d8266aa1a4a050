//! Engines: requests in, completions out. An engine knows requests, not suites or items.

mod api;
mod request;
pub mod cuda;
pub mod native;
pub mod openai;

pub use api::{Card, Engine, EngineError, Rejected, Statistics};
pub use request::{
    Completion, Event, FinishReason, Input, Logprobs, Request, RequestId, Sampling, SamplingKey, Timings, TokenLogprobs,
};
