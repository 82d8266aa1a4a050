//! The side of an expression or an equation that a number is.
use std::ops::Range;

use super::feature::{Feature as F, Features};
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::Meaning;

impl Scan<'_> {
    /// The side of an equation that a number is.
    pub(super) fn expression(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let (behind, has_unit) = self.behind(at);
        let behind = self.past(behind, range.end, |at| self.kind(at) == Kind::Close);
        let equals_behind = behind < range.end && self.kind(behind) == Kind::Equals;
        let passes = |at: usize| {
            self.is_mark(at) || matches!(self.kind(at), Kind::Open | Kind::Line) || self.means(at, Meaning::FILLER)
        };
        let before = (range.start..at).rev().find(|&at| !passes(at)).map_or(range.start, |before| before + 1);
        let equals_before = before > 0 && self.kind(before - 1) == Kind::Equals;
        features.set(F::HasUnit, has_unit);
        if equals_before {
            let about = self.slice(before - 1);
            features.set(F::About, about.starts_with(['≈', '≃', '≅']) || about.starts_with("\\approx"));
            features.add(if equals_behind { F::EqualsMiddle } else { F::EqualsLast });
            let computes = |at: usize| {
                matches!(self.kind(at), Kind::Operator(_))
                    || self.means(at, Meaning::OPERATOR)
                    || self.number(at).is_some_and(|number| number.text.contains('/'))
            };
            let computed = (range.start..before - 1).rev().take(12).any(computes);
            features.set(F::Computed, !equals_behind && computed);
            features.set(F::Unsolved, self.is_unsolved(before - 1, range.start));
            features.set(F::AskedEquation, self.is_asked_equation(before - 1, range.start));
        } else if equals_behind {
            features.add(F::EqualsLeft);
            // "14 = 72 / 5"
            let right: Vec<_> = (behind + 1..range.end).filter_map(|at| self.number(at)).collect();
            features.set(F::AskedEquation, right.len() <= 3 && self.question.is_asked_operation(&right));
            // "84 = 12 x 7": nothing but the operation follows.
            let first = before == range.start
                || matches!(self.kind(before - 1), Kind::Colon | Kind::Semicolon | Kind::Comma | Kind::Word(_));
            let side = |at: usize| self.kind(at) != Kind::Equals && self.is_mathematical(at);
            let operation = behind + 1 < range.end
                && (behind + 1..range.end).all(|at| side(at) && !(self.is_number(at) && self.is_alone(at)));
            features.set(F::ResultFirst, first && operation);
        }
    }

    /// True if the left of an equals sign is an equation with a variable that is not solved: "9x + 6(120 - x) = 900".
    fn is_unsolved(&self, equals: usize, start: usize) -> bool {
        let inside = |at: &usize| self.kind(*at) != Kind::Equals && self.is_mathematical(*at);
        let left = (start..equals).rev().take(24).take_while(inside);
        let times = |at: usize| self.is_number(at - usize::from(at > start)) && self.is_number(at + 1);
        let variable = |at: usize| self.is(at, "x y z n") && !times(at);
        let (mut variables, mut numbers) = (false, false);
        for at in left {
            variables |= variable(at);
            numbers |= self.is_number(at);
        }
        variables && numbers
    }

    /// True if the operation that was asked for stands on the left of an equation's first sign.
    pub(super) fn is_asked_equation(&self, equals: usize, start: usize) -> bool {
        let (mut first, mut left) = (equals, equals);
        for at in
            (start..equals).rev().take(60).take_while(|&at| self.kind(at) == Kind::Equals || self.is_left_side(at))
        {
            left = at;
            if self.kind(at) == Kind::Equals {
                first = at;
            }
        }
        let numbers: Vec<_> = (left..first).filter_map(|at| self.number(at)).collect();
        self.question.is_asked_operation(&numbers)
    }

    /// "%75", as Turkish writes it.
    pub(super) fn percent_before(&self, at: usize) -> bool {
        at > 0
            && self.kind(at - 1) == Kind::Operator('%')
            && !self.is_spaced(at)
            && (at == 1 || self.is_spaced(at - 1) && !self.is_number(at - 2))
    }
}
