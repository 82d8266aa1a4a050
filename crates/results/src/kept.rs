//! Stored summaries of finished runs, which can be shown without the suite.
use serde::{Deserialize, Serialize};

use crate::store::{RunRecord, Store};
use crate::{Document, FailureGroup, REPORT_FORMAT, RunError, Status, Totals};
use earnest_tasks::suite::log::Reported;
use earnest_tasks::suite::{Grid, Interval, SideBySide, Summary};

/// A [`Document`] without the manifest.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    totals: Totals,
    failures: Vec<FailureGroup>,
    summary: Summary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grids: Vec<Grid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    readings: Option<SideBySide>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reported: Vec<Reported>,
    /// NaN and infinities, which JSON lacks, by index among all numbers; their place holds 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unbounded: Vec<(usize, String)>,
}

impl Document {
    /// Reads the stored summary of a run; none for unfinished runs.
    pub fn kept(store: &Store, run: &RunRecord) -> Result<Option<Self>, RunError> {
        if run.manifest.status != Status::Finished {
            return Ok(None);
        }
        let Some(json) = store.summary(run)? else { return Ok(None) };
        let unreadable = |reason: String| RunError::Unreadable {
            part: "the summary",
            path: store.path().to_owned(),
            run: run.manifest.run.clone(),
            reason,
        };
        let mut kept: Kept = serde_json::from_str(&json).map_err(|error| unreadable(error.to_string()))?;
        let part = || format!("the summary of {} in {}", run.manifest.run, store.path().display());
        RunError::check_format(part, kept.format, REPORT_FORMAT)?;
        let mut numbers = numbers(&mut kept.summary, &mut kept.grids);
        for (index, value) in &kept.unbounded {
            match (numbers.get_mut(*index), value.parse()) {
                (Some(number), Ok(value)) => **number = value,
                _ => return Err(unreadable(format!("its number {index} cannot be {value}"))),
            }
        }
        let Kept { totals, failures, summary, grids, readings, reported, .. } = kept;
        let (folder, manifest) = (store.path().display().to_string(), run.manifest.clone());
        Ok(Some(Document {
            format: REPORT_FORMAT,
            folder,
            manifest,
            totals,
            failures,
            summary,
            grids,
            readings,
            reported,
        }))
    }

    /// Stores the summary with the run, if it is finished.
    pub fn keep(&self, store: &Store, run: &RunRecord) -> Result<(), RunError> {
        store.keep_summary(run, &self.summary_json())
    }

    /// The summary as it is stored with a run.
    pub fn summary_json(&self) -> String {
        let Document { totals, failures, mut summary, mut grids, readings, reported, .. } = self.clone();
        let mut unbounded = Vec::new();
        for (index, number) in numbers(&mut summary, &mut grids).into_iter().enumerate() {
            if !number.is_finite() {
                unbounded.push((index, number.to_string()));
                *number = 0.0;
            }
        }
        let kept = Kept { format: REPORT_FORMAT, totals, failures, summary, grids, readings, reported, unbounded };
        serde_json::to_string(&kept).expect("results have string keys only, so they serialise")
    }
}

/// Returns every number of a summary, in a fixed order.
fn numbers<'a>(summary: &'a mut Summary, grids: &'a mut [Grid]) -> Vec<&'a mut f64> {
    let interval = |value: &'a mut Interval| [&mut value.estimate, &mut value.low, &mut value.high];
    let mut numbers = Vec::new();
    for row in &mut summary.rows {
        numbers.extend(row.values.iter_mut().flat_map(|(_, value)| interval(value)));
        numbers.extend(row.numbers.iter_mut().map(|(_, number)| number));
    }
    for (x, _, value) in summary.series.iter_mut().flat_map(|series| &mut series.points) {
        numbers.push(x);
        numbers.extend(interval(value));
    }
    let rows = grids.iter_mut().flat_map(|grid| &mut grid.groups).flat_map(|group| &mut group.rows);
    for cell in rows.flat_map(|row| &mut row.cells).flatten() {
        numbers.extend(interval(&mut cell.value));
    }
    numbers
}
