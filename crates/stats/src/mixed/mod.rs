//! Mixed models from formulas: any number of random effects; binomial by Laplace's approximation, by quadrature or as lme4 does by default, and
//! linear by ML or REML.
//!
//! ```
//! use earnest_stats::mixed::{Family, Formula, Frame, MixedData, MixedOptions, fit};
//!
//! let mut frame = Frame::new();
//! let templates: Vec<String> = (0..80).map(|row| format!("t{}", row / 8)).collect();
//! frame.texts("template", templates.iter().map(String::as_str)).unwrap();
//! frame.texts("variant", (0..80).map(|row| if row % 2 == 0 { "base" } else { "symbolic" })).unwrap();
//! frame.number("correct", (0..80).map(|row| f64::from(row % 7 % 3 == 0)).collect()).unwrap();
//! let formula: Formula = "correct ~ variant + (1|template)".parse().unwrap();
//! let data = MixedData::new(&formula, &frame, Family::Binomial).unwrap();
//! let fitted = fit(&data, &MixedOptions::default()).unwrap();
//! assert_eq!(fitted.coefficients[1].name, "variantsymbolic");
//! ```

mod cells;
mod cholesky;
mod comparison;
mod data;
mod design;
mod diagnosis;
mod error;
mod fit;
mod formula;
mod frame;
mod gaussian;
mod laplace;
mod layout;
pub mod lme4;
mod marginal;
mod merged;
mod method;
mod optimum;
mod orthogonal;
mod predict;
mod profile;
mod profile_deviation;
mod profile_separated;
mod quadrature;
mod refusal;
mod result;
mod robust;
mod rule;
mod search;
mod separated;
mod separation;
mod summary;
mod system;
mod theta;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod tests_inference;
#[cfg(test)]
pub(crate) mod tests_refusal;

pub use comparison::{Contrast, TermTest, contrasts, term_tests};
pub use data::{Family, MixedData};
pub use design::INTERCEPT;
pub use diagnosis::{Disagreement, MixedDiagnosis, Unbounded};
pub use error::MixedError;
pub(crate) use fit::constant_response;
pub use fit::{IntegralChoice, MixedOptions, disagreement, fit, minus_two_log_likelihood, unrefused};
pub use formula::{Formula, FormulaError, RandomTerm, Terms};
pub use frame::{Column, Frame, Labels};
pub use marginal::{Marginal, MarginalDifference, MarginalLevel, factors, marginal};
pub use method::method_paragraph;
pub use predict::{Prediction, predictions};
pub use profile::{MixedInterval, OpenEnd, profile_interval, profile_p};
pub use profile_deviation::{VarianceTest, profile_deviation, variance_test};
pub use profile_separated::profile_separated;
pub(crate) use refusal::refusals;
pub use result::{Errors, GroupModes, Method, MixedCoefficient, MixedFit, RandomEffect, RobustBasis};
pub(crate) use robust::{Clusters, with_errors_over, with_few_clusters};
pub use robust::{ERROR_EXCESS, robust_errors, with_robust_errors};
pub use separated::{Limit, limit};
pub(crate) use summary::{refused, without_estimates};
