//! Aggregates over a run's samples.
use std::collections::HashMap;

use super::database::{RunRecord, Store, key};
use super::row;
use crate::{RunError, Totals};
use earnest_stats::{Estimate, Z95, wilson};

/// Aggregate of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Aggregate {
    /// Counts and tokens.
    pub totals: Totals,
    /// Number of samples with a score.
    pub scored: usize,
    /// Number of samples scored correct.
    pub correct: usize,
    /// Aggregates by task, in order of first appearance.
    pub tasks: Vec<TaskAggregate>,
    /// Failure classes of wrong answers with their counts, most frequent first.
    pub reasons: Vec<(String, usize)>,
    /// Cluster-robust standard error of the accuracy; none with fewer than two clusters.
    pub standard_error: Option<f64>,
    /// Number of clusters of the scored samples.
    pub clusters: usize,
    /// The first edited row.
    edited: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskAggregate {
    pub task: String,
    pub recorded: usize,
    pub scored: usize,
    pub correct: usize,
    pub truncated: usize,
}

impl Aggregate {
    /// Returns the accuracy over scored samples with Wilson's 95 % interval at the effective sample size of the cluster-robust
    /// standard error (see [`earnest_stats::clustered_wilson`]).
    pub fn accuracy(&self) -> Option<Estimate> {
        let scored = self.scored as f64;
        let p = self.correct as f64 / scored;
        let spread = p * (1.0 - p);
        let effective = match self.standard_error {
            _ if self.clusters == self.scored => scored,
            Some(error) if spread > 1e-12 => (spread / (error * error)).clamp(1.0, scored),
            _ => self.clusters as f64,
        };
        wilson(p * effective, effective, Z95)
    }
}

impl Store {
    /// Aggregates a run's rows in one pass, without their texts.
    ///
    /// # Errors
    /// [`RunError::Edited`] names the first row that was edited.
    pub fn aggregate(&self, run: &RunRecord) -> Result<Aggregate, RunError> {
        let mut aggregate = self.aggregate_rows(run).map_err(|source| self.error("read", source))?;
        match aggregate.edited.take() {
            Some(row) => Err(self.edited(run, row)),
            None => Ok(aggregate),
        }
    }

    fn aggregate_rows(&self, run: &RunRecord) -> rusqlite::Result<Aggregate> {
        let mut aggregate = Aggregate::default();
        let mut tasks: HashMap<String, usize> = HashMap::new();
        let mut clusters: HashMap<String, (usize, usize)> = HashMap::new();
        let mut reasons: HashMap<String, usize> = HashMap::new();
        let mut statement = self.connection().prepare_cached(&format!(
            "SELECT {}, seal FROM samples WHERE key >= ? AND key < ? ORDER BY key",
            row::NARROW
        ))?;
        let mut rows = statement.query([key(run.id, 0), key(run.id + 1, 0)])?;
        let totals = &mut aggregate.totals;
        while let Some(row) = rows.next()? {
            let seal: Option<i64> = row.get(row::NARROW_COUNT)?;
            if seal != Some(row::seal_from(row, 0, row::NARROW_COUNT)?) {
                aggregate.edited = Some(format!("sample {} of {}", row.get::<_, i64>(3)?, row.get::<_, String>(2)?));
                return Ok(aggregate);
            }
            let task = row.get_ref(4)?.as_str()?;
            let index = match tasks.get(task) {
                Some(&index) => index,
                None => {
                    aggregate.tasks.push(TaskAggregate { task: task.to_owned(), ..TaskAggregate::default() });
                    tasks.insert(task.to_owned(), aggregate.tasks.len() - 1);
                    aggregate.tasks.len() - 1
                }
            };
            let of_task = &mut aggregate.tasks[index];
            let [prompt, budget, max_tokens]: [i64; 3] = [row.get(6)?, row.get(7)?, row.get(8)?];
            totals.recorded += 1;
            of_task.recorded += 1;
            totals.prompt_tokens = totals.prompt_tokens.saturating_add(prompt.unsigned_abs());
            match row.get_ref(9)?.as_str_or_null()? {
                None => totals.failed += usize::from(row.get_ref(17)?.as_str_or_null()?.is_some()),
                Some(finish) => {
                    let cut = finish == "length";
                    totals.truncated += usize::from(cut);
                    of_task.truncated += usize::from(cut);
                    totals.clipped += usize::from(max_tokens < budget);
                    totals.completion_tokens =
                        totals.completion_tokens.saturating_add(row.get::<_, i64>(10)?.unsigned_abs());
                    totals.cached_tokens = totals.cached_tokens.saturating_add(row.get::<_, i64>(11)?.unsigned_abs());
                }
            }
            let Some(correct) = row.get::<_, Option<bool>>(15)? else { continue };
            aggregate.scored += 1;
            aggregate.correct += usize::from(correct);
            of_task.scored += 1;
            of_task.correct += usize::from(correct);
            let cluster = row.get_ref(5)?.as_str()?;
            let (right, all) = match clusters.get_mut(cluster) {
                Some(counts) => counts,
                None => clusters.entry(cluster.to_owned()).or_default(),
            };
            *right += usize::from(correct);
            *all += 1;
            if let Some(reason) = row.get_ref(16)?.as_str_or_null()? {
                match reasons.get_mut(reason) {
                    Some(count) => *count += 1,
                    None => drop(reasons.insert(reason.to_owned(), 1)),
                }
            }
        }
        totals.planned = run.planned;
        aggregate.reasons = reasons.into_iter().collect();
        aggregate.reasons.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        aggregate.clusters = clusters.len();
        aggregate.standard_error = clustered_error(&clusters, aggregate.correct, aggregate.scored);
        Ok(aggregate)
    }
}

/// Returns [`earnest_stats::cluster_robust_se`] of the single values, from the counts of each cluster (right, all).
fn clustered_error(clusters: &HashMap<String, (usize, usize)>, correct: usize, scored: usize) -> Option<f64> {
    let groups = clusters.len() as f64;
    if clusters.len() < 2 {
        return None;
    }
    let mean = correct as f64 / scored as f64;
    // Sorted, because the order of a sum changes its last digits.
    let mut squares: Vec<f64> =
        clusters.values().map(|&(right, all)| (right as f64 - mean * all as f64).powi(2)).collect();
    squares.sort_unstable_by(f64::total_cmp);
    Some((groups / (groups - 1.0) * squares.iter().sum::<f64>()).sqrt() / scored as f64)
}
