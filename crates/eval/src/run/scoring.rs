//! Scoring of completions that arrive, that were stored and that were imported.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use earnest_tasks::suite::{Answered, Item, Score, Suite};

/// Most threads that score: it is cheap, or waits for other processes.
const MOST_THREADS: usize = 8;

/// Completions to read before they are given to [`score_completions`].
pub const SIDE_BY_SIDE: usize = 512;

/// Number of threads that score.
pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS)
}

/// A completion to score.
pub struct Stored<'a> {
    pub item: &'a Item,
    pub completion: &'a str,
    pub truncated: bool,
}

/// Scores many completions side by side, each as [`score_completion`] does, in their order.
///
/// # Panics
/// If the suite does: a defect of it.
pub fn score_completions(suite: &dyn Suite, opened_thinking: Option<&str>, stored: &[Stored<'_>]) -> Vec<Score> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scored = Vec::new();
        while let Some((place, one)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            stored.get(place).map(|one| (place, one))
        } {
            scored.push((place, score_completion(suite, one.item, opened_thinking, one.completion, one.truncated)));
        }
        scored
    };
    let mut scored: Vec<(usize, Score)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads().min(stored.len())).map(|_| scope.spawn(work)).collect();
        let passed_on = |panic| std::panic::resume_unwind(panic);
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(passed_on)).collect()
    });
    scored.sort_unstable_by_key(|(place, _)| *place);
    scored.into_iter().map(|(_, score)| score).collect()
}

/// Scores a completion. `opened_thinking` is the marker with which the prompt opened the model's thinking: the completion
/// begins inside it, so the marker is put before what the suite sees (never before what is stored).
pub fn score_completion(
    suite: &dyn Suite,
    item: &Item,
    opened_thinking: Option<&str>,
    completion: &str,
    truncated: bool,
) -> Score {
    let whole = opened_thinking.map(|marker| format!("{marker}{completion}"));
    let answered = Answered { completion: whole.as_deref().unwrap_or(completion), truncated };
    let mut score = suite.score(item, &answered);
    // JSON has no infinities and no NaN: they would come back as unreadable rows.
    score.metrics.retain(|_, value| value.is_finite());
    score
}
