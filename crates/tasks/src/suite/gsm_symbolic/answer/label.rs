//! Labels of extractions.
use std::fmt;
use std::str::FromStr;

use crate::suite::FailureClass;

/// The study's labels, under its names, and four of ours for what its program, which runs code without limits, has no
/// word for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// Text: a number after `####` (the study spells it `GMS8K`).
    Gsm8k,
    /// Text: a number after "the final answer is".
    GsmSymbolic,
    /// Text: the last number, for want of a statement.
    LastNumber,
    /// Text: no number.
    NoNumber,
    /// Text: an empty completion.
    EmptyResponse,
    /// Text: nothing before the next question.
    EmptyAfterTrim,
    /// Code: the function returned an integer, a float or a bool.
    Code,
    /// Code: no function without parameters.
    NoFunction,
    /// Code: the text contains a call that is refused.
    ForbiddenString,
    /// Code: it does not compile.
    SyntaxError,
    NameError,
    AttributeError,
    ZeroDivisionError,
    /// Code: `TypeError` or `ValueError`.
    TypeValueError,
    /// Code: any other exception.
    Unclassified,
    /// Code: the function returned `None`.
    NoneReturned,
    /// Code: it returned something that is no number, such as a text, a `Fraction` or a generator.
    NotANumber,
    /// Code, ours: the time limit.
    TimeLimit,
    /// Code, ours: the memory limit, or `MemoryError`.
    MemoryLimit,
    /// Code, ours: its process died.
    Crash,
    /// Code, ours: the sandbox failed; says nothing about the completion.
    SandboxUnavailable,
}

/// No label has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an extraction label")]
pub struct UnknownLabel(pub String);

impl Label {
    /// All labels, in the order of the enum.
    pub const ALL: [Label; 21] = [
        Label::Gsm8k,
        Label::GsmSymbolic,
        Label::LastNumber,
        Label::NoNumber,
        Label::EmptyResponse,
        Label::EmptyAfterTrim,
        Label::Code,
        Label::NoFunction,
        Label::ForbiddenString,
        Label::SyntaxError,
        Label::NameError,
        Label::AttributeError,
        Label::ZeroDivisionError,
        Label::TypeValueError,
        Label::Unclassified,
        Label::NoneReturned,
        Label::NotANumber,
        Label::TimeLimit,
        Label::MemoryLimit,
        Label::Crash,
        Label::SandboxUnavailable,
    ];

    /// Its name in the study's results; for ours, a name of the same kind.
    pub fn name(self) -> &'static str {
        match self {
            Label::Gsm8k => "GMS8K",
            Label::GsmSymbolic => "GSM_SYMBOLIC",
            Label::LastNumber => "LAST_NUMBER",
            Label::NoNumber => "NO_NUMBER",
            Label::EmptyResponse => "EMPTY_RESPONSE",
            Label::EmptyAfterTrim => "EMPTY_AFTER_TRIM",
            Label::Code => "CODE",
            Label::NoFunction => "NO_FUNCTION",
            Label::ForbiddenString => "FORBIDDEN_STRING",
            Label::SyntaxError => "SYNTAX_ERROR",
            Label::NameError => "NAME_ERROR",
            Label::AttributeError => "ATTRIBUTE_ERROR",
            Label::ZeroDivisionError => "ZERO_DIVISION_ERROR",
            Label::TypeValueError => "TYPE_VALUE_ERROR",
            Label::Unclassified => "UNCLASSIFIED",
            Label::NoneReturned => "NONE_RETURNED",
            Label::NotANumber => "NOT_A_NUMBER",
            Label::TimeLimit => "TIME_LIMIT",
            Label::MemoryLimit => "MEMORY_LIMIT",
            Label::Crash => "CRASH",
            Label::SandboxUnavailable => "SANDBOX_UNAVAILABLE",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Label> for FailureClass {
    /// The class of a wrong or missing number under the label of its extraction.
    fn from(label: Label) -> Self {
        match label {
            Label::Gsm8k | Label::GsmSymbolic | Label::Code => FailureClass::Wrong,
            Label::LastNumber => FailureClass::WrongLastNumber,
            Label::NoNumber => FailureClass::NoNumber,
            Label::EmptyResponse => FailureClass::EmptyResponse,
            Label::EmptyAfterTrim => FailureClass::EmptyAfterTrim,
            Label::NoFunction => FailureClass::NoFunction,
            Label::ForbiddenString => FailureClass::ForbiddenString,
            Label::SyntaxError => FailureClass::SyntaxError,
            Label::NameError => FailureClass::NameError,
            Label::AttributeError => FailureClass::AttributeError,
            Label::ZeroDivisionError => FailureClass::ZeroDivisionError,
            Label::TypeValueError => FailureClass::TypeValueError,
            Label::Unclassified => FailureClass::Unclassified,
            Label::NoneReturned => FailureClass::NoneReturned,
            Label::NotANumber => FailureClass::NotANumber,
            Label::TimeLimit => FailureClass::TimeLimit,
            Label::MemoryLimit => FailureClass::MemoryLimit,
            Label::Crash => FailureClass::Crashed,
            Label::SandboxUnavailable => FailureClass::SandboxUnavailable,
        }
    }
}

impl FromStr for Label {
    type Err = UnknownLabel;

    fn from_str(name: &str) -> Result<Self, UnknownLabel> {
        Label::ALL.into_iter().find(|label| label.name() == name).ok_or_else(|| UnknownLabel(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_read_back() {
        for (index, label) in Label::ALL.into_iter().enumerate() {
            assert_eq!(label as usize, index);
            assert_eq!(label.name().parse(), Ok(label));
        }
        assert!("CODES".parse::<Label>().is_err() && "".parse::<Label>().is_err());
    }

    #[test]
    fn failure_classes_have_the_labels_names() {
        // Labels of extractions that found a number are no failures.
        const PREDICTED: [Label; 4] = [Label::Gsm8k, Label::GsmSymbolic, Label::LastNumber, Label::Code];
        for label in Label::ALL.into_iter().filter(|label| !PREDICTED.contains(label) && *label != Label::Crash) {
            assert_eq!(FailureClass::from(label).as_str(), label.name().to_lowercase());
        }
    }
}
