//! The default mixed model of runs: its choice, its fit, and the errors that are to be printed.
use std::collections::HashMap;

use super::ladder::{ChosenModel, Step, fit_stepping_down};
use super::maximal::{maximal_formula, same_groups};
use crate::clustered::worth_in_clusters;
use crate::mixed::{
    Clusters, Family, Formula, Frame, INTERCEPT, Method, MixedData, MixedDiagnosis, MixedError, MixedFit, Terms,
    constant_response, refused, with_errors_over, with_few_clusters, without_estimates,
};

/// Clusters below which the normal distribution is too narrow, and below which no error can be trusted.
const FEW: f64 = 20.0;
const FEWEST: f64 = 10.0;

/// Ratio of an interval's ends from which an odds ratio says nothing.
const VAST: f64 = 1e4;

/// Confidence of that interval.
const LEVEL: f64 = 0.95;

/// The default mixed model: the maximal one that a design supports, stepped down while its fit is singular or refused.
#[derive(Debug, Clone)]
pub struct DefaultModel {
    pub formula: Formula,
    pub data: MixedData,
    /// Without numbers where it is refused; with robust errors where the model's are too small.
    pub fit: MixedFit,
    /// Sentences about the design and every step down.
    pub choice: Vec<String>,
    /// Reasons for the steps down.
    pub left_out: Vec<String>,
}

/// Chooses and fits the default model of outcomes 0 and 1. `groups` are the candidate grouping columns, the widest first.
///
/// The standard errors are robust, over the widest groups, where the model leaves out variation that the data have (questions that all runs
/// answer alike have no variance that could be estimated), and where they exceed the model's by more than a fifth. Where the widest groups are worth fewer than
/// twenty of one size, intervals and tests have the t distribution, whichever error is the larger. Where they are worth fewer than ten the fit is
/// refused: the errors of any model are too small then. It is refused too where the interval of an odds ratio says nothing.
///
/// # Errors
/// If nothing repeats, or a column cannot be used; what is wrong with the fit is among its diagnoses.
pub fn default_model(
    frame: &Frame,
    response: &str,
    fixed: &Terms,
    groups: &[&str],
) -> Result<DefaultModel, MixedError> {
    let (maximal, mut choice) = maximal_formula(frame, response, fixed, groups)?;
    let widest = Widest::of(frame, groups);
    if let Some(few) = widest.as_ref().and_then(Widest::few) {
        let data = MixedData::new(&maximal, frame, Family::Binomial)?;
        let fit = without_estimates(&data, Method::Laplace, constant_response(&data).unwrap_or(few));
        return Ok(DefaultModel { formula: maximal, data, fit, choice, left_out: Vec::new() });
    }
    let ChosenModel { formula, data, fit, steps } = fit_stepping_down(&maximal, frame, Family::Binomial)?;
    let fit = match &widest {
        Some(widest) if fit.is_usable() => with_errors(frame, widest, &data, fit, &steps),
        _ => fit,
    };
    let fit = match vast_interval(&data, &fit) {
        Some(vast) => refused(&data, &fit, vec![vast]),
        None => fit,
    };
    let left_out = steps.iter().map(|step| step.why.clone()).collect();
    choice.extend(steps.iter().map(ToString::to_string));
    Ok(DefaultModel { formula, data, fit, choice, left_out })
}

/// The widest groups, which are independent of each other.
struct Widest<'a> {
    /// Of columns with the same groups the last: questions, where each is a cluster of its own.
    name: &'a str,
    clusters: usize,
    /// Number of clusters of one size that tell as much.
    worth: f64,
}

impl<'a> Widest<'a> {
    fn of(frame: &Frame, groups: &[&'a str]) -> Option<Self> {
        let first = frame.as_labels(groups.first()?).ok()?;
        let is_same = |name: &&&str| frame.as_labels(name).is_ok_and(|other| same_groups(&other.codes, &first.codes));
        let name = groups.iter().rev().find(is_same)?;
        let mut rows: HashMap<u32, f64> = HashMap::new();
        for code in &first.codes {
            *rows.entry(*code).or_default() += 1.0;
        }
        let clusters = rows.len();
        Some(Widest { name, clusters, worth: worth_in_clusters(rows.into_values().collect()) })
    }

    /// The refusal of a model whose clusters are worth fewer than ten. To a half, as twenty are, so that one missing answer costs nothing.
    fn few(&self) -> Option<MixedDiagnosis> {
        let Widest { name, clusters, worth } = *self;
        (worth.round() < FEWEST).then(|| MixedDiagnosis::FewClusters { group: name.to_owned(), clusters, worth })
    }
}

fn with_errors(frame: &Frame, widest: &Widest<'_>, data: &MixedData, fit: MixedFit, steps: &[Step]) -> MixedFit {
    let Widest { name, clusters, worth } = *widest;
    let reason = steps.iter().any(|step| step.varies).then_some("answers vary in what the model leaves out");
    let over = |fit| match data.groups_of(frame, name) {
        Some(of_cell) => with_errors_over(data, fit, Clusters { name, of_cell: &of_cell }, reason),
        None => fit,
    };
    if worth.round() >= FEW {
        return over(fit);
    }
    // Answers of a question that exclude each other show in no variance, so a model of one random effect has errors over its own groups. Then over the
    // wider ones, however few: the larger of two errors is noisy, but never too small by it.
    let fit = match data.clusters().filter(|_| data.has_one_effect() && reason.is_none()) {
        Some((name, of_cell)) => with_errors_over(data, fit, Clusters { name, of_cell }, None),
        None => fit,
    };
    with_few_clusters(over(fit), name, clusters, worth - 1.0)
}

/// An odds ratio between two values of a column whose interval says nothing.
fn vast_interval(data: &MixedData, fit: &MixedFit) -> Option<MixedDiagnosis> {
    fit.coefficients.iter().enumerate().filter(|(_, one)| one.name != INTERCEPT).find_map(|(index, one)| {
        let (low, high) = fit.wald_interval(one, LEVEL)?;
        let distance = data.distance_of_two(index)?;
        let width = (high - low) * distance;
        let is_vast = width.is_nan() || width > VAST.ln();
        is_vast.then(|| MixedDiagnosis::VastInterval {
            coefficient: one.name.clone(),
            low: low.exp(),
            high: high.exp(),
        })
    })
}
