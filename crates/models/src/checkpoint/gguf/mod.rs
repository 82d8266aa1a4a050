//! GGUF files: metadata, names and layouts of tensors, tokenizer.

pub(super) mod arch;
pub(super) mod config;
pub(super) mod experts;
pub(super) mod file;
mod grids;
pub(super) mod iq;
pub(super) mod layers;
pub(super) mod missing_pre;
pub(super) mod names;
pub(super) mod order;
pub(super) mod pretokenizer;
pub(super) mod recent;
pub(super) mod rope;
pub(super) mod tokenizer;
pub(super) mod weights;
