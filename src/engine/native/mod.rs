//! The engine of this project: continuous batching over a paged KV cache with shared prefixes.
//!
//! `scheduler` decides which tokens a step computes, `decoder` computes them with `kernels`, `kv` holds keys and
//! values, `sampler` and `stop` turn logits into text, and `engine` ties them together behind the trait. `decoding` lends choice and
//! stops to engines that only compute logits.

mod crew;
mod decoder;
pub(crate) mod decoding;
mod engine;
pub(crate) mod flight;
pub mod kernels;
pub(crate) mod kv;
mod options;
mod prefix_wait;
pub(crate) mod sampler;
pub(crate) mod scheduler;
mod stop;
mod team;

pub use decoder::LoadError;
pub use decoding::{Decoding, Step, UnusableLogits};
pub use engine::Native;
pub(crate) use engine::fnv1a as hash_of_logits;
pub use kernels::Peaks;
pub use options::Options;
pub use team::Team;
