//! A run's results as one JSON document: the output of `--json`.
use crate::{FailureKind, Manifest, Origin, Plan, RunError, Sample, SampleFailure, Totals, results_option};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::store::{RunRecord, Store};
use earnest_stats::{Estimate, Z95, wilson};
use earnest_tasks::suite::log::{LogSuite, Reported};
use earnest_tasks::suite::{Grid, Interval, Item, Score, Scored, Segments, SideBySide, Suite, Summary, SummaryRow};

/// Format version of [`Document`].
pub const REPORT_FORMAT: u32 = 1;

/// A run with its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`REPORT_FORMAT`] of the writer.
    pub format: u32,
    /// Path of the results file.
    pub folder: String,
    pub manifest: Manifest,
    pub totals: Totals,
    /// Failed samples by kind; accuracies leave them out.
    pub failures: Vec<FailureGroup>,
    pub summary: Summary,
    /// Tables of the suite, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<Grid>,
    /// All scorers side by side, if the suite has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readings: Option<SideBySide>,
    /// Aggregates that another tool reported, beside those of its samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<Reported>,
}

/// Failed samples of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    pub kind: FailureKind,
    pub count: usize,
    /// Item of the first one.
    pub item: String,
    /// Message of the first one.
    pub message: String,
}

impl Document {
    /// The option that names the results folder in commands; nothing for the folder that they find without being told.
    pub fn results_option(&self) -> String {
        let folder = Path::new(&self.folder).parent().unwrap_or(Path::new(""));
        if folder == Path::new("earnest-results") { String::new() } else { results_option(folder) }
    }

