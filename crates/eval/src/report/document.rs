//! A run's results as one JSON document: the output of `--json`.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::run::store::{RunRecord, Store};
use crate::run::{FailureKind, Manifest, Plan, RunError, Sample, SampleFailure, Totals};
use earnest_stats::{Estimate, Z95, wilson};
use earnest_tasks::suite::{Grid, Interval, Item, Readings, Score, Scored, Segments, Suite, Summary, SummaryRow};

/// Version of [`Document`]'s form.
pub const REPORT_FORMAT: u32 = 1;

/// A run with its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`REPORT_FORMAT`] of the writer.
    pub format: u32,
    /// The file that holds the rows.
    pub folder: String,
    pub manifest: Manifest,
    pub totals: Totals,
    /// Failed samples by kind; they are in no accuracy.
    pub failures: Vec<FailureGroup>,
    pub summary: Summary,
    /// The suite's own tables of the summary, where it has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<Grid>,
    /// All rules side by side, where the suite has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readings: Option<Readings>,
}

/// Failed samples of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    pub kind: FailureKind,
    pub count: usize,
    /// The first one: its item and its message.
    pub item: String,
    pub message: String,
}

impl Document {
    /// Joins the rows with the suite's items. Rows whose item the suite does not yield are impossible in a run that was
    /// planned with the same suite; they would not be counted.
    pub fn new(folder: &str, manifest: Manifest, suite: &dyn Suite, plan: Plan, samples: &[Sample]) -> Self {
        let items: HashMap<String, Item> =
            suite.items().take(plan.items(suite)).map(|item| (item.id.clone(), item)).collect();
        let mut counts = Counts::new(plan.len(suite));
        let mut scored = Vec::with_capacity(samples.len());
        for sample in samples {
            counts.totals.add(sample);
            counts.failure(&sample.item, sample.failure.as_ref());
            if let (Some(item), Some(score), Some(completion)) =
                (items.get(&sample.item), &sample.score, &sample.completion)
            {
                scored.push(Scored { item, score, tokens: completion.ids.len(), truncated: sample.truncated() });
            }
        }
        Self::of(folder, manifest, suite, counts, &scored)
    }

    /// The same from the file of results, without reading a text: rows and plan are walked in step. Of an item only what
    /// summaries use is kept, and scores that are alike are kept once.
    pub fn stored(store: &Store, run: &RunRecord, suite: &dyn Suite) -> Result<Self, RunError> {
        let plan = run.manifest.plan();
        let mut counts = Counts::new(plan.len(suite));
        let mut planned = plan.walk(suite).peekable();
        let mut items: Vec<Item> = Vec::new();
        let mut judged: Vec<(usize, Arc<Score>, usize, bool)> = Vec::new();
        store.outcomes(run, |outcome| -> Result<(), RunError> {
            counts.totals.add_outcome(&outcome);
            counts.failure(&outcome.item, outcome.failure.as_ref());
            while planned.next_if(|planned| planned.index < outcome.place).is_some() {}
            let asked = planned.next_if(|planned| planned.index == outcome.place && planned.item.id == outcome.item);
            let (Some(asked), Some(score), Some(_)) = (asked, &outcome.score, outcome.finish) else {
                return Ok(());
            };
            // Samples of an item follow each other.
            if items.last().is_none_or(|last| last.id != outcome.item) {
                items.push(Item { segments: Segments::default(), stop_strings: Vec::new(), ..asked.item });
            }
            judged.push((items.len() - 1, Arc::clone(score), outcome.tokens, outcome.truncated()));
            Ok(())
        })?;
        let scored = judged.iter().filter_map(|(item, score, tokens, truncated)| {
            Some(Scored { item: items.get(*item)?, score, tokens: *tokens, truncated: *truncated })
        });
        let scored: Vec<Scored<'_>> = scored.collect();
        let path = store.path().display().to_string();
        Ok(Self::of(&path, run.manifest.clone(), suite, counts, &scored))
    }

    /// Counts and accuracies alone, of a run whose suite cannot be had, and why it cannot. Intervals of tasks take samples as
    /// independent; that of all allows for clusters.
    pub fn without_suite(store: &Store, run: &RunRecord, reason: &str) -> Result<Self, RunError> {
        let sums = store.aggregate(run)?;
        let mut counts = Counts::new(sums.totals.planned);
        store.outcomes(run, |outcome| -> Result<(), RunError> {
            counts.totals.add_outcome(&outcome);
            counts.failure(&outcome.item, outcome.failure.as_ref());
            Ok(())
        })?;
        let row = |name: &str, n: usize, accuracy: Option<Estimate>| {
            let interval = |found: Estimate| Interval { estimate: found.value, low: found.low, high: found.high };
            let values = vec![("accuracy".to_owned(), accuracy.map_or(Interval::UNKNOWN, interval))];
            SummaryRow { name: name.to_owned(), n, values, numbers: Vec::new() }
        };
        let tasks = sums.tasks.iter();
        let mut rows: Vec<SummaryRow> = tasks
            .map(|task| row(&task.task, task.judged, wilson(task.correct as f64, task.judged as f64, Z95)))
            .collect();
        rows.push(row("all", sums.judged, sums.accuracy()));
        let notes = vec![format!(
            "The suite's own tables are not shown: {reason}. A finished run has them stored; this one has counts only. Intervals of \
             single tasks take samples as independent."
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
        })
    }

    fn of(folder: &str, manifest: Manifest, suite: &dyn Suite, counts: Counts, scored: &[Scored<'_>]) -> Self {
        let mut summary = suite.summarise(scored);
        let readings = match suite.primary()[..] {
            [] => None,
            ref primary => Readings::of(primary, scored.iter().map(|scored| scored.score)),
        };
        summary.notes.extend(readings.iter().flat_map(Readings::remarks));
        Document {
            format: REPORT_FORMAT,
            folder: folder.to_owned(),
            manifest,
            totals: counts.totals,
            failures: counts.failures.into_values().collect(),
            grids: suite.grids(&summary),
            summary,
            readings,
        }
    }
}

/// What is counted over all rows.
struct Counts {
    totals: Totals,
    failures: BTreeMap<FailureKind, FailureGroup>,
}

impl Counts {
    fn new(planned: usize) -> Self {
        Counts { totals: Totals { planned, ..Totals::default() }, failures: BTreeMap::new() }
    }

    fn failure(&mut self, item: &str, failure: Option<&SampleFailure>) {
        let Some(failure) = failure else { return };
        let first =
            || FailureGroup { kind: failure.kind, count: 0, item: item.to_owned(), message: failure.message.clone() };
        self.failures.entry(failure.kind).or_insert_with(first).count += 1;
    }
}
