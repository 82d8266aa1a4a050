//! Rows of a run, from memory or from the store.
use std::collections::BTreeMap;

use serde_json::Value;

use super::RowsError;
use crate::store::{Filter, RunRecord, Store, StoredQuestion};
use crate::{LogNames, Sample};

/// A sample with its question and prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub sample: Sample,
    /// None for runs without stored questions.
    pub asked: Option<StoredQuestion>,
}

impl Row {
    /// Returns the question as asked, without examples and chat template.
    pub fn question(&self) -> Option<&str> {
        self.asked.as_ref().map(|asked| asked.item.segments.question.as_str())
    }

    /// Returns the prompt; none for imported completions.
    pub fn prompt(&self) -> Option<&str> {
        self.asked.as_ref()?.prompt.as_deref()
    }
}

impl From<Sample> for Row {
    /// Creates a row without question and prompt.
    fn from(sample: Sample) -> Self {
        Row { sample, asked: None }
    }
}

/// Rows of a run in the order of its plan. Exports walk them several times (first to determine the columns) instead of keeping
/// them in memory.
pub trait Rows {
    /// Passes every row to `row`, up to the first error.
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), RowsError>) -> Result<(), RowsError>;

    /// Passes every row with its question and prompt, where known, to `row`.
    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), RowsError>) -> Result<(), RowsError> {
        self.walk(&mut |sample| row(&sample.into()))
    }

    /// Returns the log that the rows are of; none for runs of earnest.
    fn log(&self) -> Option<LogNames> {
        None
    }
}

impl Rows for [Sample] {
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), RowsError>) -> Result<(), RowsError> {
        self.iter().cloned().try_for_each(row)
    }
}

impl Rows for Vec<Sample> {
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), RowsError>) -> Result<(), RowsError> {
        self.as_slice().walk(row)
    }
}

/// Rows without questions and prompts.
pub struct WithoutTexts<'a>(pub &'a dyn Rows);

impl Rows for WithoutTexts<'_> {
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), RowsError>) -> Result<(), RowsError> {
        self.0.walk(&mut |sample| {
            let mut sample = Sample { covariates: without_texts(sample.covariates), ..sample };
            if let (Some(mut scores), Some(completion)) = (sample.likelihoods(), &mut sample.completion) {
                scores.0.iter_mut().for_each(|score| score.text.clear());
                completion.text = scores.to_completion();
            }
            row(sample)
        })
    }

    fn log(&self) -> Option<LogNames> {
        self.0.log()
    }
}

/// Covariates that are no text of the question: numbers, truth values and words, such as a kind or an operand.
pub fn without_texts(mut covariates: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    covariates.retain(|_, value| match value {
        Value::String(text) => !text.contains(char::is_whitespace),
        Value::Array(_) | Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    });
    covariates
}

/// Rows of a stored run.
pub struct StoredRows<'a> {
    pub store: &'a Store,
    pub run: &'a RunRecord,
}

impl Rows for StoredRows<'_> {
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), RowsError>) -> Result<(), RowsError> {
        self.store.samples(self.run, Filter::default()).try_for_each(|sample| row(sample?))
    }

    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), RowsError>) -> Result<(), RowsError> {
        let mut questions = self.store.questions(self.run);
        self.store.samples(self.run, Filter::default()).indexed().try_for_each(|sample| {
            let (index, sample) = sample?;
            let asked = questions.of_sample(index, &sample)?;
            row(&Row { sample, asked })
        })
    }

    fn log(&self) -> Option<LogNames> {
        LogNames::of(&self.run.manifest)
    }
}
