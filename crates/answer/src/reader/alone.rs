//! Numbers that are all of their line.

use super::feature::Feature as F;
use super::mention::Mention;
use super::piece::Piece;
use super::reading::Mark;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::Meaning;

impl Scan<'_> {
    /// True if a number begins the next line of a prompt's pattern: "2 = 2", "3 and 3 = 3".
    fn begins_pattern(&self, number: usize) -> bool {
        let mut at = number + 1;
        while self.tokens.means(at, Meaning::AND) && matches!(self.kind(at + 1), Kind::Number(_)) {
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
            matches!(
                self.kind(at),
                Kind::Bold
                    | Kind::Quote
                    | Kind::Open
                    | Kind::Arrow
                    | Kind::Equals
                    | Kind::Bullet
                    | Kind::Heading
                    | Kind::Colon
                    | Kind::Bar
                    | Kind::Other
                    | Kind::BoxOpen
                    | Kind::Greater
                    | Kind::Ellipsis
            )
        };
        let Some(first) = range.clone().find(|&at| !passes(at)) else { return };
        let Some(index) = found.iter().position(|mention| mention.at == first) else { return };
        let mut end = first + 1;
        let mut words = 0;
        while end < range.end {
            match self.kind(end) {
                Kind::Bold
                | Kind::Quote
                | Kind::Close
                | Kind::Check
                | Kind::Bar
                | Kind::Other
                | Kind::BoxClose
                | Kind::Less
                | Kind::Ellipsis => {}
                Kind::Word(m)
                    if words < 3
                        && !m.has(
                            Meaning::LINK
                                .with(Meaning::GIVES)
                                .with(Meaning::UP)
                                .with(Meaning::DOWN)
                                .with(Meaning::AND)
                                .with(Meaning::OR),
                        ) =>
                {
                    words += 1
                }
                Kind::Greater => {}
                _ => break,
            }
            end += 1;
        }
        let ends = |at: usize| matches!(self.kind(at), Kind::Line | Kind::End | Kind::Rule | Kind::Program);
        let line_ends =
            ends(range.end) || ends(range.end + 1) || self.kind(range.end + 1) == Kind::Bold && ends(range.end + 2);
        let alone =
            end == range.end && (words == 0 || line_ends) || self.kind(end) == Kind::Open && self.tokens.is_spaced(end);
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
            && !matches!(self.kind(first + 1), Kind::Equals | Kind::Operator(_) | Kind::Less | Kind::Greater)
            && !(matches!(self.kind(first + 1), Kind::Colon | Kind::Comma)
                && matches!(self.kind(first + 2), Kind::Number(_))
                && !self.begins_pattern(first + 2))
            && !self.tokens.means(
                first + 1,
                Meaning::LINK
                    .with(Meaning::GIVES)
                    .with(Meaning::UP)
                    .with(Meaning::DOWN)
                    .with(Meaning::AND)
                    .with(Meaning::OPERATOR),
            );
        features.set(F::Continues, goes_on);
        if whole || alone || goes_on {
            let mark = &mut found[index].mark;
            if *mark == Mark::Sentence {
                *mark = Mark::OnlyNumber;
            }
        }
    }
}
