//! Variance parts of a pilot: two conditions that answered the same questions.
use std::collections::HashMap;

use super::VarianceParts;
use crate::clustered::ClusterError;

/// A question of a pilot with the answers of both conditions: right ones and all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PilotItem {
    pub cluster: u64,
    pub first: (u32, u32),
    pub second: (u32, u32),
}

impl PilotItem {
    fn difference(&self) -> f64 {
        let share = |(right, all): (u32, u32)| f64::from(right) / f64::from(all);
        share(self.second) - share(self.first)
    }
}

/// Variance parts by analysis of variance of the questions' differences: unbiased, whatever the sizes of the clusters, and set to 0 where
/// they come out negative. False if no question was asked twice in both conditions: the part of the samples is then in that of the
/// questions.
///
/// Searle, Casella and McCulloch, Variance Components, 1992, section 3.6.
pub fn pilot_parts(items: &[PilotItem]) -> Result<(VarianceParts, bool), ClusterError> {
    let items: Vec<&PilotItem> = items.iter().filter(|item| item.first.1 > 0 && item.second.1 > 0).collect();
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    let mut clusters: Vec<(f64, f64)> = Vec::new();
    let indices: Vec<usize> = items
        .iter()
        .map(|item| {
            let next = clusters.len();
            let index = *numbers.entry(item.cluster).or_insert(next);
            if index == next {
                clusters.push((0.0, 0.0));
            }
            clusters[index].0 += item.difference();
            clusters[index].1 += 1.0;
            index
        })
        .collect();
    if clusters.len() < 2 {
        return Err(ClusterError::TooFewClusters { clusters: clusters.len() });
    }
    let (count, groups) = (items.len() as f64, clusters.len() as f64);
    let mean = clusters.iter().map(|(sum, _)| sum).sum::<f64>() / count;
    let between = clusters.iter().map(|(sum, size)| size * (sum / size - mean).powi(2)).sum::<f64>() / (groups - 1.0);
    let within: f64 = items
        .iter()
        .zip(&indices)
        .map(|(item, &index)| (item.difference() - clusters[index].0 / clusters[index].1).powi(2))
        .sum();
    let size = (count - clusters.iter().map(|(_, size)| size * size).sum::<f64>() / count) / (groups - 1.0);
    // Clusters of one question: what varies inside is part of what varies between.
    let within = if count > groups { within / (count - groups) } else { 0.0 };
    let template = ((between - within) / size).max(0.0);
    // Of a share of several answers, p (1 - p) without bias.
    let own = |(right, all): (u32, u32)| {
        let (right, all) = (f64::from(right), f64::from(all));
        (all > 1.0).then(|| right / all * (1.0 - right / all) * all / (all - 1.0))
    };
    let (mut sample, mut of_difference, mut repeated) = (0.0, 0.0, 0.0);
    for item in &items {
        if let (Some(first), Some(second)) = (own(item.first), own(item.second)) {
            sample += first + second;
            of_difference += first / f64::from(item.first.1) + second / f64::from(item.second.1);
            repeated += 1.0;
        }
    }
    if repeated == 0.0 {
        return Ok((VarianceParts { template, question: within, sample: 0.0 }, false));
    }
    let question = (within - of_difference / repeated).max(0.0);
    Ok((VarianceParts { template, question, sample: sample / repeated }, true))
}
