//! Cluster-robust standard errors, which do not trust the model's random effects.
use std::collections::{BTreeMap, HashMap};

use super::MixedError;
use super::data::{Family, Grouping, MixedData};
use super::design::{DesignColumn, INTERCEPT, Piece};
use super::laplace::{Criterion, Laplace};
use super::layout::Layout;
use super::quadrature::Quadrature;
use super::result::{Errors, Method, MixedFit, RobustBasis};
use crate::clustered::worth_in_clusters;
use crate::matrix::{Matrix, dot};

/// Part by which a robust error may exceed the model's before it is what counts.
pub const ERROR_EXCESS: f64 = 0.2;

/// Clusters below which robust errors are too noisy to judge a model by.
const FEW: usize = 20;

/// The sandwich estimate of the covariance of (theta, the caller's coefficients).
struct Sandwich {
    joint: Vec<Vec<f64>>,
    clusters: usize,
    degrees_of_freedom: f64,
}

/// Standard errors of the fixed effects by the sandwich estimator (Huber 1967; Liang and Zeger 1986): scores are summed within clusters, with
/// the correction `G / (G - 1)`; theta held fixed where the fit is by Laplace's approximation. `cluster` is the cluster of every different
/// row, [`MixedData::clusters`].
pub fn robust_errors(data: &MixedData, fit: &MixedFit, cluster: &[u32]) -> Result<Vec<f64>, MixedError> {
    let count = fit.at.len() - data.columns();
    let found = sandwich(data, fit, cluster)?;
    Ok((count..fit.at.len()).map(|index| found.joint[index][index].max(0.0).sqrt()).collect())
}

fn sandwich(data: &MixedData, fit: &MixedFit, cluster: &[u32]) -> Result<Sandwich, MixedError> {
    let missing = |reason: &str| MixedError::NotEstimated { reason: reason.to_owned() };
    if data.family != Family::Binomial || !fit.is_usable() || fit.estimates().is_none() {
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
    let mut index_of: HashMap<u32, usize> = HashMap::new();
    let mut scores: Vec<Vec<f64>> = Vec::new();
    for (cell, slope) in laplace.slope.iter().enumerate() {
        let index = *index_of.entry(cluster[cell]).or_insert(scores.len());
        if index == scores.len() {
            scores.push(vec![0.0; columns]);
        }
        // The criterion is -2 log L.
        scores[index].iter_mut().zip(data.fixed.cell(cell)).for_each(|(score, x)| *score -= 0.5 * slope * x);
    }
    let clusters = scores.len();
    if clusters < 2 {
        return Err(missing("robust errors need at least two clusters"));
    }
    let mut middle = Matrix::zeros(columns);
    let scale = clusters as f64 / (clusters as f64 - 1.0);
    scores.iter().for_each(|score| middle.add_outer(scale, score));
    let lambda = laplace.theta.factors(&fit.at[..laplace.theta.len()]);
    let bread =
        laplace.information(&lambda).cholesky().ok_or_else(|| missing("the information is singular"))?.inverse();
    let map = data.fixed.to_caller.product(&bread);
    let covariance = map.product(&middle).product(&map.transpose());
    let count = fit.at.len() - columns;
    let mut joint = vec![vec![0.0; fit.at.len()]; fit.at.len()];
    for row in 0..columns {
        (0..columns).for_each(|column| joint[count + row][count + column] = covariance.get(row, column));
    }
    Ok(Sandwich { joint, clusters, degrees_of_freedom: degrees_of_freedom(data, cluster) })
}

/// Degrees of freedom of the mean outcome over clusters; their number less one if they have one size.
fn degrees_of_freedom(data: &MixedData, cluster: &[u32]) -> f64 {
    let mut rows: HashMap<u32, f64> = HashMap::new();
    cluster.iter().zip(&data.weight).for_each(|(cluster, weight)| *rows.entry(*cluster).or_default() += weight);
    worth_in_clusters(rows.into_values().collect()) - 1.0
}

/// The sandwich of a fit by quadrature: the variances are parameters like the others, and the likelihood of a group is known.
fn by_group(data: &MixedData, fit: &MixedFit, cluster: &[u32], layout: &Layout) -> Option<Sandwich> {
    let size = fit.at.len();
    let back = data.fixed.from_caller.transpose();
    let mut scores: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (cell, score) in Quadrature::new(data, layout, fit.points).scores(&fit.at)? {
        let caller = back.times(&score[1..]);
        let sum = scores.entry(cluster[cell]).or_insert_with(|| vec![0.0; size]);
        sum.iter_mut().zip(score[..1].iter().chain(&caller)).for_each(|(sum, score)| *sum += score);
    }
    let clusters = scores.len();
    if clusters < 2 {
        return None;
    }
    let mut middle = Matrix::zeros(size);
    scores.values().for_each(|score| middle.add_outer(clusters as f64 / (clusters as f64 - 1.0), score));
    let turned: Vec<Vec<f64>> = fit.joint.iter().map(|row| middle.times(row)).collect();
    let joint = fit.joint.iter().map(|row| turned.iter().map(|column| dot(row, column)).collect()).collect();
    Some(Sandwich { joint, clusters, degrees_of_freedom: degrees_of_freedom(data, cluster) })
}

impl MixedData {
    /// The cluster of every different row: the grouping factor with the fewest groups of at least twenty. None if there is none, or if its groups
    /// are within those of a factor with fewer groups: rows of different clusters are not independent then.
    pub fn clusters(&self) -> Option<(&str, &[u32])> {
        let index = self.groupings.iter().rposition(|grouping| grouping.levels.len() >= FEW)?;
        let grouping = &self.groupings[index];
        let is_within = |wider: &Grouping| {
            let mut of: HashMap<u32, u32> = HashMap::new();
            let mut cells = grouping.of_cell.iter().zip(&wider.of_cell);
            cells.all(|(group, wider)| of.entry(*group).or_insert(*wider) == wider)
        };
        (!self.groupings[index + 1..].iter().any(is_within)).then_some((&grouping.name, &grouping.of_cell))
    }
}

/// Clusters of robust errors, by cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clusters<'c> {
    pub(crate) name: &'c str,
    pub(crate) of_cell: &'c [u32],
}

