//! Binomial mixed models with one random intercept (GLMM 1 and 2 of the GSM-Symbolic study, section 3.4).

mod bobyqa;
mod data;
mod diagnosis;
mod error;
mod fit;
mod likelihood;
pub mod lme4;
mod logistic;
mod nelder_mead;
mod optimiser;
mod optimisers;
mod profile;
pub(crate) mod quadrature;
mod result;
mod robust;
mod rows;
mod search;
pub(crate) mod separation;

pub use data::{GlmmData, INTERCEPT};
pub use diagnosis::{Diagnosis, Disagreement, SeparationKind, Unbounded};
pub use error::GlmmError;
pub use fit::{FEW_GROUPS, SINGULAR, disagreement, fit, minus_two_log_likelihood};
pub use likelihood::MODE_TOLERANCE;
pub use optimisers::{OptimiserEnd, across_optimisers};
pub use profile::{
    LikelihoodRatio, OpenEnd, Parameter, ProfileInterval, QUADRATURE, likelihood_ratio, profile_interval,
    variance_ratio, wald_interval,
};
pub use quadrature::LARGEST_POINTS;
pub use result::{Coefficient, GlmmFit, GlmmOptions, Objective};
pub use robust::{robust_errors, small_errors};
pub use rows::{Factor, GlmmRows, Term};
