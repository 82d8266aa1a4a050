//! Checkpoints, as Hugging Face folders or GGUF files: configuration, tokenizer, chat template, special tokens, named tensors.

mod open;
mod config;
mod config_parts;
mod features;
mod parameters;
mod weights;
mod bounded_file;
mod json_fields;
mod hf_config;
mod hf_family;
mod hf_rope;
mod hf_experts;
mod hf_keys;
mod hf_layers;
mod hf_recent;
mod hf_names;
mod hf_quant;
mod hf_expert_names;
mod layout;
mod hf_weights;
mod gguf_file;
mod gguf_config;
mod gguf_rope;
mod gguf_names;
mod gguf_weights;
mod gguf_tokenizer;
mod gguf_pretokenizer;
mod sentencepiece_merges;
mod tokenizer;
pub mod digit_places;
mod token_pieces;
mod text_stream;
mod chat_dialect;
mod chat_template;
mod template_engine;
mod isolation;
mod tokenizer_rules;
mod prompt_ids;
mod python_values;
mod generation;
mod weight_format;
mod quantise;
mod nf4;
mod memory;
mod elsewhere;
mod error;

pub use chat_template::{ChatMessage, ChatTemplate};
pub use config::{
    Activation, BlockLayout, DecoderConfig, ExpertPlacement, Experts, KeysValues, LayerConfig, Norm, Position, QkNorm,
    Rope, RopeScaling, Routing, alibi_slopes,
};
pub use config_parts::{LatentAttention, LayerInputs, LinearAttention, Placeholders, QueryGrowth, Streams};
pub use elsewhere::mistralrs_knows;
pub(crate) use elsewhere::next_step;
pub use error::CheckpointError;
pub use generation::GenerationDefaults;
pub use isolation::serve_if_worker;
pub use json_fields::PassedKeys;
pub use memory::MemoryEstimate;
pub use open::{Checkpoint, Format, METADATA_FILES};
pub use prompt_ids::{PromptIdsError, with_one_bos};
pub use text_stream::TextStream;
pub use tokenizer::Tokenizer;
pub use weight_format::{Compute, ElementType, KvType, Quant, WeightFormat, WeightRecord};
pub use weights::{BlockType, LayerParameter, Parameter, Tensor, Values};
