//! The engine core: everything between a request and its completion except the forward pass.
//!
//! [`EngineCore`] implements [`crate::Engine`] over any [`Backend`]. Each step it asks `scheduler` which tokens to compute (continuous
//! batching over a paged KV cache, `block_pool`, with shared prefixes, `prefix_tree`), fills a [`Step`], lets the backend compute it,
//! samples (`sampler`) where the backend did not, and updates each request (`request_state`, `stop`). `logits_decoder` lends sampling
//! and stops to engines that only compute logits. Of the CPU backend it uses the vector kernels of the sampler.

mod backend;
mod block_pool;
mod checks;
mod engine;
mod logits_decoder;
mod prefix_tree;
mod prefix_wait;
mod request_state;
pub(crate) mod sampler;
mod scheduler;
mod step;
mod stop;

pub use backend::{Backend, BackendInfo, Sampled};
pub use block_pool::BLOCK_SIZE;
pub use engine::EngineCore;
pub use logits_decoder::{LogitsDecoder, NextToken, UnusableLogits};
pub use prefix_tree::RopeFactors;
pub use scheduler::{BlockOp, Limits};
pub use step::{Piece, SamplingMetadata, Step};
