//! The clause in which a number stands: a reason, a condition, a premise, the subject.
use std::ops::Range;

use super::asks::Ask;
use super::feature::{Feature as F, Features, these};
use super::mention::NEAR;
use super::question::is_negation;
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
                Kind::Word(_) if means(Meaning::IF) && self.is_if(before) => {
                    let main = self.main_clause(before, at);
                    return main.map_or((clause, Some(F::InIf)), |subject| (subject, None));
                }
                // "after 30 minutes" where minutes were asked for
                Kind::Word(_) if clause == at && features.has(F::AskedUnit) => {}
                // "Of these riders 10 were men": only what "of" stands before is a premise.
                Kind::Word(_) if !verb && self.is_of(before) && !(clause..at).all(|at| self.is_determiner(at)) => {
                    verb = true;
                }
                Kind::Word(_) if !verb && self.begins_premise(before, range.start) => {
                    let main = self.main_clause(before, at);
                    return main.map_or((clause, Some(F::InPremise)), |subject| (subject, None));
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

    /// The subject of the main clause behind a condition or premise without a comma: "If you take 8 from 3 you end up at -5", "By midnight it had
    /// dropped to -7".
    fn main_clause(&self, begins: usize, at: usize) -> Option<usize> {
        let preposition = self.is(begins, "by with in at for on");
        let goes_on = |&subject: &usize| {
            self.is(subject, "you we it he she they i")
                && self.is_word(subject + 1)
                && (preposition || self.has_number(&(begins..subject)))
        };
        (begins + 1..at).rev().find(goes_on)
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
            features.remove(these![SmallWord]);
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

    /// Features of what stands directly beside a number, and of what it is a part of.
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
        features.set(F::Trails, self.kind(at + 1) == Kind::Ellipsis);
        features.set(F::OfMany, self.means(at + 1, Meaning::OF) || self.is(at + 1, "from out as"));
        let number = |is: &dyn Fn(&Number) -> bool| self.number(at).is_some_and(is);
        let part = number(&|number| number.text.contains('/')) && (features.has(F::OfMany) || self.is(at + 1, "the"));
        let share =
            number(&|number| number.percent) && !self.question.asks(Ask::Percent) && self.means(at + 1, Meaning::OF);
        // "a 120-fathom cable"
        let compound = self.kind(at + 1) == Kind::Operator('-')
            && !self.is_spaced(at + 1)
            && self.is_word(at + 2)
            && !self.is_spaced(at + 2);
        // "so a £10 note is enough"
        let note = self.is(at + 1, "note bill coin voucher banknote schein billet billete");
        // "The miles account for 26 of that"
        let of_that = self.is(at + 1, "of") && self.is(at + 2, "that this") && !self.is_unit(at + 3);
        features.set(F::PartOf, !self.question.asks_fraction && (share || part) || of_that || compound || note);
        // "multiply by 100", "divided by 10"
        let operation = |at: usize| self.is(at, "multiply multiplied multiplying divide divided dividing divides");
        let goes_into = self.is(at + 1, "goes") && self.is(at + 2, "into");
        let by = at > range.start && self.is(at - 1, "by") && (range.start..at).rev().take(10).any(operation);
        features
            .set(F::Operand, goes_into || by || self.is_of_instruction(at, range) || self.is_given_letter(at, range));
        // "Both begin with 70"
        let first = (range.start..at).rev().take(4).find(|&at| !self.means(at, Meaning::FILLER) && !self.is_mark(at));
        let prefix = first.is_some_and(|with| {
            self.is(with, "with mit par con com") && with > range.start && self.is(with - 1, "start starts starting begin begins beginning beginnen beginnt commencent commence empiezan empieza")
        });
        features.set(F::Prefix, prefix);
        features.set(F::InAsk, self.is_asked_within(at, range));
        features.set(F::Former, self.is_former(at, range) || self.is_difference(at, range));
        features.set(F::Foreign, self.is_foreign(at, range));
        // "7 of her 12 apples"
        let mut whole = (range.start..at).rev().take(4).take_while(|&at| self.is_word(at));
        let whole = whole.find(|&at| self.means(at, Meaning::OF) || self.is(at, "das dos des der"));
        let part = |at: usize| self.is_number(at) || self.is(at, "any one each every some none all both");
        features.set(F::WholeOf, whole.is_some_and(|of| of > range.start && part(of - 1)));
        // "21 came and 9 did not"
        let verb = match self.kind(behind) {
            Kind::Open => self.matching(behind, Kind::Open, Kind::Close) + 1,
            _ => behind,
        };
        let negation = |at: usize| at < range.end && is_negation(self.slice(at));
        let denied = negation(verb) || self.means(verb, any_of![LINK, DOES]) && negation(verb + 1);
        if denied && !features.has(F::WholeOf) {
            features.add(if self.question.denies { F::SideAsked } else { F::SideOther });
        }
    }

    /// True for an operand of an operation that is told and not done: "divide 48 by 6", "subtract 6 from 13", "add 13 and 6".
    fn is_of_instruction(&self, at: usize, range: &Range<usize>) -> bool {
        let begins = |at: usize| range.contains(&at) && self.means(at, Meaning::OPERATES);
        let passes = |at: usize| self.is_mark(at) || self.is_unit(at) || self.means(at, any_of![FILLER, OPERATOR]);
        let joins = |at: usize| {
            self.is(at, "by from to and with into par de et à por entre y durch mit von und per e con da a")
        };
        let back = |from: usize| (range.start..from).rev().take(4).find(|&at| !passes(at) || begins(at));
        let Some(before) = back(at) else { return false };
        // "and then subtract 45"
        let directly = |at: usize| self.is_mark(at) || self.is(at, "the the other remaining");
        if (range.start..at).rev().find(|&at| !directly(at)).is_some_and(begins) {
            return true;
        }
        if begins(before) {
            let (behind, _) = self.behind(at);
            return behind < range.end && joins(behind) && self.is_number(self.past(behind + 1, range.end, passes));
        }
        joins(before) && back(before).is_some_and(|first| self.is_number(first) && back(first).is_some_and(begins))
    }

    /// True behind "how many" within a clause: "to find how many days there are in 3 weeks".
    fn is_asked_within(&self, at: usize, range: &Range<usize>) -> bool {
        let ends = |at: &usize| {
            matches!(self.kind(*at), Kind::Comma | Kind::Colon | Kind::Equals | Kind::Arrow | Kind::Open)
                || self.means(*at, Meaning::CONCLUDES)
        };
        let how = |at: usize| {
            self.means(at, Meaning::HOW_MANY)
                || self.is(at, "how wie hur") && self.is(at + 1, "many much long far viel viele lange mycket många")
        };
        let linked = self.means(at - usize::from(at > range.start), any_of![LINK, GIVES]);
        !linked && (range.start..at).rev().take(NEAR).take_while(|at| !ends(at)).any(how)
    }

    /// True for one of several letters' values: "with a = 15 and b = 4".
    fn is_given_letter(&self, at: usize, range: &Range<usize>) -> bool {
        let letter = |at: usize| {
            let first = at >= range.start + 2 && self.kind(at - 1) == Kind::Equals && self.slice(at - 2).len() == 1;
            first
                && self.is_word(at - 2)
                && self.is_alone(at)
                && (at < range.start + 3
                    || !matches!(self.kind(at - 3), Kind::Operator(_) | Kind::Number(_) | Kind::Close))
        };
        let joins = |at: usize| self.kind(at) == Kind::Comma || self.means(at, Meaning::AND);
        let next = |at: usize| joins(at + 1) && range.contains(&(at + 4)) && letter(at + 4);
        letter(at) && (next(at) || at >= range.start + 4 && letter(at - 4) && joins(at - 3))
    }

    /// True for a value that is no more: "the original 40", "the regular price of 80", "it was 120 before".
    fn is_former(&self, at: usize, range: &Range<usize>) -> bool {
        let passes = |at: &usize| {
            self.is_mark(*at)
                || self.is(*at, "price cost value amount rate rent salary total of preis von prix de precio prezzo di")
        };
        let before = (range.start..at).rev().take(4).find(|at| !passes(at));
        let (behind, _) = self.behind(at);
        let asked = |at: usize| self.question.asked_words(self.slice(at)) != 0;
        let closes = |at: usize| self.means(at, Meaning::FORMER) && !self.is_word(at + 1) && !self.is_number(at + 1);
        // "down from 40"
        let from = |at: usize| self.is(at, "from") && at > range.start && self.is(at - 1, "down up");
        before.is_some_and(|at| from(at) || self.means(at, Meaning::FORMER) && !asked(at))
            || [behind, behind.saturating_sub(1)].iter().any(|&at| range.contains(&at) && closes(at) && !asked(at))
    }

    /// True for how far a value is from another: "12 less than the regular price", "10 off", "and save 12".
    fn is_difference(&self, at: usize, range: &Range<usize>) -> bool {
        let question = self.question;
        let than = |at: usize| {
            self.is(at, "less more fewer cheaper higher lower") && self.is(at + 1, "than")
                || self.is(at, "off down up") && self.is(at + 1, "the from")
                || self.is(at, "saving savings discount")
                || self.is(at, "moins plus menos más") && self.is(at + 1, "que de")
                || self.is(at, "weniger mehr günstiger billiger teurer") && self.is(at + 1, "als")
        };
        let (behind, _) = self.behind(at);
        let saves = at >= range.start + 2 && self.is(at - 1, "save saves saving") && !question.knows("save");
        let differs = (at + 1..=behind.min(at + 3)).any(than);
        let ends = |at: &usize| matches!(self.kind(*at), Kind::Line | Kind::Stop);
        let another = (0..at).rev().take(NEAR).take_while(|at| !ends(at)).any(|at| self.is_number(at));
        saves || differs && another && !question.asks(Ask::Difference) && question.asked_words("discount") == 0
    }

    /// True for the answer of somebody else, beside the speaker's own: "The reference answer is 61, but I calculate 60".
    pub(super) fn is_foreign(&self, at: usize, range: &Range<usize>) -> bool {
        let source =
            |at: usize| self.is(at, "reference expected official textbook key book worksheet") && !self.is(at, "i");
        let own = |at: usize| {
            self.is(at, "i my mine") || self.is(at, "correct") && self.means(at + 1, any_of![ANSWER, RESULT])
        };
        let ends = |at: &usize| self.kind(*at) == Kind::Line;
        (range.start..at).rev().take(8).any(source)
            && !(range.start..at).any(|at| self.is(at, "my i"))
            && (at + 1..at + 10).take_while(|at| !ends(at)).any(own)
    }

    /// True for "of" and the like, before the whole of which something is said.
    fn is_of(&self, at: usize) -> bool {
        self.means(at, Meaning::OF) || self.is(at, "aus among unter sur")
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
            || self.is(at, "want") && language != Language::CommaDecimal
            || self.is(at, "da denn") && language != Language::German;
        // "As a mixed number that's 1 1/4"
        if self.is(at, "as")
            && self.is(at + 1, "a an")
            && self.is(at + 2, "mixed decimal fraction percentage percent float simplified reduced")
        {
            return false;
        }
        // "considering that we take 418 away"
        let that = self.is(at, "considering knowing seeing sachant sabiendo sabendo sapendo")
            && self.is(at + 1, "that que che");
        that || self.means(at, Meaning::REASON)
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
        // "at a rate of 18 pages", "à raison de 18 pages"
        let rate = self.is(at, "rate pace speed raison razón ragione ritmo rythme")
            && self.question.asked_words(self.slice(at)) == 0;
        if rate && (start..at).rev().take(2).any(|at| self.is(at, "at à a in al au")) {
            return true;
        }
        if self.means(at, Meaning::PREMISE) {
            if self.question.asks(Ask::Difference) && self.is(at, "by") {
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
        let both = question.asks_remainder && question.asks(Ask::NamedQuotient);
        if both || !question.asks_remainder && !question.asks(Ask::Quotient) {
            return false;
        }
        // "29 ÷ 4 = 7 R 1"
        if question.asks_remainder && self.is(at + 1, "r rest") && self.is_number(at + 2) {
            return true;
        }
        for before in (range.start..at).rev().take(4) {
            match self.kind(before) {
                _ if self.is(before, "remainder rest reste resto r") => return !question.asks_remainder,
                _ if self.is(before, "quotient") && question.asks_remainder => return question.asks_remainder,
                Kind::Number(_) | Kind::Comma | Kind::Stop => return false,
                _ => {}
            }
        }
        false
    }
}
