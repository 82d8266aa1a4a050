//! Rows, wherever they are stored.
use super::ReportError;
use crate::run::Sample;
use crate::run::store::{Filter, RunRecord, Store};

/// A run's rows in the plan's order. They may be walked several times (columns are settled before the first is written),
/// so that an export needs no memory for them.
pub trait Rows {
    /// Shows every row; the first error ends the walk.
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError>;
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

/// A run in the store.
pub struct StoredRows<'a> {
    pub store: &'a Store,
    pub run: &'a RunRecord,
}

impl Rows for StoredRows<'_> {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.store.samples(self.run, Filter::default()).try_for_each(|sample| row(&sample?))
    }
}
