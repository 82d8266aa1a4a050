//! Diagnoses of fits: separation, singularity, failed convergence.
use std::fmt;

use serde::Serialize;

/// Degree of separation of the outcomes by the fixed effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeparationKind {
    /// Every outcome is predicted: nothing can be estimated.
    Complete,
    /// Some outcomes are predicted: the coefficients involved have no finite estimate, the others do.
    Quasi,
}

/// A coefficient without a finite estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unbounded {
    /// Its name.
    pub name: String,
    /// The likelihood increases towards plus infinity (true) or minus infinity (false).
    pub increasing: bool,
}

/// A finding about a fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "diagnosis", rename_all = "kebab-case")]
pub enum Diagnosis {
    /// Every response has this value; no model can be fitted.
    ConstantResponse { value: u8 },
    /// A random intercept needs more than one group.
    SingleGroup,
    /// So few groups that the random variance is hardly determined and Wald intervals are too short.
    FewGroups { groups: usize },
    /// The fixed effects predict `rows` outcomes perfectly. What else is estimated, and every further diagnosis, is of the
    /// others: `rows_left` in `groups_left` groups.
    Separation { kind: SeparationKind, unbounded: Vec<Unbounded>, rows: usize, rows_left: usize, groups_left: usize },
    /// With a threshold in each group the fixed effects predict every outcome, or groups are all right or all wrong but
    /// for fewer mixed ones than there are parameters: the random variance has no usable estimate.
    GroupSeparation { constant_groups: usize, groups: usize },
    /// The random variance is estimated as zero, the boundary: the fit is an ordinary logistic regression.
    Singular,
    /// The optimisation, or the search of a random-effect mode, ended short of its tolerance.
    NotConverged { gradient: f64, modes: usize },
    /// The Hessian at the optimum is not positive definite, so there are no standard errors.
    IndefiniteHessian,
    /// Laplace and quadrature differ by more than a tenth of a standard error, or a tenth of the random SD: trust the
    /// quadrature.
    ApproximationsDisagree(Disagreement),
    /// Standard errors below 0.01 or equal across coefficients: the finite-difference Hessian straddles a jump of the
    /// lme4-compatible objective and the errors mean nothing (specification, section 6.1).
    DegenerateErrors { standard_error: f64, jump: f64 },
    /// The groups' scatter says that a standard error is too small: something varies between groups that the model holds equal.
    SmallErrors { coefficient: String, model: f64, robust: f64 },
}

/// Distance of Laplace's approximation from a quadrature of the same model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Disagreement {
    /// The coefficient that moves most, in standard errors of the quadrature.
    pub coefficient: String,
    pub standard_errors: f64,
    pub laplace_sd: f64,
    pub quadrature_sd: f64,
    pub points: usize,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Laplace and {}-point quadrature disagree: {} moves by {:.2} standard errors, the random SD from {:.3} to {:.3}; \
             report the quadrature",
            self.points, self.coefficient, self.standard_errors, self.laplace_sd, self.quadrature_sd
        )
    }
}

impl Diagnosis {
    /// True when no number of the fit may be used.
    pub fn is_fatal(&self) -> bool {
        match self {
            Diagnosis::ConstantResponse { .. } | Diagnosis::SingleGroup | Diagnosis::GroupSeparation { .. } => true,
            Diagnosis::Separation { kind, .. } => *kind == SeparationKind::Complete,
            _ => false,
        }
    }

    /// A stable word for tables and JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Diagnosis::ConstantResponse { .. } => "constant-response",
            Diagnosis::SingleGroup => "single-group",
            Diagnosis::FewGroups { .. } => "few-groups",
            Diagnosis::Separation { .. } => "separation",
            Diagnosis::GroupSeparation { .. } => "group-separation",
            Diagnosis::Singular => "singular",
            Diagnosis::NotConverged { .. } => "not-converged",
            Diagnosis::IndefiniteHessian => "indefinite-hessian",
            Diagnosis::ApproximationsDisagree(_) => "approximations-disagree",
            Diagnosis::DegenerateErrors { .. } => "degenerate-errors",
            Diagnosis::SmallErrors { .. } => "small-errors",
        }
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Diagnosis::ConstantResponse { value } => {
                write!(formatter, "every response is {value}: there is nothing to explain, no model is fitted")
            }
            Diagnosis::SingleGroup => {
                write!(formatter, "there is one group only: a random intercept needs at least two")
            }
            Diagnosis::FewGroups { groups } => write!(
                formatter,
                "only {groups} groups: the random variance is hardly determined; prefer profile intervals, and read them \
                 with care"
            ),
            Diagnosis::Separation { kind, unbounded, rows, rows_left, groups_left } => {
                let names: Vec<String> = unbounded
                    .iter()
                    .map(|coefficient| {
                        let sign = if coefficient.increasing { "+" } else { "-" };
                        format!("{} -> {sign}infinity", coefficient.name)
                    })
                    .collect();
                let kind = match kind {
                    SeparationKind::Complete => "complete",
                    SeparationKind::Quasi => "quasi-complete",
                };
                write!(
                    formatter,
                    "{kind} separation: the fixed effects predict {rows} rows perfectly, so these have no finite \
                     estimate: {}; use a profile interval (one end is finite) or a test on counts",
                    names.join(", ")
                )?;
                if *rows_left > 0 {
                    write!(
                        formatter,
                        ". Every other number and warning is of the {rows_left} other rows in {groups_left} groups"
                    )?;
                }
                Ok(())
            }
            Diagnosis::GroupSeparation { constant_groups, groups } => write!(
                formatter,
                "groups are all or nothing ({constant_groups} of {groups} are all 0 or all 1, and what varies in the others \
                 is too little or predicted perfectly): the random variance has no usable estimate"
            ),
            Diagnosis::Singular => write!(
                formatter,
                "singular: the variance between groups is estimated as zero, the fit is an ordinary logistic regression"
            ),
            Diagnosis::NotConverged { gradient, modes } => write!(
                formatter,
                "not converged: largest gradient {gradient:.2e}, {modes} random-effect modes short of their tolerance; \
                 do not use the numbers"
            ),
            Diagnosis::IndefiniteHessian => {
                write!(formatter, "the Hessian at the optimum is not positive definite: no standard errors")
            }
            Diagnosis::ApproximationsDisagree(found) => write!(formatter, "{found}"),
            Diagnosis::SmallErrors { coefficient, model, robust } => write!(
                formatter,
                "standard error too small: {coefficient} has {model:.4} by the model and {robust:.4} by the scatter of the \
                 groups (sandwich); its effect varies between groups, so use a formula with a slope, such as (1+{}|group)",
                // A factor's column is named after it: `variant[symbolic]`.
                coefficient.split('[').next().unwrap_or(coefficient)
            ),
            Diagnosis::DegenerateErrors { standard_error, jump } => write!(
                formatter,
                "degenerate standard errors ({standard_error:.2e}): the objective jumps by about {jump:.3} at the reported \
                 optimum, an artefact of the unconverged inner loop; use the converged fit"
            ),
        }
    }
}
