//! Operands, operations and the results of equations.

use super::scan::{NO_UNIT, Scan};
use super::token::Kind;
use super::vocabulary::Meaning;

impl Scan<'_> {
    /// A letter that touches the number before it (`6x`), or stands for one.
    pub(super) fn is_variable(&self, at: usize) -> bool {
        self.is_word(at) && matches!(self.slice(at), "x" | "y" | "z" | "n" | "a" | "b" | "X") && !self.is_spaced(at)
    }

    /// True if an operand begins at a token.
    pub(super) fn is_operand(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Number(_) | Kind::Open | Kind::BoxOpen => true,
            Kind::Word(_) => self.slice(at).len() == 1,
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
        if self.kind(at) == Kind::Open && !self.is_spaced(at) && self.is_number(at + 1) {
            return true;
        }
        let (mut at, has_unit) = self.behind(number);
        while self.kind(at) == Kind::Close {
            at += 1;
        }
        match self.kind(at) {
            // "5 apples - 3 of them red" is an aside.
            Kind::Operator('-') if has_unit && self.is_spaced(at) && self.is_spaced(at + 1) => {
                self.is_number(at + 1) && self.equals_follows(at + 1)
            }
            // "6.9 and 3.1 =" is the question's own pair again.
            Kind::Word(meaning) if meaning.has(Meaning::AND) && self.question.instructs => {
                self.is_number(at + 1) && self.equals_follows(at + 1)
            }
            Kind::Operator('^') => true,
            Kind::Operator(_) => self.is_operand(at + 1) || (self.truncated && at + 1 >= self.tokens.tokens.len()),
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                // "divided by", "dividido entre"
                let two = self.is(at + 1, "by") || self.means(at + 1, Meaning::OPERATOR);
                let next = if two { at + 2 } else { at + 1 };
                self.is_number(next)
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
                let dash = self.is_spaced(at) && self.is_spaced(at + 1);
                let before = at.checked_sub(1).map(|before| self.kind(before));
                let operand = matches!(before, Some(Kind::Number(_) | Kind::Close | Kind::Bold));
                let letter = matches!(before, Some(Kind::Word(_))) && self.slice(at - 1).len() == 1;
                let word = matches!(before, Some(Kind::Word(_)));
                operand || letter || (word && (!dash || self.equals_follows(number)))
            }
            Kind::Operator(_) => true,
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                let before = at.checked_sub(1).map(|before| self.kind(before));
                matches!(before, Some(Kind::Number(_) | Kind::Close))
                    || at > 0 && self.tokens.means(at - 1, Meaning::OPERATOR)
            }
            Kind::Word(_) if self.is(at, "by") => {
                at.checked_sub(1).is_some_and(|before| self.means(before, Meaning::OPERATOR))
            }
            _ => false,
        }
    }

    /// True if a number is all of an expression.
    pub fn is_alone(&self, number: usize) -> bool {
        (!self.operates_before(number) || self.percent_before(number)) && !self.operates_behind(number)
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
            Kind::Word(meaning) => meaning.has(Meaning::OPERATOR) || self.slice(at).len() == 1 || !meaning.has(NO_UNIT),
            _ => false,
        }
    }

    /// Numbers, operators and what may stand among them on the left: a function's comma, "and" between operands.
    pub(super) fn is_left_side(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Comma => self.is_number(at + 1) && at > 0 && self.is_number(at - 1),
            Kind::Word(meaning) if meaning.has(Meaning::AND) => {
                at > 0 && self.is_number(at - 1) && self.is_number(at + 1)
            }
            Kind::Equals => false,
            _ => self.is_mathematical(at),
        }
    }
}
