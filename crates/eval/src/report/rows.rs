//! Rows, wherever they are stored.
use super::ReportError;
use crate::run::Sample;
use crate::run::store::{Filter, RunRecord, Store, StoredQuestion};

/// A sample with what it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub sample: Sample,
    /// None of runs that stored no questions.
    pub asked: Option<StoredQuestion>,
}

impl Row {
    /// The question, without examples and chat template.
    pub fn question(&self) -> Option<&str> {
        self.asked.as_ref().map(|asked| asked.item.segments.question.as_str())
    }

    /// The prompt as asked; none where it was made elsewhere.
    pub fn prompt(&self) -> Option<&str> {
        self.asked.as_ref()?.prompt.as_deref()
    }
}

impl From<&Sample> for Row {
    /// A row of which nothing else is known.
    fn from(sample: &Sample) -> Self {
        Row { sample: sample.clone(), asked: None }
    }
}

/// A run's rows in the plan's order. They may be walked several times (columns are settled before the first is written),
/// so that an export needs no memory for them.
pub trait Rows {
    /// Shows every row; the first error ends the walk.
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError>;

    /// Shows every row with what it was asked, where that is known.
    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.walk(&mut |sample| row(&sample.into()))
    }
}

impl Rows for [Sample] {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.iter().try_for_each(row)
    }
}

impl Rows for Vec<Sample> {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.as_slice().walk(row)
    }
}

/// Rows without questions and prompts.
pub struct WithoutTexts<'a>(pub &'a dyn Rows);

impl Rows for WithoutTexts<'_> {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.0.walk(row)
    }
}

/// A run in the store.
pub struct StoredRows<'a> {
    pub store: &'a Store,
    pub run: &'a RunRecord,
}

impl Rows for StoredRows<'_> {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.store.samples(self.run, Filter::default()).try_for_each(|sample| row(&sample?))
    }

    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), ReportError>) -> Result<(), ReportError> {
        let mut questions = self.store.questions(self.run);
        self.store.samples(self.run, Filter::default()).placed().try_for_each(|sample| {
            let (place, sample) = sample?;
            let asked = questions.of_sample(place, &sample)?;
            row(&Row { sample, asked })
        })
    }
}
