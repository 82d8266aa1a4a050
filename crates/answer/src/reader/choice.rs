//! Announced answers, comparisons, and numbers of equal standing.
use std::ops::Range;

use super::question::Extreme;
use super::statement::{Rank, Stated, Statements, UNIT_WORDS};
use super::token::Kind;
use super::vocabulary::Meaning;

impl Statements<'_> {
    /// The number announced in a range: the text behind words that say that this is the answer, up to the end of its sentence.
    pub fn marked(&self, range: Range<usize>) -> Stated {
        let range = self.behind_correction(range);
        let Some(first) = range.clone().find(|&at| self.is_candidate(at)) else {
            let number = range.clone().any(|at| matches!(self.kind(at), Kind::Number(_)));
            return if number { Stated::Unevaluated } else { Stated::Nothing };
        };
        // What is said in brackets or as a reason is not the statement.
        let mut end = range.end;
        for at in first + 1..range.end {
            let aside = self.kind(at) == Kind::Open
                && self.tokens.is_spaced(at)
                && !matches!(self.kind(at - 1), Kind::Operator(_) | Kind::Equals | Kind::Comma);
            if aside || self.tokens.means(at, Meaning::REASON) {
                end = at;
                break;
            }
        }
        let range = range.start..end;
        let equation = self.equation(range.clone());
        // `min(17.3, 17.03) = 17.03`
        let equals = (first..range.end).find(|&at| self.kind(at) == Kind::Equals);
        let leads = equals.is_some_and(|equals| (first + 1..equals).all(|at| self.is_left_side(at)));
        let mut stated = match equation {
            Some((Stated::Number(side), _))
                if leads || self.is_in_equation(first) || !self.is_alone(first) || side == first =>
            {
                Some(side)
            }
            Some((cut @ Stated::Cut(_), _)) => return cut,
            _ => self.is_alone(first).then_some(first),
        };
        if stated.is_none() && equation.is_none_or(|(stated, _)| stated == Stated::Unevaluated) {
            // "26 × 14, which gives 364" is still a result; "64891-91064" is none.
            let is_later = |&at: &usize| self.rank(at, &range, 0) == Rank::Result && !self.is_in_equation(at);
            let later = (first + 1..range.end).rev().find(is_later);
            match later {
                Some(later) => stated = Some(later),
                None => return Stated::Unevaluated,
            }
        }
        let Some(mut at) = stated else { return Stated::Nothing };
        // The sentence goes on to another result: "12 apples per day, for 7 days that is 84".
        for later in at + 1..range.end {
            if self.is_candidate(later)
                && !self.is_in_equation(later)
                && self.rank(later, &range, 0) == Rank::Result
                && self.is_new_result(at, later)
            {
                at = later;
            }
        }
        if let Some((Stated::Number(side), _)) = equation
            && side > at
            && self.is_new_result(at, side)
        {
            at = side;
        }
        if self.is_cut(at) {
            return Stated::Cut(Some(at));
        }
        match self.rival_behind(at, &range) {
            Some(other) if other == at => Stated::Cut(None),
            Some(other) => Stated::Rivals(at, other),
            None => Stated::Number(at),
        }
    }

    /// A later number of a statement replaces an earlier one where a verb or a conclusion leads to it.
    pub(super) fn is_new_result(&self, from: usize, to: usize) -> bool {
        let is_leading = |at: usize| {
            self.tokens.means(at, Meaning::GIVES.with(Meaning::CONCLUDES))
                || matches!(self.kind(at), Kind::Arrow)
                || ["that", "it", "this", "which"].iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word))
                    && self.tokens.means(at + 1, Meaning::LINK.with(Meaning::GIVES))
        };
        (from..to).any(is_leading)
            && !(from..to).any(|at| self.tokens.means(at, Meaning::OR) || self.kind(at) == Kind::Open)
    }

    /// A number beside the chosen one that has the same standing: "84 or 85", "2 and 3".
    pub(super) fn rival(&self, at: usize, range: &Range<usize>, candidates: usize) -> Option<usize> {
        let mut before = at.checked_sub(1)?;
        let either = range.clone().any(|at| self.tokens.means(at, Meaning::SEVERAL));
        while before > range.start && (self.is_mark(before) || self.tokens.means(before, Meaning::FILLER)) {
            before -= 1;
        }
        // "between 100 and 110"
        let between = self.tokens.means(before, Meaning::AND)
            && range.clone().take_while(|&at| at < before).any(|at| {
                ["between", "zwischen", "entre"].iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word))
            });
        let joins =
            |at: usize| self.tokens.means(at, Meaning::OR) || (self.tokens.means(at, Meaning::AND) && candidates <= 2);
        let listed = either && self.kind(before) == Kind::Comma;
        if before <= range.start || !(joins(before) || listed) {
            return None;
        }
        let mut number = before - 1;
        let mut words = 0;
        while number > range.start
            && (self.is_mark(number)
                || self.kind(number) == Kind::Comma
                || (self.is_unit(number) && words < UNIT_WORDS))
        {
            words += usize::from(self.is_unit(number));
            number -= 1;
        }
        let percents = |at: usize| self.number(at).is_some_and(|number| number.percent);
        let different = self.is_candidate(number)
            && self.is_alone(number)
            && !self.same(number, at)
            && percents(number) == percents(at);
        // A unit of its own makes it another spelling: "1 hour or 60 minutes".
        let both_units = self.is_unit(number + 1)
            && self.is_unit(at + 1)
            && !self.tokens.slice(number + 1).eq_ignore_ascii_case(self.tokens.slice(at + 1));
        if !different || both_units {
            return None;
        }
        let given = |at: usize| self.is_given(at);
        let and = self.tokens.means(before, Meaning::AND);
        // "6 and 7 apples" in a story is no list of guesses; two numbers and nothing else are.
        let bare = range.clone().filter(|&at| matches!(self.kind(at), Kind::Word(_))).count() <= 2;
        (given(number) == given(at) && (!and || bare || between)).then_some(number)
    }

    /// "84 or 85" behind a statement's number.
    pub(super) fn rival_behind(&self, at: usize, range: &Range<usize>) -> Option<usize> {
        let (mut next, has_unit) = self.behind(at);
        while self.kind(next) == Kind::Comma {
            next += 1;
        }
        let or = self.tokens.means(next, Meaning::OR);
        let and = self.tokens.means(next, Meaning::AND);
        let list = self.kind(next - 1) == Kind::Comma && matches!(self.kind(next), Kind::Number(_));
        if !(or || and || list) || next >= range.end {
            return None;
        }
        let mut other = if list { next } else { next + 1 };
        while self.is_mark(other) || self.tokens.means(other, Meaning::FILLER) {
            other += 1;
        }
        // The end of the text cuts the second.
        if other >= self.tokens.tokens.len() && self.truncated {
            return Some(at);
        }
        let percent = |at: usize| self.number(at).is_some_and(|number| number.percent);
        let different = other < range.end
            && self.is_candidate(other)
            && self.is_alone(other)
            && !self.same(other, at)
            && percent(other) == percent(at);
        let (end, other_unit) = self.behind(other);
        // "5 apples and 3 pears" and "1 hour or 60 minutes" are told apart by their units.
        let units =
            has_unit && other_unit && !self.tokens.slice(at + 1).eq_ignore_ascii_case(self.tokens.slice(other + 1));
        let finished = end >= range.end
            || matches!(self.kind(end), Kind::Stop | Kind::Line | Kind::Close | Kind::BoxClose | Kind::Comma);
        (different && !(units && or) && (or || finished)).then_some(other)
    }

    /// Of two given numbers the one that a comparison makes the extreme that was asked for: "9.11 is smaller than 9.9".
    pub(super) fn comparison(&self, range: &Range<usize>) -> Option<usize> {
        let extreme = self.question.extreme?;
        let compares = |&at: &usize| match self.kind(at) {
            Kind::Less | Kind::Greater => true,
            Kind::Word(meaning) => meaning.has(Meaning::UP.with(Meaning::DOWN)),
            _ => false,
        };
        range.clone().filter(compares).find_map(|at| self.compared(at, range, extreme))
    }

    /// The number that the comparison at a token singles out.
    pub(super) fn compared(&self, at: usize, range: &Range<usize>, extreme: Extreme) -> Option<usize> {
        let up = match self.kind(at) {
            Kind::Greater => true,
            Kind::Less => false,
            _ => self.tokens.means(at, Meaning::UP),
        };
        let denied = (range.start..at).any(|before| self.tokens.means(before, Meaning::DENIES));
        let subject = (range.start..at).rev().find(|&at| self.is_candidate(at))?;
        if !self.is_given(subject) || denied {
            return None;
        }
        let than = (at..range.end).find(|&at| self.is_candidate(at) && self.is_given(at));
        let wants_up = extreme == Extreme::Largest;
        if up == wants_up { Some(subject) } else { than.filter(|&other| !self.same(other, subject)) }
    }
}
