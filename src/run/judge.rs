//! One way to a verdict for completions that arrive, that were stored and that were imported.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::suite::{Answered, Item, Suite, Verdict};

/// Most threads that judge: verdicts are cheap, or wait for other processes.
const MOST_THREADS: usize = 8;

/// Completions to read before they are given to [`judge_all`].
pub const SIDE_BY_SIDE: usize = 512;

/// Threads that judge.
pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS)
}

/// A completion to judge.
pub struct Stored<'a> {
    pub item: &'a Item,
    pub completion: &'a str,
    pub truncated: bool,
}

/// Judges many completions side by side, each as [`judge`] does; verdicts in the same order.
///
/// # Panics
/// If the suite does: a defect of it.
pub fn judge_all(suite: &dyn Suite, opened_thinking: Option<&str>, stored: &[Stored<'_>]) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut judged = Vec::new();
        while let Some((place, one)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            stored.get(place).map(|one| (place, one))
        } {
            judged.push((place, judge(suite, one.item, opened_thinking, one.completion, one.truncated)));
        }
        judged
    };
    let mut judged: Vec<(usize, Verdict)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads().min(stored.len())).map(|_| scope.spawn(work)).collect();
        let passed_on = |panic| std::panic::resume_unwind(panic);
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(passed_on)).collect()
    });
    judged.sort_unstable_by_key(|(place, _)| *place);
    judged.into_iter().map(|(_, verdict)| verdict).collect()
}

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
