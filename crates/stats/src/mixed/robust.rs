//! Cluster-robust standard errors, which do not trust the model's random effects.
use std::collections::HashMap;

use super::MixedError;
use super::data::{Family, MixedData};
use super::diagnosis::MixedDiagnosis;
use super::laplace::{Criterion, Laplace};
use super::layout::Layout;
use super::quadrature::Quadrature;
use super::result::{Method, MixedFit};
use crate::matrix::{Matrix, dot};

/// Part by which a robust error may exceed the model's before it is a warning.
pub const ERROR_EXCESS: f64 = 0.2;

/// Clusters below which robust errors are too noisy to judge a model by.
const FEW: usize = 20;

/// Standard errors of the fixed effects by the sandwich estimator: scores are summed within clusters, theta held fixed by Laplace's
/// approximation, with the
/// correction `G / (G - 1)`. `cluster` is the cluster of every different row, [`MixedData::clusters`].
pub fn robust_errors(data: &MixedData, fit: &MixedFit, cluster: &[u32]) -> Result<Vec<f64>, MixedError> {
    let missing = |reason: &str| MixedError::NotEstimated { reason: reason.to_owned() };
    if data.family != Family::Binomial || !fit.is_usable() {
        return Err(missing("robust errors are for binomial models with finite estimates"));
    }
    let layout = Layout::new(data)?;
    if fit.method == Method::Quadrature {
        return by_group(data, fit, cluster, &layout)
            .ok_or_else(|| missing("there is no likelihood at the estimate, or one cluster"));
    }
    let mut laplace = Laplace::new(data, &layout);
    let mut gradient = vec![0.0; fit.at.len()];
    laplace
        .evaluate(&fit.at, Some(&mut gradient))
        .ok_or_else(|| missing("the likelihood is no number at the estimate"))?;
    let columns = data.columns();
    let mut place_of: HashMap<u32, usize> = HashMap::new();
    let mut scores: Vec<Vec<f64>> = Vec::new();
    for (cell, slope) in laplace.slope.iter().enumerate() {
        let place = *place_of.entry(cluster[cell]).or_insert(scores.len());
        if place == scores.len() {
            scores.push(vec![0.0; columns]);
        }
        // The criterion is -2 log L.
        scores[place].iter_mut().zip(data.fixed.cell(cell)).for_each(|(score, x)| *score -= 0.5 * slope * x);
    }
    let count = scores.len();
    if count < 2 {
        return Err(missing("robust errors need at least two clusters"));
    }
    let mut middle = Matrix::zeros(columns);
    let scale = count as f64 / (count as f64 - 1.0);
    scores.iter().for_each(|score| middle.add_outer(scale, score));
    let lambda = laplace.theta.factors(&fit.at[..laplace.theta.len()]);
    let bread =
        laplace.information(&lambda).cholesky().ok_or_else(|| missing("the information is singular"))?.inverse();
    let map = data.fixed.to_caller.product(&bread);
    let covariance = map.product(&middle).product(&map.transpose());
    Ok((0..columns).map(|index| covariance.get(index, index).max(0.0).sqrt()).collect())
}

/// The sandwich of a fit by quadrature: the variances are parameters like the others, and the likelihood of a group is known.
fn by_group(data: &MixedData, fit: &MixedFit, cluster: &[u32], layout: &Layout) -> Option<Vec<f64>> {
    let size = fit.at.len();
    let back = data.fixed.from_caller.transpose();
    let mut scores: HashMap<u32, Vec<f64>> = HashMap::new();
    for (cell, score) in Quadrature::new(data, layout).scores(&fit.at)? {
        let caller = back.times(&score[1..]);
        let sum = scores.entry(cluster[cell]).or_insert_with(|| vec![0.0; size]);
        sum.iter_mut().zip(score[..1].iter().chain(&caller)).for_each(|(sum, score)| *sum += score);
    }
    let count = scores.len() as f64;
    let mut keys: Vec<&u32> = scores.keys().collect();
    keys.sort_unstable();
    let mut middle = Matrix::zeros(size);
    keys.iter().for_each(|key| middle.add_outer(count / (count - 1.0), &scores[key]));
    let variance = |index: usize| {
        let row = &fit.joint[index];
        dot(row, &middle.times(row))
    };
    (count > 1.0).then(|| (1..size).map(|index| variance(index).max(0.0).sqrt()).collect())
}

impl MixedData {
    /// The cluster of every different row: the grouping factor with the fewest groups of at least twenty, whose groups hold
    /// whole groups of others where they are nested. None if there is none.
    pub fn clusters(&self) -> Option<(&str, &[u32])> {
        let grouping = self.groupings.iter().rfind(|grouping| grouping.levels.len() >= FEW)?;
        Some((&grouping.name, &grouping.of_cell))
    }
}

/// Warnings for fixed effects whose robust error exceeds the model's by more than [`ERROR_EXCESS`].
pub fn small_errors(data: &MixedData, fit: &MixedFit) -> Vec<MixedDiagnosis> {
    let Some((name, cluster)) = data.clusters() else { return Vec::new() };
    let Ok(robust) = robust_errors(data, fit, cluster) else { return Vec::new() };
    let compare = |(coefficient, robust): (&super::result::MixedCoefficient, f64)| {
        let wald = coefficient.standard_error?;
        let method = format!("the sandwich over {name}");
        (robust > (1.0 + ERROR_EXCESS) * wald).then(|| MixedDiagnosis::SmallError {
            name: coefficient.name.clone(),
            wald,
            robust,
            method,
        })
    };
    fit.coefficients.iter().zip(robust).filter_map(compare).collect()
}
