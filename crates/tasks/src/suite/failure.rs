//! Failure classes: why an answer is not correct.
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use earnest_answer::reader::NoAnswer;

/// Defines the classes with the words under which files hold them.
macro_rules! classes {
    ($($(#[$doc:meta])+ $name:ident = $word:literal,)+) => {
        /// Reason for an answer not being correct. Files hold its word; a word of another version is kept as it is.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FailureClass {
            $($(#[$doc])+ $name,)+
            /// A word that this version does not give: read from a file, never made here.
            Other(Box<str>),
        }

        impl FailureClass {
            /// Word in files and tables.
            pub fn as_str(&self) -> &str {
                match self {
                    $(FailureClass::$name => $word,)+
                    FailureClass::Other(word) => word,
                }
            }
        }

        impl From<&str> for FailureClass {
            fn from(word: &str) -> Self {
                match word {
                    $($word => FailureClass::$name,)+
                    other => FailureClass::Other(other.into()),
                }
            }
        }
    };
}

classes! {
    /// Another value than the expected one.
    Wrong = "wrong",
    /// Another value, read as the last number for want of a statement.
    WrongLastNumber = "wrong_last_number",
    /// As many digits as expected, but others.
    WrongDigits = "wrong_digits",
    /// Another number of digits.
    WrongLength = "wrong_length",
    /// The right value in another form than the one asked for.
    Form = "form",
    /// The right digits, written otherwise.
    Format = "format",
    /// The right magnitude under the wrong sign.
    Sign = "sign",
    /// A negative number where there is none.
    Negative = "negative",
    /// The right number under a wrong scale word.
    Scale = "scale",
    /// No numbers but the operands.
    Echo = "echo",
    /// An empty answer.
    Empty = "empty",
    /// An empty completion, for suites that tell it from one that is empty after trimming.
    EmptyResponse = "empty_response",
    /// Nothing before the next question, as the study counts it.
    EmptyAfterTrim = "empty_after_trim",
    /// Text without a number.
    NoNumber = "no_number",
    /// Thinking and nothing else.
    OnlyThinking = "only_thinking",
    /// The question or its operation and no result.
    Unevaluated = "unevaluated",
    /// The model gives no answer, as the reader of final answers sees it.
    Refused = "refused",
    /// A refusal, by its words.
    Refusal = "refusal",
    /// Two answers of equal standing.
    Rivals = "rivals",
    /// Ended by the token budget.
    Truncated = "truncated",
    /// A line that decides is missing or cannot be read.
    Unparsed = "unparsed",
    /// Right, but followed by another question.
    Babbling = "babbling",
    /// Code: no function without parameters.
    NoFunction = "no_function",
    /// Code: a call that is refused.
    ForbiddenString = "forbidden_string",
    /// Code: it does not compile.
    SyntaxError = "syntax_error",
    /// Code: `NameError`.
    NameError = "name_error",
    /// Code: `AttributeError`.
    AttributeError = "attribute_error",
    /// Code: `ZeroDivisionError`.
    ZeroDivisionError = "zero_division_error",
    /// Code: `TypeError` or `ValueError`.
    TypeValueError = "type_value_error",
    /// Code: any other exception.
    Unclassified = "unclassified",
    /// Code: the function returned `None`.
    NoneReturned = "none_returned",
    /// Code: it returned something other than a number.
    NotANumber = "not_a_number",
    /// Code: ended by the time limit.
    TimeLimit = "time_limit",
    /// Code: ended by the memory limit.
    MemoryLimit = "memory_limit",
    /// Code: its process died.
    Crashed = "crashed",
    /// Code: the sandbox failed, which says nothing about the completion.
    SandboxUnavailable = "sandbox_unavailable",
    /// The item's task is none of the suite's.
    UnknownTask = "unknown_task",
    /// The item's expected answer is damaged.
    MalformedGold = "malformed_gold",
}

impl FailureClass {
    /// Words for people, on every screen and page.
    pub fn words(&self) -> &str {
        match self {
            FailureClass::WrongLastNumber => "wrong last number",
            FailureClass::WrongDigits => "wrong digits",
            FailureClass::WrongLength => "wrong length",
            FailureClass::Form => "right value, wrong form",
            FailureClass::Format => "right digits, wrong form",
            FailureClass::Sign => "wrong sign",
            FailureClass::Scale => "wrong scale",
            FailureClass::Echo => "operand repeated",
            FailureClass::EmptyResponse => "empty response",
            FailureClass::EmptyAfterTrim => "blank response",
            FailureClass::NoNumber => "no number",
            FailureClass::OnlyThinking => "only thinking",
            FailureClass::Truncated => "cut off",
            FailureClass::NoFunction => "no function",
            FailureClass::ForbiddenString => "forbidden call",
            FailureClass::NameError => "name error",
            FailureClass::TypeValueError => "type or value error",
            FailureClass::SyntaxError => "syntax error",
            FailureClass::AttributeError => "attribute error",
            FailureClass::ZeroDivisionError => "division by zero",
            FailureClass::NoneReturned => "nothing returned",
            FailureClass::NotANumber => "not a number",
            FailureClass::TimeLimit => "time limit",
            FailureClass::MemoryLimit => "memory limit",
            FailureClass::SandboxUnavailable => "no sandbox",
            FailureClass::UnknownTask => "unknown task",
            FailureClass::MalformedGold => "damaged expected answer",
            other => other.as_str(),
        }
    }
}

/// Words for a metric of an answer where its name says too little: `echo` is also the name of a failure class, which asks whether one
/// operand is the answer, while the metric asks whether all of them stand in it.
pub fn metric_words(name: &str) -> &str {
    match name {
        "echo" => "all operands repeated",
        other => other,
    }
}

impl From<NoAnswer> for FailureClass {
    fn from(none: NoAnswer) -> Self {
        match none {
            NoAnswer::Empty => FailureClass::Empty,
            NoAnswer::OnlyThinking => FailureClass::OnlyThinking,
            NoAnswer::NoNumber => FailureClass::NoNumber,
            NoAnswer::Unevaluated => FailureClass::Unevaluated,
            NoAnswer::Refused => FailureClass::Refused,
            NoAnswer::Rivals => FailureClass::Rivals,
            NoAnswer::Truncated => FailureClass::Truncated,
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FailureClass {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureClass {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Not `&str`: a word with an escape is no part of its text.
        Ok(FailureClass::from(String::deserialize(from)?.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_as_they_are() {
        for (word, class) in
            [("wrong", FailureClass::Wrong), ("echo", FailureClass::Echo), ("crashed", FailureClass::Crashed)]
        {
            assert_eq!(FailureClass::from(word), class);
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{word}\""));
        }
        let later: FailureClass = serde_json::from_str("\"of_a_later_version\"").unwrap();
        assert_eq!(later, FailureClass::Other("of_a_later_version".into()));
        assert_eq!(serde_json::to_string(&later).unwrap(), "\"of_a_later_version\"");
    }

    #[test]
    fn no_words_have_the_underscores_of_files() {
        for word in ["wrong_digits", "only_thinking", "truncated", "echo", "no_number", "sandbox_unavailable", "sign"] {
            let words = FailureClass::from(word).words().to_owned();
            assert!(!words.contains('_') && words != "truncated", "{words}");
        }
        assert_ne!(metric_words("echo"), FailureClass::Echo.words(), "two questions");
        assert_eq!(metric_words("digit_match"), "digit_match");
    }

    #[test]
    fn readings_keep_their_names() {
        use NoAnswer::*;
        for none in [Empty, OnlyThinking, NoNumber, Unevaluated, Refused, Rivals, Truncated] {
            assert_eq!(FailureClass::from(none).as_str(), none.name());
        }
    }
}
