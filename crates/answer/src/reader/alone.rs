//! Numbers that are all of their line.

use super::feature::Feature as F;
use super::mention::Mention;
use super::piece::Piece;
use super::reading::Mark;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};

impl Scan<'_> {
    /// True if a number begins the next line of a prompt's pattern: "2 = 2", "3 and 3 = 3".
    pub(super) fn begins_pattern(&self, number: usize) -> bool {
        let mut at = number + 1;
        while self.means(at, Meaning::AND) && self.is_number(at + 1) {
            at += 2;
        }
        self.kind(at) == Kind::Equals
    }

    /// A number that is all of its line, or with which a completion begins.
    pub(super) fn by_itself(&self, piece: &Piece, found: &mut [Mention]) {
        let range = &piece.range;
        if !piece.begins_line {
            return;
        }
        let passes = |at: usize| {
            use Kind::{Arrow, Bar, Bullet, Colon, Ellipsis, Equals, Greater, Heading, Open};
            self.is_mark(at)
                || matches!(self.kind(at), Open | Arrow | Equals | Bullet | Heading | Colon | Bar | Greater | Ellipsis)
        };
        let Some(first) = range.clone().find(|&at| !passes(at)) else { return };
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
        let whole = alone
            && begins_text
            && (range.end..self.tokens.tokens.len())
                .all(|at| ends(at) || self.kind(at) == Kind::Stop || self.is_mark(at));
        let features = &mut found[index].features;
        features.set(F::Whole, whole);
        features.set(F::LineAlone, alone && !whole);
        // A raw completion goes on behind the "=" of its prompt.
        let goes_on = begins_text
            && self.question.open_ended
            && !self.question.is_chat
            && (!matches!(
                (self.kind(first + 1), self.kind(first + 2)),
                (Kind::Equals | Kind::Operator(_) | Kind::Less | Kind::Greater | Kind::Number(_), _)
                    | (Kind::Colon | Kind::Comma, Kind::Number(_))
            ) || self.kind(first + 1) == Kind::Comma && self.begins_pattern(first + 2))
            && !self.means(first + 1, any_of![LINK, GIVES, UP, DOWN, AND, OPERATOR]);
        features.set(F::Continues, goes_on);
        if whole || alone || goes_on {
            let mark = &mut found[index].mark;
            if *mark == Mark::Sentence {
                *mark = Mark::OnlyNumber;
            }
        }
    }
}
