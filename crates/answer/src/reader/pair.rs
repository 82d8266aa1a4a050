//! Numbers beside a number that have its standing: alternatives, lists, ranges.
use std::ops::Range;

use super::asks::Ask;
use super::feature::{Feature as F, Features, these};
use super::question::is_negation;
use super::scan::Scan;
use super::token::Kind;
use super::value;
use super::vocabulary::{Meaning, any_of};
use crate::number::words::scaled;

/// Most words of a unit between two numbers of a pair.
const UNITS: usize = 4;

impl Scan<'_> {
    /// True if two numbers are one: 0.4 and 40 %.
    fn is_same_share(&self, a: usize, b: usize) -> bool {
        // "0.75, or 70 %" where a percentage was asked for: a number and what is said with it.
        let percent = |at: usize| self.number(at).is_some_and(|number| number.percent);
        let both = self.question.asks(Ask::Percent) && percent(a) != percent(b);
        both || self.same(a, b) || self.is_percentage_of(a, b) || self.is_percentage_of(b, a)
    }

    /// True if the second number is the percentage of the first: 40 % of 0.4.
    pub(super) fn is_percentage_of(&self, whole: usize, percent: usize) -> bool {
        let both = self.number(whole).zip(self.number(percent));
        both.filter(|(whole, percent)| percent.percent && !whole.percent).is_some_and(|(whole, percent)| {
            scaled(&whole.text, 2).is_some_and(|text| value::same(&text, &percent.text))
        })
    }

    /// Numbers beside a number that have its standing: "84 or 85", "2, 3 and 5".
    pub(super) fn pair(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let is_number = |at: usize| range.contains(&at) && self.is_number(at);
        let differ = |a: usize, b: usize| !self.slice(a + 1).eq_ignore_ascii_case(self.slice(b + 1));
        let passes = |at| self.is_mark(at) || self.means(at, any_of![FILLER, UNSURE]);
        let (behind, has_unit) = self.behind(at);
        let next = self.past(behind, range.end, |at| self.kind(at) == Kind::Comma);
        let or = self.means(next, Meaning::OR);
        let and = self.means(next, Meaning::AND);
        if next < range.end && (or || and) {
            // "exactly $139.93, or roughly $140"
            let about = or && self.means(next + 1, Meaning::ABOUT);
            // A list that the end of the text cuts.
            if next + 1 >= range.end && self.truncated && range.end + 1 >= self.tokens.tokens.len() {
                features.add(F::InList);
            }
            let other = self.past(next + 1, range.end, passes);
            if is_number(other) && self.is_alone(other) && !about && !self.is_same_share(at, other) {
                let units = has_unit && self.behind(other).1 && differ(at, other);
                features.set(if or && !units { F::RivalBehind } else { F::InList }, !units);
            }
        }
        // "He gave 5 away, and 7 are left", "21 came and 9 didn't": clauses of their own.
        let other = self.past(next + 1, range.end, passes);
        if and
            && features.has(F::InList)
            && self.begins_clause(other)
            && (next > behind || self.begins_clause(at) || is_negation(self.slice(self.behind(other).0)))
        {
            features.remove(these![InList]);
        }
        let previous = (range.start..at).rev().find(|&at| !passes(at)).map_or(range.start, |before| before + 1);
        if previous > range.start && self.means(previous - 1, any_of![OR, AND]) {
            let or = self.means(previous - 1, Meaning::OR);
            let (mut other, mut words) = (previous - 1, 0);
            while other > range.start && !is_number(other) && (words < UNITS || self.is_mark(other)) {
                let unit = self.is_unit(other);
                words += usize::from(unit);
                if other < previous - 1 && !unit && !self.is_mark(other) && self.kind(other) != Kind::Comma {
                    break;
                }
                other -= 1;
            }
            if is_number(other) && self.is_alone(other) && !self.is_same_share(at, other) {
                let both = self.is_unit(other + 1) && self.is_unit(at + 1) && differ(at, other);
                features.set(if or { F::RivalBefore } else { F::InList }, !both && (or || !self.begins_clause(at)));
            }
        }
        // Three and more with commas between.
        let percent = |at: usize| self.number(at).is_some_and(|number| number.percent);
        let joined = |at: usize| {
            matches!(self.kind(at), Kind::Comma | Kind::Ellipsis | Kind::Arrow)
                || self.means(at, any_of![AND, OR])
                || at >= range.end
        };
        let behind = self.past(behind, usize::MAX, |at| self.kind(at) == Kind::Bold);
        let comma_behind = self.kind(behind) == Kind::Comma
            && is_number(behind + 1)
            && percent(at) == percent(behind + 1)
            && !self.begins_pattern(behind + 1)
            && joined(self.behind(behind + 1).0);
        let comma_before = at > range.start + 1
            && self.kind(at - 1) == Kind::Comma
            && (is_number(at - 2) || self.is_unit(at - 2) && is_number(at.saturating_sub(3)))
            // "After selling 19, 5 remain."
            && !((range.start..at - 1).all(|at| self.kind(at) != Kind::Comma)
                && self.opens_with(range, 1, any_of![PREMISE, REASON, IF]));
        features.set(F::InList, comma_behind || comma_before || features.has(F::InList));
    }

    /// "2–3", "between 100 and 110", "12 to 18".
    pub(super) fn is_range_side(&self, at: usize, range: &Range<usize>) -> bool {
        let joins = |at: usize| {
            let sign = matches!(self.kind(at), Kind::Other | Kind::Operator('-'));
            sign && self.slice(at).starts_with(['–', '—', '-', '~']) || self.is(at, "to bis through à a")
        };
        let side = |other: usize, sign: usize| range.contains(&other) && self.is_number(other) && joins(sign);
        let mut before = (range.start..at).rev().take(6).take_while(|&at| self.kind(at) != Kind::Comma);
        side(at + 2, at + 1)
            || at >= range.start + 2 && side(at - 2, at - 1) && !self.is(at - 1, "a à")
            || before.any(|at| self.is(at, "between zwischen entre tra"))
    }
}
