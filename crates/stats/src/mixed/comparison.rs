//! Likelihood-ratio tests of terms, and sums of coefficients.
use serde::Serialize;

use super::MixedError;
use super::data::{Family, MixedData};
use super::fit::{IntegralChoice, MixedOptions, fit};
use super::formula::Formula;
use super::frame::Frame;
use super::result::{Method, MixedFit};
use crate::distribution::chi_squared_upper;
use crate::multiplicity::{benjamini_hochberg, holm};

/// A likelihood-ratio test of a term: the model against the one without it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermTest {
    pub term: String,
    pub degrees_of_freedom: usize,
    pub statistic: f64,
    pub p: f64,
}

/// Tests of fixed effects against the model without them, both by maximum likelihood and by the integral of `fitted`, because likelihoods by
/// different integrals cannot be compared. Without names, of every term that no interaction of the model contains.
pub fn term_tests(
    formula: &Formula,
    frame: &Frame,
    fitted: &MixedFit,
    names: &[String],
) -> Result<Vec<TermTest>, MixedError> {
    let integral = match fitted.method {
        Method::Quadrature => IntegralChoice::Quadrature { points: fitted.points },
        Method::Lme4 => {
            let reason = "likelihood-ratio tests need a smooth likelihood; fit with the converged objective".to_owned();
            return Err(MixedError::NotEstimated { reason });
        }
        _ => IntegralChoice::Laplace,
    };
    let (family, options) = (fitted.family, MixedOptions { restricted: false, integral, ..MixedOptions::default() });
    let terms = &formula.fixed.terms;
    let contained = |term: &Vec<usize>| {
        terms.iter().any(|other| other.len() > term.len() && term.iter().all(|index| other.contains(index)))
    };
    let named: Vec<String> = match names {
        [] => terms.iter().filter(|term| !contained(term)).map(|term| formula.fixed.name(term)).collect(),
        names => names.to_vec(),
    };
    let whole = likelihood(formula, frame, family, &options)?;
    let mut found = Vec::new();
    for term in named {
        let rest = formula.fixed.dropped(&term).ok_or_else(|| MixedError::NoTerm {
            term: term.clone(),
            present: terms.iter().map(|term| formula.fixed.name(term)).collect::<Vec<_>>().join(", "),
        })?;
        let reduced = likelihood(&Formula { fixed: rest, ..formula.clone() }, frame, family, &options)?;
        let statistic = (reduced.0 - whole.0).max(0.0);
        let degrees_of_freedom = whole.1.saturating_sub(reduced.1);
        if degrees_of_freedom == 0 {
            let reason = format!(
                "the model without `{term}` says the same in other words (an interaction still holds it); test the \
                 interaction instead"
            );
            return Err(MixedError::NotEstimated { reason });
        }
        let p = chi_squared_upper(statistic, degrees_of_freedom as f64);
        found.push(TermTest { term, degrees_of_freedom, statistic, p });
    }
    Ok(found)
}

/// `-2 log L` and the number of fixed effects.
fn likelihood(
    formula: &Formula,
    frame: &Frame,
    family: Family,
    options: &MixedOptions,
) -> Result<(f64, usize), MixedError> {
    let data = MixedData::new(formula, frame, family)?;
    let fitted = fit(&data, options)?;
    let value = fitted.minus_two_log_likelihood.filter(|_| fitted.converged).ok_or_else(|| {
        let reasons: Vec<String> = fitted.diagnoses.iter().map(ToString::to_string).collect();
        MixedError::NotEstimated {
            reason: format!("`{formula}` has no maximum to compare with: {}", reasons.join("; ")),
        }
    })?;
    Ok((value, data.columns()))
}

/// A weighted sum of coefficients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    pub name: String,
    pub estimate: f64,
    pub standard_error: f64,
    pub low: f64,
    pub high: f64,
    pub z: f64,
    pub p: f64,
    /// p value adjusted for all contrasts asked for, by Holm's method and by Benjamini and Hochberg's.
    pub holm: f64,
    pub benjamini_hochberg: f64,
    /// Number of contrasts asked for.
    pub family_size: usize,
}

/// Wald tests of weighted sums of coefficients.
pub fn contrasts(
    fit: &MixedFit,
    wanted: &[(String, Vec<(String, f64)>)],
    confidence: f64,
) -> Result<Vec<Contrast>, MixedError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(MixedError::Confidence { level: confidence });
    }
    let Some(beta) = fit.estimates() else {
        return Err(MixedError::NotEstimated { reason: "the model has no finite estimates, so no contrasts".into() });
    };
    let reach = fit.reach(confidence);
    let mut found = Vec::new();
    for (name, weights) in wanted {
        let mut row = vec![0.0; beta.len()];
        for (coefficient, weight) in weights {
            let slot = fit.coefficients.iter().position(|one| one.name == *coefficient);
            let slot = slot.ok_or_else(|| MixedError::NoParameter {
                name: coefficient.clone(),
                present: fit.coefficients.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
            })?;
            row[slot] += weight;
        }
        if row.iter().all(|weight| *weight == 0.0) {
            return Err(MixedError::NotEstimated { reason: format!("the contrast {name} has no weight but 0") });
        }
        let estimate: f64 = row.iter().zip(&beta).map(|(row, beta)| row * beta).sum();
        let standard_error = fit.variance_of_coefficients(&row).max(0.0).sqrt();
        let z = estimate / standard_error;
        let (low, high) = (estimate - reach * standard_error, estimate + reach * standard_error);
        let p = fit.two_sided(z);
        let (name, family_size) = (name.clone(), wanted.len());
        found.push(Contrast {
            name,
            estimate,
            standard_error,
            low,
            high,
            z,
            p,
            holm: p,
            benjamini_hochberg: p,
            family_size,
        });
    }
    let p_values: Vec<f64> = found.iter().map(|one| one.p).collect();
    if let (Ok(by_holm), Ok(by_share)) = (holm(&p_values), benjamini_hochberg(&p_values)) {
        for (one, (by_holm, by_share)) in found.iter_mut().zip(by_holm.into_iter().zip(by_share)) {
            (one.holm, one.benjamini_hochberg) = (by_holm, by_share);
        }
    }
    Ok(found)
}
