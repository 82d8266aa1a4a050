//! Results of another tool's log, summed sample by sample: neither its items nor its rows are kept in memory.
use crate::document::Counts;
use crate::store::{RunRecord, Store};
use crate::{Document, Manifest, Outcome, REPORT_FORMAT, RunError, Sample};
use earnest_tasks::suite::log::{LogSuite, Tally};
use earnest_tasks::suite::{Scoring, SideBySide};

/// Sums over the samples of a log.
pub struct LogSums {
    counts: Counts,
    tally: Tally,
    /// Repeats of a document.
    repeats: usize,
}

impl LogSums {
    /// Sums of no samples.
    pub fn new(repeats: u32) -> Self {
        LogSums { counts: Counts::new(0), tally: Tally::default(), repeats: repeats.max(1) as usize }
    }

    /// Adds the sample at an index in the plan.
    pub fn add(&mut self, index: usize, sample: &Sample) {
        self.counts.totals.add(sample);
        self.counts.failure(&sample.item, sample.failure.as_ref());
        if let Some(score) = &sample.score {
            self.tally.add(index / self.repeats, &sample.task, &sample.cluster, score);
        }
    }

    fn add_outcome(&mut self, outcome: &Outcome) {
        self.counts.totals.add_outcome(outcome);
        self.counts.failure(&outcome.item, outcome.failure.as_ref());
        if let Some(score) = &outcome.score {
            self.tally.add(outcome.index / self.repeats, &outcome.task, &outcome.cluster, score);
        }
    }

    /// Returns the document of the run.
    pub fn document(mut self, folder: String, manifest: Manifest, planned: usize, suite: &LogSuite) -> Document {
        self.counts.totals.planned = planned;
        let readings = self.tally.readings(&suite.chosen());
        let mut summary = suite.summary(&self.tally);
        summary.notes.extend(readings.iter().flat_map(SideBySide::remarks));
        Document {
            format: REPORT_FORMAT,
            folder,
            totals: self.counts.totals,
            failures: self.counts.failures.into_values().collect(),
            summary,
            grids: Vec::new(),
            readings,
            reported: self.tally.reported(&manifest.settings.suite_options),
            manifest,
        }
    }
}

impl Document {
    /// Summarises another tool's log from its rows.
    pub(super) fn of_log(store: &Store, run: &RunRecord, suite: &LogSuite) -> Result<Self, RunError> {
        let mut sums = LogSums::new(run.manifest.settings.samples);
        store.outcomes(run, |outcome| -> Result<(), RunError> {
            sums.add_outcome(&outcome);
            Ok(())
        })?;
        let planned = run.planned;
        Ok(sums.document(store.path().display().to_string(), run.manifest.clone(), planned, suite))
    }
}
