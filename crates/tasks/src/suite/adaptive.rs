//! Suites whose later questions depend on earlier answers.
use super::Item;

/// Chooser of a suite's items, round by round. What it chooses depends on the suite's options and on the scores so far, so that an interrupted
/// run chooses the same again.
pub trait Chooser: Send {
    /// Items of the next round; none once the suite is finished. `scored` has the items of the round before in their order: right or wrong, or
    /// none without a score. It is empty for the first round.
    fn next_round(&mut self, scored: &[Option<bool>]) -> Vec<Item>;

    /// Most items that all rounds together can have.
    fn most(&self) -> usize;
}
