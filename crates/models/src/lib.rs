//! Checkpoints of language models.
//!
//! [`hub`] finds, fetches and verifies checkpoints by commit; [`checkpoint`] reads a folder or GGUF file: configuration,
//! tokenizer, chat template and tensors. `examples/inspect.rs` opens a checkpoint and describes it.

pub mod checkpoint;
pub mod hub;
pub mod memory;

pub use checkpoint::serve_if_worker;
