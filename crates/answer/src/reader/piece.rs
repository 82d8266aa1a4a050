//! Sentences, and what each is: a question, an aside, a correction, the beginning of another exercise.
use std::ops::Range;

use super::decide::{State, Statement};
use super::numeral::Spelling;
use super::statement::Stated;
use super::token::{Kind, Tokens};
use super::value;
use super::vocabulary::Meaning;

/// A sentence: a range of tokens.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) range: Range<usize>,
    /// It ends with a question mark.
    pub(super) asks: bool,
    /// It begins a line.
    pub(super) begins_line: bool,
    /// A rule or a heading stands before it.
    pub(super) heading: bool,
    pub(super) after_rule: bool,
}

/// Longest sentence, in tokens: longer ones are divided, so that no text takes more than linear time.
pub(super) const LONGEST: usize = 300;

/// Divides a text into sentences.
pub(super) fn pieces(tokens: &Tokens<'_>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut start = 0;
    let (mut begins_line, mut after_rule) = (true, false);
    for at in 0..=tokens.tokens.len() {
        let kind = if at < tokens.tokens.len() { tokens.kind(at) } else { Kind::Line };
        let ends = match kind {
            Kind::Line | Kind::Rule | Kind::Program | Kind::End | Kind::Stop | Kind::Question | Kind::Semicolon => true,
            _ => at - start >= LONGEST,
        };
        if !ends {
            continue;
        }
        if at > start {
            let heading = matches!(tokens.kind(start), Kind::Heading);
            pieces.push(Piece { range: start..at, asks: kind == Kind::Question, begins_line, heading, after_rule });
            begins_line = false;
        }
        if matches!(kind, Kind::Line | Kind::Rule | Kind::Program | Kind::End) {
            begins_line = true;
        }
        after_rule |= kind == Kind::Rule;
        // What is divided for its length loses nothing.
        let divided = !matches!(
            kind,
            Kind::Line | Kind::Rule | Kind::Program | Kind::End | Kind::Stop | Kind::Question | Kind::Semicolon
        );
        start = if divided { at } else { at + 1 };
    }
    pieces
}

impl<'a> State<'a> {
    /// A question, a hypothesis, a list of guesses: nothing is stated there.
    pub(super) fn is_question_or_guess(&self, piece: &Piece) -> bool {
        if piece.asks {
            // `744+543=? 1287` is divided at the mark, what follows it is read.
            return true;
        }
        let has = |word: &str| self.words(piece).any(|at| self.tokens.slice(at).eq_ignore_ascii_case(word));
        let hypothetical = self.words(piece).any(|at| self.tokens.means(at, Meaning::IF))
            && (has("would") || has("were") || has("could"));
        // "24 if the gift was 3 coins, and 27 if it was none"
        let cases = self.words(piece).filter(|&at| self.tokens.means(at, Meaning::IF)).count();
        hypothetical || cases >= 2
    }

    /// A check, a reason, a remark in brackets: no new answer.
    pub(super) fn is_aside(&self, piece: &Piece) -> bool {
        let first = self.kind(piece.range.start);
        let last = self.kind(piece.range.end - 1);
        let begun = piece.range.start > 0 && self.kind(piece.range.start) == Kind::Open;
        if first == Kind::Open && (last == Kind::Close || begun) && piece.range.len() > 3 {
            return true;
        }
        if piece.range.clone().any(|at| self.kind(at) == Kind::Check) {
            return true;
        }
        self.words(piece).take(5).any(|at| {
            let meaning = self.tokens.meaning(at);
            meaning.has(Meaning::CHECKS)
        })
    }

    pub(super) fn corrects(&self, piece: &Piece) -> bool {
        let said = |at: usize| {
            self.tokens.means(at, Meaning::CORRECTS)
                || self.tokens.slice(at).eq_ignore_ascii_case("hold")
                    && self.tokens.slice(at + 1).eq_ignore_ascii_case("on")
        };
        self.words(piece).any(said)
    }

    /// A word that confirms what was asked back, and nothing else.
    pub(super) fn confirms(&self, piece: &Piece) -> bool {
        const YES: [&str; 7] = ["yes", "yep", "yeah", "correct", "right", "good", "indeed"];
        let first = self.words(piece).next();
        first.is_some_and(|at| YES.iter().any(|yes| self.tokens.slice(at).eq_ignore_ascii_case(yes)))
            && !self.has_number(piece.range.clone())
    }

