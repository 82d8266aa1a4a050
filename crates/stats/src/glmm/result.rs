//! Options and results of a fit.
use serde::Serialize;

use super::data::GlmmData;
use super::diagnosis::Diagnosis;
use super::lme4;
use crate::distribution::normal_two_sided;

/// Objective function.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Fully converged: Laplace with one point, adaptive Gauss-Hermite quadrature with more.
    Converged { points: usize },
    /// The objective of lme4 1.1: an inner loop that stops at a relative change of `tolerance` (its default is 1e-7) and a
    /// log-determinant that lags one step. Only to show the artefact of the study's section 6.1.
    Lme4 {
        tolerance: f64,
        /// The random SD at which the first stage ended, where that is known; else it is searched for as lme4 does. Within
        /// about 2e-6 of its end rounding decides, and where the second stage ends on a jumping function can depend on that.
        first_stage: Option<f64>,
    },
}

/// Options of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlmmOptions {
    /// The function to minimise.
    pub objective: Objective,
    /// Further starts after the first, from other random SDs; the best end wins. More follow by themselves when a start
    /// does not converge.
    pub restarts: usize,
}

impl Default for GlmmOptions {
    /// Laplace, one restart.
    fn default() -> Self {
        GlmmOptions { objective: Objective::Converged { points: 1 }, restarts: 1 }
    }
}

impl GlmmOptions {
    /// Adaptive quadrature with an odd number of points; 1 is Laplace.
    pub fn quadrature(points: usize) -> Self {
        GlmmOptions { objective: Objective::Converged { points }, ..GlmmOptions::default() }
    }

    /// lme4's default objective and optimiser.
    pub fn lme4() -> Self {
        GlmmOptions {
            objective: Objective::Lme4 { tolerance: lme4::DEFAULT_TOLERANCE, first_stage: None },
            restarts: 0,
        }
    }
}

/// An estimated coefficient. Numbers are absent where there are none, for the reason that a diagnosis names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coefficient {
    /// The column's name.
    pub name: String,
    /// Change of the log odds per unit of the column.
    pub estimate: Option<f64>,
    /// Wald standard error, from the Hessian over all parameters.
    pub standard_error: Option<f64>,
    /// `estimate / standard_error`
    pub z: Option<f64>,
    /// Two-sided normal p value.
    pub p: Option<f64>,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlmmFit {
    /// The function that was minimised.
    pub objective: Objective,
    /// The intercept first.
    pub coefficients: Vec<Coefficient>,
    /// Standard deviation of the random intercepts.
    pub random_sd: Option<f64>,
    /// Its Wald standard error; absent at the boundary.
    pub random_sd_error: Option<f64>,
    /// Minus twice the maximised log-likelihood (its supremum under separation).
    pub minus_two_log_likelihood: Option<f64>,
    /// Covariance of (random SD, coefficients with an estimate); absent without a positive definite Hessian.
    pub covariance: Option<Vec<Vec<f64>>>,
    /// Rows used.
    pub rows: usize,
    /// Groups.
    pub groups: usize,
    /// Evaluations of the objective with its gradient.
    pub evaluations: usize,
    /// Largest gradient component at the end, in standardised columns.
    pub gradient: Option<f64>,
    /// Diagnoses that a reader of the numbers should know.
    pub diagnoses: Vec<Diagnosis>,
}

impl GlmmFit {
    /// A coefficient by name.
    pub fn coefficient(&self, name: &str) -> Option<&Coefficient> {
        self.coefficients.iter().find(|coefficient| coefficient.name == name)
    }

    /// Variance of the random intercepts.
    pub fn random_variance(&self) -> Option<f64> {
        self.random_sd.map(|sd| sd * sd)
    }

    /// Number of estimated parameters, the random SD included.
    pub fn parameters(&self) -> usize {
        self.coefficients.len() + 1
    }

    /// Akaike's criterion.
    pub fn aic(&self) -> Option<f64> {
        self.minus_two_log_likelihood.map(|deviance| deviance + 2.0 * self.parameters() as f64)
    }

    /// Schwarz's criterion, with the number of rows as lme4 counts it.
    pub fn bic(&self) -> Option<f64> {
        self.minus_two_log_likelihood.map(|deviance| deviance + self.parameters() as f64 * (self.rows as f64).ln())
    }

    /// True if a diagnosis of this word ([`Diagnosis::word`]) was made.
    pub fn is(&self, word: &str) -> bool {
        self.diagnoses.iter().any(|diagnosis| diagnosis.word() == word)
    }

    pub(super) fn without_numbers(data: &GlmmData, objective: Objective, diagnoses: Vec<Diagnosis>) -> Self {
        GlmmFit {
            objective,
            coefficients: data.names().iter().map(|name| coefficient(name, None, None)).collect(),
            random_sd: None,
            random_sd_error: None,
            minus_two_log_likelihood: None,
            covariance: None,
            rows: data.rows(),
            groups: data.groups(),
            evaluations: 0,
            gradient: None,
            diagnoses,
        }
    }
}

pub(super) fn coefficient(name: &str, estimate: Option<f64>, standard_error: Option<f64>) -> Coefficient {
    let z = estimate.zip(standard_error).map(|(estimate, error)| estimate / error);
    Coefficient { name: name.to_owned(), estimate, standard_error, z, p: z.map(normal_two_sided) }
}