/// The fit with robust errors, p values and covariances where the model's standard error of some fixed effect is too small: where the robust
/// one exceeds it by more than [`ERROR_EXCESS`]. As it is without finite estimates, or without [clusters](MixedData::clusters).
pub fn with_robust_errors(data: &MixedData, fit: MixedFit) -> MixedFit {
    match data.clusters() {
        Some((name, of_cell)) => with_errors_over(data, fit, Clusters { name, of_cell }, None),
        None => fit,
    }
}

/// As [`with_robust_errors`] over the caller's clusters; with a reason, whatever the model's errors are. By chance the scatter of few clusters can be
/// small, so of every number the larger error counts.
pub(crate) fn with_errors_over(
    data: &MixedData,
    mut fit: MixedFit,
    clusters: Clusters<'_>,
    reason: Option<&str>,
) -> MixedFit {
    let Ok(found) = sandwich(data, &fit, clusters.of_cell) else { return fit };
    let count = fit.at.len() - data.columns();
    let name = clusters.name;
    let compared = compared(data, &fit, &found.joint);
    // Of two levels that are copies the difference has no scatter; the model's error is the larger one there.
    let is_known = |one: &Compared| one.scatter.is_finite();
    let largest = |effects_only: bool| {
        let among = compared.iter().filter(|one| !effects_only || one.is_effect);
        among.max_by(|left, right| left.excess().total_cmp(&right.excess()))
    };
    let Some(most) = largest(false).filter(|_| compared.iter().all(is_known)) else { return fit };
    let exceeds = |one: &Compared| one.excess() > 1.0 + ERROR_EXCESS;
    if reason.is_none() && !exceeds(most) {
        return fit;
    }
    // What is compared interests more than the level of all.
    let named = largest(true).filter(|one| reason.is_some() || exceeds(one)).unwrap_or(most);
    let Compared { name: effect, model, scatter, .. } = named;
    let numbers =
        format!("{effect} has {model:.4} by the model and {scatter:.4} by the scatter between groups of {name}");
    let reason = match reason {
        Some(reason) => format!("{reason}; {numbers}"),
        None => format!("{numbers}, so something varies that the model holds equal"),
    };
    let Sandwich { joint, clusters, degrees_of_freedom } = found;
    fit.errors = Errors::Robust;
    fit.robust = Some(RobustBasis { group: name.to_owned(), clusters, degrees_of_freedom, reason });
    let robust = joint[count..].iter().map(|row| row[count..].to_vec()).collect();
    let before = std::mem::replace(&mut fit.covariance, robust);
    fit.covariance_model.get_or_insert(before);
    fit.robust_joints.push(joint);
    for index in 0..fit.coefficients.len() {
        let mut alone = vec![0.0; fit.coefficients.len()];
        alone[index] = 1.0;
        let error = fit.variance_of_coefficients(&alone).sqrt();
        let one = &mut fit.coefficients[index];
        let before = one.standard_error.replace(error);
        one.standard_error_model = one.standard_error_model.or(before);
        one.z = one.estimate.map(|estimate| estimate / error);
    }
    with_p(fit)
}

