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
mod by_name;
mod lengths;
mod likelihood;
mod plain;
mod python_random;
mod readings;
mod score;
mod size;
mod thinking_text;

use std::borrow::Cow;

pub use adaptive::{Chooser, RoundAnswer};
pub use by_name::ByName;
pub use failure::{FailureClass, metric_words};
pub use final_answer::{EXAMPLE_ECHOED, FINAL, ONLY_IN_THINKING, RIVALS, read_final};
pub use grid::{Grid, GridCell, GridGroup, GridRow, Unit};
pub use item::{Budget, Item, Segments, Shot};
pub use item_order::ItemOrder;
pub use lengths::{LengthList, LengthListError, check_lengths};
pub use likelihood::{ContinuationScore, Likelihoods};
pub use plain::{score_final, summarise_accuracy};
pub use readings::{ReadingCounts, Readings, RuleReading};
pub use registry::{rename_rules, stored_rule};
pub use score::{Answered, Evidence, Interval, Missing, Score, Scored, Series, Summary, SummaryRow};
pub use size::{MAX_SAMPLES, TooManySamples, check_size, most_rows, most_rows_in_words};
pub use thinking_text::ThinkingText;

/// A source of questions with exact answers, and the rules to score completions.
pub trait Suite: Send + Sync {
    /// The name on the command line, e.g. `arithmetic-bench`.
    fn name(&self) -> &str;

    /// Version of the suite's items and scoring; a change that moves a score changes it.
    fn version(&self) -> &str;

    /// The options that determine the items, as they go into the manifest.
    fn options(&self) -> serde_json::Value;

    /// The items, lazily and always the same for the same options. `--limit N` is `take(N)`, so any beginning of the sequence is a small
    /// picture of the whole: items come round-robin over tasks, and of each task in an order that spreads over its lengths.
    fn items(&self) -> Box<dyn Iterator<Item = Item> + Send + '_>;

    /// Reason for the items having ended before their number: a file that could not be read to its end. None before that.
    fn unread(&self) -> Option<String> {
        None
    }

    /// Number of items.
    fn len(&self) -> usize;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The expected answer alone, where an item's gold text has more than that.
    fn answer<'a>(&self, item: &'a Item) -> &'a str {
        &item.gold
    }

    /// The answer to an item as a worked example has it, for training on it; none where the suite has no such form.
    fn worked_answer(&self, item: &Item) -> Option<String> {
        let _ = item;
        None
    }

    /// Scores a completion. Pure: the same arguments give the same score, so stored completions can be scored again.
    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score;

    /// Runner of model-written programs, if scoring runs any. It must be started before the first score.
    fn programs(&self) -> Option<&dyn registry::Programs> {
        None
    }

    /// The rules of which one can be primary, for `--rule`.
    fn profiles(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The rules that decide correctness: one, or one a kind of prompt; none where a suite has no rules by name.
    fn primary(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Chooser of the items, where later ones depend on the scores of earlier ones; [`Suite::items`] are then those of its first round.
    fn chooser(&self) -> Option<Box<dyn Chooser + '_>> {
        None
    }

    /// Marker with which an item's prompt opened the thinking, where it is known and another one than that of the run's first prompt.
    fn opened_thinking(&self, item: &Item) -> Option<&str> {
        let _ = item;
        None
    }

    /// Id of the random numbers of an item's completion: the item's own, but where several items are the same question under other token budgets.
    fn draws<'a>(&self, item: &'a Item) -> Cow<'a, str> {
        Cow::Borrowed(&item.id)
    }

    /// Turns scored samples into tables and series with intervals.
    fn summarise(&self, samples: &[Scored<'_>]) -> Summary;

    /// The summary as grids, the most important one first; none where a row a task says it all.
    fn grids(&self, summary: &Summary) -> Vec<Grid> {
        let _ = summary;
        Vec::new()
    }
}
