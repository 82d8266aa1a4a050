//! A fitted mixed model.
use serde::Serialize;

use super::data::Family;
use super::diagnosis::MixedDiagnosis;
use crate::distribution::{normal_quantile, normal_two_sided, student_quantile, student_two_sided};
use crate::matrix::dot;

/// Estimation method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Method {
    /// Maximum likelihood, the random effects integrated out by Laplace's approximation.
    Laplace,
    /// Maximum likelihood, the random effects integrated out by adaptive Gauss-Hermite quadrature.
    #[serde(rename = "quadrature")]
    Quadrature,
    /// The end of lme4's search on its default objective, which jumps: only to compare with published results.
    #[serde(rename = "lme4")]
    Lme4,
    /// Maximum likelihood of a linear model.
    #[serde(rename = "ML")]
    MaximumLikelihood,
    /// Restricted maximum likelihood of a linear model.
    #[serde(rename = "REML")]
    Restricted,
}

/// Origin of the standard errors of the fixed effects, and of what is made from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Errors {
    /// The curvature of the likelihood: right if the random effects are.
    Model,
    /// Of every number the larger one of the model's error and that by the scatter of the scores between clusters (sandwich estimator), with Student's t.
    Robust,
}

/// Clusters of robust errors, or those that are few, and the t distribution of intervals and tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RobustBasis {
    /// Column of the clusters.
    pub group: String,
    pub clusters: usize,
    /// Of Student's t: those of the mean over the clusters that are fewest, their number less one if they have one size.
    pub degrees_of_freedom: f64,
    pub reason: String,
}

impl RobustBasis {
    /// The degrees of freedom, with a decimal where they are not whole.
    pub(super) fn degrees_in_words(&self) -> String {
        let degrees = self.degrees_of_freedom;
        let digits = usize::from((degrees - degrees.round()).abs() >= 0.05);
        format!("{degrees:.digits$}")
    }
}

/// A fixed effect. Numbers are absent where the likelihood has no finite maximum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixedCoefficient {
    pub name: String,
    pub estimate: Option<f64>,
    /// From the Hessian in (theta, beta) together, or robust: see the fit's `errors`.
    pub standard_error: Option<f64>,
    /// From the Hessian, where `standard_error` is robust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error_model: Option<f64>,
    /// With theta held fixed.
    pub standard_error_fixed_theta: Option<f64>,
    /// The estimate in standard errors; of Student's t where the errors are robust.
    pub z: Option<f64>,
    pub p: Option<f64>,
}

/// Random effects of one term.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RandomEffect {
    /// Grouping factor, e.g. `template:item`.
    pub group: String,
    pub groups: usize,
    pub terms: Vec<String>,
    pub sd: Vec<f64>,
    /// Absent for one effect and for uncorrelated ones; an entry is absent where an SD is 0.
    pub correlation: Option<Vec<Vec<Option<f64>>>>,
    pub covariance: Vec<Vec<f64>>,
}

/// Random effects of every group of a term, at the mode of their distribution given the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupModes {
    pub group: String,
    pub terms: Vec<String>,
    pub levels: Vec<String>,
    /// By group.
    pub modes: Vec<Vec<f64>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixedFit {
    pub formula: String,
    pub family: Family,
    pub method: Method,
    /// Points of the integral over the random effects; 1 for Laplace's approximation and for linear models.
    pub points: usize,
    /// Name of the prior of the fixed effects that separate the outcomes, if there is one.
    pub prior: Option<String>,
    pub rows: usize,
    /// Different rows.
    pub cells: usize,
    pub coefficients: Vec<MixedCoefficient>,
    /// Aliased columns, which are left out.
    pub dropped: Vec<String>,
    /// Origin of the standard errors.
    pub errors: Errors,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robust: Option<RobustBasis>,
    /// Covariance of the estimates, from the Hessian in (theta, beta) together, or robust. A robust standard error is the larger one by either.
    pub covariance: Vec<Vec<f64>>,
    /// From the Hessian, where `covariance` is robust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covariance_model: Option<Vec<Vec<f64>>>,
    /// The same with theta held fixed.
    pub covariance_fixed_theta: Vec<Vec<f64>>,
    pub random: Vec<RandomEffect>,
    /// Of linear models.
    pub residual_sd: Option<f64>,
    /// Absent where the likelihood has no maximum. The REML criterion for REML.
    pub minus_two_log_likelihood: Option<f64>,
    /// Minus twice the log-likelihood at the modes of the random effects, for binomial models.
    pub conditional_deviance: Option<f64>,
    pub aic: Option<f64>,
    pub bic: Option<f64>,
    /// Number of parameters.
    pub parameters: usize,
    /// True if a standard deviation is 0 or a correlation is 1 or -1.
    pub singular: bool,
    pub converged: bool,
    /// Decrease that a further Newton step would bring.
    pub expected_decrease: Option<f64>,
    /// Largest component of the criterion's gradient at the end, over orthonormal columns.
    pub gradient: Option<f64>,
    /// Evaluations of the criterion.
    pub evaluations: usize,
    pub diagnoses: Vec<MixedDiagnosis>,
    /// Parameters of the search: theta, then coefficients of the orthonormal columns.
    #[serde(skip)]
    pub(super) at: Vec<f64>,
    /// Covariance of (theta, the caller's coefficients) by the model; parameters on the border have none.
    #[serde(skip)]
    pub(super) joint: Vec<Vec<f64>>,
    /// The same by the scatter between clusters, where errors are robust.
    #[serde(skip)]
    pub(super) robust_joints: Vec<Vec<Vec<f64>>>,
    /// Units of the log-F priors, by coefficient.
    #[serde(skip)]
    pub(super) units: Vec<f64>,
    #[serde(skip)]
    pub(super) modes: Vec<GroupModes>,
}

