//! Scores of log-likelihoods: the choice with the highest one, and the likelihood of a text.
use super::scorer::{Method, Scorer};
use crate::suite::{Answered, ContinuationScore, FailureClass, Item, Likelihoods, Score};

/// Scores of a likelihood scorer: by the log-likelihood, by that a byte, and by that a token.
pub(super) const NAMES: [&str; 3] = ["acc", "acc_norm_bytes", "acc_norm_tokens"];

/// Metrics: log-likelihood of the right text, its bytes and its tokens.
pub(super) const LOGPROB: &str = "logprob";
pub(super) const BYTES: &str = "bytes";
pub(super) const TOKENS: &str = "tokens";

/// Scores the log-likelihoods of an item's continuations. `delimiter` begins each of them and is no part of its length.
pub(super) fn score(
    scorers: &[Scorer],
    deciding: &str,
    delimiter: &str,
    item: &Item,
    answered: &Answered<'_>,
) -> Score {
    let mut score = Score::default();
    let Some(found) = Likelihoods::parse(answered.completion).filter(|found| found.0.len() == item.continuations.len())
    else {
        for name in scorers.iter().flat_map(Scorer::names) {
            score.add_scorer(deciding, name, false, None);
        }
        score.failure = Some(FailureClass::Unparsed);
        return score;
    };
    let plain = |text: &'_ str| text.strip_prefix(delimiter).unwrap_or(text).to_owned();
    let bytes = |one: &ContinuationScore| plain(&one.text).len().max(1) as f64;
    let right = match scorers.iter().any(|scorer| matches!(scorer.method, Method::Likelihood { .. })) {
        true => item.continuations.iter().position(|text| plain(text) == item.gold),
        false => Some(0),
    };
    for scorer in scorers {
        let Method::Likelihood { .. } = scorer.method else { continue };
        let best = [
            found.best(|one| one.logprob),
            found.best(|one| one.logprob / bytes(one)),
            found.best(ContinuationScore::per_token),
        ];
        for (name, best) in NAMES.into_iter().zip(best) {
            let chosen = best.and_then(|index| found.0.get(index)).map(|one| plain(&one.text));
            score.add_scorer(deciding, name, best.is_some() && best == right, chosen);
        }
        score.failure = (!score.correct).then_some(FailureClass::Wrong);
    }
    if let Some(one) = right.and_then(|index| found.0.get(index)) {
        for (name, value) in [(LOGPROB, one.logprob), (BYTES, bytes(one)), (TOKENS, one.tokens as f64)] {
            score.metrics.insert(name, value);
        }
    }
    score
}

#[cfg(test)]
mod tests {
    use super::super::scorer_spec::{ScorerKind, ScorerSpec};
    use super::*;

    fn scored(kind: ScorerKind, deciding: &str, gold: &str, texts: &[&str], completion: &str) -> Score {
        let scorers = [Scorer::new(&ScorerSpec::of(kind)).unwrap()];
        let continuations = texts.iter().map(|text| (*text).to_owned()).collect();
        let item = Item { continuations, ..Item::plain("1", "t", "q", gold) };
        score(&scorers, deciding, " ", &item, &Answered { completion, truncated: false })
    }

    #[test]
    fn the_most_likely_choice_depends_on_the_length() {
        let likelihoods = Likelihoods(vec![
            ContinuationScore { text: " no".into(), logprob: -2.0, tokens: 1 },
            ContinuationScore { text: " certainly".into(), logprob: -3.0, tokens: 4 },
        ]);
        let texts = [" no", " certainly"];
        let by = |deciding| scored(ScorerKind::Likelihood, deciding, "certainly", &texts, &likelihoods.to_completion());
        let acc = by("acc");
        assert!(!acc.correct && acc.answer.as_deref() == Some("no") && acc.failure == Some(FailureClass::Wrong));
        let norm = by("acc_norm_bytes");
        assert!(norm.correct && norm.failure.is_none() && norm.scorers.len() == 3);
        assert_eq!((norm.metrics.get(LOGPROB), norm.metrics.get(BYTES)), (Some(-3.0), Some(9.0)));
        let broken = scored(ScorerKind::Likelihood, "acc", "no", &texts, "The answer is no.");
        assert_eq!((broken.scorers.len(), broken.failure), (3, Some(FailureClass::Unparsed)));
    }

    #[test]
    fn a_text_has_a_likelihood_and_no_rule() {
        let one = Likelihoods(vec![ContinuationScore { text: " abc".into(), logprob: -6.0, tokens: 2 }]);
        let score = scored(ScorerKind::Perplexity, "", "abc", &[" abc"], &one.to_completion());
        assert!(score.scorers.is_empty());
        assert_eq!((score.metrics.get(BYTES), score.metrics.get(TOKENS)), (Some(3.0), Some(2.0)));
    }
}
