//! Ranks of the numbers that a sentence states.
use std::ops::Range;

use super::numeral::Spelling;
use super::statement::{Rank, Sentence, Stated, Statements};
use super::token::Kind;
use super::vocabulary::Meaning;
use crate::number::words::scale;

impl Statements<'_> {
    /// Reads the statement of a sentence: the result of its equations or the last of its numbers that are stated most strongly.
    pub fn sentence(&self, range: Range<usize>) -> Sentence {
        let nothing = Sentence { stated: Stated::Nothing, rank: Rank::Not, asked: false };
        let range = self.behind_correction(range);
        if let Some(chosen) = self.comparison(&range) {
            return Sentence { stated: Stated::Number(chosen), rank: Rank::Result, asked: true };
        }
        let equation = self.equation(range.clone());
        if let Some(none) = self.counts_none(&range) {
            return Sentence { stated: Stated::Number(none), rank: Rank::Result, asked: false };
        }
        // By rank, and numbers that are not given before those that are.
        let mut best: Option<(Rank, bool, bool, usize)> = None;
        let mut depth = 0usize;
        let mut candidates = 0;
        let mut unevaluated = false;
        let mut elaborates = false;
        for at in range.clone() {
            match self.kind(at) {
                // "gives: (7)" is no aside.
                Kind::Open if self.is_answer_in_brackets(at, range.start) => {}
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                // "He pays 43: 28 for ropes and 15 for hooks."
                Kind::Colon => elaborates |= matches!(best, Some((Rank::Result, true, ..))),
                Kind::Number(_) => {
                    let depth = depth + usize::from(elaborates);
                    let rank = if self.is_in_equation(at) { Rank::Not } else { self.rank(at, &range, depth) };
                    candidates += usize::from(rank > Rank::Not);
                    unevaluated |= self.is_candidate(at) && !self.is_alone(at);
                    let new = !self.is_given(at);
                    // "Ana is 18 and Ben is 36"
                    let named = (range.start.max(at.saturating_sub(4))..at)
                        .any(|before| self.question.asks_about(self.tokens.slice(before)));
                    // "180 min, that is 3 hours"
                    let other_unit = self.is_unit(at + 1) && !self.has_asked_unit(at);
                    if other_unit && best.is_some_and(|(most, _, _, best)| most == rank && self.has_asked_unit(best)) {
                        continue;
                    }
                    let standing = (rank, new, named);
                    if rank > Rank::Not
                        && best.is_none_or(|(most, was_new, was_named, _)| standing >= (most, was_new, was_named))
                    {
                        best = Some((rank, new, named, at));
                    }
                }
                _ => {}
            }
        }
        // Everything in brackets: the depth was no aside.
        let result = match equation {
            Some((Stated::Number(side), asked)) => match best {
                // "= 6.94, round up → 7 boxes": a later result of the same sentence.
                Some((Rank::Result, _, _, at)) if at > side && !self.is_reason_before(side, at) => {
                    Sentence { stated: Stated::Number(at), rank: Rank::Result, asked }
                }
                _ => Sentence { stated: Stated::Number(side), rank: Rank::Result, asked },
            },
            Some((cut @ Stated::Cut(_), asked)) => Sentence { stated: cut, rank: Rank::Result, asked },
            _ => match best {
                Some((rank, _, _, at)) => Sentence { stated: Stated::Number(at), rank, asked: false },
                None if unevaluated || equation.is_some() => Sentence { stated: Stated::Unevaluated, ..nothing },
                None => return nothing,
            },
        };
        let result = match result.stated {
            Stated::Number(at) if result.rank == Rank::Result && self.names_what_was_asked(&range, at) => {
                Sentence { asked: true, ..result }
            }
            _ => result,
        };
        if let Stated::Number(at) = result.stated {
            if self.is_cut(at) {
                return Sentence { stated: Stated::Cut(Some(at)), ..result };
            }
            let behind =
                self.question.instructs.then(|| self.rival_behind(at, &range)).flatten().filter(|&other| other != at);
            if let Some(other) = behind.or_else(|| self.rival(at, &range, candidates)) {
                return Sentence { stated: Stated::Rivals(other, at), ..result };
            }
        }
        result
    }

    /// Ranks a number by the words around it, outside of equations.
    pub(super) fn rank(&self, at: usize, range: &Range<usize>, depth: usize) -> Rank {
        let Some(number) = self.number(at) else { return Rank::Not };
        if !self.is_candidate(at) || !self.is_alone(at) || self.is_of_other_part(at, range) {
            return Rank::Not;
        }
        let (mut rank, cue) = self.cue(at, range.start);
        let (behind, _) = self.behind(at);
        if self.tokens.means(behind, Meaning::TOTALS) && behind < range.end && rank == Rank::Neutral {
            rank = Rank::Result;
        }
        // "Repeat until the number is 0."
        if (range.start..at)
            .any(|at| ["until", "unless", "till"].iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word)))
        {
            rank = rank.min(Rank::Context);
        }
        if (rank == Rank::Neutral || self.question.looks_up)
            && self.is_unit(at + 1)
            && self.question.asks_unit(self.tokens.slice(at + 1))
        {
            rank = Rank::Result;
        }
        // "Sixteen: twelve on the cars and four on the bicycles"
        if at == range.start && self.kind(at + 1) == Kind::Colon {
            rank = Rank::Result;
        }
        // "So in 5 hours she covers 400 km."
        let concludes = (range.start..at.min(range.start + 2)).any(|at| self.tokens.means(at, Meaning::CONCLUDES));
        if rank == Rank::Neutral && concludes {
            rank = Rank::Result;
        }
        if depth > 0 {
            rank = rank.min(Rank::Context);
        }
        if self.is_given(at) && !self.question.selects && cue != Some(Kind::Equals) && !self.is_count(at) {
            // "The reverse of 6 is 6": said of another number, a given one is a result.
            let linked = matches!(cue, Some(Kind::Word(meaning)) if meaning.has(Meaning::LINK));
            let counts = self.question.style.counts && self.question.instructs && number.text.len() <= 2;
            let gives = matches!(cue, Some(Kind::Word(meaning)) if meaning.has(Meaning::GIVES));
            let said_of = (linked || gives && counts)
                && (counts || (range.start..at).any(|before| matches!(self.kind(before), Kind::Number(_))));
            // "Therefore, 6,120 more came": all that the conclusion says.
            let only = concludes && range.clone().filter(|&at| matches!(self.kind(at), Kind::Number(_))).count() == 1;
            // "The digit at the given position is 40871."
            let result = matches!(cue, Some(Kind::Word(meaning)) if meaning.has(Meaning::RESULT));
            let named = (linked || result)
                && self.question.instructs
                && (range.start..at).any(|before| {
                    self.tokens.means(before, Meaning::RESULT) && self.question.mentions(self.tokens.slice(before))
                });
            let said_of = said_of || named || (only && !self.question.instructs);
            if self.question.looks_up {
                rank = rank.min(Rank::Neutral);
            } else if !said_of {
                rank = rank.min(Rank::Context);
            }
        }
        if number.percent && !self.question.asks_percent {
            rank = rank.min(Rank::Context);
        }
        if number.percent && self.question.asks_percent && rank == Rank::Neutral {
            rank = Rank::Result;
        }
        // Number words are often mere words, but for those that answer how many.
        if number.spelling == Spelling::Words && rank == Rank::Neutral && is_small(&number.text) {
            rank = if self.is_count(at) { Rank::Result } else { Rank::Context };
        }
        // "In 2016, when 812 came", where a year was asked for.
        if self.question.asks_year && rank > Rank::Not {
            let year = number.text.len() == 4 && number.spelling == Spelling::Integer;
            rank = if year { Rank::Result } else { rank.min(Rank::Neutral) };
        }
        rank
    }

    /// One number in brackets behind words or signs that lead to a result.
    fn is_answer_in_brackets(&self, open: usize, start: usize) -> bool {
        matches!(self.kind(open + 1), Kind::Number(_))
            && self.kind(open + 2) == Kind::Close
            && open > start
            && match self.kind(open - 1) {
                Kind::Colon | Kind::Equals | Kind::Arrow => true,
                Kind::Word(meaning) => meaning.has(Meaning::LINK.with(Meaning::GIVES)),
                _ => false,
            }
    }

    /// True if the unit that was asked for stands behind a number.
    fn has_asked_unit(&self, at: usize) -> bool {
        self.is_unit(at + 1) && self.question.asks_unit(self.tokens.slice(at + 1))
    }

    /// "none", "no", "once", "twice".
    pub(super) fn is_count(&self, at: usize) -> bool {
        ["none", "no", "nobody", "nothing", "once", "twice", "thrice"]
            .iter()
            .any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word))
    }

    /// Finds the cue before a number and its rank.
    pub(super) fn cue(&self, at: usize, start: usize) -> (Rank, Option<Kind>) {
        let mut before = at;
        let mut adverbs = 0;
        while before > start {
            before -= 1;
            match self.kind(before) {
                Kind::Bold | Kind::Quote | Kind::Other | Kind::BoxOpen | Kind::Open => {}
                kind @ (Kind::Equals | Kind::Arrow | Kind::Colon) => return (Rank::Result, Some(kind)),
                kind @ Kind::Word(meaning) => {
                    if meaning.has(Meaning::LINK.with(Meaning::GIVES).with(Meaning::CONCLUDES).with(Meaning::ANSWER)) {
                        return (Rank::Result, Some(kind));
                    }
                    // "a total of 84"
                    let of = self.tokens.slice(before).eq_ignore_ascii_case("of")
                        || self.tokens.slice(before).eq_ignore_ascii_case("de");
                    if of && before > start && self.tokens.means(before - 1, Meaning::TOTALS.with(Meaning::RESULT)) {
                        return (Rank::Result, Some(kind));
                    }
                    // "about 1300; exactly 1287"
                    if before + 1 == at
                        && ["exactly", "precisely"]
                            .iter()
                            .any(|word| self.tokens.slice(before).eq_ignore_ascii_case(word))
                    {
                        return (Rank::Result, Some(kind));
                    }
                    // "I'll go with 72"
                    if self.tokens.slice(before).eq_ignore_ascii_case("with")
                        && before > start
                        && ["go", "going", "stick"]
                            .iter()
                            .any(|word| self.tokens.slice(before - 1).eq_ignore_ascii_case(word))
                    {
                        return (Rank::Result, Some(kind));
                    }
                    // "from 48.2 in 2021 to 53.9"
                    if self.tokens.slice(before).eq_ignore_ascii_case("to")
                        && (start..before).any(|at| self.tokens.slice(at).eq_ignore_ascii_case("from"))
                    {
                        return (Rank::Context, Some(kind));
                    }
                    if meaning.has(Meaning::FILLER) && adverbs < 4 {
                        adverbs += 1;
                        continue;
                    }
                    // "Divide the number by 2", "divisible by 3"
                    let by = self.tokens.slice(before).eq_ignore_ascii_case("by")
                        && (start..before).any(|at| {
                            let word = self.tokens.slice(at);
                            word.len() >= 5
                                && (word[..word.floor_char_boundary(5)].eq_ignore_ascii_case("divid")
                                    || word[..word.floor_char_boundary(5)].eq_ignore_ascii_case("multi")
                                    || word[..word.floor_char_boundary(5)].eq_ignore_ascii_case("divis"))
                        });
                    if meaning.has(Meaning::CONTEXT) || by {
                        return (Rank::Context, Some(kind));
                    }
                    if meaning.has(Meaning::RESULT) {
                        return (Rank::Result, Some(kind));
                    }
                    return (Rank::Neutral, Some(kind));
                }
                kind => return (Rank::Neutral, Some(kind)),
            }
        }
        (Rank::Neutral, None)
    }

    /// The remainder where the quotient was asked for, and the other way round.
    pub(super) fn is_of_other_part(&self, at: usize, range: &Range<usize>) -> bool {
        let question = self.question;
        if question.asks_remainder == question.asks_quotient && !question.asks_remainder {
            return false;
        }
        let mut before = at;
        for _ in 0..4 {
            if before <= range.start {
                return false;
            }
            before -= 1;
            match self.kind(before) {
                Kind::Word(_) => {
                    let word = self.tokens.slice(before).to_lowercase();
                    match word.as_str() {
                        "remainder" | "rest" | "reste" | "resto" | "r" => return !question.asks_remainder,
                        "quotient" => return question.asks_remainder,
                        _ => {}
                    }
                }
                Kind::Number(_) | Kind::Comma | Kind::Stop => return false,
                _ => {}
            }
        }
        false
    }

    /// True if words or signs that lead to a result stand before a number.
    pub fn is_result(&self, at: usize, start: usize) -> bool {
        let (rank, cue) = self.cue(at, start);
        rank == Rank::Result && cue != Some(Kind::Colon)
    }

    /// True if words of a unit stand behind a number.
    pub fn has_unit(&self, at: usize) -> bool {
        let word = self.tokens.slice(at + 1);
        self.behind(at).1 && word.len() > 1 && word.is_ascii() && scale(word).is_none()
    }

    /// "None of the digits is a 5", where a number of things was asked for.
    pub(super) fn counts_none(&self, range: &Range<usize>) -> Option<usize> {
        let first = range.clone().find(|&at| matches!(self.kind(at), Kind::Number(_) | Kind::Word(_)))?;
        (self.number(first)?.text == "0" && self.is_count(first)).then_some(first)
    }

    /// "The binary representation of 12 is", where a binary number was asked for.
    pub(super) fn names_what_was_asked(&self, range: &Range<usize>, number: usize) -> bool {
        let linked = matches!(self.cue(number, range.start).1, Some(Kind::Word(meaning)) if meaning.has(Meaning::LINK));
        linked
            && self.number(number).is_some_and(|number| self.question.is_in_form(number))
            && (range.start..number)
                .any(|at| matches!(self.kind(at), Kind::Word(_)) && self.question.names_target(self.tokens.slice(at)))
    }

    /// "because" and the like between two tokens.
    pub(super) fn is_reason_before(&self, from: usize, to: usize) -> bool {
        (from..to).any(|at| self.tokens.means(at, Meaning::REASON) || self.kind(at) == Kind::Open)
    }

    /// The part behind the last correction, if a number stands there.
    pub fn behind_correction(&self, range: Range<usize>) -> Range<usize> {
        let corrected = range.clone().rev().find(|&at| {
            let no = self.tokens.slice(at).eq_ignore_ascii_case("no") && self.kind(at + 1) == Kind::Comma;
            let but = self.tokens.slice(at).eq_ignore_ascii_case("but")
                && range
                    .clone()
                    .take_while(|&before| before < at)
                    .any(|before| self.tokens.means(before, Meaning::DENIES));
            let corrects = self.tokens.means(at, Meaning::CORRECTS) || no || but;
            corrects
                && (at..range.end).any(|behind| self.is_candidate(behind))
                && (range.start..at).any(|before| matches!(self.kind(before), Kind::Number(_)))
        });
        corrected.map_or(range.start, |at| at + 1)..range.end
    }
}

/// Zero to twelve: words that stand in many sentences that state no number.
fn is_small(text: &str) -> bool {
    text.parse::<u64>().is_ok_and(|value| value <= 12)
}
