//! Checkpoints of language models.
//!
//! [`hub`] finds, fetches and verifies checkpoints by commit; [`checkpoint`] reads a folder or GGUF file: configuration,
//! tokenizer, chat template and tensors. [`address`] and [`json`] read what a hub or an endpoint is called and what it answers. `examples/inspect.rs` opens a checkpoint and describes it.

pub mod address;
pub mod checkpoint;
pub mod hub;
pub mod json;
pub mod memory;
mod resolver;

pub use checkpoint::serve_if_worker;
pub use resolver::agent;
