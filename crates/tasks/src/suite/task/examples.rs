//! Worked examples: the rows that a task shows before its questions.
use std::path::Path;

use serde_json::{Map, Value};

use super::definition::{Draw, Examples};
use super::hash;
use super::source::check_digests;
use crate::suite::registry::{Host, OptionError, RowSource, Rows};

/// Rows of the examples: those of the task file, or from a file. One more than are shown, because an item is not its own example.
///
/// # Errors
/// If there are fewer than asked for, or a file cannot be read.
pub(super) fn rows(
    examples: &Examples,
    folder: &Path,
    questions: &dyn Rows,
    seed: u64,
    host: &dyn Host,
) -> Result<Vec<Map<String, Value>>, OptionError> {
    if !examples.list.is_empty() {
        if examples.path.is_some() {
            return Err(OptionError::usage("[examples] has both a list and a path; leave one out"));
        }
        let count = examples.count.unwrap_or(examples.list.len());
        if count > examples.list.len() {
            let message = format!("[examples] has {} in its list and asks for {count}", examples.list.len());
            return Err(OptionError::usage(message).help("lower count, or add examples"));
        }
        return Ok(drawn(examples, examples.list.len(), count, seed)
            .map(|index| examples.list[index].clone())
            .collect());
    }
    let Some(count) = examples.count.filter(|count| *count > 0) else {
        return Err(OptionError::usage("[examples] needs a count, or a list of examples")
            .help("count = 5 takes five examples, from path or else from the questions themselves"));
    };
    let own;
    let pool: &dyn Rows = match &examples.path {
        None => questions,
        Some(path) => {
            own = host.rows(&RowSource {
                paths: vec![folder.join(path)],
                format: examples.format.clone(),
                columns: examples.columns.clone(),
                skip_bad_rows: false,
            })?;
            check_digests(examples.sha256.as_slice(), own.as_ref(), Path::new("the task file"), "[examples]")?;
            own.as_ref()
        }
    };
    let needed = count + usize::from(examples.path.is_none());
    if pool.len() < needed {
        let message = format!("[examples] asks for {count} of {} rows, and no question is its own example", pool.len());
        return Err(OptionError::usage(message).help("lower count, or name a file with more examples with path"));
    }
    let read = |index| pool.row(index).map(|row| row.values).map_err(OptionError::usage);
    drawn(examples, pool.len(), count, seed).map(read).collect()
}

/// Rows beyond the examples: one for the item that is its own example, others for rows that repeat a question or cannot be examples.
const SPARE: usize = 9;

/// Indices of the examples, and of some to spare.
fn drawn(examples: &Examples, available: usize, count: usize, seed: u64) -> impl Iterator<Item = usize> {
    let wanted = (count + SPARE).min(available);
    let mut indices: Vec<usize> = match examples.draw.unwrap_or_default() {
        Draw::First => (0..wanted).collect(),
        Draw::Seed => (0..available).collect(),
    };
    if indices.len() > wanted {
        indices.select_nth_unstable_by_key(wanted - 1, |index| hash::drawn(seed, *index as u64));
        indices.truncate(wanted);
    }
    if examples.draw == Some(Draw::Seed) {
        indices.sort_by_key(|index| hash::drawn(seed, *index as u64));
    }
    indices.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_the_seed_alone() {
        let of = |draw, seed, count| {
            drawn(&Examples { draw: Some(draw), ..Examples::default() }, 1_000, count, seed).collect::<Vec<_>>()
        };
        assert_eq!(of(Draw::First, 7, 3), (0..12).collect::<Vec<_>>());
        let one = of(Draw::Seed, 1, 5);
        assert_eq!(one, of(Draw::Seed, 1, 5));
        assert_ne!(one, of(Draw::Seed, 2, 5));
        assert_eq!(one[..12], of(Draw::Seed, 1, 3)[..]);
        let all: std::collections::BTreeSet<usize> = one.iter().copied().collect();
        assert_eq!(all.len(), 14);
    }
}
