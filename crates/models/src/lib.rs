//! Checkpoints of language models.
//!
//! [`hub`] finds, fetches and verifies checkpoints by commit; [`checkpoint`] reads a folder or GGUF file: configuration,
//! tokenizer, chat template and tensors.

pub mod checkpoint;
pub mod hub;
pub mod memory;
