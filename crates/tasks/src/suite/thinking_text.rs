//! Thinking and its part in scoring.
use serde::{Deserialize, Serialize};

/// Treatment of thinking when a completion is scored; part of a run's identity where it is not the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingText {
    /// Only what comes after it counts as the answer.
    #[default]
    Stripped,
    /// It is text like any other: answers are looked for in it too.
    Kept,
}

impl ThinkingText {
    /// True for [`ThinkingText::Stripped`].
    pub fn is_stripped(&self) -> bool {
        *self == ThinkingText::Stripped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::arithmetic_bench::{ArithmeticBench, Options};
    use crate::suite::{Answered, Suite};

    #[test]
    fn kept_thinking_is_scored() {
        let stripped = Suite::new(ArithmeticBench::new(Options::default()).unwrap());
        let kept = Suite { thinking: ThinkingText::Kept, ..stripped.clone() };
        let item = stripped.items.iter().next().unwrap();
        let score =
            |suite: &Suite, completion: &str| suite.score(&item, &Answered { completion, truncated: false }).correct;
        // The budget ended the thinking before the answer was said.
        let unfinished = format!("<think>\n{}\n", item.gold);
        assert!(!score(&stripped, &unfinished) && score(&kept, &unfinished));
        let plain = item.gold.as_str();
        assert!(score(&stripped, plain) && score(&kept, plain));
    }
}
