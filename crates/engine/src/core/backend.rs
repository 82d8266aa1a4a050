//! The interface between the engine core and the hardware that computes a step.

use super::step::{SamplingMetadata, Step};
use crate::{EngineError, TokenLogprobs};

/// A device that runs a decoder: computes the tokens of a step, and samples from their logits if it can.
pub trait Backend {
    /// A step that was begun and not yet finished.
    type Handle;

    /// Steps that may be in flight at once. With more than one, a step is begun before the tokens sampled in the step before are
    /// known to the host; [`Step::token_ids`] then refers to them by their row.
    const STEPS_IN_FLIGHT: usize;

    /// Pieces of one token come before all others in a step.
    const DECODE_FIRST: bool;

    /// Begins a step. The step before may still be in flight.
    ///
    /// # Errors
    /// Any error ends the engine.
    fn begin(&mut self, step: &Step) -> Result<Self::Handle, EngineError>;

    /// Waits for a step, steps being finished in the order in which they began, and returns one result for each of its rows.
    ///
    /// # Errors
    /// Any error ends the engine.
    fn finish(&mut self, handle: Self::Handle) -> Result<Vec<Sampled>, EngineError>;

    /// True if the backend samples this row itself; otherwise it returns the row's logits and the core samples.
    fn samples(&self, row: &SamplingMetadata) -> bool;

    /// Bytes of one KV block: keys and values of [`super::BLOCK_SIZE`] positions in all layers.
    fn block_bytes(&self) -> u64;

    /// The backend's part of [`crate::Card`].
    fn info(&self) -> BackendInfo;
}

/// A backend's part of [`crate::Card`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendInfo {
    /// Human-readable names of the devices in use.
    pub devices: Vec<String>,
    /// Element types of the weights, e.g. `bf16+f32`.
    pub weights_dtype: String,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// A row's bits do not depend on its batch.
    pub batch_invariant: bool,
}

/// The result of one row of logits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampled {
    /// A logit that the result depends on is NaN or positive infinity.
    pub not_finite: bool,
    /// The sampled token, if the backend sampled.
    pub token: Option<u32>,
    /// Log-probabilities of the sampled token and the most probable ones, if asked for.
    pub logprobs: Option<TokenLogprobs>,
    /// Log-probabilities of the row's target and the most probable tokens, if asked for.
    pub target: Option<TokenLogprobs>,
    /// Hash of the logits, if asked for.
    pub logits_hash: Option<u64>,
    /// The logits `[vocab]`, if asked for.
    pub logits: Option<Vec<f32>>,
}
