//! The word or sign before a number that says what it is.
use std::ops::Range;

use super::feature::{Feature as F, Features};
use super::mention::NEAR;
use super::scan::Scan;
use super::token::{Kind, is_among};
use super::vocabulary::Meaning;
use crate::number::words::Language;

impl Scan<'_> {
    /// The word or sign before a number that says what it is.
    pub(super) fn cue(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let start = range.start.max(at.saturating_sub(NEAR));
        let mut before = at;
        let mut filler = false;
        let cue = loop {
            if before == start {
                break F::CueOther;
            }
            before -= 1;
            match self.kind(before) {
                Kind::Bold
                | Kind::Quote
                | Kind::Other
                | Kind::BoxOpen
                | Kind::Open
                | Kind::Bullet
                | Kind::Heading
                | Kind::Ellipsis => {}
                Kind::Arrow => break F::CueArrow,
                Kind::Equals => break F::CueLink,
                Kind::Colon => break F::CueColon,
                Kind::Comma => break F::CueComma,
                Kind::Word(meaning) => {
                    let word = self.tokens.slice(before);
                    let is = |words: &str| is_among(word, words);
                    if is("of de von di van") {
                        let total =
                            before > start && self.tokens.means(before - 1, Meaning::TOTALS.with(Meaning::RESULT));
                        let (behind, _) = self.behind(at);
                        let operands = self.tokens.means(behind, Meaning::AND) || self.kind(behind) == Kind::Comma;
                        let amount = before > start
                            && self.is(
                                before - 1,
                                "difference increase decrease total sum remainder change profit loss average mean \
                                 product quotient gain summe differenz somme différence diferencia",
                            );
                        break match (total && operands, amount) {
                            (true, _) => F::CueTotal,
                            (_, true) => F::CueGives,
                            _ => F::CueContext,
                        };
                    }
                    if is("with") && before > start && self.is(before - 1, "go going stick left leaves ends up")
                        || is("by")
                            && before > start
                            && self.is(before - 1, "increased decreased rose fell grew dropped")
                    {
                        break F::CueGives;
                    }
                    if is("to")
                        && before > start
                        && self.is(
                            before - 1,
                            "comes come amounts amount equal equals adds up sums simplifies reduces rounds works \
                             evaluates corresponds down out converts",
                        )
                    {
                        break F::CueGives;
                    }
                    // "Il y a 14 jours", "elle a 9 ans"
                    if is("a") && before > start && self.is(before - 1, "y il elle on qui en") {
                        break F::CueGives;
                    }
                    if is("to") && before > start && self.is(before - 1, "than") {
                        break F::CueContext;
                    }
                    // "takes in $184", "looking at 47"
                    if is("in") && before > start && self.is(before - 1, "takes take brings bring took brought")
                        || is("at") && before > start && self.is(before - 1, "we're i'm looking stands stood stand put")
                    {
                        break F::CueGives;
                    }
                    // "I settle on 144"
                    if is("on at for auf")
                        && before > start
                        && self.is(before - 1, "settle settled land landed arrive arrived end ended go")
                    {
                        break F::CueGives;
                    }
                    // "weighs in at 52", "ends up with 7", "came to 54"
                    if is("at with as on to bei auf")
                        && before > start
                        && self.is(before - 1, "in out up down off came amounted back over raus")
                    {
                        break F::CueGives;
                    }
                    if is("by um") {
                        break if self.question.asks_difference { F::CueGives } else { F::CueContext };
                    }
                    if is("with mit avec con com") && before > range.start + 1 {
                        break F::CueWith;
                    }
                    if is("to")
                        && before > start
                        && self.is(before - 1, "closer nearer close near closest nearest compared")
                    {
                        break F::CueContext;
                    }
                    if is("to bis") {
                        break F::CueTo;
                    }
                    if is("than als que") {
                        break F::CueContext;
                    }
                    if meaning.has(Meaning::LINK) {
                        break F::CueLink;
                    }
                    if meaning.has(Meaning::GIVES) {
                        break F::CueGives;
                    }
                    let also = self.question.language == Language::German && is("also");
                    if meaning.has(Meaning::CONCLUDES) || also {
                        break F::CueConcludes;
                    }
                    if meaning.has(Meaning::OR.with(Meaning::AND)) {
                        break F::CueContext;
                    }
                    if meaning.has(Meaning::ANSWER) {
                        break F::CueOther;
                    }
                    if meaning.has(Meaning::FILLER) && !filler_ends(before, start, self) {
                        filler = true;
                        continue;
                    }
                    // "It lasts for 28 days."
                    if features.has(F::AskedUnit)
                        && is("for für pour para per")
                        && !self.has_number(&(range.start..before))
                    {
                        break F::CueGives;
                    }
                    if meaning.has(Meaning::CONTEXT.with(Meaning::PREMISE)) {
                        break F::CueContext;
                    }
                    if meaning.has(Meaning::RESULT) {
                        break F::CueOther;
                    }
                    if filler && meaning.has(Meaning::SUBJECT) {
                        continue;
                    }
                    break F::CueOther;
                }
                _ => break F::CueOther,
            }
        };
        // "in 2038" where a year was asked for
        let cue = if cue == F::CueContext && features.has(F::YearAsked) && self.is(before, "in im en nel em year jahr")
        {
            F::CueGives
        } else {
            cue
        };
        features.add(cue);
        // "there are three 7s", not "the two numbers"
        if before + 1 == at && matches!(cue, F::CueLink | F::CueGives | F::CueColon | F::CueConcludes) {
            features.remove(&[F::SmallWord]);
        }
        let denied = (start..at)
            .rev()
            .take(4)
            .take_while(|&at| !matches!(self.kind(at), Kind::Number(_) | Kind::Comma | Kind::Colon))
            .any(|before| {
                self.kind(before) == Kind::Unequal
                    || self.tokens.means(before, Meaning::DENIES) && !self.is(before, "no but sondern sino")
            });
        let doubted = (start..at).rev().take(8).any(|before| self.is(before, "doubt doubts"));
        let denied = denied || doubted;
        features.set(F::Denied, denied);
        let target = matches!(cue, F::CueLink | F::CueColon)
            && (range.start..at)
                .any(|at| matches!(self.kind(at), Kind::Word(_)) && self.question.names_target(self.tokens.slice(at)));
        features.set(F::NamesTarget, target);
    }
}

/// True where the words before a filler word make it part of something else.
fn filler_ends(at: usize, start: usize, scan: &Scan<'_>) -> bool {
    at > start && scan.tokens.means(at - 1, Meaning::REASON)
}
