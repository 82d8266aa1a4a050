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
        let mut behind = behind;
        while behind < range.end && self.kind(behind) == Kind::Close {
            behind += 1;
        }
        let equals_behind = behind < range.end && self.kind(behind) == Kind::Equals;
        let mut before = at;
        while before > range.start
            && (self.is_mark(before - 1)
                || matches!(self.kind(before - 1), Kind::Open | Kind::Line)
                || self.means(before - 1, Meaning::FILLER))
        {
            before -= 1;
        }
        let equals_before = before > 0 && self.kind(before - 1) == Kind::Equals;
        features.set(F::HasUnit, has_unit);
        if equals_before {
            let about = self.slice(before - 1);
            features.set(F::About, about.starts_with(['≈', '≃', '≅']) || about.starts_with("\\approx"));
            features.add(if equals_behind { F::EqualsMiddle } else { F::EqualsLast });
            features.set(
                F::Computed,
                !equals_behind
                    && (range.start..before - 1).rev().take(12).any(|at| {
                        matches!(self.kind(at), Kind::Operator(_))
                            || self.means(at, Meaning::OPERATOR)
                            || self.number(at).is_some_and(|number| number.text.contains('/'))
                    }),
            );
            features.set(F::AskedEquation, self.is_asked_equation(before - 1, range.start));
        } else if equals_behind {
            features.add(F::EqualsLeft);
            // "14 = 72 / 5"
            let right: Vec<_> = (behind + 1..range.end).filter_map(|at| self.number(at)).collect();
            features.set(F::AskedEquation, right.len() <= 3 && self.question.is_asked_operation(&right));
            // "84 = 12 x 7": nothing but the operation follows.
            let first = before == range.start
                || matches!(self.kind(before - 1), Kind::Colon | Kind::Semicolon | Kind::Comma | Kind::Word(_));
            let operation = behind + 1 < range.end
                && (behind + 1..range.end).all(|at| self.kind(at) != Kind::Equals && self.is_mathematical(at))
                && (behind + 1..range.end)
                    .filter(|&at| matches!(self.kind(at), Kind::Number(_)))
                    .all(|at| !self.is_alone(at));
            features.set(F::ResultFirst, first && operation);
        }
    }

    /// True if the operation that was asked for stands on the left of an equation's first sign.
    pub(super) fn is_asked_equation(&self, equals: usize, start: usize) -> bool {
        let mut first = equals;
        let mut left = equals;
        let mut steps = 0;
        while left > start && steps < 60 && (self.kind(left - 1) == Kind::Equals || self.is_left_side(left - 1)) {
            left -= 1;
            steps += 1;
            if self.kind(left) == Kind::Equals {
                first = left;
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
