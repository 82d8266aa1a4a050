//! Effect of a change of the weights: perplexity and greedy agreement of two engines on the same prompts.
use serde::Serialize;

use super::BenchError;
use crate::{Completion, Engine, Event, Input, Logprobs, Request, RequestId};

/// A prompt for both engines.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Strings that end the answer.
    pub stop_strings: Vec<String>,
    /// The text keeps the stop string that ended it.
    pub keep_stop: bool,
    /// Token ids that end the answer.
    pub stop_ids: Vec<u32>,
    /// Most tokens to generate.
    pub max_tokens: usize,
}

/// One engine's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Greedy tokens.
    pub ids: Vec<u32>,
    /// Sum of the log-probabilities of the prompt's tokens after the first.
    pub log_probability: f64,
    /// Number of those tokens.
    pub scored: usize,
}

/// Comparison of two engines' answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Tokens over which perplexity was computed.
    pub prompt_tokens: u64,
    /// Perplexity of the first engine.
    pub perplexity: f64,
    /// Perplexity of the second engine.
    pub perplexity_changed: f64,
    /// Completions with the same tokens.
    pub identical: u64,
    /// Tokens of the first engine's completions.
    pub tokens: u64,
    /// Of these, tokens before the first difference.
    pub tokens_agreeing: u64,
}

/// Asks an engine everything, greedily.
pub fn answer_all(engine: &mut dyn Engine, prompts: &[Prompt]) -> Result<Vec<Answer>, BenchError> {
    let mut answers: Vec<Option<Answer>> = vec![None; prompts.len()];
    let mut waiting = prompts.iter().enumerate();
    let mut in_flight = 0;
    let room = engine.card().in_flight.max(1);
    let mut left = prompts.len();
    while left > 0 {
        while in_flight < room {
            let Some((index, prompt)) = waiting.next() else { break };
            let request = Request {
                input: Input::Ids(prompt.ids.clone()),
                stop_strings: prompt.stop_strings.clone(),
                keep_stop: prompt.keep_stop,
                stop_ids: prompt.stop_ids.clone(),
                logprobs: Logprobs { top: 0, prompt_from: Some(1) },
                ..Request::greedy(RequestId(index as u64), Vec::new(), prompt.max_tokens)
            };
            engine.submit(request).map_err(|rejected| BenchError::Rejected { prompt: index, why: rejected })?;
            in_flight += 1;
        }
        for event in engine.poll().map_err(BenchError::Engine)? {
            match event {
                Event::Finished(completion) => {
                    if let Some(slot) = answers.get_mut(completion.id.0 as usize) {
                        *slot = Some(answer(*completion));
                    }
                    in_flight -= 1;
                    left -= 1;
                }
                Event::Failed { id, error, .. } => return Err(BenchError::Failed(id.0, error)),
                _ => {}
            }
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

fn answer(completion: Completion) -> Answer {
    let scored = completion.prompt_logprobs.unwrap_or_default();
    Answer {
        ids: completion.ids,
        log_probability: scored.iter().map(|token| f64::from(token.chosen)).sum(),
        scored: scored.len(),
    }
}

/// Compares answers to the same prompts, in order.
pub fn agreement(plain: &[Answer], changed: &[Answer]) -> Agreement {
    let perplexity = |answers: &[Answer]| {
        let tokens: usize = answers.iter().map(|answer| answer.scored).sum();
        let sum: f64 = answers.iter().map(|answer| answer.log_probability).sum();
        (-sum / tokens.max(1) as f64).exp()
    };
    let pairs = || plain.iter().zip(changed);
    let before_difference =
        |(a, b): (&Answer, &Answer)| a.ids.iter().zip(&b.ids).take_while(|(x, y)| x == y).count() as u64;
    Agreement {
        prompt_tokens: plain.iter().map(|answer| answer.scored as u64).sum(),
        perplexity: perplexity(plain),
        perplexity_changed: perplexity(changed),
        identical: pairs().filter(|(a, b)| a.ids == b.ids).count() as u64,
        tokens: plain.iter().map(|answer| answer.ids.len() as u64).sum(),
        tokens_agreeing: pairs().map(before_difference).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(ids: &[u32], log_probability: f64, scored: usize) -> Answer {
        Answer { ids: ids.to_vec(), log_probability, scored }
    }

    #[test]
    fn differences_are_counted() {
        let plain = [answer(&[1, 2, 3], -2.0, 2), answer(&[4, 5], -2.0, 2)];
        let same = agreement(&plain, &plain);
        assert_eq!((same.identical, same.tokens, same.tokens_agreeing), (2, 5, 5));
        assert!((same.perplexity - 1f64.exp()).abs() < 1e-12 && same.perplexity == same.perplexity_changed);
        let changed = [answer(&[1, 9, 3], -4.0, 2), answer(&[4], -4.0, 2)];
        let other = agreement(&plain, &changed);
        assert_eq!((other.identical, other.tokens, other.tokens_agreeing), (0, 5, 2));
        assert!((other.perplexity_changed - 2f64.exp()).abs() < 1e-12);
    }
}
