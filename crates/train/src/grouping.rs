//! How examples become batches: steps are made in groups, whose examples are sorted by length, cut into batches, and the
//! batches mixed. Little is padded then, and no step knows more than its group.
use super::Example;
use earnest_tasks::suite::nupa::DigitSource;

/// Steps of a group.
pub(super) const SORTED: u64 = 8;

/// A step's group, and its place there.
pub(super) fn place(step: u64) -> (u64, usize) {
    ((step - 1) / SORTED, ((step - 1) % SORTED) as usize)
}

/// The batches of a group, in the order of its steps.
pub(super) fn batches(
    mut examples: Vec<Example>,
    batch: usize,
    parts: usize,
    seed: u64,
    group: u64,
) -> Vec<Vec<Example>> {
    // Stable, so that equal lengths keep the stream's order.
    examples.sort_by_key(|example| (example.prompt, example.ids.len()));
    let mut batches: Vec<Vec<Example>> = examples.chunks(batch).map(<[Example]>::to_vec).collect();
    let mut random = DigitSource::named(&format!("train batches {seed} {group}"));
    for last in (1..batches.len()).rev() {
        batches.swap(last, random.below(last as u64 + 1) as usize);
    }
    // Parts of a batch should take the same time: deal its examples out.
    for batch in &mut batches {
        let dealt = (0..parts).flat_map(|part| batch.iter().skip(part).step_by(parts).cloned()).collect();
        *batch = dealt;
    }
    batches
}
