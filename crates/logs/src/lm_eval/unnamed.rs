//! Filters of lines that name none, as versions before 0.4.6 write them: a document stands once per filter, in the order of the task's
//! filters. The results beside the lines confirm it.
use std::path::Path;

use super::super::json::parse;
use super::super::records::Records;
use super::index::Index;
use super::line::Line;
use super::results::Aggregate;
use crate::LogError;

/// Filters of a task, as the results have them.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// In the order in which the tool applies them.
    pub names: Vec<String>,
    pub aggregates: Vec<Aggregate>,
}

/// Relative difference from which on two means are not the same.
const SAME: f64 = 1e-9;

/// Begins the errors of such files.
const UNNAMED: &str = "its lines name no filter, as those of versions before 0.4.6";

/// Metrics that are means of the documents' numbers where the task does not say how they are aggregated.
const MEANS: [&str; 7] =
    ["acc", "acc_norm", "acc_mutual_info", "em", "exact_match", "exact_match_mc", "extractive_match"];

/// Sums of the numbers that lines have of one metric.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    total: f64,
    count: usize,
}

impl Filters {
    /// Gives the lines of the index the names of their filters.
    ///
    /// # Errors
    /// Lines whose filter cannot be told: without results, with documents that stand more or less often than once per filter, and where
    /// the results' means are others.
    pub fn name(&self, index: &mut Index, path: &Path, longest: u64) -> Result<(), LogError> {
        let unnamed: Vec<usize> = (0..index.filters.len()).filter(|filter| index.filters[*filter].is_empty()).collect();
        if unnamed.is_empty() || (unnamed.len() == 1 && self.names.len() < 2) {
            return Ok(());
        }
        let refused = |what: String| LogError::unread(path, format!("{UNNAMED}, and {what}"));
        let again = "copy the file again, or log the samples again with lm_eval 0.4.6 or later, which names them";
        if unnamed.len() < index.filters.len() {
            return Err(refused("others do: it was put together of several files".to_owned()).hint(again));
        }
        if self.names.is_empty() {
            let what = "documents stand several times: which filter a line is of, only the results say".to_owned();
            return Err(refused(what).hint(format!(
                "put the results file of the same time (results_TIME.json) into the same folder, or {again}"
            )));
        }
        let names = self.names.join(", ");
        let [fewest, most] = index.lines_per_document();
        if fewest != self.names.len() || most != fewest {
            let times = match (fewest, most) {
                (1, 1) => "once".to_owned(),
                _ if fewest == most => format!("{most} times"),
                _ => format!("{fewest} to {most} times"),
            };
            return Err(refused(format!(
                "documents stand {times}, where the results have {} filters ({names})",
                self.names.len()
            ))
            .hint(again));
        }
        self.confirm(index, path, longest, &refused).map_err(|error| error.hint(again))?;
        index.filters.clone_from(&self.names);
        Ok(())
    }

    /// Compares the means of the lines with those of the results.
    fn confirm(
        &self,
        index: &Index,
        path: &Path,
        longest: u64,
        refused: &dyn Fn(String) -> LogError,
    ) -> Result<(), LogError> {
        let mut metrics: Vec<&str> = Vec::new();
        for one in &self.aggregates {
            if !metrics.contains(&one.metric.as_str()) {
                metrics.push(&one.metric);
            }
        }
        let mut sums = vec![vec![Sum::default(); metrics.len()]; self.names.len()];
        let mut records = Records::open(path, longest)?;
        for document in 0..index.documents {
            for (filter, place) in index.places(document) {
                records.read(place)?;
                let line = parse::<Line<false>>(&records.bytes).map_err(|reason| records.error(place, reason))?;
                for (sum, metric) in sums[filter].iter_mut().zip(&metrics) {
                    let value = line.rest.get(*metric);
                    let truth = value.and_then(|value| value.as_bool()).map(|truth| f64::from(u8::from(truth)));
                    if let Some(number) = value.and_then(|value| value.as_f64()).or(truth) {
                        sum.total += number;
                        sum.count += 1;
                    }
                }
            }
        }
        let mut confirmed = vec![false; self.names.len()];
        for Aggregate { metric, filter, value, mean } in &self.aggregates {
            let Some(filter) = self.names.iter().position(|name| name == filter) else { continue };
            let Some(at) = metrics.iter().position(|name| name == metric) else { continue };
            let sum = sums[filter][at];
            if sum.count < index.documents {
                continue;
            }
            let own = sum.total / sum.count as f64;
            if (own - value).abs() <= SAME * own.abs().max(value.abs()).max(1.0) {
                confirmed[filter] = true;
            } else if mean.unwrap_or(MEANS.contains(&metric.as_str())) {
                return Err(refused(format!(
                    "in the order of the results' filters ({}) the mean {metric} of {} is {own:.4}, where the results have {value:.4}",
                    self.names.join(", "),
                    self.names[filter],
                )));
            }
        }
        match confirmed.iter().position(|confirmed| !confirmed) {
            None => Ok(()),
            Some(filter) => Err(refused(format!(
                "the results have no mean of the filter {} by which the order of the lines could be confirmed",
                self.names[filter]
            ))),
        }
    }
}
