//! A model's scored answers to one prompt: the input of the analysis.
use std::collections::BTreeMap;

use serde::Serialize;

use earnest_results::Sample;
use earnest_tasks::suite::gsm_symbolic::Prompt;
use earnest_tasks::suite::{FailureClass, Missing};

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Template, the grouping factor: answers to one template are not independent.
    pub template: String,
    /// The variant's number within its template; -1 for the original question.
    pub instance: i64,
    /// True for GSM-Variants, false for GSM-Base.
    pub variant: bool,
    /// Score by the study's scorer.
    pub correct: bool,
    /// Large-number metric of the question, not centred; `None` if the question has no number.
    pub gamma: Option<f64>,
    /// Class of the error, for wrong answers.
    pub failure: Option<ErrorClass>,
}

/// Error of a sample that cannot be analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    #[error("{item} has no covariate `variant` of 0 or 1")]
    NoVariant { item: String },
    #[error("the score of {item}: {source}")]
    Score { item: String, source: Missing },
}

/// A model's answers to a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Name as the paper prints it, for the paper's models.
    pub model: String,
    pub prompt: Prompt,
    pub rows: Vec<Observation>,
    /// Answers to the harder sets, p1 and p2, by set: the study does not ask them.
    pub harder: BTreeMap<String, Vec<Observation>>,
    /// Questions without a completion.
    pub unanswered: usize,
}

impl Evaluation {
    /// An evaluation without answers.
    pub fn new(model: impl Into<String>, prompt: Prompt) -> Self {
        Evaluation { model: model.into(), prompt, rows: Vec::new(), harder: BTreeMap::new(), unanswered: 0 }
    }

    /// Adds a stored sample.
    ///
    /// # Errors
    /// [`ObservationError`] if the sample lacks a covariate or a score that the analysis needs.
    pub fn add(&mut self, sample: &Sample) -> Result<(), ObservationError> {
        let set = sample.covariates.get("set").and_then(serde_json::Value::as_str);
        let Some(score) = &sample.score else {
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
            _ => return Err(ObservationError::NoVariant { item: sample.item.clone() }),
        };
        let instance = number("instance").map_or(-1, |instance| instance as i64);
        let gamma = number("gamma").filter(|gamma| gamma.is_finite());
        // The study's scorer, whatever the run's deciding one is; the error class is that of the deciding scorer.
        let incomplete = |source| ObservationError::Score { item: sample.item.clone(), source };
        let correct = score.scorer("study").map_err(incomplete)?;
        let failure = (!correct).then(|| score.failure.as_ref().map_or(ErrorClass::Wrong, ErrorClass::of));
        let rows = match set.filter(|set| *set != "base" && *set != "main") {
            Some(harder) => self.harder.entry(harder.to_owned()).or_default(),
            None => &mut self.rows,
        };
        rows.push(Observation { template: sample.cluster.clone(), instance, variant, correct, gamma, failure });
        Ok(())
    }
}

/// Error class of an answer: the classes of Figures 9 to 11, and one for answers ended by our limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
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
    /// Unclassified errors, and classes that the study does not list.
    Other,
    /// Ended by a limit of time or memory, or with its process. The study has no limits.
    Limit,
}

impl ErrorClass {
    /// All classes, in the order of the study's tables.
    pub const ALL: [ErrorClass; 14] = [
        ErrorClass::Wrong,
        ErrorClass::WrongLastNumber,
        ErrorClass::EmptyResponse,
        ErrorClass::EmptyAfterTrim,
        ErrorClass::NoNumber,
        ErrorClass::NameError,
        ErrorClass::TypeValueError,
        ErrorClass::SyntaxError,
        ErrorClass::AttributeError,
        ErrorClass::ZeroDivision,
        ErrorClass::NoneReturned,
        ErrorClass::NotANumber,
        ErrorClass::Other,
        ErrorClass::Limit,
    ];

    /// Class of the figures for a score's failure class.
    pub fn of(class: &FailureClass) -> Self {
        match class {
            FailureClass::Wrong => ErrorClass::Wrong,
            FailureClass::WrongLastNumber => ErrorClass::WrongLastNumber,
            FailureClass::EmptyResponse => ErrorClass::EmptyResponse,
            FailureClass::EmptyAfterTrim => ErrorClass::EmptyAfterTrim,
            FailureClass::NoNumber => ErrorClass::NoNumber,
            FailureClass::NameError => ErrorClass::NameError,
            FailureClass::TypeValueError => ErrorClass::TypeValueError,
            FailureClass::SyntaxError => ErrorClass::SyntaxError,
            FailureClass::AttributeError => ErrorClass::AttributeError,
            FailureClass::ZeroDivisionError => ErrorClass::ZeroDivision,
            FailureClass::NoneReturned => ErrorClass::NoneReturned,
            FailureClass::NotANumber => ErrorClass::NotANumber,
            FailureClass::TimeLimit | FailureClass::MemoryLimit | FailureClass::Crashed => ErrorClass::Limit,
            _ => ErrorClass::Other,
        }
    }

    /// Label in the figures.
    pub fn label(self) -> &'static str {
        match self {
            ErrorClass::Wrong => "Wrong answer",
            ErrorClass::WrongLastNumber => "Wrong answer - last number",
            ErrorClass::EmptyResponse => "Empty response",
            ErrorClass::EmptyAfterTrim => "Empty (after trimming)",
            ErrorClass::NoNumber => "No number found",
            ErrorClass::NameError => "Name E.",
            ErrorClass::TypeValueError => "Type/Value E.",
            ErrorClass::SyntaxError => "Syntax E.",
            ErrorClass::AttributeError => "Attribute E.",
            ErrorClass::ZeroDivision => "0-division",
            ErrorClass::NoneReturned => "None returned",
            ErrorClass::NotANumber => "Not a number",
            ErrorClass::Other => "(Other)",
            ErrorClass::Limit => "Time, memory or crash",
        }
    }
}
