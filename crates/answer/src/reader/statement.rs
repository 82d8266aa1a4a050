//! Statements of a stretch of text: equations, sentences, comparisons.
use super::numeral::Spelling;
use super::question::Question;
use super::token::{Kind, Number, Tokens};
use super::value;
use super::vocabulary::Meaning;

/// Statement of a stretch of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stated {
    /// The token of a number.
    Number(usize),
    /// Two numbers of equal standing.
    Rivals(usize, usize),
    /// An operation without its result.
    Unevaluated,
    /// The number that would be stated is cut by the end of the text: its token, where digits of it are there.
    Cut(Option<usize>),
    Nothing,
}

/// Strength of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It cannot be what is stated: an operand, a label, a number that is denied.
    Not,
    /// Context: a given number, an aside, "in 3 days".
    Context,
    /// Nothing tells.
    Neutral,
    /// A result: behind "=", "is", "gives", "so".
    Result,
}

/// Statement of a sentence, with its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentence {
    pub stated: Stated,
    pub rank: Rank,
    /// The result of the operation that was asked for.
    pub asked: bool,
}

/// Texts with the roles of their numbers.
pub struct Statements<'a> {
    pub question: &'a Question,
    pub tokens: &'a Tokens<'a>,
    /// The token budget ended the text.
    pub(super) truncated: bool,
    /// By token: a number that no sentence can state.
    pub(super) excluded: Vec<bool>,
    /// Letters and numbers of options that the completion lists.
    pub(super) options: Vec<(char, usize)>,
    /// End of the text but for marks behind its last number.
    end: usize,
    /// By number: one that the question gives.
    given: Vec<bool>,
}

/// Most words of a unit.
pub(super) const UNIT_WORDS: usize = 3;

/// Meanings that no word of a unit has.
pub(super) const NO_UNIT: Meaning = Meaning::LINK
    .with(Meaning::GIVES)
    .with(Meaning::CONTEXT)
    .with(Meaning::ANSWER)
    .with(Meaning::REASON)
    .with(Meaning::CONCLUDES)
    .with(Meaning::OR)
    .with(Meaning::AND)
    .with(Meaning::IF)
    .with(Meaning::DENIES)
    .with(Meaning::OPERATOR)
    .with(Meaning::CORRECTS)
    .with(Meaning::TOTALS)
    .with(Meaning::UP)
    .with(Meaning::DOWN)
    .with(Meaning::FILLER);

impl<'a> Statements<'a> {
    /// Finds the roles of all numbers.
    pub fn new(question: &'a Question, tokens: &'a Tokens<'a>, truncated: bool) -> Self {
        let mut statements = Statements {
            question,
            tokens,
            truncated,
            excluded: vec![false; tokens.tokens.len()],
            options: Vec::new(),
            end: tokens.text.trim_end_matches(['*', '`', '$', '}']).len(),
            given: tokens.numbers.iter().map(|number| question.gives(number)).collect(),
        };
        statements.exclude_list_markers();
        statements.exclude_options();
        for at in 0..tokens.tokens.len() {
            if let Some(number) = tokens.number(at) {
                let given_back = number.spelling == Spelling::Fraction
                    && matches!(question.form, super::Form::Integer | super::Form::Float | super::Form::Scientific)
                    && question.is_asked_operation(&[number]);
                let excluded = number.name
                    || given_back
                    || number.spelling == Spelling::None
                    || statements.is_label(at)
                    || statements.is_denied(at)
                    || statements.is_quoted_example(at);
                statements.excluded[at] |= excluded;
            }
        }
        statements
    }

    pub(super) fn kind(&self, at: usize) -> Kind {
        self.tokens.kind(at)
    }

    /// True if a number can be stated.
    pub fn is_candidate(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Number(_)) && !self.excluded[at]
    }

    /// True if a number is one that the question gives.
    pub fn is_given(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Number(index) if self.given[index])
    }

    /// True if a number is the prompt's example of a format.
    pub fn is_example(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Number(index) if !self.given[index] && self.question.is_example(&self.tokens.numbers[index]))
    }

    /// The number of a token that is one.
    pub fn number(&self, at: usize) -> Option<&'a Number> {
        self.tokens.number(at)
    }

    /// True if the end of the text cuts a number.
    pub fn is_cut(&self, at: usize) -> bool {
        let Some(number) = self.number(at) else { return false };
        if !self.truncated {
            return false;
        }
        // "87." may be the beginning of 87.5 where decimals were asked for.
        if number.end >= self.end {
            return true;
        }
        if self.end - number.end > 8 {
            return false;
        }
        let rest = &self.tokens.text[number.end..self.end];
        if rest == "." {
            return matches!(self.question.form, super::Form::Float | super::Form::Scientific);
        }
        // The beginning of a group, an exponent or a denominator.
        rest.len() <= 8
            && rest.chars().all(|c| matches!(c, ',' | 'e' | 'E' | '/' | '^' | '-' | '+' | '×' | '\\' | '_' | '{'))
    }

    pub(super) fn same(&self, a: usize, b: usize) -> bool {
        match (self.number(a), self.number(b)) {
            (Some(a), Some(b)) => a.text == b.text || value::same(&a.text, &b.text),
            _ => false,
        }
    }

    pub(super) fn is_mark(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Check | Kind::Other | Kind::BoxOpen | Kind::BoxClose)
    }

    pub(super) fn is_unit(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Word(meaning) if !meaning.has(NO_UNIT))
    }

    /// The first token behind a number, its marks and its unit, and whether there was a unit.
    pub(super) fn behind(&self, number: usize) -> (usize, bool) {
        let mut at = number + 1;
        let mut words = 0;
        loop {
            if self.is_mark(at) {
                at += 1;
            } else if words < UNIT_WORDS && self.is_unit(at) && !(words == 0 && self.is_variable(at)) {
                words += 1;
                at += 1;
            } else if words > 0 && matches!(self.kind(at), Kind::Operator('/' | '*')) && self.is_unit(at + 1) {
                // km/h, N·m
                at += 2;
            } else {
                return (at, words > 0);
            }
        }
    }
}
