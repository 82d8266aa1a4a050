//! Log-likelihoods of given continuations, the completion of an item with [`super::Item::continuations`].
use serde::{Deserialize, Serialize};

/// Log-likelihood of one continuation after a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContinuationScore {
    /// Text of the continuation.
    pub text: String,
    /// Natural logarithm of its probability after the prompt.
    pub logprob: f64,
    /// Number of its tokens; 0 if it is not known.
    pub tokens: usize,
}

impl ContinuationScore {
    /// Log-likelihood per byte of UTF-8.
    pub fn per_byte(&self) -> f64 {
        self.logprob / self.text.len().max(1) as f64
    }

    /// Log-likelihood per token.
    pub fn per_token(&self) -> f64 {
        self.logprob / self.tokens.max(1) as f64
    }
}

/// Log-likelihoods of an item's continuations in their order. A sample keeps them as its completion, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Likelihoods(pub Vec<ContinuationScore>);

impl Likelihoods {
    /// Reads the text of a completion; none for any other text.
    pub fn parse(completion: &str) -> Option<Self> {
        serde_json::from_str(completion).ok()
    }

    /// Text of the completion.
    pub fn to_completion(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Index of the continuation with the highest value, the first of equal ones; none without any.
    pub fn best(&self, value: impl Fn(&ContinuationScore) -> f64) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (index, score) in self.0.iter().enumerate() {
            let value = value(score);
            if best.is_none_or(|(_, most)| value > most) {
                best = Some((index, value));
            }
        }
        best.map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(values: &[(&str, f64, usize)]) -> Likelihoods {
        let score = |&(text, logprob, tokens): &(&str, f64, usize)| ContinuationScore {
            text: text.to_owned(),
            logprob,
            tokens,
        };
        Likelihoods(values.iter().map(score).collect())
    }

    #[test]
    fn completions_read_back() {
        let scores = scores(&[(" A", -1.0 / 3.0, 1), (" \"é\"", -1e-300, 3)]);
        assert_eq!(Likelihoods::parse(&scores.to_completion()), Some(scores));
        assert_eq!(Likelihoods::parse("The answer is 5."), None);
    }

    #[test]
    fn the_best_depends_on_the_length() {
        let scores = scores(&[(" no", -2.0, 1), (" certainly", -3.0, 4), (" x", -2.0, 1)]);
        assert_eq!(scores.best(|score| score.logprob), Some(0));
        assert_eq!(scores.best(ContinuationScore::per_byte), Some(1));
        assert_eq!(scores.best(ContinuationScore::per_token), Some(1));
        assert_eq!(Likelihoods(Vec::new()).best(|score| score.logprob), None);
    }
}