    /// A conclusion of nothing but the question's own numbers and words.
    pub(super) fn restates(&self, piece: &Piece) -> bool {
        if !self.words(piece).take(2).any(|at| self.tokens.means(at, Meaning::CONCLUDES)) || self.question.selects {
            return false;
        }
        let numbers: Vec<_> = piece.range.clone().filter_map(|at| self.statements.number(at)).collect();
        if numbers.len() < 2 || numbers.iter().any(|number| !self.question.gives(number)) {
            return false;
        }
        let words: Vec<usize> = self.words(piece).collect();
        let echoes = |three: &&[usize]| {
            self.question.echoes([
                self.tokens.slice(three[0]),
                self.tokens.slice(three[1]),
                self.tokens.slice(three[2]),
            ])
        };
        words.windows(3).filter(echoes).count() >= 3
    }

    /// True if a line was there before with the same statement.
    pub(super) fn says_again(&self, piece: &Piece, statement: &Statement, pieces: &[Piece]) -> bool {
        let Some(best) = self.best.filter(|_| matches!(statement.stated, Stated::Number(_))) else { return false };
        let text = |piece: &Piece| {
            let (first, last) = (piece.range.start, piece.range.end - 1);
            self.tokens
                .tokens
                .get(first)
                .zip(self.tokens.tokens.get(last))
                .map(|(first, last)| &self.tokens.text[first.start..last.end])
        };
        let earlier = pieces.partition_point(|piece| piece.range.end <= best.at);
        piece.begins_line
            && pieces
                .get(earlier)
                .is_some_and(|earlier| earlier.range.start != piece.range.start && text(earlier) == text(piece))
    }

    /// True where a completion goes on with another question, exercise, turn or line of the same pattern.
    pub(super) fn begins_another_question(&self, piece: &Piece, has_best: bool) -> bool {
        let before = piece.range.start.checked_sub(1).map(|at| self.kind(at));
        if before == Some(Kind::End) {
            return has_best;
        }
        if piece.begins_line || has_best {
            let mut at = piece.range.start;
            while at < piece.range.end
                && matches!(self.kind(at), Kind::Heading | Kind::Bold | Kind::Other | Kind::Bullet)
            {
                at += 1;
            }
            let asks = self.tokens.means(at, Meaning::ASKS);
            let mut next = at + 1;
            let short = self.tokens.slice(at).eq_ignore_ascii_case("q")
                || self.tokens.slice(at).eq_ignore_ascii_case("question");
            while next < piece.range.end && matches!(self.kind(next), Kind::Number(_) | Kind::Bold) {
                next += 1;
            }
            let numbered = next > at + 1 && matches!(self.kind(at + 1), Kind::Number(_));
            let colon = self.kind(next) == Kind::Colon;
            let heading = piece.heading || matches!(self.kind(piece.range.start), Kind::Bold);
            if piece.begins_line
                && asks
                && (colon && (has_best || short) || heading && has_best || numbered && has_best)
            {
                return true;
            }
        }
        // The instruction again, with other numbers.
        if !has_best || !self.question.instructs {
            return false;
        }
        let words: Vec<usize> = piece.range.clone().filter(|&at| self.tokens.is_word(at)).take(12).collect();
        let echoes = words.windows(3).any(|three| {
            three[2] - three[0] <= 4
                && self.question.echoes([
                    self.tokens.slice(three[0]),
                    self.tokens.slice(three[1]),
                    self.tokens.slice(three[2]),
                ])
        });
        if !echoes {
            return false;
        }
        // Numbers that nothing leads to are operands. The same ones are the same question, other ones are another's, none are the
        // instruction, whose question follows.
        let mut numbers = piece
            .range
            .clone()
            .filter(|&at| matches!(self.kind(at), Kind::Number(_)) && !self.statements.is_result(at, piece.range.start))
            .filter_map(|at| self.statements.number(at))
            .filter(|number| number.spelling != Spelling::Words)
            .filter(|number| !self.question.examples.iter().any(|example| value::same(example, &number.text)))
            .peekable();
        if numbers.peek().is_none() {
            return !self.has_number(piece.range.clone()) && !self.is_example_commitment();
        }
        numbers.any(|number| !self.question.gives(number))
    }
}
