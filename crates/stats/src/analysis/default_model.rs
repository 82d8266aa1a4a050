//! The default mixed model of runs: its choice, its fit, and the errors that are to be printed.
use std::collections::HashMap;

use super::ladder::{ChosenModel, Step, fit_stepping_down};
use super::maximal::maximal_formula;
use crate::clustered::worth_in_clusters;
use crate::mixed::{
    Clusters, Family, Formula, Frame, Method, MixedData, MixedDiagnosis, MixedError, MixedFit, Terms, with_errors_over,
    with_few_clusters, without_estimates,
};

/// Clusters below which robust errors are too noisy to judge a model by, and below which no error can be trusted.
const FEW: usize = 20;
const FEWEST: f64 = 10.0;

/// Difference of what clusters are worth that is rounding.
const ROUNDING: f64 = 1e-6;

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
/// answer alike have no variance that could be estimated), and where they exceed the model's by more than a fifth. With fewer than twenty of the
/// widest groups intervals and tests have the t distribution, whichever error is the larger. With fewer than ten, or unequal ones that are worth fewer, the fit is
/// refused: the errors of any model are too small then.
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
    if let Some(few) = groups.first().and_then(|group| few_clusters(frame, group)) {
        let data = MixedData::new(&maximal, frame, Family::Binomial)?;
        let fit = without_estimates(&data, Method::Laplace, few);
        return Ok(DefaultModel { formula: maximal, data, fit, choice, left_out: Vec::new() });
    }
    let ChosenModel { formula, data, fit, steps } = fit_stepping_down(&maximal, frame, Family::Binomial)?;
    let fit = with_errors(frame, groups, &data, fit, &steps);
    let left_out = steps.iter().map(|step| step.why.clone()).collect();
    choice.extend(steps.iter().map(ToString::to_string));
    Ok(DefaultModel { formula, data, fit, choice, left_out })
}

fn with_errors(frame: &Frame, groups: &[&str], data: &MixedData, fit: MixedFit, steps: &[Step]) -> MixedFit {
    let varies = steps.iter().any(|step| step.varies);
    let reason = varies.then_some("answers vary in what the model leaves out");
    let widest = groups.iter().find_map(|name| data.groups_of(frame, name).map(|found| (*name, found)));
    let Some((name, (of_cell, count))) = widest.filter(|_| fit.is_usable()) else { return fit };
    let clusters = Clusters { name, of_cell: &of_cell };
    if count >= FEW {
        return with_errors_over(data, fit, clusters, reason);
    }
    // Answers of a question that exclude each other show in no variance, so a model of one random effect has errors over its own groups. Then over the
    // wider ones, however few: the larger of two errors is noisy, but never too small by it.
    let fit = match data.clusters().filter(|_| data.has_one_effect() && !varies) {
        Some((name, of_cell)) => with_errors_over(data, fit, Clusters { name, of_cell }, None),
        None => fit,
    };
    with_few_clusters(with_errors_over(data, fit, clusters, reason), name, count)
}

/// The refusal of a model whose widest groups are worth fewer than ten of one size.
fn few_clusters(frame: &Frame, group: &str) -> Option<MixedDiagnosis> {
    let labels = frame.as_labels(group).ok()?;
    let mut rows: HashMap<u32, f64> = HashMap::new();
    for code in &labels.codes {
        *rows.entry(*code).or_default() += 1.0;
    }
    let clusters = rows.len();
    let worth = worth_in_clusters(rows.into_values().collect());
    (worth < FEWEST - ROUNDING).then(|| MixedDiagnosis::FewClusters { group: group.to_owned(), clusters, worth })
}
