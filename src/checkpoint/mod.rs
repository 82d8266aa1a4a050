//! What a model folder or GGUF file holds: config, tokenizer, chat template, special tokens, named tensors.

mod config;
mod weights;

pub use config::{Activation, BlockLayout, DecoderConfig, Experts, LayerConfig, Norm, Rope, RopeScaling};
pub use weights::{LayerParameter, Parameter, Tensor, Values};
