//! Sampling, stops and completions for engines that compute logits elsewhere, the same as in [`super::EngineCore`].

use std::time::Instant;

use super::checks::{check, prompt_ids};
use super::request_state::RequestState;
use super::sampler::sample;
use crate::cpu::kernels::Isa;
use crate::{Completion, FinishReason, Rejected, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;

/// A request that is decoded from logits computed elsewhere. The caller computes logits `[vocab]` after the tokens so far, hands them
/// to [`LogitsDecoder::sample`], and goes on with the token until there is a reason to finish.
pub struct LogitsDecoder {
    state: RequestState,
    isa: Isa,
    /// Prompt and generated tokens.
    seen: Vec<u32>,
    /// Vocabulary size.
    vocab: usize,
}

/// A sampled token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextToken {
    /// Its id.
    pub token: u32,
    /// Reason why the request ends with it, if it does.
    pub finish: Option<FinishReason>,
}

/// Logits that no token can be sampled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnusableLogits {
    /// A logit is NaN or positive infinity.
    #[error("the logits after position {position} are not finite")]
    NotFinite {
        /// Position of the last token before them.
        position: usize,
    },
    /// Not one logit for each token of the vocabulary.
    #[error("{found} logits, the vocabulary has {expected}")]
    Count {
        /// Number of logits.
        found: usize,
        /// Vocabulary size.
        expected: usize,
    },
}

impl LogitsDecoder {
    /// Takes a request of token ids for a checkpoint's model.
    ///
    /// # Errors
    /// Rejected as by [`super::EngineCore`], and if it asks for log-probabilities of its prompt, which need more logits than the last.
    pub fn new(request: Request, checkpoint: &Checkpoint) -> Result<LogitsDecoder, Rejected> {
        let prompt = prompt_ids(&request)?;
        check(&request, &prompt, &checkpoint.config)?;
        if request.logprobs.prompt_from.is_some() {
            return Err(Rejected::Unsupported("log-probabilities of the prompt are not offered by this engine".into()));
        }
        Ok(LogitsDecoder {
            seen: prompt.clone(),
            state: RequestState::new(request, prompt, checkpoint.tokenizer.stream()),
            isa: Isa::detect(),
            vocab: checkpoint.config.vocab_size,
        })
    }

    /// Id of the request.
    pub fn id(&self) -> RequestId {
        self.state.request.id
    }

    /// Token ids of the prompt.
    pub fn prompt(&self) -> &[u32] {
        &self.state.prompt
    }

    /// Records that its computation begins now.
    pub fn begin(&mut self) {
        self.state.schedule(Instant::now());
    }

    /// Samples the next token from logits `[vocab]`.
    ///
    /// # Errors
    /// [`UnusableLogits`] if a logit is not finite or their number is wrong.
    pub fn sample(&mut self, logits: &[f32]) -> Result<NextToken, UnusableLogits> {
        if logits.len() != self.vocab {
            return Err(UnusableLogits::Count { found: logits.len(), expected: self.vocab });
        }
        let request = &self.state.request;
        let step = self.state.ids.len() as u64;
        let top = request.logprobs.top;
        let sampled = sample(self.isa, logits, &self.seen, &request.sampling, request.sampling_key, step, top)
            .ok_or(UnusableLogits::NotFinite { position: self.seen.len() - 1 })?;
        self.seen.push(sampled.token);
        let finish = self.state.push(sampled.token, sampled.logprobs, None, Instant::now());
        Ok(NextToken { token: sampled.token, finish })
    }

    /// Ends the request and makes its completion.
    pub fn finish(self, reason: FinishReason) -> Completion {
        self.state.finish(reason, 0)
    }
}
