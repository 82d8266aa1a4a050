//! Suites whose later questions depend on earlier answers.
use super::Item;

/// Answer to an item of the round before, as far as later rounds depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundAnswer {
    pub correct: bool,
    /// The item's token budget ended it, so that a larger one would have let it go on.
    pub cut: bool,
}

/// Chooser of a suite's items, round by round. What it chooses depends on the suite's options and on the scores so far, so that an interrupted
/// run chooses the same again.
pub trait Chooser: Send {
    /// Items of the next round; none once the suite is finished. `answers` has those of the round before in the order of its items, none without
    /// a score. It is empty for the first round.
    fn next_round(&mut self, answers: &[Option<RoundAnswer>]) -> Vec<Item>;

    /// Most items that all rounds together can have.
    fn most(&self) -> usize;
}
