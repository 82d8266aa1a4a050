//! Samples as pages show them: questions shortened to what varies, completions with their thinking apart and each scorer's reading marked.
use std::collections::BTreeMap;
use std::ops::Range;

use earnest_answer::visible;
use earnest_results::Sample;
use serde::Serialize;

/// A scorer's score of a sample, and what it read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    pub scorer: String,
    pub right: bool,
    /// The answer it read; none for scorers that look for the expected answer instead of reading one.
    pub read: Option<String>,
    /// True if it decides whether the sample is right.
    pub chosen: bool,
}

/// Returns the readings of a sample, of which the `chosen` scorers decide.
pub fn readings(sample: &Sample, chosen: &[String]) -> Vec<Reading> {
    let Some(score) = &sample.score else { return Vec::new() };
    let reading = |(scorer, right): (&str, bool)| {
        let is_chosen = chosen.iter().any(|name| name == scorer);
        let read = match is_chosen {
            true => score.answer.clone(),
            false => score.evidence.readings.get(scorer).cloned().flatten(),
        };
        Reading { scorer: scorer.to_owned(), right, read, chosen: is_chosen }
    };
    score.scorers.iter().map(reading).collect()
}

/// Readings that are marked in a completion.
const MARKS: usize = 100;

/// Kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceKind {
    Plain,
    Thinking,
    /// In both of two texts.
    Same,
    /// In the first of them alone.
    Removed,
    /// In the second alone.
    Added,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Piece {
    pub kind: PieceKind,
    pub text: String,
    /// Scorers that read this piece as the answer.
    pub scorers: Vec<String>,
}

impl Piece {
    /// Creates a piece that no scorer read.
    pub fn new(kind: PieceKind, text: &str) -> Self {
        Piece { kind, text: text.to_owned(), scorers: Vec::new() }
    }
}

/// Splits a completion into its thinking and what is visible, with each reading marked where it last stands. `opened` is the marker of
/// thinking that the prompt opened.
pub fn pieces(completion: &str, opened: Option<&str>, readings: &[Reading]) -> Vec<Piece> {
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
        pieces.iter_mut().for_each(|piece| piece.kind = PieceKind::Plain);
    }
    pieces
}

/// Returns what of a completion is no thinking, all of it if that is nothing. `opened` is the marker of thinking that the prompt opened.
pub fn visible_text(completion: &str, opened: Option<&str>) -> String {
    let pieces = pieces(completion, opened, &[]);
    let shown: String =
        pieces.iter().filter(|piece| piece.kind != PieceKind::Thinking).map(|piece| piece.text.as_str()).collect();
    if shown.trim().is_empty() { completion.to_owned() } else { shown }
}

fn push_thinking(pieces: &mut Vec<Piece>, text: &str) {
    if text.trim().is_empty() {
        if !text.is_empty() {
            pieces.push(Piece::new(PieceKind::Plain, text));
        }
    } else {
        pieces.push(Piece::new(PieceKind::Thinking, text));
    }
}

