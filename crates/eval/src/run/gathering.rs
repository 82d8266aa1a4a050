//! Answers to the requests of a sample: one where text is generated, else one for each continuation to score.
use earnest_engine::{Completion, FinishReason, RequestId, Timings};
use earnest_results::{FailureKind, SampleFailure};
use earnest_tasks::suite::{ContinuationScore, Likelihoods};

/// Completion of a request, or the reason why there is none.
pub(super) type Outcome = Result<Completion, SampleFailure>;

/// Outcomes of a sample's requests so far.
pub(super) struct Gathering {
    /// Continuations; empty where text is generated.
    texts: Vec<String>,
    outcomes: Vec<Option<Outcome>>,
}

impl Gathering {
    /// Creates the gathering of a sample with these continuations.
    pub(super) fn new(texts: Vec<String>) -> Self {
        let outcomes = (0..texts.len().max(1)).map(|_| None).collect();
        Gathering { texts, outcomes }
    }

    /// Adds the outcome of a request; returns that of the sample once all are there. A sample fails with the first continuation that
    /// did.
    pub(super) fn add(&mut self, part: usize, outcome: Outcome) -> Option<Outcome> {
        self.outcomes[part] = Some(outcome);
        if self.outcomes.iter().any(Option::is_none) {
            return None;
        }
        let outcomes = std::mem::take(&mut self.outcomes).into_iter().flatten();
        if self.texts.is_empty() {
            return outcomes.last();
        }
        Some(outcomes.collect::<Result<Vec<_>, _>>().and_then(|parts| likelihoods(&self.texts, parts)))
    }
}

/// Joins the completions of a sample's continuations into one, whose text is their log-likelihoods.
fn likelihoods(texts: &[String], parts: Vec<Completion>) -> Outcome {
    let mut joined = Completion {
        id: RequestId(0),
        ids: Vec::new(),
        counted_tokens: 0,
        text: String::new(),
        finish: FinishReason::Eos,
        prompt_tokens: usize::MAX,
        cached_tokens: usize::MAX,
        logprobs: None,
        prompt_logprobs: None,
        logits_hashes: None,
        timings: Timings { queued_s: f64::INFINITY, ..Timings::default() },
    };
    let mut scores = Vec::with_capacity(texts.len());
    for (text, part) in texts.iter().zip(parts) {
        let tokens = part.prompt_logprobs.unwrap_or_default();
        let logprob: f64 = tokens.iter().map(|token| f64::from(token.chosen)).sum();
        if tokens.is_empty() || !logprob.is_finite() {
            let message = format!("the engine gave no log-likelihood of the continuation {text:?}");
            return Err(SampleFailure { kind: FailureKind::Engine, message, retryable: false });
        }
        joined.prompt_tokens = joined.prompt_tokens.min(part.prompt_tokens.saturating_sub(tokens.len()));
        // What one of them computed, the others read from the cache.
        joined.cached_tokens = joined.cached_tokens.min(part.cached_tokens);
        joined.timings.queued_s = joined.timings.queued_s.min(part.timings.queued_s);
        joined.timings.prefill_s += part.timings.prefill_s;
        joined.timings.decode_s += part.timings.decode_s;
        scores.push(ContinuationScore { text: text.clone(), logprob, tokens: tokens.len() });
    }
    Ok(Completion { text: Likelihoods(scores).to_completion(), ..joined })
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_engine::TokenLogprobs;

    fn part(logprobs: &[f32], prompt: usize, cached: usize, seconds: f64) -> Completion {
        Completion {
            id: RequestId(7),
            ids: Vec::new(),
            counted_tokens: 0,
            text: String::new(),
            finish: FinishReason::Length,
            prompt_tokens: prompt,
            cached_tokens: cached,
            logprobs: None,
            prompt_logprobs: Some(logprobs.iter().map(|&chosen| TokenLogprobs { chosen, top: Vec::new() }).collect()),
            logits_hashes: None,
            timings: Timings { queued_s: seconds, prefill_s: seconds, decode_s: 0.0 },
        }
    }

    #[test]
    fn the_last_outcome_completes_a_sample_whatever_the_order() {
        let mut gathering = Gathering::new(vec![" a".into(), " b c".into()]);
        assert_eq!(gathering.add(1, Ok(part(&[-0.5, -0.25], 12, 9, 2.0))), None);
        let whole = gathering.add(0, Ok(part(&[-1.5], 11, 0, 1.0))).unwrap().unwrap();
        let scores = Likelihoods::parse(&whole.text).unwrap().0;
        assert_eq!(scores[0], ContinuationScore { text: " a".into(), logprob: -1.5, tokens: 1 });
        assert_eq!(scores[1], ContinuationScore { text: " b c".into(), logprob: -0.75, tokens: 2 });
        assert_eq!((whole.prompt_tokens, whole.cached_tokens, whole.finish), (10, 0, FinishReason::Eos));
        assert_eq!(whole.timings, Timings { queued_s: 1.0, prefill_s: 3.0, decode_s: 0.0 });
    }

    #[test]
    fn one_failure_fails_the_sample() {
        let failure = SampleFailure { kind: FailureKind::Refused, message: "too large".into(), retryable: true };
        let mut gathering = Gathering::new(vec!["a".into(), "b".into()]);
        assert_eq!(gathering.add(0, Err(failure.clone())), None);
        assert_eq!(gathering.add(1, Ok(part(&[-1.0], 3, 0, 1.0))), Some(Err(failure)));
        let mut gathering = Gathering::new(vec!["a".into()]);
        let lost = gathering.add(0, Ok(part(&[f32::NEG_INFINITY], 3, 0, 1.0))).unwrap().unwrap_err();
        assert!(lost.message.contains("no log-likelihood of the continuation \"a\""), "{}", lost.message);
    }

    #[test]
    fn generated_text_is_passed_on() {
        let completion = Completion { text: "5".into(), ..part(&[], 3, 0, 1.0) };
        assert_eq!(Gathering::new(Vec::new()).add(0, Ok(completion.clone())), Some(Ok(completion)));
    }
}
