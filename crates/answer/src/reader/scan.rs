//! A text with what its structure says about its numbers: which are parts of expressions, which no sentence can state.
use std::ops::{Deref, Range};

use super::Form;
use super::numeral::Spelling;
use super::question::{Question, is_negation};
use super::token::{Kind, Token, Tokens};
use super::value;
use super::vocabulary::{Meaning, any_of};

/// A text whose numbers are told apart by structure.
pub(super) struct Scan<'a> {
    pub(super) question: &'a Question,
    pub(super) tokens: &'a Tokens<'a>,
    /// The token budget ended the text.
    pub(super) truncated: bool,
    /// By token: a number that no sentence can state.
    pub(super) excluded: Vec<bool>,
    /// By token: the number of a list's line.
    pub(super) markers: Vec<bool>,
    /// By token: the words of the sentence that asks which it is, as bits.
    asked: Vec<u64>,
    /// Letters and numbers of options that the completion lists.
    pub(super) options: Vec<(char, usize)>,
    /// End of the text but for marks behind its last number.
    end: usize,
}

/// Most words of a unit.
pub(super) const UNIT_WORDS: usize = 3;

/// Meanings that no word of a unit has.
pub(super) const NO_UNIT: Meaning = any_of![
    LINK, GIVES, CONTEXT, PREMISE, ANSWER, REASON, CONCLUDES, OR, AND, IF, DENIES, OPERATOR, CORRECTS, TOTALS, UP,
    DOWN, SUBJECT, FILLER
];

impl<'a> Deref for Scan<'a> {
    type Target = Tokens<'a>;

    fn deref(&self) -> &Tokens<'a> {
        self.tokens
    }
}

impl<'a> Scan<'a> {
    /// Looks the numbers of a text over.
    pub(super) fn new(question: &'a Question, tokens: &'a Tokens<'a>, truncated: bool) -> Self {
        let asked = |token: &Token| {
            if token.kind.is_word() { question.asked_words(&tokens.text[token.start..token.end]) } else { 0 }
        };
        let mut scan = Scan {
            question,
            tokens,
            truncated,
            excluded: vec![false; tokens.tokens.len()],
            markers: Vec::new(),
            asked: tokens.tokens.iter().map(asked).collect(),
            options: Vec::new(),
            end: tokens.text.trim_end_matches(['*', '`', '$', '}']).len(),
        };
        scan.exclude_list_markers();
        scan.markers = scan.excluded.clone();
        scan.find_options();
        for at in 0..tokens.tokens.len() {
            let Some(number) = tokens.number(at) else { continue };
            // A fraction that is the operation which was asked for gives the question back; so does the only number of
            // a question that asks for no fraction: "What is 7/2?"
            let only = !question.asks_fraction && matches!(&question.operands[..], [one] if *one == number.text);
            let given_back = number.spelling == Spelling::Fraction
                && (question.is_asked_operation(&[number]) || only)
                && (question.form != Form::Fraction || tokens.slice(at).contains(' '));
            scan.excluded[at] |= number.name
                || given_back
                || number.spelling == Spelling::None
                || scan.is_label(at)
                || scan.is_argument(at)
                || scan.is_quoted_example(at);
        }
        scan
    }

    /// The words of the sentence that asks which a stretch of the text has, as bits.
    pub(super) fn shares(&self, range: &Range<usize>) -> u64 {
        self.asked[range.clone()].iter().fold(0, |words, bits| words | bits)
    }

    /// The number of tokens of a kind in a stretch of the text.
    pub(super) fn count(&self, range: &Range<usize>, kind: Kind) -> usize {
        range.clone().filter(|&at| self.kind(at) == kind).count()
    }

    pub(super) fn is_number(&self, at: usize) -> bool {
        self.kind(at).is_number()
    }

    pub(super) fn is_word(&self, at: usize) -> bool {
        self.kind(at).is_word()
    }

    /// True if a number is the prompt's example of a format.
    pub(super) fn is_example(&self, at: usize) -> bool {
        self.number(at).is_some_and(|number| self.question.is_example(number))
    }

    /// True if the end of the text cuts a number.
    pub(super) fn is_cut(&self, at: usize) -> bool {
        let Some(number) = self.number(at).filter(|_| self.truncated) else { return false };
        if number.end >= self.end || self.end - number.end > 8 {
            return number.end >= self.end;
        }
        let rest = &self.tokens.text[number.end..self.end];
        // "87." may be the beginning of 87.5 where decimals were asked for.
        if rest == "." {
            return matches!(self.question.form, Form::Float | Form::Scientific);
        }
        // The beginning of a group, an exponent or a denominator.
        rest.chars().all(|c| matches!(c, ',' | 'e' | 'E' | '/' | '^' | '-' | '+' | '×' | '\\' | '_' | '{'))
    }

    pub(super) fn same(&self, a: usize, b: usize) -> bool {
        let both = self.number(a).zip(self.number(b));
        both.is_some_and(|(a, b)| a.text == b.text || value::same(&a.text, &b.text))
    }

    /// True for marks that say nothing about the number beside them.
    pub(super) fn is_mark(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Check | Kind::Other | Kind::BoxOpen | Kind::BoxClose)
    }

    pub(super) fn is_unit(&self, at: usize) -> bool {
        self.is_word(at) && !self.means(at, NO_UNIT) && !is_negation(self.slice(at))
    }

    /// The first token from one on that is not passed over, and is before an end.
    pub(super) fn past(&self, at: usize, end: usize, passes: impl Fn(usize) -> bool) -> usize {
        (at..end).find(|&at| !passes(at)).unwrap_or(end.max(at))
    }

    /// The first token behind a number, its marks and its unit, and whether there was a unit.
    pub(super) fn behind(&self, number: usize) -> (usize, bool) {
        let (mut at, mut words) = (number + 1, 0);
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
