//! Checks of a request before it is queued.

use crate::{Input, Rejected, Request, Sampling};
use earnest_models::checkpoint::DecoderConfig;

/// Returns the token ids of a request's prompt.
///
/// # Errors
/// [`Rejected::Unsupported`] for text and messages.
pub(super) fn prompt_ids(request: &Request) -> Result<Vec<u32>, Rejected> {
    match &request.input {
        Input::Ids(ids) => Ok(ids.clone()),
        Input::Text(_) | Input::Messages(_) => {
            Err(Rejected::Unsupported("the engine takes token ids: render and tokenise the prompt first".into()))
        }
    }
}

/// Rejects a request that can never run on a model.
pub(super) fn check(request: &Request, prompt: &[u32], config: &DecoderConfig) -> Result<(), Rejected> {
    if prompt.is_empty() {
        return Err(Rejected::EmptyPrompt);
    }
    if request.max_tokens == 0 && request.logprobs.prompt_from.is_none() {
        return Err(Rejected::NothingToDo);
    }
    let vocab = config.vocab_size;
    if let Some((position, &id)) = prompt.iter().enumerate().find(|(_, id)| **id as usize >= vocab) {
        return Err(Rejected::UnknownToken { id, position, vocab });
    }
    check_sampling(&request.sampling)?;
    let context = config.position_limit();
    let max_tokens = request.max_tokens;
    if prompt.len().saturating_add(max_tokens) > context {
        return Err(Rejected::BeyondContext { prompt: prompt.len(), max_tokens, context });
    }
    Ok(())
}

fn check_sampling(s: &Sampling) -> Result<(), Rejected> {
    let in_range = s.temperature >= 0.0
        && s.temperature.is_finite()
        && s.top_p > 0.0
        && s.top_p <= 1.0
        && (0.0..=1.0).contains(&s.min_p)
        && s.repetition_penalty > 0.0
        && s.repetition_penalty.is_finite();
    if in_range {
        return Ok(());
    }
    Err(Rejected::Unsupported(format!(
        "sampling settings out of range: temperature {} (0 or more), top_p {} (above 0, at most 1), min_p {} (0 to 1), repetition_penalty {} (above 0)",
        s.temperature, s.top_p, s.min_p, s.repetition_penalty
    )))
}
