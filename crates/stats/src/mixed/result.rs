//! A fitted mixed model.
use serde::Serialize;

use super::data::Family;
use super::diagnosis::MixedDiagnosis;

/// Estimation method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Method {
    /// Maximum likelihood, the random effects integrated out by Laplace's approximation.
    Laplace,
    /// Maximum likelihood, the random effects integrated out by adaptive Gauss-Hermite quadrature with 25 points.
    #[serde(rename = "quadrature")]
    Quadrature,
    /// Maximum likelihood of a linear model.
    #[serde(rename = "ML")]
    MaximumLikelihood,
    /// Restricted maximum likelihood of a linear model.
    #[serde(rename = "REML")]
    Restricted,
}

/// A fixed effect. Numbers are absent where the likelihood has no finite maximum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixedCoefficient {
    pub name: String,
    pub estimate: Option<f64>,
    /// From the Hessian in (theta, beta) together.
    pub standard_error: Option<f64>,
    /// With theta held fixed.
    pub standard_error_fixed_theta: Option<f64>,
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

/// A fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixedFit {
    pub formula: String,
    pub family: Family,
    pub method: Method,
    /// Name of the prior of the fixed effects, if there is one.
    pub prior: Option<String>,
    pub rows: usize,
    /// Different rows.
    pub cells: usize,
    pub coefficients: Vec<MixedCoefficient>,
    /// Aliased columns, which are left out.
    pub dropped: Vec<String>,
    /// Covariance of the estimates, from the Hessian in (theta, beta) together.
    pub covariance: Vec<Vec<f64>>,
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
    /// Evaluations of the criterion.
    pub evaluations: usize,
    pub diagnoses: Vec<MixedDiagnosis>,
    /// Parameters of the search: theta, then coefficients of the orthonormal columns.
    #[serde(skip)]
    pub(super) at: Vec<f64>,
    /// Covariance of (theta, the caller's coefficients); parameters on the border have none.
    #[serde(skip)]
    pub(super) joint: Vec<Vec<f64>>,
    #[serde(skip)]
    pub(super) modes: Vec<GroupModes>,
}

impl MixedFit {
    /// Random effects of every group, by term.
    pub fn modes(&self) -> &[GroupModes] {
        &self.modes
    }

    /// The coefficient of a name.
    pub fn coefficient(&self, name: &str) -> Option<&MixedCoefficient> {
        self.coefficients.iter().find(|one| one.name == name)
    }

    /// True if there are estimates.
    pub fn is_usable(&self) -> bool {
        self.coefficients.iter().any(|one| one.estimate.is_some())
    }

    /// Estimates; none if the model has none.
    pub fn estimates(&self) -> Option<Vec<f64>> {
        self.coefficients.iter().map(|one| one.estimate).collect()
    }
}
