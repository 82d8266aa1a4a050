//! Differences between two completions.
use std::time::Duration;

use earnest_report::marks::{Piece, PieceKind};
use similar::{ChangeTag, TextDiff};

/// Longest texts that are compared word by word.
const LONGEST_COMPARED: usize = 200_000;

/// Longest search for the fewest words that differ; after it, longer parts than necessary count as different.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);

/// Returns the words of two texts with what only one of them has; each text alone where they are too long to compare.
pub(crate) fn difference(one: &str, other: &str) -> [Vec<Piece>; 2] {
    if one.len() + other.len() > LONGEST_COMPARED {
        return [vec![Piece::new(PieceKind::Plain, one)], vec![Piece::new(PieceKind::Plain, other)]];
    }
    let diff = TextDiff::configure().timeout(LONGEST_SEARCH).diff_words(one, other);
    let mut sides: [Vec<Piece>; 2] = Default::default();
    for change in diff.iter_all_changes() {
        let (kind, indices): (PieceKind, &[usize]) = match change.tag() {
            ChangeTag::Equal => (PieceKind::Same, &[0, 1]),
            ChangeTag::Delete => (PieceKind::Removed, &[0]),
            ChangeTag::Insert => (PieceKind::Added, &[1]),
        };
        for &index in indices {
            match sides[index].last_mut() {
                Some(last) if last.kind == kind => last.text.push_str(change.value()),
                _ => sides[index].push(Piece::new(kind, change.value())),
            }
        }
    }
    sides
}
