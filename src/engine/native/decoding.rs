//! One request that another engine computes the logits of: tokens are chosen, stops are found and the completion is made as
//! by [`super::Native`].

use std::time::Instant;

use super::flight::Flight;
use super::kernels::Isa;
use super::sampler::choose;
use crate::checkpoint::{Checkpoint, DecoderConfig};
use crate::engine::{Completion, FinishReason, Input, Rejected, Request, RequestId};

/// A request between its prompt and its completion. The caller computes logits `[vocab]` after the tokens so far, hands them to
/// [`Decoding::choose`], and goes on with the token until there is a reason to finish.
pub struct Decoding {
    flight: Flight,
    isa: Isa,
    /// Prompt and generated tokens.
    seen: Vec<u32>,
    /// Logits the model has.
    vocab: usize,
}

/// A token and, if it is the last, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub token: u32,
    pub finish: Option<FinishReason>,
}

/// Why no token could be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnusableLogits {
    #[error("the logits after position {position} are not finite")]
    NotFinite { position: usize },
    #[error("{found} logits, the vocabulary has {expected}")]
    Count { found: usize, expected: usize },
}

impl Decoding {
    /// Takes a request of token ids for the checkpoint's model; it is refused as [`super::Native`] would refuse it, and if it
    /// asks for log-probabilities of its prompt, which need more logits than the last.
    pub fn new(request: Request, checkpoint: &Checkpoint) -> Result<Decoding, Rejected> {
        let prompt = ids(&request)?;
        check(&request, &prompt, &checkpoint.config)?;
        if request.logprobs.prompt {
            return Err(Rejected::Unsupported("log-probabilities of the prompt are not offered by this engine".into()));
        }
        Ok(Decoding {
            seen: prompt.clone(),
            flight: Flight::new(request, prompt, checkpoint.tokenizer.stream()),
            isa: Isa::detect(),
            vocab: checkpoint.config.vocab_size,
        })
    }

    /// The caller's name for the request.
    pub fn id(&self) -> RequestId {
        self.flight.request.id
    }

    /// Tokens of the prompt.
    pub fn prompt(&self) -> &[u32] {
        &self.flight.prompt
    }

    /// Notes that its computation begins now.
    pub fn begin(&mut self) {
        self.flight.schedule(Instant::now());
    }

    /// Chooses the next token.
    pub fn choose(&mut self, logits: &[f32]) -> Result<Step, UnusableLogits> {
        if logits.len() != self.vocab {
            return Err(UnusableLogits::Count { found: logits.len(), expected: self.vocab });
        }
        let request = &self.flight.request;
        let step = self.flight.ids.len() as u64;
        let top = request.logprobs.top;
        let choice = choose(self.isa, logits, &self.seen, &request.sampling, request.sampling_key, step, top)
            .ok_or(UnusableLogits::NotFinite { position: self.seen.len() - 1 })?;
        self.seen.push(choice.token);
        let finish = self.flight.push(choice.token, choice.logprobs, None, Instant::now());
        Ok(Step { token: choice.token, finish })
    }

    /// Makes the completion of what was generated.
    pub fn finish(self, reason: FinishReason) -> Completion {
        self.flight.finish(reason, 0)
    }
}

/// The ids of a request's prompt.
pub(crate) fn ids(request: &Request) -> Result<Vec<u32>, Rejected> {
    match &request.input {
        Input::Ids(ids) => Ok(ids.clone()),
        Input::Text(_) | Input::Messages(_) => {
            Err(Rejected::Unsupported("the engine takes token ids: render and tokenise the prompt first".into()))
        }
    }
}

/// Refuses what can never be run on a model.
pub(crate) fn check(request: &Request, prompt: &[u32], config: &DecoderConfig) -> Result<(), Rejected> {
    if prompt.is_empty() {
        return Err(Rejected::EmptyPrompt);
    }
    if request.max_tokens == 0 && !request.logprobs.prompt {
        return Err(Rejected::NothingToDo);
    }
    let vocab = config.vocab_size;
    if let Some((position, &id)) = prompt.iter().enumerate().find(|(_, id)| **id as usize >= vocab) {
        return Err(Rejected::UnknownToken { id, position, vocab });
    }
    let s = &request.sampling;
    let sound = s.temperature >= 0.0
        && s.temperature.is_finite()
        && s.top_p > 0.0
        && s.top_p <= 1.0
        && (0.0..=1.0).contains(&s.min_p)
        && s.repetition_penalty > 0.0
        && s.repetition_penalty.is_finite();
    if !sound {
        return Err(Rejected::Unsupported(format!(
            "sampling settings out of range: temperature {} (0 or more), top_p {} (above 0, at most 1), min_p {} (0 to 1), repetition_penalty {} (above 0)",
            s.temperature, s.top_p, s.min_p, s.repetition_penalty
        )));
    }
    let context = config.max_positions;
    let max_tokens = request.max_tokens;
    if prompt.len().saturating_add(max_tokens) > context {
        return Err(Rejected::BeyondContext { prompt: prompt.len(), max_tokens, context });
    }
    Ok(())
}
