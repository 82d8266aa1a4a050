//! The word or sign before a number that says what it is.
use std::ops::Range;

use super::asks::Ask;
use super::feature::{Feature as F, Features, these};
use super::mention::NEAR;
use super::question::is_negation;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};
use crate::number::words::Language;

/// Words before a number, the words before those, and what both together say.
const PAIRS: [(&str, &str, F); 11] = [
    ("with", "go going stick left leaves ends up", F::CueGives),
    ("by", "increased decreased rose fell grew dropped", F::CueGives),
    (
        "to",
        "comes come amounts amount equal equals adds up sums simplifies simplified simplify reduces reduced reduce rounds rounded works evaluates corresponds down out \
         converts",
        F::CueGives,
    ),
    // "Il y a 14 jours", "elle a 9 ans"
    ("a", "y il elle on qui en", F::CueGives),
    ("to", "than", F::CueContext),
    // "takes in $184", "looking at 47"
    ("in", "takes take brings bring took brought", F::CueGives),
    ("in", "came come comes finished finishes places placed", F::CueGives),
    ("at", "we're i'm looking stands stood stand put", F::CueGives),
    // "I settle on 144"
    ("on at for auf au à", "arrive arrives settle settled land landed arrived end ended go", F::CueGives),
    // "weighs in at 52", "ends up with 7", "came to 54"
    ("at with as on to bei auf", "in out up down off came amounted back over raus", F::CueGives),
    ("to", "closer nearer close near closest nearest compared", F::CueContext),
];

impl Scan<'_> {
    /// The word or sign before a number that says what it is.
    pub(super) fn cue(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let start = range.start.max(at.saturating_sub(NEAR));
        let (mut before, mut filler) = (at, false);
        let cue = loop {
            use Kind::{
                Arrow, Bold, BoxOpen, Bullet, Colon, Comma, Ellipsis, Equals, Heading, Open, Other, Quote, Word,
            };
            if before == start {
                break F::CueOther;
            }
            before -= 1;
            let meaning = match self.kind(before) {
                Bold | Quote | Other | BoxOpen | Open | Bullet | Heading | Ellipsis => continue,
                Arrow => break F::CueArrow,
                Equals => break F::CueLink,
                Colon => break F::CueColon,
                Comma => break F::CueComma,
                Word(meaning) => meaning,
                _ => break F::CueOther,
            };
            let is = |words: &str| self.is(before, words);
            let behind = |words: &str| before > start && self.is(before - 1, words);
            if let Some((.., cue)) = PAIRS.iter().find(|(words, first, _)| is(words) && behind(first)) {
                break *cue;
            }
            break match () {
                () if meaning.has(Meaning::OF) => self.cue_of(before, start, at),
                () if is("by um") && self.question.asks(Ask::Difference) => F::CueGives,
                () if is("by um") => F::CueContext,
                () if is("with mit avec con com") && before > range.start + 1 => F::CueWith,
                () if is("to bis") => F::CueTo,
                () if is("than als que") => F::CueContext,
                () if meaning.has(Meaning::LINK) => F::CueLink,
                () if meaning.has(Meaning::GIVES) => F::CueGives,
                () if meaning.has(Meaning::CONCLUDES) => F::CueConcludes,
                () if self.question.language == Language::German && is("also") => F::CueConcludes,
                // "12 are red and 8 are blue"
                () if meaning.has(Meaning::AND) && before + 1 == at && self.begins_clause(at) => F::CueOther,
                () if meaning.has(any_of![OR, AND]) => F::CueContext,
                () if meaning.has(Meaning::ANSWER) => F::CueOther,
                // The words before a filler word may make it part of something else.
                () if meaning.has(Meaning::FILLER) && !(before > start && self.means(before - 1, Meaning::REASON)) => {
                    filler = true;
                    continue;
                }
                // "It lasts for 28 days."
                () if features.has(F::AskedUnit)
                    && is("for für pour para per")
                    && !self.has_number(&(range.start..before)) =>
                {
                    F::CueGives
                }
                () if meaning.has(any_of![CONTEXT, PREMISE]) => F::CueContext,
                () if filler && meaning.has(Meaning::SUBJECT) && !meaning.has(Meaning::RESULT) => continue,
                () => F::CueOther,
            };
        };
        // "in 2038" where a year was asked for
        let year = cue == F::CueContext && features.has(F::YearAsked) && self.is(before, "in im en nel em year jahr");
        let cue = if year { F::CueGives } else { cue };
        features.add(cue);
        // "there are three 7s", not "the two numbers"
        if before + 1 == at && matches!(cue, F::CueLink | F::CueGives | F::CueColon | F::CueConcludes) {
            features.remove(these![SmallWord]);
        }
        let denies = |at: usize| {
            self.kind(at) == Kind::Unequal || self.means(at, Meaning::DENIES) && !self.is(at, "no but sondern sino")
        };
        let ends = |at: usize| self.is_number(at) || matches!(self.kind(at), Kind::Comma | Kind::Colon);
        let denied = (start..at).rev().take(4).take_while(|&at| !ends(at)).any(denies);
        let doubted = (start..at).rev().take(8).any(|before| self.is(before, "doubt doubts"));
        features.set(F::Denied, denied || doubted);
        let target = |at| self.question.names_target(self.slice(at));
        features
            .set(F::NamesTarget, matches!(cue, F::CueLink | F::CueColon) && self.words(&(range.start..at)).any(target));
    }

    /// True if a number is the subject of a clause: a verb follows it and its unit.
    pub(super) fn begins_clause(&self, at: usize) -> bool {
        let verb = self.behind(at).0;
        self.means(verb, any_of![LINK, GIVES, REMAINS, DOES]) || is_negation(self.slice(verb))
    }

    /// The cue of an "of" before a number.
    fn cue_of(&self, of: usize, start: usize, at: usize) -> F {
        const AMOUNTS: &str = "difference increase decrease total sum remainder change profit loss average mean product quotient \
             gain summe differenz somme différence diferencia";
        if of == start {
            return F::CueContext;
        }
        let (behind, _) = self.behind(at);
        let operands = self.means(behind, Meaning::AND) || self.kind(behind) == Kind::Comma;
        match () {
            // "le prix total est de 8,40 €"
            () if self.means(of - 1, Meaning::LINK) => F::CueLink,
            () if operands && self.means(of - 1, any_of![TOTALS, RESULT]) => F::CueTotal,
            () if self.is(of - 1, AMOUNTS) => F::CueGives,
            () => F::CueContext,
        }
    }
}
