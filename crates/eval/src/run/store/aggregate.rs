//! Sums over a run's samples, without their texts.
use std::collections::HashMap;

use super::database::{RunRecord, Store, key};
use crate::run::{RunError, Totals};
use earnest_stats::{Estimate, Z95, wilson};

/// Sums over a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Aggregate {
    /// Counts and tokens; `planned` is what the plan has, or the recorded rows where that is unknown.
    pub totals: Totals,
    /// Samples with a score, and those scored correct.
    pub judged: usize,
    pub correct: usize,
    /// The same by task, in the order of first appearance.
    pub tasks: Vec<TaskAggregate>,
    /// Reasons of wrong answers with their counts, most frequent first.
    pub reasons: Vec<(String, usize)>,
    /// The cluster-robust standard error of the accuracy; none with fewer than two clusters.
    pub standard_error: Option<f64>,
    /// Clusters of the scored samples.
    pub clusters: usize,
}

/// Sums over a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskAggregate {
    pub task: String,
    pub recorded: usize,
    pub judged: usize,
    pub correct: usize,
    pub truncated: usize,
}

impl Aggregate {
    /// The accuracy over scored samples with Wilson's 95 % interval for as many independent samples as the cluster-robust error is
    /// worth (see [`earnest_stats::clustered_wilson`]): several samples of a question, or questions of a template, are not
    /// independent.
    pub fn accuracy(&self) -> Option<Estimate> {
        let judged = self.judged as f64;
        let p = self.correct as f64 / judged;
        let spread = p * (1.0 - p);
        let effective = match self.standard_error {
            _ if self.clusters == self.judged => judged,
            Some(error) if spread > 1e-12 => (spread / (error * error)).clamp(1.0, judged),
            _ => self.clusters as f64,
        };
        wilson(p * effective, effective, Z95)
    }
}

impl Store {
    /// Sums over a run's rows, read once; texts are not read.
    pub fn aggregate(&self, run: &RunRecord) -> Result<Aggregate, RunError> {
        self.sum(run).map_err(|source| self.error("read", source))
    }

    fn sum(&self, run: &RunRecord) -> rusqlite::Result<Aggregate> {
        let mut found = Aggregate::default();
        let mut tasks: HashMap<String, usize> = HashMap::new();
        let mut clusters: HashMap<String, (usize, usize)> = HashMap::new();
        let mut reasons: HashMap<String, usize> = HashMap::new();
        let mut statement = self.connection().prepare_cached(
            "SELECT task, cluster, prompt_tokens, budget, max_tokens, finish, completion_tokens, cached_tokens, correct, \
             verdict_failure FROM samples WHERE key >= ? AND key < ?",
        )?;
        let mut rows = statement.query([key(run.id, 0), key(run.id + 1, 0)])?;
        let totals = &mut found.totals;
        while let Some(row) = rows.next()? {
            let task = row.get_ref(0)?.as_str()?;
            let place = match tasks.get(task) {
                Some(&place) => place,
                None => {
                    found.tasks.push(TaskAggregate { task: task.to_owned(), ..TaskAggregate::default() });
                    tasks.insert(task.to_owned(), found.tasks.len() - 1);
                    found.tasks.len() - 1
                }
            };
            let of_task = &mut found.tasks[place];
            let [prompt, budget, max_tokens]: [i64; 3] = [row.get(2)?, row.get(3)?, row.get(4)?];
            totals.recorded += 1;
            of_task.recorded += 1;
            totals.prompt_tokens += prompt.unsigned_abs();
            match row.get_ref(5)?.as_str_or_null()? {
                None => totals.failed += 1,
                Some(finish) => {
                    let cut = finish == "length";
                    totals.truncated += usize::from(cut);
                    of_task.truncated += usize::from(cut);
                    totals.clipped += usize::from(max_tokens < budget);
                    totals.completion_tokens += row.get::<_, i64>(6)?.unsigned_abs();
                    totals.cached_tokens += row.get::<_, i64>(7)?.unsigned_abs();
                }
            }
            let Some(correct) = row.get::<_, Option<bool>>(8)? else { continue };
            found.judged += 1;
            found.correct += usize::from(correct);
            of_task.judged += 1;
            of_task.correct += usize::from(correct);
            let cluster = row.get_ref(1)?.as_str()?;
            let (right, all) = match clusters.get_mut(cluster) {
                Some(counts) => counts,
                None => clusters.entry(cluster.to_owned()).or_default(),
            };
            *right += usize::from(correct);
            *all += 1;
            if let Some(reason) = row.get_ref(9)?.as_str_or_null()? {
                match reasons.get_mut(reason) {
                    Some(count) => *count += 1,
                    None => drop(reasons.insert(reason.to_owned(), 1)),
                }
            }
        }
        totals.planned = run.planned.unwrap_or(totals.recorded);
        found.reasons = reasons.into_iter().collect();
        found.reasons.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        found.clusters = clusters.len();
        found.standard_error = clustered_error(&clusters, found.correct, found.judged);
        Ok(found)
    }
}

/// The same as [`earnest_stats::cluster_robust_se`] of the single values, from the sums of each cluster.
fn clustered_error(clusters: &HashMap<String, (usize, usize)>, correct: usize, judged: usize) -> Option<f64> {
    let groups = clusters.len() as f64;
    if clusters.len() < 2 {
        return None;
    }
    let mean = correct as f64 / judged as f64;
    // Sorted, because a hash map's own order would move the last digits from run to run.
    let mut squares: Vec<f64> =
        clusters.values().map(|&(right, all)| (right as f64 - mean * all as f64).powi(2)).collect();
    squares.sort_unstable_by(f64::total_cmp);
    Some((groups / (groups - 1.0) * squares.iter().sum::<f64>()).sqrt() / judged as f64)
}