impl MixedFit {
    /// Random effects of every group, by term.
    pub fn modes(&self) -> &[GroupModes] {
        &self.modes
    }

    pub fn coefficient(&self, name: &str) -> Option<&MixedCoefficient> {
        self.coefficients.iter().find(|one| one.name == name)
    }

    /// The standard deviation of the first random effect; for a model with one random effect its only one.
    pub fn deviation(&self) -> Option<f64> {
        self.random.first()?.sd.first().copied()
    }

    /// Its Wald standard error in models with one random effect; none on the border.
    pub fn deviation_error(&self) -> Option<f64> {
        let mut first = vec![0.0; self.joint.len()];
        *first.first_mut()? = 1.0;
        let (variance, deviation) = (self.variance(&first), self.deviation()?);
        // The parameter is the deviation times the scale of its column.
        let scale = self.at.first()?.abs() / deviation;
        (variance > 0.0 && scale > 0.0 && scale.is_finite()).then(|| variance.sqrt() / scale)
    }

    /// True if a diagnosis of this word ([`MixedDiagnosis::word`]) was made.
    pub fn is(&self, word: &str) -> bool {
        self.diagnoses.iter().any(|one| one.word() == word)
    }

    /// True if there are estimates.
    pub fn is_usable(&self) -> bool {
        self.coefficients.iter().any(|one| one.estimate.is_some())
    }

    /// The reason for a fit without numbers.
    pub fn refusal(&self) -> Option<String> {
        if self.is_usable() {
            return None;
        }
        let reasons = self.diagnoses.iter().filter(|one| one.is_fatal()).map(ToString::to_string);
        Some(reasons.collect::<Vec<_>>().join("; "))
    }

    /// Errors behind intervals and tests, and their distribution, in words; none where they are the model's, with the normal one.
    pub fn basis_in_words(&self) -> Option<String> {
        let basis = self.robust.as_ref()?;
        let RobustBasis { group, clusters, reason, .. } = basis;
        let errors = match self.errors {
            Errors::Robust => format!(
                "errors of the model or, where they are larger, of the scatter between {clusters} groups of {group}"
            ),
            Errors::Model => "errors of the model".to_owned(),
        };
        Some(format!("{errors}, t with {} degrees of freedom: {reason}", basis.degrees_in_words()))
    }

    /// The variance of a sum of (theta, the caller's coefficients): the larger one by model and scatter, which for a difference need not be that of its
    /// parts.
    pub(super) fn variance(&self, weights: &[f64]) -> f64 {
        if self.joint.is_empty() {
            return quadratic(&self.covariance, &weights[weights.len() - self.coefficients.len()..]);
        }
        let every = self.robust_joints.iter().chain([&self.joint]);
        every.map(|joint| quadratic(joint, weights)).fold(0.0, f64::max)
    }

    /// The variance of a sum of coefficients.
    pub(super) fn variance_of_coefficients(&self, weights: &[f64]) -> f64 {
        let mut all = vec![0.0; self.joint.len().saturating_sub(weights.len())];
        all.extend(weights);
        self.variance(&all)
    }

    /// Half the length of an interval in standard errors: a quantile of the normal distribution, of Student's t for robust errors and few clusters.
    pub fn reach(&self, confidence: f64) -> f64 {
        let probability = 0.5 + 0.5 * confidence;
        match &self.robust {
            Some(robust) => student_quantile(probability, robust.degrees_of_freedom),
            None => normal_quantile(probability),
        }
    }

    /// Two-sided p value of a number of standard errors.
    pub fn two_sided(&self, z: f64) -> f64 {
        match &self.robust {
            Some(robust) => student_two_sided(z, robust.degrees_of_freedom),
            None => normal_two_sided(z),
        }
    }

    /// The Wald interval of a coefficient; none without a standard error.
    pub fn wald_interval(&self, coefficient: &MixedCoefficient, confidence: f64) -> Option<(f64, f64)> {
        let (estimate, error) = (coefficient.estimate?, coefficient.standard_error?);
        let reach = self.reach(confidence) * error;
        Some((estimate - reach, estimate + reach))
    }

    /// Estimates; none if the model has none.
    pub fn estimates(&self) -> Option<Vec<f64>> {
        self.coefficients.iter().map(|one| one.estimate).collect()
    }
}

/// The variance of a weighted sum of values with this covariance.
fn quadratic(covariance: &[Vec<f64>], weights: &[f64]) -> f64 {
    covariance.iter().zip(weights).map(|(line, weight)| weight * dot(line, weights)).sum()
}
