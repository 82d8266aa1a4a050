//! How completions are generated: sampling, budgets, random numbers.
use serde::{Deserialize, Serialize};

use earnest_engine::{Sampling, SamplingKey};
use earnest_tasks::suite::Budget;

/// Which of an item's two budgets applies.
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
    /// Seeds the random numbers of sampling.
    pub seed: u64,
    /// Ids that end a completion, ascending.
    pub stop_ids: Vec<u32>,
    /// Replaces the suite's budgets.
    pub max_tokens: Option<usize>,
    /// The suite's thinking budget applies.
    pub thinking: bool,
}

/// New tokens a prompt may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Granted by the suite or the user.
    pub budget: usize,
    /// What is left of it within the context.
    pub max_tokens: usize,
}

impl Generation {
    /// What a prompt of so many tokens may generate; `max_tokens` is 0 if the context has no room at all.
    pub fn room(&self, budget: Budget, prompt_tokens: usize, context: usize) -> Room {
        let budget = self.max_tokens.unwrap_or(if self.thinking { budget.thinking } else { budget.answer });
        Room { budget, max_tokens: budget.min(context.saturating_sub(prompt_tokens)) }
    }

    /// Key of a sample's random numbers: SHA-256 over the seed (8 bytes, little-endian), the sample number (4 bytes,
    /// little-endian) and the item's id. It depends on nothing else, so that a text depends neither on scheduling nor
    /// on the rest of the plan.
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
        for (place, key) in keys.iter().enumerate() {
            assert!(!keys[..place].contains(key));
        }
        assert_eq!(one.sampling_key("add-1", 0), generation(Some(5), true).sampling_key("add-1", 0));
    }
}
