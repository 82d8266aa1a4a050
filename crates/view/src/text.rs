//! Completions as pieces: thinking, readings where they stand, differences to another completion.
use std::ops::Range;
use std::time::Duration;

use earnest_answer::visible;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Piece {
    /// `plain`, `thinking`, `same`, `removed` or `added`.
    pub kind: &'static str,
    pub text: String,
    /// Scorers that read this piece as the answer.
    pub scorers: Vec<String>,
}

fn piece(kind: &'static str, text: &str) -> Piece {
    Piece { kind, text: text.to_owned(), scorers: Vec::new() }
}

/// Splits a completion into its thinking and what is visible, with each reading marked where it last stands. `opened` is the marker of
/// thinking that the prompt opened.
pub(crate) fn pieces(completion: &str, opened: Option<&str>, readings: &[(String, String)]) -> Vec<Piece> {
    let opening = opened.unwrap_or_default();
    let whole = format!("{opening}{completion}");
    let found = visible(&whole);
    let mut pieces = Vec::new();
    let mut at = opening.len();
    for range in found.pieces {
        if range.end <= at {
            continue;
        }
        let start = range.start.max(at);
        push_thinking(&mut pieces, &whole[at..start]);
        pieces.extend(marked(&whole[start..range.end], readings));
        at = range.end;
    }
    push_thinking(&mut pieces, &whole[at.min(whole.len())..]);
    // Nothing visible is not the same as everything being thinking.
    if !found.has_thinking {
        pieces.iter_mut().for_each(|piece| piece.kind = "plain");
    }
    pieces
}

fn push_thinking(pieces: &mut Vec<Piece>, text: &str) {
    if text.trim().is_empty() {
        if !text.is_empty() {
            pieces.push(piece("plain", text));
        }
    } else {
        pieces.push(piece("thinking", text));
    }
}

/// Marks the last occurrence of each reading; those that overlap an earlier mark are left out.
fn marked(text: &str, readings: &[(String, String)]) -> Vec<Piece> {
    let mut marks: Vec<(Range<usize>, Vec<String>)> = Vec::new();
    for (scorer, read) in readings.iter().filter(|(_, read)| !read.trim().is_empty()) {
        let Some(start) = last_number(text, read.trim()) else { continue };
        let range = start..start + read.trim().len();
        match marks.iter_mut().find(|(other, _)| other.start < range.end && range.start < other.end) {
            Some((_, scorers)) => scorers.push(scorer.clone()),
            None => marks.push((range, vec![scorer.clone()])),
        }
    }
    marks.sort_by_key(|(range, _)| range.start);
    let mut pieces = Vec::new();
    let mut at = 0;
    for (range, scorers) in marks {
        if at < range.start {
            pieces.push(piece("plain", &text[at..range.start]));
        }
        pieces.push(Piece { scorers, ..piece("plain", &text[range.clone()]) });
        at = range.end;
    }
    if at < text.len() {
        pieces.push(piece("plain", &text[at..]));
    }
    pieces
}

/// Returns the offset of the last occurrence of a reading that is no part of a longer word or number.
fn last_number(text: &str, read: &str) -> Option<usize> {
    let alone = |start: usize| {
        let before = text[..start].chars().next_back();
        let after = text[start + read.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    };
    let starts: Vec<usize> = text.match_indices(read).map(|(start, _)| start).collect();
    starts.iter().rev().copied().find(|&start| alone(start)).or_else(|| starts.last().copied())
}

/// Longest texts that are compared word by word.
const LONGEST_COMPARED: usize = 200_000;

/// Longest search for the fewest words that differ; after it, longer parts than necessary count as different.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);

/// Returns the words of two texts with what only one of them has; each text alone where they are too long to compare.
pub(crate) fn difference(one: &str, other: &str) -> [Vec<Piece>; 2] {
    if one.len() + other.len() > LONGEST_COMPARED {
        return [vec![piece("plain", one)], vec![piece("plain", other)]];
    }
    let diff = TextDiff::configure().timeout(LONGEST_SEARCH).diff_words(one, other);
    let mut sides: [Vec<Piece>; 2] = Default::default();
    for change in diff.iter_all_changes() {
        let (kind, indices): (&str, &[usize]) = match change.tag() {
            ChangeTag::Equal => ("same", &[0, 1]),
            ChangeTag::Delete => ("removed", &[0]),
            ChangeTag::Insert => ("added", &[1]),
        };
        for &index in indices {
            match sides[index].last_mut() {
                Some(last) if last.kind == kind => last.text.push_str(change.value()),
                _ => sides[index].push(piece(kind, change.value())),
            }
        }
    }
    sides
}
