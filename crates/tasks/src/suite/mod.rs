//! Suites: what is asked and what counts as right. One folder a paper; no I/O.

pub mod arithmetic_bench;
pub mod dnc;
pub mod gsm_symbolic;
pub mod log;
pub mod nupa;
pub mod profile;
pub mod quoted;
pub mod registry;
pub mod task;

mod adaptive;
mod failure;
mod final_answer;
mod grid;
mod item;
mod item_order;
mod items;
mod by_name;
mod lengths;
mod likelihood;
mod plain;
mod python_random;
mod readings;
mod score;
mod scoring;
mod size;
mod thinking_text;

use std::sync::Arc;

use earnest_answer::without_markers;

pub use adaptive::{Chooser, RoundAnswer};
pub use by_name::ByName;
pub use failure::{FailureClass, metric_words};
pub use final_answer::{EXAMPLE_ECHOED, FINAL, ONLY_IN_THINKING, RIVALS, read_final};
pub use grid::{Grid, GridCell, GridGroup, GridRow, Unit};
pub use item::{Budget, Item, Segments, Shot};
pub use item_order::ItemOrder;
pub use items::{ItemList, Items};
pub use lengths::{LengthList, LengthListError, check_lengths};
pub use likelihood::{ContinuationScore, Likelihoods};
pub use plain::{score_final, summarise_accuracy};
pub use readings::{ScorerCounts, ScorerTally, SideBySide};
pub use score::{Answered, Evidence, Interval, Missing, Score, Scored, Series, Summary, SummaryRow};
pub use scoring::Scoring;
pub use size::{MAX_SAMPLES, TooManySamples, check_size, most_rows, most_rows_in_words};
pub use thinking_text::ThinkingText;

/// A suite: what is asked, and what counts as right. Cheap to clone; a run with questions of its own has other items and the same scoring.
#[derive(Clone)]
pub struct Suite {
    /// Questions, in an order that does not change.
    pub items: Arc<dyn Items>,
    /// Scorers of the suite. [`Suite::score`] scores completions by them; their own [`Scoring::score`] knows nothing of [`Suite::thinking`].
    pub scoring: Arc<dyn Scoring>,
    /// Part of thinking in scores.
    pub thinking: ThinkingText,
}

impl Suite {
    /// The suite whose questions and scorers are one value's. Thinking is stripped.
    pub fn new(both: impl Items + Scoring + 'static) -> Self {
        let both = Arc::new(both);
        Suite { items: both.clone(), scoring: both, thinking: ThinkingText::Stripped }
    }

    /// Scores a completion by the suite's scorers, after what [`Suite::thinking`] does to it.
    pub fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        match self.thinking {
            ThinkingText::Stripped => self.scoring.score(item, answered),
            ThinkingText::Kept => {
                let completion = without_markers(answered.completion);
                self.scoring.score(item, &Answered { completion: &completion, ..*answered })
            }
        }
    }
}
