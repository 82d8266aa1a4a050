//! Numbers that are all of their line.

use super::feature::Feature as F;
use super::mention::Mention;
use super::piece::Piece;
use super::reading::Mark;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};

impl Scan<'_> {
    /// True if a number begins the next line of a prompt's pattern: "2 = 2", "3 and 3 = 3", "24 * 2 = 48".
    pub(super) fn begins_pattern(&self, number: usize) -> bool {
        let mut at = number + 1;
        while (self.means(at, Meaning::AND) || matches!(self.kind(at), Kind::Operator(_))) && self.is_number(at + 1) {
            at += 2;
        }
        self.kind(at) == Kind::Equals
    }

    /// A number that is all of its line, or with which a completion begins.
    pub(super) fn by_itself(&self, piece: &Piece, found: &mut [Mention]) {
        let range = &piece.range;
        let passes = |at: usize| {
            use Kind::{Arrow, Bar, Bullet, Colon, Ellipsis, Equals, Greater, Heading, Open};
            self.is_mark(at)
                || matches!(self.kind(at), Open | Arrow | Equals | Bullet | Heading | Colon | Bar | Greater | Ellipsis)
        };
        let Some(first) = range.clone().find(|&at| piece.begins_line && !passes(at)) else { return };
        let Some(index) = found.iter().position(|mention| mention.at == first) else { return };
        let (mut end, mut words) = (first + 1, 0);
        while end < range.end {
            match self.kind(end) {
                _ if self.is_mark(end) => {}
                Kind::Close | Kind::Bar | Kind::Less | Kind::Greater | Kind::Ellipsis => {}
                Kind::Word(m) if words < 3 && !m.has(any_of![LINK, GIVES, UP, DOWN, AND, OR]) => words += 1,
                _ => break,
            }
            end += 1;
        }
        let ends = |at: usize| matches!(self.kind(at), Kind::Line | Kind::End | Kind::Rule | Kind::Program);
        let line_ends =
            ends(range.end) || ends(range.end + 1) || self.kind(range.end + 1) == Kind::Bold && ends(range.end + 2);
        let alone =
            end == range.end && (words == 0 || line_ends) || self.kind(end) == Kind::Open && self.is_spaced(end);
        let begins_text = (0..first).all(|at| passes(at) || self.kind(at) == Kind::Line);
        let mut rest = range.end..self.tokens.tokens.len();
        let whole = alone && begins_text && rest.all(|at| ends(at) || self.kind(at) == Kind::Stop || self.is_mark(at));
        let features = &mut found[index].features;
        features.set(F::Whole, whole);
        features.set(F::LineAlone, alone && !whole);
        // A raw completion goes on behind the "=" of its prompt.
        let (next, second) = (self.kind(first + 1), self.kind(first + 2));
        let computes = matches!(next, Kind::Equals | Kind::Operator(_) | Kind::Less | Kind::Greater | Kind::Number(_))
            || matches!(next, Kind::Colon | Kind::Comma) && second.is_number();
        // "24, 24 * 2 = 48", and a loop: "3/4 = 3/4 = 3/4".
        let pattern = next == Kind::Comma && self.begins_pattern(first + 2)
            || next == Kind::Equals && second.is_number() && self.same(first, first + 2);
        let leads = next.means(any_of![LINK, GIVES, UP, DOWN, AND, OPERATOR]);
        let raw = self.question.open_ended && !self.question.is_chat;
        let goes_on = raw && begins_text && (!computes || pattern) && !leads;
        features.set(F::Continues, goes_on);
        if (alone || goes_on) && found[index].mark == Mark::Sentence {
            found[index].mark = Mark::OnlyNumber;
        }
    }
}