/// Marks the last occurrence of each reading; those that overlap an earlier mark are left out.
fn marked<'a>(text: &str, readings: &'a [Reading]) -> Vec<Piece> {
    let mut marks: Vec<(Range<usize>, Vec<String>)> = Vec::new();
    let read = |one: &'a Reading| Some((&one.scorer, one.read.as_deref()?.trim())).filter(|(_, read)| !read.is_empty());
    for (scorer, read) in readings.iter().filter_map(read).take(MARKS) {
        let Some(start) = last_number(text, read) else { continue };
        let range = start..start + read.len();
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
            pieces.push(Piece::new(PieceKind::Plain, &text[at..range.start]));
        }
        pieces.push(Piece { scorers, ..Piece::new(PieceKind::Plain, &text[range.clone()]) });
        at = range.end;
    }
    if at < text.len() {
        pieces.push(Piece::new(PieceKind::Plain, &text[at..]));
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

/// Characters of a question in a list.
const LONGEST: usize = 240;

/// Shortens questions, each with its task and on one line, to what varies: words at the beginning and end that all questions of a task share
/// are instructions. What is left of a long question is its end, where what is asked stands.
pub fn varying(questions: Vec<(&str, &mut String)>) {
    let mut tasks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (task, question) in &questions {
        tasks.entry(task).or_default().push(question);
    }
    let shared: BTreeMap<String, (usize, usize)> =
        tasks.into_iter().map(|(task, questions)| (task.to_owned(), shared(&questions))).collect();
    for (task, question) in questions {
        let (start, end) = shared[task];
        let kept = &question[start..question.len() - end];
        let cut = kept.chars().count().saturating_sub(LONGEST);
        let from = kept.char_indices().nth(cut).map_or(0, |(at, _)| at);
        let before = if start > 0 || cut > 0 { "\u{2026} " } else { "" };
        let after = if end > 0 { " \u{2026}" } else { "" };
        *question = format!("{before}{}{after}", kept[from..].trim());
    }
}

/// Shared beginnings and ends below this stay: they cost nothing.
const SHORT: usize = 24;

/// Bytes at the beginning and at the end that are the same words in all questions; none of a single one, or of equal ones.
pub fn shared(questions: &[&str]) -> (usize, usize) {
    let Some((first, others)) = questions.split_first() else { return (0, 0) };
    if others.iter().all(|other| other == first) {
        return (0, 0);
    }
    let common = |mine: &mut dyn Iterator<Item = (usize, char)>, theirs: &mut dyn Iterator<Item = char>| {
        let mut bytes = 0;
        // Where the last whole word ended.
        let mut words = 0;
        for ((_, one), other) in mine.zip(theirs) {
            if one != other {
                break;
            }
            bytes += one.len_utf8();
            if one == ' ' {
                words = bytes;
            }
        }
        words
    };
    let start = others.iter().map(|other| common(&mut first.char_indices(), &mut other.chars())).min().unwrap_or(0);
    let start = if start < SHORT { 0 } else { start };
    let rest = |text: &&str| text[start..].to_owned();
    let mine = rest(first);
    let end = others
        .iter()
        .map(|other| common(&mut mine.char_indices().rev(), &mut rest(other).chars().rev()))
        .min()
        .unwrap_or(0);
    (start, if end < SHORT { 0 } else { end })
}

/// A text on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(questions: &[(&str, &str)]) -> Vec<String> {
        let mut texts: Vec<String> = questions.iter().map(|(_, question)| one_line(question)).collect();
        varying(questions.iter().map(|(task, _)| *task).zip(&mut texts).collect());
        texts
    }

    #[test]
    fn questions_show_their_operands() {
        let ask = |a: &str, b: &str| {
            format!("Please add the two numbers that follow: {a} + {b}\nWrite nothing but the sum of the two.")
        };
        let long = "9".repeat(100);
        let (one, other) = (ask("12", "35"), ask(&long, &long));
        let shown = lines(&[("add", &one), ("add", &other), ("say", "How many legs has an ant?")]);
        assert_eq!(shown[0], "\u{2026} 12 + 35 \u{2026}");
        assert_eq!(shown[1], format!("\u{2026} {long} + {long} \u{2026}"), "operands of 100 digits");
        assert_eq!(shown[2], "How many legs has an ant?");
        // Equal questions, and a single long one, keep their ends.
        assert_eq!(lines(&[("add", &one), ("add", &one)])[0], one_line(&one));
        let story = format!("{} How many are left of 7?", "Ann sold eggs. ".repeat(40));
        let shown = lines(&[("story", &story)]);
        assert!(shown[0].starts_with("\u{2026} ") && shown[0].ends_with(" of 7?"), "{shown:?}");
        let shown = lines(&[("zh", "\u{6570}\u{5b66} 1"), ("zh", "\u{6570}\u{5b66} 2")]);
        assert_eq!(shown, ["\u{6570}\u{5b66} 1", "\u{6570}\u{5b66} 2"]);
    }
}
