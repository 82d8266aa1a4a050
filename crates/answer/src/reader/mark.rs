//! Marks of an answer: boxes, tags, announcements, bold type.
use std::ops::Range;

use super::feature::Feature as F;
use super::mention::{Mention, within};
use super::piece::{LONGEST, Piece};
use super::reading::Mark;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};

fn mark(mentions: &mut [Mention], feature: F) {
    mentions.iter_mut().for_each(|mention| mention.mark_as(feature));
}

impl Scan<'_> {
    /// Boxes, tags, announcements and bold type.
    pub(super) fn marks(&self, piece: &Piece, found: &mut [Mention]) {
        let (range, mut open) = (piece.range.clone(), None);
        for at in range.clone().filter(|&at| self.kind(at) == Kind::Bold) {
            match open.take() {
                Some(open) => self.bold(&range, open, at, found),
                None if self.closes(at) => {}
                None => open = Some(at),
            }
        }
        // "**36 seats.**"
        if let Some(open) = open
            && self.kind(range.end) == Kind::Stop
            && self.kind(range.end + 1) == Kind::Bold
        {
            self.bold(&range, open, range.end, found);
        }
        let mut at = range.start;
        while at < range.end {
            let mut next = at + 1;
            match self.kind(at) {
                Kind::BoxOpen => {
                    let inside = within(found, at, self.matching(at, Kind::BoxOpen, Kind::BoxClose));
                    let last = inside.last().map(|mention| mention.at);
                    for Mention { at, features, mark, .. } in inside {
                        let ends = Some(*at) == last && !features.has(F::EqualsLeft);
                        features.add(F::Boxed);
                        features.set(F::BoxedResult, ends || features.has(F::EqualsLast));
                        *mark = Mark::Boxed;
                    }
                }
                Kind::AnswerOpen => {
                    let end = self.matching(at, Kind::AnswerOpen, Kind::AnswerClose);
                    mark(within(found, at, end), F::Tagged);
                }
                Kind::Hashes => mark(within(found, at, range.end), F::Hashes),
                Kind::Word(meaning) if meaning.has(any_of![ANSWER, RESULT]) => {
                    next = self.declared(at, piece, found, meaning).max(next);
                }
                Kind::Word(meaning) if meaning.has(Meaning::LINK) => {
                    self.confirmed(at, &range, found);
                    // "the correct one is 415"
                    if (range.start.max(at.saturating_sub(2))..at).any(|before| self.means(before, Meaning::CORRECT))
                        && let Some(mention) = found.iter_mut().find(|mention| mention.at > at && mention.at < at + 4)
                    {
                        mention.mark_as(F::Declared);
                    }
                }
                _ => {}
            }
            at = next;
        }
    }

    /// True if the mark of bold type at a token ends it: a space follows, none stands before.
    pub(super) fn closes(&self, at: usize) -> bool {
        let ends = matches!(self.kind(at + 1), Kind::Line | Kind::End | Kind::Stop | Kind::Comma | Kind::Colon);
        !self.is_spaced(at) && at > 0 && self.kind(at - 1) != Kind::Line && (self.is_spaced(at + 1) || ends)
    }

    /// The token that closes what opens at `at`; the end of the text where nothing does.
    pub(super) fn matching(&self, at: usize, open: Kind, close: Kind) -> usize {
        let mut depth = 0usize;
        let limit = (at + 2 * LONGEST).min(self.tokens.tokens.len());
        for inner in at..limit {
            if self.kind(inner) == open {
                depth += 1;
            } else if self.kind(inner) == close && depth == 1 {
                return inner;
            } else if self.kind(inner) == close {
                depth -= 1;
            }
        }
        limit
    }

    /// "The answer is", "Answer:", "final result", `"answer":` and the numbers behind them; the first token behind.
    pub(super) fn declared(&self, at: usize, piece: &Piece, found: &mut [Mention], meaning: Meaning) -> usize {
        let range = &piece.range;
        let is_answer = meaning.has(Meaning::ANSWER);
        let sought = (range.start.max(at.saturating_sub(2))..at).any(|before| self.means(before, Meaning::SEEKS));
        let (mut next, mut led, mut colon, mut unknown, mut of) = (at + 1, false, false, 0, false);
        while next < range.end {
            match self.kind(next) {
                Kind::Number(_) if of && !led => {}
                Kind::Number(_) | Kind::BoxOpen | Kind::AnswerOpen => break,
                Kind::Colon => (led, colon) = (true, true),
                Kind::Equals | Kind::Arrow => led = true,
                Kind::Word(meaning) if meaning.has(Meaning::LINK) => led = true,
                Kind::Word(meaning) if meaning.has(any_of![ANSWER, RESULT]) && !led => return next,
                // "Final check:"
                Kind::Word(meaning) if meaning.has(Meaning::CHECKS) => return at + 1,
                Kind::Word(meaning) if meaning.has(any_of![DENIES, EXAMPLE, OR]) => {}
                // "The answer to 744 + 543 is"
                Kind::Word(meaning) if meaning.has(Meaning::CONTEXT) || self.is(next, "to") => {
                    unknown += i32::from(led);
                    of |= !led;
                }
                Kind::Word(meaning) if meaning.has(any_of![FILLER, CONCLUDES, MINUS, GIVES]) => {}
                Kind::Word(_) if self.slice(next).len() == 1 => {}
                Kind::Word(_) => unknown += if led { 2 } else { 1 },
                Kind::Operator(_) | Kind::Comma if !of => unknown += 2,
                _ => {}
            }
            if unknown > if colon && is_answer { 9 } else { 3 } {
                return at + 1;
            }
            next += 1;
        }
        if next >= range.end {
            return at + 1;
        }
        let follows = is_answer && next <= at + 3 && unknown == 0;
        // "My first answer was 431"
        let withdrawn = self.is(at.saturating_sub(1), "first initial earlier previous") && at > range.start
            || self.is_foreign(next, range)
            // "adding 467 to this result gives 803 again"
            || at > range.start && self.is(at - 1, "this that")
            || self.is_of_mistake(range);
        if withdrawn || sought && !led || !(led || follows) {
            return at + 1;
        }
        let mut first = self.words(range).take_while(|&word| word < at);
        let begins = piece.begins_line && first.all(|word| self.means(word, any_of![FILLER, CONCLUDES, RESULT]));
        // `"result":`
        let quoted = at > 0 && self.kind(at - 1) == Kind::Quote && self.kind(at + 1) == Kind::Quote;
        let feature = match (is_answer, quoted && self.kind(at + 2) == Kind::Colon) {
            (true, true) => F::KeyAnswer,
            (true, false) => F::Declared,
            (false, false) if colon && begins => F::LabelResult,
            _ => return at + 1,
        };
        let end = self.up_to_next_declaration(next, range.end, is_answer);
        let inside = within(found, next.saturating_sub(1), end);
        for (nth, mention) in inside.iter_mut().enumerate() {
            let result = mention.features.has(F::EqualsLast) && !mention.features.has(F::InBrackets);
            mention.mark_as(if nth == 0 || result { feature } else { F::DeclaredBehind });
        }
        next
    }

    /// An announcement reaches to the next one, and within JSON to the next key.
    pub(super) fn up_to_next_declaration(&self, from: usize, end: usize, is_answer: bool) -> usize {
        (from + 1..end)
            .find(|&at| {
                let key = self.kind(at) == Kind::Comma && self.kind(at + 1) == Kind::Quote && self.is_word(at + 2);
                let again = is_answer && self.means(at, Meaning::ANSWER) && self.means(at + 1, Meaning::LINK);
                key || again || self.kind(at) == Kind::Bar
            })
            .unwrap_or(end)
    }

    /// "17 is the answer", "so 4207 is correct".
    pub(super) fn confirmed(&self, at: usize, range: &Range<usize>, found: &mut [Mention]) {
        let passes = |word: usize| {
            self.means(word, Meaning::FILLER) && !self.means(word, Meaning::CONFIRMS) || self.kind(word) == Kind::Bold
        };
        let word = (at + 1..range.end).find(|&word| !passes(word));
        let last = |word: usize| word + 1 >= range.end || !self.is_word(word + 1);
        if !word.is_some_and(|word| self.means(word, Meaning::CONFIRMS) && last(word)) {
            return;
        }
        let number = (range.start..at).rev().find(|&at| {
            !matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Close | Kind::BoxClose) && !self.is_unit(at)
        });
        if let Some(mention) = found.iter_mut().find(|mention| Some(mention.at) == number) {
            mention.mark_as(F::Confirmed);
        }
    }

    /// Bold type around a number.
    pub(super) fn bold(&self, range: &Range<usize>, open: usize, close: usize, found: &mut [Mention]) {
        let words = (open + 1..close).filter(|&at| self.is_word(at)).count();
        let label = self.kind(close - 1) == Kind::Colon || self.kind(close + 1) == Kind::Colon;
        if words > 10 || label {
            return;
        }
        let inside = within(found, open, close);
        // A sentence that is bold as a whole says nothing of its last number.
        let all = (open == range.start || self.kind(open - 1) == Kind::Bullet) && close + 1 >= range.end;
        let count = inside.len();
        for (nth, Mention { at, features, mark, .. }) in inside.iter_mut().enumerate() {
            let unit = self.behind(*at).0 >= close;
            if count == 1 && unit && (open + 1..*at).all(|at| !self.is_word(at)) {
                features.add(F::Bold);
            } else if nth + 1 == count || all {
                features.add(F::BoldSentence);
            } else {
                continue;
            }
            if *mark == Mark::Sentence {
                *mark = Mark::Bold;
            }
        }
    }
}
