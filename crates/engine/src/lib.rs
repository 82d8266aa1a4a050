//! Inference engines: requests in, completions out.
//!
//! [`self::core`] is continuous batching over any [`self::core::Backend`]: [`cpu::CpuEngine`] computes on the CPU, [`cuda::CudaEngine`] on an NVIDIA
//! GPU. [`endpoint::EndpointEngine`] asks an OpenAI-compatible server. All implement [`Engine`]; [`mod@bench`] measures them.

#![warn(missing_docs)]

mod api;
mod request;
pub mod bench;
pub mod core;
pub mod cpu;
pub mod cuda;
pub mod endpoint;

pub use api::{Card, Engine, EngineError, Rejected, Statistics};
pub use request::{
    Completion, Event, FinishReason, Input, Logprobs, Request, RequestId, Sampling, SamplingKey, Timings, TokenLogprobs,
};
