//! The exceptions of an evaluation.
use thiserror::Error;

/// Exception of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{}", self.class())]
pub enum PythonError {
    Syntax,
    Indentation,
    Type,
    Name,
    ZeroDivision,
    Overflow,
    Value,
    Attribute,
    Index,
    Key,
    /// Deeper than what is evaluated here, or in CPython.
    Recursion,
    /// More time or memory than what is spent here; CPython would try.
    Limit,
    /// An expression of Python that is not evaluated here.
    Unsupported,
}

impl PythonError {
    /// The class as Python spells it; `Limit` and `Unsupported` are ours.
    pub fn class(self) -> &'static str {
        match self {
            PythonError::Syntax => "SyntaxError",
            PythonError::Indentation => "IndentationError",
            PythonError::Type => "TypeError",
            PythonError::Name => "NameError",
            PythonError::ZeroDivision => "ZeroDivisionError",
            PythonError::Overflow => "OverflowError",
            PythonError::Value => "ValueError",
            PythonError::Attribute => "AttributeError",
            PythonError::Index => "IndexError",
            PythonError::Key => "KeyError",
            PythonError::Recursion => "RecursionError",
            PythonError::Limit => "Limit",
            PythonError::Unsupported => "Unsupported",
        }
    }
}
