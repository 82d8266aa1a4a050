//! Checkpoints, as Hugging Face folders or GGUF files: configuration, tokenizer, chat template, special tokens, named tensors.

mod open;
mod config;
mod config_parts;
mod features;
mod parameters;
mod weights;
mod levels;
mod bounded_file;
mod stored_values;
mod json_fields;
mod layout;
mod allowed;
mod chat;
mod gguf;
mod hf;
mod tokenizer;
pub mod digit_places;
mod trial;
mod trial_cache;
mod prompt_ids;
mod generation;
mod weight_format;
mod quantise;
mod random;
mod nf4;
mod memory;
mod elsewhere;
mod other_engines;
mod error;

pub use allowed::{AllowError, PRE_TOKENIZER_KEY, is_pre_tokenizer, named_pre_tokenizer};
pub use chat::message::ChatMessage;
pub use chat::template::ChatTemplate;
pub use config::{
    Activation, BlockLayout, DecoderConfig, ExpertPlacement, Experts, KeysValues, LayerConfig, Norm, Position, QkNorm,
    Rope, RopeScaling, Routing, alibi_slopes,
};
pub use config_parts::{LatentAttention, LayerInputs, LinearAttention, Placeholders, QueryGrowth, Streams};
pub use error::CheckpointError;
pub use generation::GenerationDefaults;
pub use gguf::tokenizer::SuppliedPreTokenizer;
pub use json_fields::PassedKeys;
pub use levels::Levels;
pub use memory::MemoryEstimate;
pub use open::{Checkpoint, Format, METADATA_FILES};
pub use other_engines::mistralrs_knows;
pub(crate) use other_engines::next_step;
pub use prompt_ids::{PromptIdsError, with_one_bos};
pub use quantise::{PartBlockError, dequantise, quantise};
pub use random::BlockCopies;
pub use tokenizer::Tokenizer;
pub use tokenizer::text_stream::TextStream;
pub use trial::serve_if_worker;
pub use weight_format::{Compute, ElementType, KvType, Quant, WeightFormat, WeightRecord};
pub use weights::{BlockType, GroupedRow, Half, LayerParameter, Parameter, Tensor, Values};
