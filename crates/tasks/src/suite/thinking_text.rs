//! Thinking and its part in scoring.
use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::registry::Programs;
use super::{Answered, Chooser, Grid, Item, Score, Scored, Suite, Summary};
use earnest_answer::without_markers;

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

    /// The suite, scoring in this way.
    pub fn of(self, suite: Box<dyn Suite>) -> Box<dyn Suite> {
        match self {
            ThinkingText::Stripped => suite,
            ThinkingText::Kept => Box::new(KeptThinking { suite }),
        }
    }
}

/// A suite that sees completions without the markers of thinking, and so without anything to strip.
struct KeptThinking {
    suite: Box<dyn Suite>,
}

impl Suite for KeptThinking {
    fn name(&self) -> &str {
        self.suite.name()
    }

    fn version(&self) -> &str {
        self.suite.version()
    }

    fn options(&self) -> serde_json::Value {
        self.suite.options()
    }

    fn items(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        self.suite.items()
    }

    fn unread(&self) -> Option<String> {
        self.suite.unread()
    }

    fn len(&self) -> usize {
        self.suite.len()
    }

    fn is_empty(&self) -> bool {
        self.suite.is_empty()
    }

    fn worked_answer(&self, item: &Item) -> Option<String> {
        self.suite.worked_answer(item)
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        let completion = without_markers(answered.completion);
        self.suite.score(item, &Answered { completion: &completion, ..*answered })
    }

    fn programs(&self) -> Option<&dyn Programs> {
        self.suite.programs()
    }

    fn profiles(&self) -> Vec<&str> {
        self.suite.profiles()
    }

    fn primary(&self) -> Vec<&str> {
        self.suite.primary()
    }

    fn chooser(&self) -> Option<Box<dyn Chooser + '_>> {
        self.suite.chooser()
    }

    fn opened_thinking(&self, item: &Item) -> Option<&str> {
        self.suite.opened_thinking(item)
    }

    fn draws<'a>(&self, item: &'a Item) -> Cow<'a, str> {
        self.suite.draws(item)
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        self.suite.summarise(samples)
    }

    fn grids(&self, summary: &Summary) -> Vec<Grid> {
        self.suite.grids(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::arithmetic_bench::{ArithmeticBench, Options};

    #[test]
    fn kept_thinking_is_scored() {
        let suite = |text: ThinkingText| text.of(Box::new(ArithmeticBench::new(Options::default()).unwrap()));
        let (stripped, kept) = (suite(ThinkingText::Stripped), suite(ThinkingText::Kept));
        let item = stripped.items().next().unwrap();
        let score = |suite: &dyn Suite, completion: &str| {
            suite.score(&item, &Answered { completion, truncated: false }).correct
        };
        // The budget ended the thinking before the answer was said.
        let unfinished = format!("<think>\n{}\n", item.gold);
        assert!(!score(stripped.as_ref(), &unfinished) && score(kept.as_ref(), &unfinished));
        let plain = item.gold.as_str();
        assert!(score(stripped.as_ref(), plain) && score(kept.as_ref(), plain));
        assert_eq!((kept.name(), kept.len(), kept.options()), (stripped.name(), stripped.len(), stripped.options()));
        assert_eq!((kept.profiles(), kept.primary()), (stripped.profiles(), stripped.primary()));
    }
}
