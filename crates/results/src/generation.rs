//! Generation settings: sampling, token budgets, random numbers.
use serde::{Deserialize, Serialize};

use earnest_engine::{Sampling, SamplingKey};
use earnest_tasks::suite::Budget;

/// Choice between an item's thinking and answer budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingRequest {
    /// The thinking budget if the checkpoint's chat template opens a thinking block.
    #[default]
    Auto,
    On,
    Off,
}

impl ThinkingRequest {
    /// Value of the chat template's `enable_thinking`; none leaves the choice to the template.
    pub fn enable_thinking(self) -> Option<bool> {
        match self {
            ThinkingRequest::Auto => None,
            ThinkingRequest::On => Some(true),
            ThinkingRequest::Off => Some(false),
        }
    }
}

/// Generation settings of a run; part of its identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    pub sampling: Sampling,
    /// Seed of sampling.
    pub seed: u64,
    /// Token ids that end a completion, ascending.
    pub stop_ids: Vec<u32>,
    /// Limit of new tokens, instead of the suite's budgets.
    pub max_tokens: Option<usize>,
    /// True if the suite's thinking budget applies.
    pub thinking: bool,
}

/// Limits of new tokens for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Token budget of the suite or the user.
    pub budget: usize,
    /// The budget clipped to the context.
    pub max_tokens: usize,
}

impl Generation {
    /// Returns the limits for a prompt of `prompt_tokens`; `max_tokens` is 0 if the context is full.
    pub fn room(&self, budget: Budget, prompt_tokens: usize, context: usize) -> Room {
        let budget = self.max_tokens.unwrap_or(if self.thinking { budget.thinking } else { budget.answer });
        Room { budget, max_tokens: budget.min(context.saturating_sub(prompt_tokens)) }
    }

    /// Returns the key of a sample's random numbers: SHA-256 over the seed (8 bytes, little-endian), the sample number (4 bytes,
    /// little-endian) and the item's id. It depends on nothing else, so that completions depend neither on scheduling
    /// nor on the rest of the plan.
    pub fn sampling_key(&self, item: &str, sample: u32) -> SamplingKey {
        let mut bytes = Vec::with_capacity(12 + item.len());
        bytes.extend(self.seed.to_le_bytes());
        bytes.extend(sample.to_le_bytes());
        bytes.extend(item.as_bytes());
        SamplingKey(earnest_digest::sha256(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(max_tokens: Option<usize>, thinking: bool) -> Generation {
        Generation { sampling: Sampling::GREEDY, seed: 7, stop_ids: vec![2], max_tokens, thinking }
    }

    const BUDGET: Budget = Budget { answer: 100, thinking: 1000 };

    #[test]
    fn the_budget_is_clipped_to_the_context() {
        let room = |max_tokens, thinking, prompt| generation(max_tokens, thinking).room(BUDGET, prompt, 512);
        assert_eq!(room(None, false, 10), Room { budget: 100, max_tokens: 100 });
        assert_eq!(room(None, true, 10), Room { budget: 1000, max_tokens: 502 });
        assert_eq!(room(Some(20), true, 10), Room { budget: 20, max_tokens: 20 });
        assert_eq!(room(None, false, 511), Room { budget: 100, max_tokens: 1 });
        assert_eq!(room(None, false, 512), Room { budget: 100, max_tokens: 0 });
        assert_eq!(room(None, false, 9999), Room { budget: 100, max_tokens: 0 });
    }

    #[test]
    fn keys_differ_by_seed_item_and_sample() {
        let one = generation(None, false);
        let other = Generation { seed: 8, ..one.clone() };
        let keys = [
            one.sampling_key("add-1", 0),
            one.sampling_key("add-1", 1),
            one.sampling_key("add-2", 0),
            other.sampling_key("add-1", 0),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key));
        }
        assert_eq!(one.sampling_key("add-1", 0), generation(Some(5), true).sampling_key("add-1", 0));
    }
}
