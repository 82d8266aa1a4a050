//! The CPU backend: one decoder for every architecture, in exact f32, bf16 or 8-bit integers.
//!
//! `decoder` holds the weights and the forward pass, `kernels` the arithmetic, `kv` the memory of keys and values, and `team` the threads
//! that compute a step together.

mod backend;
mod decoder;
pub mod kernels;
mod kv;
mod options;
mod spin_pool;
mod team;

pub use backend::{CpuBackend, CpuEngine};
pub use decoder::LoadError;
#[cfg(test)]
pub(crate) use decoder::route;
pub use kernels::Peaks;
pub use options::Options;
pub use team::Team;
