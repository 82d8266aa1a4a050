//! Scorers of a suite, under its name and version.
use std::borrow::Cow;

use super::registry::Programs;
use super::{Answered, Grid, Item, Score, Scored, Summary};

/// Scorers that say what counts as right, and what the scores of all items come to.
pub trait Scoring: Send + Sync {
    /// The suite's name on the command line, e.g. `arithmetic-bench`.
    fn name(&self) -> &str;

    /// Version of the suite's items and scoring; a change that moves a score changes it.
    fn version(&self) -> &str;

    /// The options that determine items and scores, as they go into the manifest.
    fn options(&self) -> serde_json::Value;

    /// The expected answer alone, where an item's gold text has more than that.
    fn answer<'a>(&self, item: &'a Item) -> &'a str {
        &item.gold
    }

    /// The answer to an item as a worked example has it, for training on it; none where the suite has no such form.
    fn worked_answer(&self, item: &Item) -> Option<String> {
        let _ = item;
        None
    }

    /// Scores a completion. Pure: the same arguments give the same score, so stored completions can be scored again. Runs are scored by
    /// [`Suite::score`](super::Suite::score), which may keep the thinking.
    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score;

    /// Runner of model-written programs, if scoring runs any. It must be started before the first score.
    fn programs(&self) -> Option<&dyn Programs> {
        None
    }

    /// The scorers of which one can decide, for the setting `scorer`.
    fn scorers(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The scorers that decide correctness: one, or one for each kind of prompt; none where a suite has no scorers by name.
    fn chosen(&self) -> Vec<&str> {
        Vec::new()
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
