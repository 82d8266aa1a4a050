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
            // "90 – a saving of 30"
            Kind::Word(_) => {
                self.slice(at).len() == 1
                    && !(self.is(at, "a") && self.is_spaced(at + 1) && (self.is_word(at + 1) || self.is_number(at + 1)))
            }
            Kind::Bold => matches!(self.kind(at + 1), Kind::Number(_) | Kind::Open),
            _ => false,
        }
    }

    /// True if an operation goes on behind a number.
    pub(super) fn operates_behind(&self, number: usize) -> bool {
        let at = self.past(number + 1, usize::MAX, |at| matches!(self.kind(at), Kind::Bold | Kind::Quote));
        let next = self.kind(at + 1);
        // Figures one below the other: the sign begins the next line.
        let below = self.kind(at) == Kind::Line && matches!(next, Kind::Operator('+' | '*' | '/'));
        let times = self.kind(at) == Kind::Open && !self.is_spaced(at) && next.is_number();
        if self.is_variable(number + 1) || below || times {
            return true;
        }
        let (at, has_unit) = self.behind(number);
        let at = self.past(at, usize::MAX, |at| self.kind(at) == Kind::Close);
        let again = || self.is_number(at + 1) && self.equals_follows(at + 1);
        match self.kind(at) {
            // "5 apples - 3 of them red" is an aside.
            Kind::Operator('-') if has_unit && self.is_spaced(at) && self.is_spaced(at + 1) => again(),
            // "6.9 and 3.1 =" is the question's own pair again.
            Kind::Word(meaning) if meaning.has(Meaning::AND) && self.question.instructs => again(),
            Kind::Operator('^') => true,
            Kind::Operator(_) => self.is_operand(at + 1) || (self.truncated && at + 1 >= self.tokens.tokens.len()),
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                // "divided by", "dividido entre"
                let two = self.is(at + 1, "by") || self.means(at + 1, Meaning::OPERATOR);
                self.is_number(if two { at + 2 } else { at + 1 })
            }
            _ => false,
        }
    }

    pub(super) fn equals_follows(&self, number: usize) -> bool {
        self.kind(self.behind(number).0) == Kind::Equals
    }

    /// True if an operation stands before a number.
    pub(super) fn operates_before(&self, number: usize) -> bool {
        let passes = |at: usize| matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Open | Kind::BoxOpen);
        let Some(at) = (0..number).rev().find(|&at| !passes(at)) else { return false };
        let before = if at > 0 { self.kind(at - 1) } else { Kind::Line };
        match self.kind(at) {
            // A dash between words and a number.
            Kind::Operator('-') => {
                let dash = self.is_spaced(at) && self.is_spaced(at + 1);
                let letter = before.is_word() && self.slice(at - 1).len() == 1;
                before.is_value()
                    || before == Kind::Bold
                    || letter
                    || before.is_word() && (!dash || self.equals_follows(number))
            }
            Kind::Operator(_) => true,
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                before.is_value() || before.means(Meaning::OPERATOR)
            }
            Kind::Word(_) if self.is(at, "by") => before.means(Meaning::OPERATOR),
            _ => false,
        }
    }

    /// True if a number is all of an expression.
    pub fn is_alone(&self, number: usize) -> bool {
        (!self.operates_before(number) || self.percent_before(number)) && !self.operates_behind(number)
    }

    /// True if a token can stand in an equation.
    pub(super) fn is_mathematical(&self, at: usize) -> bool {
        use Kind::{Bold, BoxClose, BoxOpen, Close, Equals, Number, Open, Operator, Word};
        match self.kind(at) {
            Number(_) | Operator(_) | Open | Close | Equals | Bold | BoxOpen | BoxClose => true,
            Word(meaning) => meaning.has(Meaning::OPERATOR) || self.slice(at).len() == 1 || !meaning.has(NO_UNIT),
            _ => false,
        }
    }

    /// Numbers, operators and what may stand among them on the left: a function's comma, "and" between operands.
    pub(super) fn is_left_side(&self, at: usize) -> bool {
        let between = || self.is_number(at + 1) && at > 0 && self.is_number(at - 1);
        match self.kind(at) {
            Kind::Comma => between(),
            Kind::Word(meaning) if meaning.has(Meaning::AND) => between(),
            Kind::Equals => false,
            _ => self.is_mathematical(at),
        }
    }
}