/// Standard errors of a coefficient, or of the difference of two levels of a factor: the fit's, the model's, and by the scatter between clusters.
struct Compared {
    name: String,
    /// False for the intercept.
    is_effect: bool,
    now: f64,
    model: f64,
    scatter: f64,
}

impl Compared {
    fn excess(&self) -> f64 {
        if self.now > 0.0 { self.scatter / self.now } else { 0.0 }
    }
}

/// The coefficients, and all differences between levels of a factor, which are printed as well: their errors can be too small where those against the
/// reference level are not.
fn compared(data: &MixedData, fit: &MixedFit, scatter: &[Vec<f64>]) -> Vec<Compared> {
    let count = fit.at.len() - data.columns();
    let of = |name: String, is_effect: bool, index: usize, against: Option<usize>| {
        let error = |joint: &[Vec<f64>]| {
            let entry = |row: usize, column: usize| joint[count + row][count + column];
            let variance = match against {
                None => entry(index, index),
                Some(other) => entry(index, index) + entry(other, other) - 2.0 * entry(index, other),
            };
            variance.max(0.0).sqrt()
        };
        let model = error(&fit.joint);
        let now = fit.robust_joints.iter().map(|joint| error(joint)).fold(model, f64::max);
        Compared { name, is_effect, now, model, scatter: error(scatter) }
    };
    let mut found = Vec::new();
    for (index, column) in data.columns.iter().enumerate() {
        found.push(of(column.name.clone(), column.name != INTERCEPT, index, None));
        let is_level = |column: &DesignColumn| matches!(column.pieces[..], [Piece::Level { .. }]);
        let others = data.columns[..index].iter().enumerate();
        for (other, against) in
            others.filter(|(_, other)| other.term == column.term && is_level(other) && is_level(column))
        {
            found.push(of(format!("{} - {}", column.name, against.name), true, index, Some(other)));
        }
    }
    found
}

/// The fit with intervals and p values by the t distribution of clusters that are few, whatever its errors are over.
pub(crate) fn with_few_clusters(mut fit: MixedFit, name: &str, clusters: usize, degrees_of_freedom: f64) -> MixedFit {
    let worth = degrees_of_freedom + 1.0;
    let unequal = match worth.round() < clusters as f64 {
        true => format!(" of unequal size, worth {worth:.0} of one size,"),
        false => String::new(),
    };
    let few = format!("{clusters} {name}s{unequal} are too few for the normal distribution");
    match &mut fit.robust {
        Some(basis) => {
            basis.degrees_of_freedom = degrees_of_freedom;
            basis.reason = format!("{}, and {few}", basis.reason);
        }
        None => {
            fit.robust = Some(RobustBasis { group: name.to_owned(), clusters, degrees_of_freedom, reason: few });
        }
    }
    with_p(fit)
}

/// The fit with the p values of its z.
fn with_p(mut fit: MixedFit) -> MixedFit {
    for index in 0..fit.coefficients.len() {
        let p = fit.coefficients[index].z.map(|z| fit.two_sided(z));
        fit.coefficients[index].p = p;
    }
    fit
}
