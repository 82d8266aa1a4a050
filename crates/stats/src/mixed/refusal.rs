//! Refusal of fits whose numbers are the search's or the approximation's and not the data's.
use super::data::{Family, Grouping, MixedData};
use super::diagnosis::MixedDiagnosis;
use super::fit::{IntegralChoice, MixedOptions};
use super::marginal::marginal;
use super::result::{Method, MixedFit};

/// Distance of the model's mean outcome from the observed shares, in log odds, from which a fit misses them: odds that are wrong by half.
const FAR: f64 = 0.405;

/// As [`FAR`], of a fit by Laplace's approximation that was not asked for by name, where the observed shares are outside of the mean's interval too.
const NEAR: f64 = 0.1;

/// Standard errors of an effect by which Laplace's approximation may miss it: a p value of .05 is then between .01 and .15 by quadrature.
const MISSED: f64 = 0.5;

/// Reasons why a fit has no usable numbers: a search that ended early; of binomial fits a random effect whose deviation ran away, a mean outcome,
/// averaged over the random effects, that is not the observed share, or an effect that Laplace's approximation, if it was not asked for by name, misses.
/// Maximum likelihood puts that mean near the share; Laplace's approximation does not where few outcomes are right and groups nearly always agree
/// (Breslow and Lin 1995; Joe 2008).
pub(crate) fn refusals(data: &MixedData, fit: &MixedFit, options: &MixedOptions) -> Vec<MixedDiagnosis> {
    if !fit.is_usable() {
        return Vec::new();
    }
    let mut found: Vec<MixedDiagnosis> = fit.diagnoses.iter().filter(|one| one.is_fatal()).cloned().collect();
    if data.family == Family::Gaussian {
        return found;
    }
    let is_asked_for = options.integral == IntegralChoice::Laplace;
    found.extend(missed_share(data, fit, is_asked_for || fit.method != Method::Laplace));
    if !is_asked_for {
        found.extend(fit.diagnoses.iter().find_map(missed_effect));
    }
    found
}

/// The refusal that a warning of Laplace's approximation becomes where the effect it moves is missed.
fn missed_effect(found: &MixedDiagnosis) -> Option<MixedDiagnosis> {
    match found {
        MixedDiagnosis::PoorLaplace { group, answers, alone: Some(alone) } if alone.standard_errors > MISSED => {
            Some(MixedDiagnosis::MissedEffect { group: group.clone(), answers: *answers, alone: alone.clone() })
        }
        _ => None,
    }
}

/// The mean outcome of the model where it is far from the share of the rows and from that of the groups. Where large groups have other outcomes
/// than small ones, the mean of a new group rightly lies between both.
fn missed_share(data: &MixedData, fit: &MixedFit, only_far: bool) -> Option<MixedDiagnosis> {
    let observed = data.total.iter().sum::<f64>() / data.rows as f64;
    let averaged = marginal(data, fit, None, 0.95).ok()?.levels.into_iter().next()?;
    let mean = averaged.mean;
    let shares = || data.groupings.iter().map(|grouping| share_of_groups(data, grouping)).chain([observed]);
    let log_odds = |share: f64| (share / (1.0 - share)).ln();
    let (low, high) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    let is_beyond = |far: f64| !(log_odds(low) - far..=log_odds(high) + far).contains(&log_odds(mean));
    let misses = is_beyond(FAR) || !only_far && is_beyond(NEAR) && (averaged.low > high || averaged.high < low);
    misses.then_some(MixedDiagnosis::MissedShare { observed, mean })
}

/// Mean of the groups' shares, in which every group counts the same.
fn share_of_groups(data: &MixedData, grouping: &Grouping) -> f64 {
    let mut sums = vec![(0.0, 0.0); grouping.levels.len()];
    for (cell, group) in grouping.of_cell.iter().enumerate() {
        let (total, weight) = &mut sums[*group as usize];
        *total += data.total[cell];
        *weight += data.weight[cell];
    }
    sums.iter().map(|(total, weight)| total / weight).sum::<f64>() / sums.len() as f64
}
