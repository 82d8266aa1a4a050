//! The default mixed model of runs: its choice, its fit, and the errors that are to be printed.
use super::ladder::{ChosenModel, Step, fit_stepping_down};
use super::maximal::maximal_formula;
use crate::mixed::{
    Clusters, Family, Formula, Frame, MixedData, MixedDiagnosis, MixedError, MixedFit, Terms, refused, with_errors_over,
};

/// Clusters below which robust errors are too noisy to judge a model by, and below which they are not used at all.
const FEW: usize = 20;
const FEWEST: usize = 10;

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
/// answer alike have no variance that could be estimated), and where they exceed the model's by more than a fifth; with fewer than twenty of the
/// widest groups, over those of a model with one random effect too, if these are many.
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
    let ChosenModel { formula, data, fit, steps } = fit_stepping_down(&maximal, frame, Family::Binomial)?;
    let fit = with_errors(frame, groups, &data, fit, &steps);
    let left_out = steps.iter().map(|step| step.why.clone()).collect();
    choice.extend(steps.iter().map(ToString::to_string));
    Ok(DefaultModel { formula, data, fit, choice, left_out })
}

fn with_errors(frame: &Frame, groups: &[&str], data: &MixedData, fit: MixedFit, steps: &[Step]) -> MixedFit {
    let varies = steps.iter().any(|step| step.varies);
    let widest = groups.iter().find_map(|name| {
        let (of_cell, count) = data.groups_of(frame, name)?;
        (count > 1).then_some((*name, of_cell, count))
    });
    let Some((name, of_cell, count)) = widest.filter(|_| fit.is_usable()) else { return fit };
    if count >= if varies { FEWEST } else { FEW } {
        let reason = varies.then_some("answers vary in what the model leaves out");
        return with_errors_over(data, fit, Clusters { name, of_cell: &of_cell }, reason);
    }
    if varies {
        let few = MixedDiagnosis::FewClusters { group: name.to_owned(), clusters: count };
        return refused(data, &fit, vec![few]);
    }
    // Answers of a question that exclude each other show in no variance, so a model of one random effect has errors over its own groups. Then over the
    // wider ones, however few: the larger of two errors is noisy, but never too small by it.
    let fit = match data.clusters().filter(|_| data.has_one_effect()) {
        Some((name, of_cell)) => with_errors_over(data, fit, Clusters { name, of_cell }, None),
        None => fit,
    };
    with_errors_over(data, fit, Clusters { name, of_cell: &of_cell }, None)
}
