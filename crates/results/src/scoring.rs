//! Scoring of completions.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use earnest_tasks::suite::registry::Mode;
use earnest_tasks::suite::{Answered, Item, Score, Suite};

/// Limit of scoring threads: scoring is cheap, or waits for other processes.
const MOST_THREADS: usize = 8;

/// Batch size for [`score_completions`].
pub const SIDE_BY_SIDE: usize = 512;

/// Returns the number of scoring threads.
pub fn scoring_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS)
}

/// A completion to score.
pub struct Stored<'a> {
    pub item: &'a Item,
    pub completion: &'a str,
    pub truncated: bool,
}

/// Scores completions in parallel, in order, each as [`score_completion`] does.
///
/// # Panics
/// If the suite panics.
pub fn score_completions(suite: &Suite, opened_thinking: Option<&str>, stored: &[Stored<'_>]) -> Vec<Score> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scored = Vec::new();
        while let Some((index, one)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            stored.get(index).map(|one| (index, one))
        } {
            scored.push((index, score_completion(suite, one.item, opened_thinking, one.completion, one.truncated)));
        }
        scored
    };
    let mut scored: Vec<(usize, Score)> = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (0..scoring_threads().min(stored.len())).map_while(start).collect();
        if threads.is_empty() {
            return work();
        }
        let propagate = |panic| std::panic::resume_unwind(panic);
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(propagate)).collect()
    });
    scored.sort_unstable_by_key(|(index, _)| *index);
    scored.into_iter().map(|(_, score)| score).collect()
}

/// Scores a completion. `opened_thinking` is the marker with which the prompt opened the thinking: the suite sees it before the
/// completion, which is stored without it, except before log-likelihoods.
pub fn score_completion(
    suite: &Suite,
    item: &Item,
    opened_thinking: Option<&str>,
    completion: &str,
    truncated: bool,
) -> Score {
    // Of a stored run the first prompt is known, and some items have their own switch.
    let opened_thinking = match item.segments.thinking {
        Some(false) => None,
        Some(true) => suite.scoring.opened_thinking(item).or(opened_thinking),
        None => opened_thinking,
    };
    // Raw text beside conversations opens no thinking.
    let is_raw = item.segments.mode == Some(Mode::Raw);
    let opened_thinking = opened_thinking.filter(|_| item.continuations.is_empty() && !is_raw);
    let whole = opened_thinking.map(|marker| format!("{marker}{completion}"));
    let answered = Answered { completion: whole.as_deref().unwrap_or(completion), truncated };
    let mut score = suite.score(item, &answered);
    // JSON has neither infinities nor NaN.
    score.metrics.retain(|_, value| value.is_finite());
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::ThinkingText;
    use earnest_tasks::suite::profile::{ProfileOptions, ProfileSuite, PromptForm, ThinkingBudgets, Way};

    #[test]
    fn items_with_a_switch_of_their_own_are_scored_alike_whatever_the_first_prompt_opened() {
        let thinking = ThinkingBudgets { caps: vec![64], way: Way::Switch { opened: Some("<think>".into()) } };
        let options = ProfileOptions {
            skills: Vec::new(),
            notations: false,
            thinking: Some(thinking),
            forms: vec![PromptForm { mode: Mode::Chat, shots: 0 }],
            ..ProfileOptions::default()
        };
        for text in [ThinkingText::Stripped, ThinkingText::Kept] {
            let suite = Suite { thinking: text, ..Suite::new(ProfileSuite::new(options.clone()).unwrap()) };
            let items: Vec<Item> = suite.items.iter().collect();
            let on = items.iter().find(|item| item.segments.thinking == Some(true)).unwrap();
            let off = items.iter().find(|item| item.segments.thinking == Some(false)).unwrap();
            for opened in [None, Some("<think>")] {
                let right = |item, completion: &str| score_completion(&suite, item, opened, completion, false).correct;
                assert!(right(off, &off.gold), "{text:?} {opened:?}");
                assert!(right(on, &format!("Is it 17?</think>\nThe answer is {}.", on.gold)), "{text:?} {opened:?}");
                let unfinished = right(on, &format!("The answer is {}.", on.gold));
                assert_eq!(unfinished, text == ThinkingText::Kept, "{text:?} {opened:?}");
            }
        }
    }
}
