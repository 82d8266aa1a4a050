//! Batching by length: the examples of a group of steps are sorted by length and divided into batches, which are shuffled. That
//! saves padding, and a step depends on its group only.
use super::Example;
use earnest_tasks::suite::nupa::DigitSource;

pub(super) const GROUP_STEPS: u64 = 8;

/// Returns the group of a step, counted from 1, and the step's index in it.
pub(super) fn group_of(step: u64) -> (u64, usize) {
    ((step - 1) / GROUP_STEPS, ((step - 1) % GROUP_STEPS) as usize)
}

/// Divides the examples of a group into batches, in the order of its steps.
pub(super) fn batches(
    mut examples: Vec<Example>,
    batch: usize,
    parts: usize,
    seed: u64,
    group: u64,
) -> Vec<Vec<Example>> {
    // A stable sort, so that equal lengths keep the stream's order.
    examples.sort_by_key(|example| (example.prompt, example.ids.len()));
    let mut batches: Vec<Vec<Example>> = examples.chunks(batch).map(<[Example]>::to_vec).collect();
    let mut random = DigitSource::named(&format!("train batches {seed} {group}"));
    for last in (1..batches.len()).rev() {
        batches.swap(last, random.below(last as u64 + 1) as usize);
    }
    // Examples are dealt out to the parts of a batch, so that all parts take the same time.
    for batch in &mut batches {
        let dealt = (0..parts).flat_map(|part| batch.iter().skip(part).step_by(parts).cloned()).collect();
        *batch = dealt;
    }
    batches
}
