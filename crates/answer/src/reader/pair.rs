//! Numbers beside a number that have its standing: alternatives, lists, ranges.
use std::ops::Range;

use super::feature::{Feature as F, Features};
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
        self.same(a, b) || self.is_percentage_of(a, b) || self.is_percentage_of(b, a)
    }

    /// True if the second number is the percentage of the first: 40 % of 0.4.
    pub(super) fn is_percentage_of(&self, whole: usize, percent: usize) -> bool {
        match (self.number(whole), self.number(percent)) {
            (Some(whole), Some(percent)) if percent.percent && !whole.percent => {
                scaled(&whole.text, 2).is_some_and(|text| value::same(&text, &percent.text))
            }
            _ => false,
        }
    }

    /// Numbers beside a number that have its standing: "84 or 85", "2, 3 and 5".
    pub(super) fn pair(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let is_number = |at: usize| at >= range.start && at < range.end && self.is_number(at);
        let (behind, has_unit) = self.behind(at);
        let mut next = behind;
        while self.kind(next) == Kind::Comma && next < range.end {
            next += 1;
        }
        let or = self.means(next, Meaning::OR);
        let and = self.means(next, Meaning::AND);
        if next < range.end && (or || and) {
            let mut other = next + 1;
            // "exactly $139.93, or roughly $140"
            let about = or && self.means(other, Meaning::ABOUT);
            // A list that the end of the text cuts.
            if other >= range.end && self.truncated && range.end + 1 >= self.tokens.tokens.len() {
                features.add(F::InList);
            }
            while other < range.end && (self.is_mark(other) || self.means(other, Meaning::FILLER)) {
                other += 1;
            }
            if is_number(other) && self.is_alone(other) && !about && !self.is_same_share(at, other) {
                let (_, other_unit) = self.behind(other);
                let units = has_unit && other_unit && !self.slice(at + 1).eq_ignore_ascii_case(self.slice(other + 1));
                features.set(if or && !units { F::RivalBehind } else { F::InList }, !units);
            }
        }
        let mut previous = at;
        while previous > range.start && (self.is_mark(previous - 1) || self.means(previous - 1, Meaning::FILLER)) {
            previous -= 1;
        }
        if previous > range.start && self.means(previous - 1, any_of![OR, AND]) {
            let or = self.means(previous - 1, Meaning::OR);
            let mut other = previous - 1;
            let mut words = 0;
            while other > range.start && !is_number(other) && (words < UNITS || self.is_mark(other)) {
                words += usize::from(self.is_unit(other));
                if other < previous - 1
                    && !self.is_unit(other)
                    && !self.is_mark(other)
                    && self.kind(other) != Kind::Comma
                {
                    break;
                }
                other -= 1;
            }
            if is_number(other) && self.is_alone(other) && !self.is_same_share(at, other) {
                let both = self.is_unit(other + 1)
                    && self.is_unit(at + 1)
                    && !self.slice(other + 1).eq_ignore_ascii_case(self.slice(at + 1));
                features.set(if or { F::RivalBefore } else { F::InList }, !both);
            }
        }
        // Three and more with commas between.
        let percent = |at: usize| self.number(at).is_some_and(|number| number.percent);
        let joined = |at: usize| {
            matches!(self.kind(at), Kind::Comma | Kind::Ellipsis | Kind::Arrow)
                || self.means(at, any_of![AND, OR])
                || at >= range.end
        };
        let mut behind = behind;
        while self.kind(behind) == Kind::Bold {
            behind += 1;
        }
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
                && self.opens_with(range, 1, Meaning::PREMISE.with(Meaning::REASON).with(Meaning::IF)));
        features.set(F::InList, comma_behind || comma_before || features.has(F::InList));
    }

    /// "2–3", "between 100 and 110", "12 to 18".
    pub(super) fn is_range_side(&self, at: usize, range: &Range<usize>) -> bool {
        let joins = |at: usize| {
            matches!(self.kind(at), Kind::Other | Kind::Operator('-'))
                && self.slice(at).starts_with(['–', '—', '-', '~'])
                || self.is(at, "to bis through à a")
        };
        let side = |other: usize, sign: usize| {
            other >= range.start && other < range.end && self.is_number(other) && joins(sign)
        };
        side(at + 2, at + 1)
            || at >= range.start + 2 && side(at - 2, at - 1) && !self.is(at - 1, "a à")
            || (range.start..at)
                .rev()
                .take(6)
                .take_while(|&at| self.kind(at) != Kind::Comma)
                .any(|at| self.is(at, "between zwischen entre tra"))
    }
}
