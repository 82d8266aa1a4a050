//! A model's answers to one prompt, as the analysis needs them.
use serde::Serialize;

use crate::run::Sample;
use crate::suite::gsm_symbolic::Prompt;

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The template: answers to one template are not independent.
    pub template: String,
    /// The variant's number within its template; -1 for the original question.
    pub instance: i64,
    /// True for GSM-Variants, false for GSM-Base.
    pub variant: bool,
    /// By the study's rule.
    pub correct: bool,
    /// The large-number metric of the question (section 5 of the specification), not centred; none where it has no number.
    pub gamma: Option<f64>,
    /// Why it is not correct, if it is not.
    pub failure: Option<FailureClass>,
}

/// A model's answers to a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// As the paper prints it, where it is one of the paper's.
    pub model: String,
    pub prompt: Prompt,
    pub rows: Vec<Observation>,
    /// Questions without a completion, and samples of other item sets (p1, p2), which the study does not analyse.
    pub unanswered: usize,
    pub left_out: usize,
}

impl Evaluation {
    /// An empty one.
    pub fn new(model: impl Into<String>, prompt: Prompt) -> Self {
        Evaluation { model: model.into(), prompt, rows: Vec::new(), unanswered: 0, left_out: 0 }
    }

    /// Adds a stored sample; the error names what it lacks.
    pub fn add(&mut self, sample: &Sample) -> Result<(), String> {
        let set = sample.covariates.get("set").and_then(serde_json::Value::as_str);
        if set.is_some_and(|set| set != "base" && set != "main") {
            self.left_out += 1;
            return Ok(());
        }
        let Some(verdict) = &sample.verdict else {
            self.unanswered += 1;
            return Ok(());
        };
        let number = |name: &str| match sample.covariates.get(name) {
            Some(serde_json::Value::Bool(value)) => Some(f64::from(u8::from(*value))),
            Some(value) => value.as_f64(),
            None => None,
        };
        let variant = match number("variant") {
            Some(0.0) => false,
            Some(1.0) => true,
            _ => return Err(format!("{} has no covariate `variant` of 0 or 1", sample.item)),
        };
        let instance = number("instance").map_or(-1, |instance| instance as i64);
        let gamma = number("gamma").filter(|gamma| gamma.is_finite());
        // The study's rule, whatever the run's primary one.
        let correct = verdict.matchers.get("study").copied().unwrap_or(verdict.correct);
        let failure = (!correct).then(|| FailureClass::of(verdict.failure.as_deref().unwrap_or("wrong")));
        self.rows.push(Observation { template: sample.cluster.clone(), instance, variant, correct, gamma, failure });
        Ok(())
    }
}

/// How an answer fails: the classes of Figures 9 to 11, and one for what only our limits catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    Wrong,
    WrongLastNumber,
    EmptyResponse,
    EmptyAfterTrim,
    NoNumber,
    NameError,
    TypeValueError,
    SyntaxError,
    AttributeError,
    ZeroDivision,
    NoneReturned,
    NotANumber,
    /// Unclassified errors, and labels that the study's list lacks.
    Other,
    /// Ended by a limit of time or memory, or with its process. The study has no limits.
    Limit,
}

impl FailureClass {
    /// All of them, in the order of the study's tables.
    pub const ALL: [FailureClass; 14] = [
        FailureClass::Wrong,
        FailureClass::WrongLastNumber,
        FailureClass::EmptyResponse,
        FailureClass::EmptyAfterTrim,
        FailureClass::NoNumber,
        FailureClass::NameError,
        FailureClass::TypeValueError,
        FailureClass::SyntaxError,
        FailureClass::AttributeError,
        FailureClass::ZeroDivision,
        FailureClass::NoneReturned,
        FailureClass::NotANumber,
        FailureClass::Other,
        FailureClass::Limit,
    ];

    /// The class of a verdict's word.
    pub fn of(word: &str) -> Self {
        match word {
            "wrong" => FailureClass::Wrong,
            "wrong_last_number" => FailureClass::WrongLastNumber,
            "empty_response" => FailureClass::EmptyResponse,
            "empty_after_trim" => FailureClass::EmptyAfterTrim,
            "no_number" => FailureClass::NoNumber,
            "name_error" => FailureClass::NameError,
            "type_value_error" => FailureClass::TypeValueError,
            "syntax_error" => FailureClass::SyntaxError,
            "attribute_error" => FailureClass::AttributeError,
            "zero_division_error" => FailureClass::ZeroDivision,
            "none_returned" => FailureClass::NoneReturned,
            "not_a_number" => FailureClass::NotANumber,
            "time_limit" | "memory_limit" | "crashed" => FailureClass::Limit,
            _ => FailureClass::Other,
        }
    }

    /// The label of the figures.
    pub fn label(self) -> &'static str {
        match self {
            FailureClass::Wrong => "Wrong answer",
            FailureClass::WrongLastNumber => "Wrong answer - last number",
            FailureClass::EmptyResponse => "Empty response",
            FailureClass::EmptyAfterTrim => "Empty (after trimming)",
            FailureClass::NoNumber => "No number found",
            FailureClass::NameError => "Name E.",
            FailureClass::TypeValueError => "Type/Value E.",
            FailureClass::SyntaxError => "Syntax E.",
            FailureClass::AttributeError => "Attribute E.",
            FailureClass::ZeroDivision => "0-division",
            FailureClass::NoneReturned => "None returned",
            FailureClass::NotANumber => "Not a number",
            FailureClass::Other => "(Other)",
            FailureClass::Limit => "Time, memory or crash",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_class_has_one_of_ours() {
        use crate::suite::gsm_symbolic::published::code_errors;
        for prompt in [Prompt::SimpleCode, Prompt::StructuredCode] {
            for row in code_errors(prompt).unwrap().values() {
                for label in row.keys() {
                    assert!(FailureClass::ALL.iter().any(|class| class.label() == label), "{label}");
                }
            }
        }
        assert_eq!(FailureClass::of("forbidden_string"), FailureClass::Other);
        assert_eq!(FailureClass::of("memory_limit"), FailureClass::Limit);
    }
}
