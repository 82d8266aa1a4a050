//! Input and output of the reader.
use std::ops::Range;

use super::value;

/// The kind of number that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Digits, possibly with a sign.
    Integer,
    /// `I.D`.
    Float,
    /// `N/D`.
    Fraction,
    /// `I.DeX`.
    Scientific,
    /// Any number: the answer to a word problem.
    Number,
}

/// The question as a model saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The prompt or its question; worked examples may be left out, a chat template may be around it.
    pub prompt: &'a str,
    /// The kind of number that was asked for.
    pub form: Form,
}

/// Mark of a final answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// `\boxed{}`.
    Boxed,
    /// Words, a JSON key, a tag or `####` that say that this is the answer.
    Marker,
    /// Bold type.
    Bold,
    /// It begins the completion or is all of it.
    OnlyNumber,
    /// The result of an equation or a sentence.
    Sentence,
    /// Nothing but its place: the last line.
    LastLine,
}

/// Reason for a completion having no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoAnswer {
    /// Nothing is there.
    Empty,
    /// Everything is thinking.
    OnlyThinking,
    /// No number stands outside the thinking.
    NoNumber,
    /// The question or its operation is all that is there.
    Unevaluated,
    /// It says that there is no answer, or that it gives none.
    Refused,
    /// Two answers of equal standing.
    Rivals,
    /// The token budget ended it before the answer was complete.
    Truncated,
}

/// A final answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// ASCII digits without group separators, currency, units and percent signs: `-12`, `0.50`, `14/30`, `1.2e-3`, `0012`, `1 2 3`.
    /// Leading and trailing zeros and fractions that are not reduced stay as they were given.
    pub text: String,
    /// Its bytes in the completion.
    pub span: Range<usize>,
    /// Its mark as the final answer.
    pub mark: Mark,
}

/// Reading of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The answer, or why there is none.
    pub answer: Result<Answer, NoAnswer>,
    /// Other numbers that were stated as the answer, withdrawn or not, in order and without repetition.
    pub rivals: Vec<String>,
    /// The prompt's own example of a number (`like 123`) was stated as an answer, other than as the result of an equation.
    pub example_echoed: bool,
    /// The answer has the value of that example: right, it is no echo.
    pub answers_example: bool,
    /// There is thinking that holds a number, and none outside it.
    pub only_in_thinking: bool,
}

impl Mark {
    /// The name in evidence and tables.
    pub fn name(self) -> &'static str {
        // In the order of the variants.
        ["boxed", "marker", "bold", "only_number", "sentence", "last_line"][self as usize]
    }
}

impl NoAnswer {
    /// The name in evidence and failure classes.
    pub fn name(self) -> &'static str {
        // In the order of the variants.
        ["empty", "only_thinking", "no_number", "unevaluated", "refused", "rivals", "truncated"][self as usize]
    }
}

impl Answer {
    /// True if the answer denotes the same number as `expected`. Spaced digits and numbers with leading zeros are compared as text.
    pub fn is_same_as(&self, expected: &str) -> bool {
        value::same(&self.text, expected)
    }

    /// The nearest float; none for spaced digits and a division by zero.
    pub fn to_f64(&self) -> Option<f64> {
        value::to_f64(&self.text)
    }
}

impl Reading {
    /// A reading that found an answer and nothing else to tell.
    pub fn of(answer: Answer) -> Self {
        Reading { answer: Ok(answer), ..Reading::none(NoAnswer::Empty) }
    }

    /// A reading without an answer.
    pub fn none(why: NoAnswer) -> Self {
        Reading {
            answer: Err(why),
            rivals: Vec::new(),
            example_echoed: false,
            answers_example: false,
            only_in_thinking: false,
        }
    }

    /// The answer's text.
    pub fn text(&self) -> Option<&str> {
        self.answer.as_ref().ok().map(|answer| answer.text.as_str())
    }
}
