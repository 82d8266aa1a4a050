//! Delayed admission of a prompt whose prefix another sequence is computing.

use super::prefix_tree::common_prefix;
use super::scheduler::Sequence;

/// Fewest tokens that waiting must save. Chance matches of a token or two are not worth a step.
const MIN_SAVED: usize = 4;

/// True if a running sequence is about to make more of `candidate`'s beginning available than `cached` tokens. Its
/// prompt is computed in this step or one of the next, so the wait is short and can not be endless.
pub(crate) fn should_wait(candidate: &Sequence, cached: usize, running: &[Sequence]) -> bool {
    let usable = candidate.usable();
    usable.len() >= cached + MIN_SAVED
        && running.iter().any(|other| {
            other.computed < other.prompt
                && other.rope_factors == candidate.rope_factors
                && common_prefix(usable, &other.tokens[..other.prompt]) >= cached + MIN_SAVED
        })
}
