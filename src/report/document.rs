//! A run's results as one JSON document: the output of `--json`.
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::run::{FailureKind, Manifest, Plan, Sample, Totals};
use crate::suite::{Grid, Item, Scored, Suite, Summary};

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
        let mut totals = Totals { planned: plan.len(suite), ..Totals::default() };
        let mut failures: BTreeMap<FailureKind, FailureGroup> = BTreeMap::new();
        let mut scored = Vec::with_capacity(samples.len());
        for sample in samples {
            totals.add(sample);
            if let Some(failure) = &sample.failure {
                let first = || FailureGroup {
                    kind: failure.kind,
                    count: 0,
                    item: sample.item.clone(),
                    message: failure.message.clone(),
                };
                failures.entry(failure.kind).or_insert_with(first).count += 1;
            }
            if let (Some(item), Some(verdict), Some(completion)) =
                (items.get(&sample.item), &sample.verdict, &sample.completion)
            {
                scored.push(Scored { item, verdict, tokens: completion.ids.len(), truncated: sample.truncated() });
            }
        }
        let summary = suite.summarise(&scored);
        Document {
            format: REPORT_FORMAT,
            folder: folder.to_owned(),
            manifest,
            totals,
            failures: failures.into_values().collect(),
            grids: suite.grids(&summary),
            summary,
        }
    }
}
