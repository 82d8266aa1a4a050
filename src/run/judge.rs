//! One way to a verdict for completions that arrive, that were stored and that were imported.
use crate::suite::{Answered, Item, Suite, Verdict};

/// Judges a completion. `opened_thinking` is the marker with which the prompt opened the model's thinking: the completion
/// begins inside it, so the marker is put before what the suite sees (never before what is stored).
pub fn judge(
    suite: &dyn Suite,
    item: &Item,
    opened_thinking: Option<&str>,
    completion: &str,
    truncated: bool,
) -> Verdict {
    let whole = opened_thinking.map(|marker| format!("{marker}{completion}"));
    let answered = Answered { completion: whole.as_deref().unwrap_or(completion), truncated };
    let mut verdict = suite.score(item, &answered);
    // JSON has no infinities and no NaN: they would come back as unreadable rows.
    verdict.metrics.retain(|_, value| value.is_finite());
    verdict
}
