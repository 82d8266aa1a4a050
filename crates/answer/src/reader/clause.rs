//! The clause in which a number stands: a reason, a condition, a premise, the subject.
use std::ops::Range;

use super::feature::{Feature as F, Features};
use super::mention::NEAR;
use super::scan::Scan;
use super::token::{Kind, Number};
use super::vocabulary::{Meaning, any_of};
use crate::number::words::Language;

impl Scan<'_> {
    /// The beginning of a number's clause, behind the last comma, sign or verb before the number, and the feature of a word that
    /// begins it.
    fn clause_start(&self, at: usize, range: &Range<usize>, features: &Features) -> (usize, Option<F>) {
        let start = range.start.max(at.saturating_sub(3 * NEAR));
        let mut verb = false;
        for before in (start..at).rev() {
            let clause = before + 1;
            let means = |meaning| self.means(before, meaning);
            match self.kind(before) {
                Kind::Comma | Kind::Colon | Kind::Arrow | Kind::Open => return (clause, None),
                _ if means(Meaning::CONCLUDES) && means(Meaning::FOLLOWS) => return (clause, None),
                Kind::Word(_) if self.is_reason(before, range.start) => return (clause, Some(F::InReason)),
                Kind::Word(_) if means(Meaning::IF) && self.is_if(before) => return (clause, Some(F::InIf)),
                // "after 30 minutes" where minutes were asked for
                Kind::Word(_) if clause == at && features.has(F::AskedUnit) => {}
                // "Of these riders 10 were men": only what "of" stands before is a premise.
                Kind::Word(_) if !verb && self.is_of(before) && !(clause..at).all(|at| self.is_determiner(at)) => {
                    verb = true;
                }
                Kind::Word(_) if !verb && self.begins_premise(before, range.start) => {
                    return (clause, Some(F::InPremise));
                }
                // "after giving away 5", "having sold 19"
                Kind::Word(_) if clause > start + 1 && self.means(before - 1, Meaning::PREMISE) => {}
                Kind::Word(_) if means(any_of![LINK, GIVES]) => verb = true,
                // "Of the 60 rolls there lie 12"
                Kind::Number(_) if self.says_more(before, at, range.start) => verb = true,
                Kind::Equals => verb = true,
                _ => {}
            }
        }
        (start, None)
    }

    /// The part of a sentence in which a number stands: its subject, a reason, a premise, one of a pair.
    pub(super) fn clause(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let (clause, begins) = self.clause_start(at, range, features);
        if let Some(feature) = begins {
            features.add(feature);
        }
        // A reason that began before the last comma goes on, unless a conclusion was drawn.
        if !features.has(F::InReason) {
            let reason = (range.start + 1..clause)
                .rev()
                .take(24)
                .take_while(|&at| self.kind(at) != Kind::Colon && !self.is(at, "but"))
                .find(|&at| self.is_reason(at, range.start) || self.means(at, Meaning::CONCLUDES));
            // "The result, given 18 and 30, comes to 132": the sentence goes on behind its reason.
            let goes_on = self.means(clause, any_of![LINK, GIVES]) || self.is(clause, "comes amounts");
            let within = clause > range.start && !self.means(clause - 1, Meaning::FOLLOWS) && !goes_on;
            let begun = reason.is_some_and(|at| self.is_reason(at, range.start) && at > range.start + 2);
            features.set(F::InReason, within && begun);
        }
        // "Because there are 2 trains, ..." comes before what it is the reason for; "21, because 7 take 3" after it.
        if features.has(F::InReason) {
            let reason = (range.start..at).rev().find(|&at| self.means(at, Meaning::REASON)).unwrap_or(at);
            let before = range.start..reason;
            features.set(F::ReasonFirst, self.words(&before).count() <= 1 && !self.has_number(&before));
        }
        let line_begins = at == 0 || matches!(self.kind(at - 1), Kind::Line | Kind::Bold);
        if line_begins && matches!(self.kind(at + 1), Kind::Comma | Kind::Stop | Kind::Colon) {
            features.remove(&[F::SmallWord]);
        }
        self.beside(at, range, features);
        self.pair(at, range, features);
        // "Ana is 18 and Ben is 36"
        let asked = |at: usize| self.question.names.iter().any(|name| name == self.slice(at));
        let named = |&at: &usize| self.is_word(at) && self.question.all_names.iter().any(|name| name == self.slice(at));
        let name = (range.start..at).rev().take(8).take_while(|&at| !self.is_number(at)).find(named);
        features.set(F::NamedAsked, name.is_some_and(asked));
        features.set(F::NamedOther, name.is_some_and(|at| !asked(at)) && !self.question.names.is_empty());
        features.set(F::OtherPart, self.is_of_other_part(at, range));
        features.set(F::RangeSide, self.is_range_side(at, range));
    }

    /// What stands directly beside a number, and what it is a part of.
    fn beside(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let (behind, _) = self.behind(at);
        let opens = |at: usize| {
            self.is_mark(at)
                || self.means(at, any_of![CONCLUDES, FILLER])
                || matches!(self.kind(at), Kind::Comma | Kind::Bullet)
        };
        let closes = |at: usize| self.is_mark(at) || matches!(self.kind(at), Kind::Close | Kind::Bar | Kind::Ellipsis);
        features.set(F::BeginsSentence, (range.start..at).all(opens));
        features.set(F::EndsSentence, (behind..range.end).all(closes));
        let each = |at: usize| {
            self.is(at, "each apiece per chacun chacune jeweils pro cadauno ciascuno")
                || self.is(at, "cada") && self.is(at + 1, "uno una")
        };
        features.set(F::EachBehind, each(behind) || each(at + 1) || behind > at + 1 && each(behind - 1));
        features.set(F::Trails, self.kind(at + 1) == Kind::Ellipsis);
        features.set(F::OfMany, self.is(at + 1, "of from out von de di as"));
        let number = |is: &dyn Fn(&Number) -> bool| self.number(at).is_some_and(is);
        let part = number(&|number| number.text.contains('/')) && (features.has(F::OfMany) || self.is(at + 1, "the"));
        let share = number(&|number| number.percent) && !self.question.asks_percent && self.is(at + 1, "of der de di");
        features.set(F::PartOf, !self.question.asks_fraction && (share || part));
        // "multiply by 100", "divided by 10"
        let operation = |at: usize| self.is(at, "multiply multiplied multiplying divide divided dividing divides");
        let goes_into = self.is(at + 1, "goes") && self.is(at + 2, "into");
        let by = at > range.start && self.is(at - 1, "by") && (range.start..at).rev().take(10).any(operation);
        features.set(F::Operand, goes_into || by);
        // "7 of her 12 apples"
        let mut whole = (range.start..at).rev().take(4).take_while(|&at| self.is_word(at));
        let whole = whole.find(|&at| self.is(at, "of von de dei delle das dos des der"));
        let part = |at: usize| self.is_number(at) || self.is(at, "any one each every some none all both");
        features.set(F::WholeOf, whole.is_some_and(|of| of > range.start && part(of - 1)));
    }

    /// True for "of" and the like, before the whole of which something is said.
    fn is_of(&self, at: usize) -> bool {
        self.is(at, "of von aus de di dei delle sur among unter")
    }

    /// True for what stands between "of" and the number of its things.
    fn is_determiner(&self, at: usize) -> bool {
        self.is_mark(at) || self.is_number(at) || self.means(at, any_of![FILLER, SUBJECT]) || self.is(at, "original")
    }

    /// True if behind a number and its unit further words lead to another number.
    fn says_more(&self, number: usize, at: usize, start: usize) -> bool {
        let behind = number + 1 + usize::from(self.is_unit(number + 1));
        let joins = any_of![CONTEXT, AND, OR, PREMISE, OPERATOR];
        // "Adding the table at 659 brings the set to 1047"
        let adds = self.slice(start).len() > 5 && self.slice(start).ends_with("ing");
        let of = adds || (number.saturating_sub(3)..number).any(|at| self.is_of(at));
        of && behind < at && (behind..at).all(|at| self.is_word(at) && !self.means(at, joins))
    }

    /// True if a word begins a reason; "twice as long as" is none.
    pub(super) fn is_reason(&self, at: usize, start: usize) -> bool {
        // Short words of one language are others of another.
        let language = self.question.language;
        let foreign = self.is(at, "car") && language != Language::French
            || self.is(at, "da denn") && language != Language::German;
        self.means(at, Meaning::REASON)
            && !foreign
            && (!self.is(at, "as")
                || (at == start || self.kind(at - 1) == Kind::Comma)
                    && !self.is(at + 1, "one you we expected mentioned stated before"))
    }

    /// True if a word begins a clause that the answer only rests on: "after", "having", a verb in -ing at the beginning.
    pub(super) fn begins_premise(&self, at: usize, start: usize) -> bool {
        // "comes out as 14"
        if self.is(at, "as") && at > start && self.is(at - 1, "out written expressed known same") {
            return false;
        }
        if self.means(at, Meaning::PREMISE) {
            if self.question.asks_difference && self.is(at, "by") {
                return false;
            }
            let within = self.is(at, "with mit avec con com by for of von");
            return !within || at == start || matches!(self.kind(at - 1), Kind::Comma);
        }
        if at == start && self.is(at, "to") && self.is_word(at + 1) {
            return true;
        }
        let concludes = |at: usize| !self.is_word(at) || self.means(at, Meaning::CONCLUDES);
        let first = (start..at).all(|before| concludes(before) && !self.is_number(before));
        first && self.slice(at).len() > 5 && self.slice(at).to_ascii_lowercase().ends_with("ing")
    }

    /// One number in brackets behind words or signs that lead to a result.
    pub(super) fn is_answer_in_brackets(&self, open: usize, start: usize) -> bool {
        self.is_number(open + 1)
            && self.kind(open + 2) == Kind::Close
            && (open == start
                || matches!(self.kind(open - 1), Kind::Colon | Kind::Equals | Kind::Arrow)
                || self.means(open - 1, any_of![LINK, GIVES]))
    }

    /// The remainder where the quotient was asked for, and the other way round.
    pub(super) fn is_of_other_part(&self, at: usize, range: &Range<usize>) -> bool {
        let question = self.question;
        if question.asks_remainder == question.asks_quotient {
            return false;
        }
        for before in (range.start..at).rev().take(4) {
            match self.kind(before) {
                _ if self.is(before, "remainder rest reste resto r") => return !question.asks_remainder,
                _ if self.is(before, "quotient") => return question.asks_remainder,
                Kind::Number(_) | Kind::Comma | Kind::Stop => return false,
                _ => {}
            }
        }
        false
    }
}