    /// Returns the main value of a row: the first, of a log that of its deciding scorer, which may have no numbers. An adaptive run has
    /// none.
    pub fn main_value<'a>(&self, row: &'a SummaryRow) -> Option<&'a (String, Interval)> {
        let settings = &self.manifest.settings;
        if settings.is_adaptive() {
            return None;
        }
        if settings.origin() != Origin::Log {
            return row.values.first();
        }
        let chosen = crate::suites::chosen(settings);
        row.values.iter().find(|(name, _)| chosen.contains(name))
    }

    /// The row over all tasks; none where the suite has no such row.
    pub fn overall(&self) -> Option<&SummaryRow> {
        let rows = &self.summary.rows;
        rows.last().filter(|row| row.n > 0 && (row.name == "all" || rows.len() == 1))
    }

    /// Summarises rows with the items of the run's suite. Rows of unknown items are counted but not summarised.
    pub fn new(folder: &str, manifest: Manifest, suite: &Suite, plan: Plan, samples: &[Sample]) -> Self {
        let items: HashMap<String, Item> =
            suite.items.iter().take(plan.items(suite)).map(|item| (item.id.clone(), item)).collect();
        let mut counts = Counts::new(plan.len(suite));
        let mut scored = Vec::with_capacity(samples.len());
        for sample in samples {
            counts.totals.add(sample);
            counts.failure(&sample.item, sample.failure.as_ref());
            if let (Some(item), Some(score)) = (items.get(&sample.item), &sample.score) {
                // The score of a table of scores has no completion.
                let tokens = sample.completion.as_ref().map_or(0, |completion| completion.tokens());
                scored.push(Scored { item, score, tokens, truncated: sample.truncated() });
            }
        }
        Self::of(folder, manifest, suite, counts, &scored)
    }

    /// Summarises a stored run without reading texts, in step with the plan. Keeps only the parts of items that summaries use and
    /// shares equal scores.
    pub fn stored(store: &Store, run: &RunRecord, suite: &Suite) -> Result<Self, RunError> {
        let settings = &run.manifest.settings;
        if settings.origin() == Origin::Log
            && let Ok(log) = LogSuite::of(&settings.suite_options)
        {
            return Self::of_log(store, run, &log);
        }
        let plan = run.manifest.plan();
        let mut counts = Counts::new(plan.len(suite));
        let mut planned = plan.walk(suite).peekable();
        let mut items: Vec<Item> = Vec::new();
        let mut rows: Vec<(usize, Arc<Score>, usize, bool)> = Vec::new();
        store.outcomes(run, |outcome| -> Result<(), RunError> {
            counts.totals.add_outcome(&outcome);
            counts.failure(&outcome.item, outcome.failure.as_ref());
            while planned.next_if(|planned| planned.index < outcome.index).is_some() {}
            let asked = planned.next_if(|planned| planned.index == outcome.index && planned.item.id == outcome.item);
            let (Some(asked), Some(score)) = (asked, &outcome.score) else { return Ok(()) };
            // The samples of an item are neighbours.
            if items.last().is_none_or(|last| last.id != outcome.item) {
                items.push(Item { segments: Segments::default(), stop_strings: Vec::new(), ..asked.item });
            }
            rows.push((items.len() - 1, Arc::clone(score), outcome.tokens, outcome.truncated()));
            Ok(())
        })?;
        let scored = rows.iter().filter_map(|(item, score, tokens, truncated)| {
            Some(Scored { item: items.get(*item)?, score, tokens: *tokens, truncated: *truncated })
        });
        let scored: Vec<Scored<'_>> = scored.collect();
        let path = store.path().display().to_string();
        Ok(Self::of(&path, run.manifest.clone(), suite, counts, &scored))
    }

    /// Summarises a run whose suite is unavailable for this reason: counts and accuracies only. Intervals of tasks assume
    /// independent samples; that of all tasks is cluster-robust.
    pub fn without_suite(store: &Store, run: &RunRecord, reason: &str) -> Result<Self, RunError> {
        let sums = store.aggregate(run)?;
        let mut counts = Counts::new(sums.totals.planned);
        store.outcomes(run, |outcome| -> Result<(), RunError> {
            counts.totals.add_outcome(&outcome);
            counts.failure(&outcome.item, outcome.failure.as_ref());
            Ok(())
        })?;
        let row = |name: &str, n: usize, accuracy: Option<Estimate>| {
            let interval =
                |estimate: Estimate| Interval { estimate: estimate.value, low: estimate.low, high: estimate.high };
            let values = vec![("accuracy".to_owned(), accuracy.map_or(Interval::UNKNOWN, interval))];
            SummaryRow { name: name.to_owned(), n, values, numbers: Vec::new() }
        };
        let tasks = sums.tasks.iter();
        let mut rows: Vec<SummaryRow> = tasks
            .map(|task| row(&task.task, task.scored, wilson(task.correct as f64, task.scored as f64, Z95)))
            .collect();
        rows.push(row("all", sums.scored, sums.accuracy()));
        let notes = vec![format!(
            "The suite's own tables are not available: {reason}. Only finished runs have them stored. Intervals of single tasks assume \
             independent samples."
        )];
        Ok(Document {
            format: REPORT_FORMAT,
            folder: store.path().display().to_string(),
            manifest: run.manifest.clone(),
            totals: counts.totals,
            failures: counts.failures.into_values().collect(),
            summary: Summary { rows, series: Vec::new(), notes },
            grids: Vec::new(),
            readings: None,
            reported: Vec::new(),
        })
    }

    fn of(folder: &str, manifest: Manifest, suite: &Suite, counts: Counts, scored: &[Scored<'_>]) -> Self {
        let mut summary = suite.scoring.summarise(scored);
        let readings = match suite.scoring.chosen()[..] {
            [] => None,
            ref chosen => SideBySide::of(chosen, scored.iter().map(|scored| scored.score)),
        };
        summary.notes.extend(readings.iter().flat_map(SideBySide::remarks));
        Document {
            reported: Vec::new(),
            format: REPORT_FORMAT,
            folder: folder.to_owned(),
            manifest,
            totals: counts.totals,
            failures: counts.failures.into_values().collect(),
            grids: suite.scoring.grids(&summary),
            summary,
            readings,
        }
    }
}

/// Counts over all rows.
pub(super) struct Counts {
    pub(super) totals: Totals,
    pub(super) failures: BTreeMap<FailureKind, FailureGroup>,
}

impl Counts {
    pub(super) fn new(planned: usize) -> Self {
        Counts { totals: Totals { planned, ..Totals::default() }, failures: BTreeMap::new() }
    }

    pub(super) fn failure(&mut self, item: &str, failure: Option<&SampleFailure>) {
        let Some(failure) = failure else { return };
        let first =
            || FailureGroup { kind: failure.kind, count: 0, item: item.to_owned(), message: failure.message.clone() };
        self.failures.entry(failure.kind).or_insert_with(first).count += 1;
    }
}
