//! Faults of a template's text.
use earnest_answer::python::ParseError;

use super::value::EvalError;

/// Error of a template's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct TemplateError {
    /// The section and the line, or the field.
    pub place: String,
    pub fault: TemplateFault,
}

/// Fault of a template's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// A file without the six keys, or no JSON.
    #[error("{0}")]
    File(String),
    #[error("there is no #init: section")]
    NoInit,
    #[error("#init: defines nothing")]
    EmptyInit,
    #[error("#{0} is not a section")]
    UnknownSection(String),
    #[error("lines of a section begin with `-`")]
    NoDash,
    #[error("there is no line that begins with ####")]
    NoFinalLine,
    #[error("a `{{` is not closed")]
    Unclosed,
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error("templates do not have {0}")]
    Outside(&'static str),
    #[error("brackets hold one value, or a text and its value")]
    Brackets,
    #[error("there is no function {0}")]
    UnknownFunction(String),
    #[error("{0} is not defined")]
    Undefined(String),
    #[error("{0:?} is not defined in #init:")]
    NotInInit(String),
    #[error("there is no `=`")]
    NoAssignment,
    #[error("{0:?} is not a name")]
    NotAName(String),
    #[error("{0} is defined twice")]
    DefinedTwice(String),
    #[error(transparent)]
    Evaluation(#[from] EvalError),
    #[error("{0} is not a number of draws")]
    NotACount(String),
    #[error("sample takes a list and a number of draws")]
    Sample,
    #[error("there is no collection to draw from")]
    NoCollection,
    #[error("{draws} draws for {variables} variables")]
    OtherCount { draws: usize, variables: usize },
    #[error("{draws} draws from {things} things")]
    TooFewThings { draws: usize, things: usize },
}
