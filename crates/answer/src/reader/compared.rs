//! Numbers of which a sentence says that one is larger or smaller.
use std::ops::Range;

use super::feature::{Feature as F, these};
use super::mention::Mention;
use super::question::Extreme;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};

impl Scan<'_> {
    /// Of two compared numbers the one that a comparison makes the extreme that was asked for: "9.11 is smaller than 9.9".
    pub(super) fn comparison(&self, range: &Range<usize>, found: &mut [Mention]) {
        let Some(extreme) = self.question.extreme else { return };
        let compares =
            |&at: &usize| matches!(self.kind(at), Kind::Less | Kind::Greater) || self.means(at, any_of![UP, DOWN]);
        // "-7 比 -12 大"
        let than = range.clone().find(|&at| self.slice(at).ends_with('比'));
        if let Some(than) = than {
            let up = (than..range.end).any(|at| self.slice(at).contains(['大', '多', '高', '长', '重']));
            let subject = found.iter().rposition(|mention| mention.at < than);
            let other = found.iter().position(|mention| mention.at > than);
            if let Some((subject, other)) = subject.zip(other) {
                let larger = up == (extreme == Extreme::Largest);
                found[subject].features.add(if larger { F::Compared } else { F::NotCompared });
                found[other].features.add(if larger { F::NotCompared } else { F::Compared });
            }
            return;
        }
        let mut all = range.clone().filter(compares).peekable();
        if all.peek().is_none() {
            // "3/7 comes out ahead"
            let wins = range.clone().find(|&at| self.is(at, "wins winner ahead gewinnt gagne gana vince"));
            let winner = wins.and_then(|at| found.iter().rposition(|mention| mention.at < at));
            if let Some(winner) = winner {
                found[winner].features.add(F::Compared);
            }
            return;
        }
        for at in all {
            self.compared_by(at, range, extreme, found);
        }
    }

    /// Marks the numbers beside one word or sign that compares.
    pub(super) fn compared_by(&self, at: usize, range: &Range<usize>, extreme: Extreme, found: &mut [Mention]) {
        let up = self.kind(at) == Kind::Greater || self.means(at, Meaning::UP);
        // "9.3e11 > 4.7e12 is false"
        let holds = !(at + 1..range.end.min(at + 6)).any(|at| self.is(at, "false untrue"));
        let wanted = (up == (extreme == Extreme::Largest)) == holds;
        let (which, other_way) = if wanted { (F::Compared, F::NotCompared) } else { (F::NotCompared, F::Compared) };
        let ends = |at: &usize| matches!(self.kind(*at), Kind::Comma | Kind::Colon) && !self.is_number(at + 1);
        let from = (range.start..at).rev().find(ends).unwrap_or(range.start);
        let to = (at + 1..range.end).find(ends).unwrap_or(range.end);
        if (from..at).any(|before| self.means(before, Meaning::DENIES)) {
            return;
        }
        // "the larger one is 0.6"
        let link = (at + 1..to.min(at + 5))
            .take_while(|&at| !self.is_number(at) && !self.is(at, "than"))
            .find(|&at| self.means(at, Meaning::LINK) || self.kind(at) == Kind::Colon);
        let open = |mention: &Mention| !mention.features.any(these![InReason EqualsLast]);
        if let Some(named) = link.and_then(|link| found.iter().position(|mention| mention.at > link && mention.at < to))
        {
            if open(&found[named]) {
                found[named].features.add(which);
            }
            return;
        }
        let subject = found.iter().rposition(|mention| mention.at < at && mention.at >= from);
        let other = found.iter().position(|mention| mention.at > at && mention.at < to);
        if let Some(subject) = subject.filter(|&subject| open(&found[subject])) {
            found[subject].features.add(which);
            if let Some(other) = other.filter(|&other| open(&found[other])) {
                found[other].features.add(other_way);
            }
        }
    }
}
