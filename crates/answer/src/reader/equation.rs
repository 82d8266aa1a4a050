//! Operands, operations and the results of equations.
use std::ops::Range;

use super::statement::{NO_UNIT, Stated, Statements, UNIT_WORDS};
use super::token::{Kind, Number};
use super::vocabulary::Meaning;

impl Statements<'_> {
    /// A letter that touches the number before it (`6x`), or stands for one.
    pub(super) fn is_variable(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Word(_))
            && matches!(self.tokens.slice(at), "x" | "y" | "z" | "n" | "a" | "b" | "X")
            && !self.tokens.is_spaced(at)
    }

    /// True if an operand begins at a token.
    pub(super) fn is_operand(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Number(_) | Kind::Open | Kind::BoxOpen => true,
            Kind::Word(_) => self.tokens.slice(at).len() == 1,
            Kind::Bold => matches!(self.kind(at + 1), Kind::Number(_) | Kind::Open),
            _ => false,
        }
    }

    /// True if an operation goes on behind a number.
    pub(super) fn operates_behind(&self, number: usize) -> bool {
        if self.is_variable(number + 1) {
            return true;
        }
        let mut at = number + 1;
        while matches!(self.kind(at), Kind::Bold | Kind::Quote) {
            at += 1;
        }
        // Figures one below the other: the sign begins the next line.
        if self.kind(at) == Kind::Line && matches!(self.kind(at + 1), Kind::Operator('+' | '*' | '/')) {
            return true;
        }
        if self.kind(at) == Kind::Open && !self.tokens.is_spaced(at) && matches!(self.kind(at + 1), Kind::Number(_)) {
            return true;
        }
        let (mut at, has_unit) = self.behind(number);
        while self.kind(at) == Kind::Close {
            at += 1;
        }
        match self.kind(at) {
            // "5 apples - 3 of them red" is an aside.
            Kind::Operator('-') if has_unit && self.tokens.is_spaced(at) && self.tokens.is_spaced(at + 1) => {
                matches!(self.kind(at + 1), Kind::Number(_)) && self.equals_follows(at + 1)
            }
            // "6.9 and 3.1 =" is the question's own pair again.
            Kind::Word(meaning) if meaning.has(Meaning::AND) && self.question.instructs => {
                matches!(self.kind(at + 1), Kind::Number(_)) && self.equals_follows(at + 1)
            }
            Kind::Operator('^') => true,
            Kind::Operator(_) => self.is_operand(at + 1) || (self.truncated && at + 1 >= self.tokens.tokens.len()),
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                let next = if self.tokens.slice(at + 1).eq_ignore_ascii_case("by") { at + 2 } else { at + 1 };
                matches!(self.kind(next), Kind::Number(_))
            }
            _ => false,
        }
    }

    pub(super) fn equals_follows(&self, number: usize) -> bool {
        let (at, _) = self.behind(number);
        self.kind(at) == Kind::Equals
    }

    /// True if an operation stands before a number.
    pub(super) fn operates_before(&self, number: usize) -> bool {
        let Some(mut at) = number.checked_sub(1) else { return false };
        while matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Open | Kind::BoxOpen) {
            match at.checked_sub(1) {
                Some(next) => at = next,
                None => return false,
            }
        }
        match self.kind(at) {
            // A dash between words and a number.
            Kind::Operator('-') => {
                let dash = self.tokens.is_spaced(at) && self.tokens.is_spaced(at + 1);
                let before = at.checked_sub(1).map(|before| self.kind(before));
                let operand = matches!(before, Some(Kind::Number(_) | Kind::Close | Kind::Bold));
                let letter = matches!(before, Some(Kind::Word(_))) && self.tokens.slice(at - 1).len() == 1;
                let word = matches!(before, Some(Kind::Word(_)));
                operand || letter || (word && (!dash || self.equals_follows(number)))
            }
            Kind::Operator(_) => true,
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                let before = at.checked_sub(1).map(|before| self.kind(before));
                matches!(before, Some(Kind::Number(_) | Kind::Close))
            }
            Kind::Word(_) if self.tokens.slice(at).eq_ignore_ascii_case("by") => {
                at.checked_sub(1).is_some_and(|before| self.tokens.means(before, Meaning::OPERATOR))
            }
            _ => false,
        }
    }

    /// True if a number is all of an expression.
    pub fn is_alone(&self, number: usize) -> bool {
        !self.operates_before(number) && !self.operates_behind(number)
    }

    /// The number that stands alone directly behind a token.
    pub(super) fn alone_behind(&self, mut at: usize, end: usize) -> Option<usize> {
        at += 1;
        while at < end
            && (self.is_mark(at)
                || self.kind(at) == Kind::Open
                || self.kind(at) == Kind::Line && self.kind(at + 1) != Kind::Line
                || self.tokens.means(at, Meaning::FILLER))
        {
            at += 1;
        }
        (at < end && matches!(self.kind(at), Kind::Number(_)) && !self.operates_behind(at)).then_some(at)
    }

    /// The number that stands alone directly before a token.
    pub(super) fn alone_before(&self, at: usize, start: usize) -> Option<usize> {
        let mut number = at.checked_sub(1)?;
        let mut words = 0;
        while number > start && (self.is_mark(number) || (self.is_unit(number) && words < UNIT_WORDS)) {
            words += usize::from(self.is_unit(number));
            number -= 1;
        }
        (number >= start && self.is_candidate(number) && !self.operates_before(number)).then_some(number)
    }

    /// True if a token can stand in an equation.
    pub(super) fn is_mathematical(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Number(_)
            | Kind::Operator(_)
            | Kind::Open
            | Kind::Close
            | Kind::Equals
            | Kind::Bold
            | Kind::BoxOpen
            | Kind::BoxClose => true,
            Kind::Word(meaning) => {
                meaning.has(Meaning::OPERATOR) || self.tokens.slice(at).len() == 1 || !meaning.has(NO_UNIT)
            }
            _ => false,
        }
    }

    /// The result of the equations of a stretch: of the last chain of equal sides, the side that is a number alone, as was asked
    /// for where there is a choice. Also whether the chain is the operation that was asked for.
    pub(super) fn equation(&self, range: Range<usize>) -> Option<(Stated, bool)> {
        let mut found = None;
        let mut at = range.start;
        while let Some(first) = (at..range.end).find(|&at| self.kind(at) == Kind::Equals) {
            // The left side.
            let mut start = first;
            while start > at && self.is_left_side(start - 1) {
                start -= 1;
            }
            // Where the chain ends.
            let mut last = first;
            let mut end = first + 1;
            while end < range.end
                && (self.is_mathematical(end)
                    || (self.kind(end) == Kind::Line && end == last + 1)
                    || self.tokens.means(end, Meaning::FILLER) && end <= last + 2)
            {
                if self.kind(end) == Kind::Equals {
                    last = end;
                }
                end += 1;
            }
            if let Some(result) = self.chain(start, first, last, end.max(first + 1)) {
                // What stands in brackets behind the operation that was asked for checks it.
                let known = matches!(found, Some((Stated::Number(_), true)));
                if !known || result.1 {
                    found = Some(result);
                }
            }
            at = end.max(first + 1);
        }
        found
    }

    /// Numbers, operators and what may stand among them on the left: a function's comma, "and" between operands.
    pub(super) fn is_left_side(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Comma => {
                matches!(self.kind(at + 1), Kind::Number(_)) && at > 0 && matches!(self.kind(at - 1), Kind::Number(_))
            }
            Kind::Word(meaning) if meaning.has(Meaning::AND) => {
                at > 0 && matches!(self.kind(at - 1), Kind::Number(_)) && matches!(self.kind(at + 1), Kind::Number(_))
            }
            Kind::Equals => false,
            _ => self.is_mathematical(at),
        }
    }

    pub(super) fn chain(&self, start: usize, first: usize, last: usize, end: usize) -> Option<(Stated, bool)> {
        let left: Vec<&Number> = (start..first).filter_map(|at| self.number(at)).collect();
        let asked = self.question.is_asked_operation(&left);
        let equals = |at: &usize| self.kind(*at) == Kind::Equals;
        // "= 1287 ≈ 1300": what is about the same is no result where there is an exact one.
        let about = |at: &usize| {
            self.tokens.slice(*at).starts_with(['≈', '≃', '≅']) || self.tokens.slice(*at).starts_with("\\approx")
        };
        let exact = (first..=last).filter(equals).any(|at| !about(&at) && self.alone_behind(at, end).is_some());
        let sides: Vec<usize> = (first..=last)
            .filter(equals)
            .filter(|at| !exact || !about(at))
            .filter_map(|equals| self.alone_behind(equals, end))
            .filter(|&side| self.is_candidate(side))
            .collect();
        // The last side decides whether the chain was finished.
        let last_side = self.alone_behind(last, end);
        if let Some(side) = last_side.filter(|&side| self.is_cut(side)) {
            // Unless it is about to say the same again.
            let said = sides.iter().rev().find(|&&said| said != side && !self.is_cut(said) && !self.is_given(said));
            let again = said.filter(|&&said| match (self.number(said), self.number(side)) {
                (Some(said), Some(cut)) => said.text.starts_with(&cut.text),
                _ => false,
            });
            return Some((again.map_or(Stated::Cut(Some(side)), |&said| Stated::Number(said)), asked));
        }
        let fits = |&&side: &&usize| self.number(side).is_some_and(|number| self.question.is_in_form(number));
        let in_unit = |&&side: &&usize| self.question.asks_unit(self.tokens.slice(side + 1));
        let percent =
            |&&side: &&usize| self.question.asks_percent && self.number(side).is_some_and(|number| number.percent);
        if let Some(&side) = sides
            .iter()
            .rev()
            .find(percent)
            .or_else(|| sides.iter().rev().find(in_unit))
            .or_else(|| sides.iter().rev().filter(|_| self.question.instructs).find(fits))
            .or_else(|| sides.last())
        {
            let asked = asked && self.number(side).is_some_and(|number| self.question.is_in_form(number));
            // A chain that goes on with an operation after its last number ends with nothing.
            let open = last_side.is_none() && !sides.is_empty() && self.numbers_follow(last, end) && !asked;
            return Some((if open { Stated::Unevaluated } else { Stated::Number(side) }, asked));
        }
        // `1287 = 744 + 543`
        if self.numbers_follow(last, end)
            && let Some(side) = self.alone_before(first, start)
            && (!self.is_given(side) || self.question.selects)
        {
            let right: Vec<&Number> = (first..end).filter_map(|at| self.number(at)).collect();
            return Some((Stated::Number(side), self.question.is_asked_operation(&right)));
        }
        Some((Stated::Unevaluated, false))
    }

    pub(super) fn numbers_follow(&self, at: usize, end: usize) -> bool {
        (at..end).any(|at| matches!(self.kind(at), Kind::Number(_)))
    }

    /// True if a number stands on a side of an equation.
    pub(super) fn is_in_equation(&self, at: usize) -> bool {
        let (behind, _) = self.behind(at);
        let mut before = at;
        while before > 0
            && (self.is_mark(before - 1)
                || self.kind(before - 1) == Kind::Open
                || self.tokens.means(before - 1, Meaning::FILLER))
        {
            before -= 1;
        }
        self.kind(behind) == Kind::Equals || (before > 0 && self.kind(before - 1) == Kind::Equals)
    }
}
