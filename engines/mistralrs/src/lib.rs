//! mistral.rs behind earnest's engine trait, in the only way in which version 0.8.1 was found to answer rightly on a CPU: one
//! request at a time, no prefix cache, no paged attention, prompts as token ids, 32-bit floats. mistral.rs computes logits;
//! which token they stand for and when a completion ends is decided by earnest's own code, so that ids, seeds, stop strings and
//! log-probabilities mean here what they mean in the native engine.

mod engine;
mod load;

pub use engine::MistralRs;
pub use load::load;

/// The version of mistral.rs, as pinned in Cargo.toml.
pub const VERSION: &str = "0.8.1";
