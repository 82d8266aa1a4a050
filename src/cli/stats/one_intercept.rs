//! Report on models with one random effect: profile intervals, the test of its variance, a bootstrap.
use clap::ValueEnum;
use serde::{Serialize, Serializer};

use super::failed::{about, require};
use super::glmm::IntervalMethod;
use super::mixed::{Common, Interval};
use crate::cli::error::CliError;
use earnest_stats::bootstrap::{Bootstrap, bootstrap_model};
use earnest_stats::mixed::{
    Column, Errors, Family, Frame, IntegralChoice, Limit, Method, MixedData, MixedDiagnosis, MixedError, MixedFit,
    MixedInterval, MixedOptions, VarianceTest, factors, fit, lme4, profile_deviation, profile_interval,
    profile_separated, variance_test,
};

/// Name of the random SD beside the coefficients.
pub(super) const RANDOM_SD: &str = "random SD";

/// `--cross-check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Whatever the size of the data
    Always,
    /// No comparison
    Never,
}

/// The 25-point quadrature that a Laplace fit is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CrossCheck {
    /// Done; where both differ the fit is by quadrature, or the disagreement is among the diagnoses.
    Done,
    /// Skipped by `--cross-check never`.
    SkippedAsAsked,
    /// Skipped for many different rows in groups with many answers of both kinds, where Laplace's approximation is good.
    SkippedForSize,
    /// Not applicable: quadrature already, lme4's objective, several random effects, or no estimates.
    NotApplicable,
}

/// Number of different rows from which large groups are not compared with quadrature by default, and the answers of the rarer outcome that
/// make a group large.
pub(super) const MANY_ROWS: usize = 100_000;
const LARGE_GROUP: f64 = 50.0;

/// True where the comparison takes minutes and would tell nothing.
pub(super) fn is_large(data: &MixedData) -> bool {
    data.cells() > MANY_ROWS && data.rarer_outcomes() >= LARGE_GROUP
}

/// A parameter without an interval.
#[derive(Debug, Serialize)]
pub(super) struct MissingInterval {
    pub(super) parameter: String,
    pub(super) reason: String,
}

/// A column of labels among the fixed effects.
#[derive(Debug, Serialize)]
struct Labels {
    column: String,
    /// Reference level.
    reference: String,
    /// Levels beside the reference.
    levels: Vec<String>,
}

/// Part of a report on a model with one random intercept.
#[derive(Debug, Serialize)]
pub(super) struct OneIntercept {
    response: String,
    fixed: Vec<String>,
    pub(super) group: String,
    labels: Vec<Labels>,
    pub(super) random_sd_interval: Option<Interval>,
    /// Parameters without an interval, and the reason.
    pub(super) no_interval: Vec<MissingInterval>,
    pub(super) cross_check: CrossCheck,
    pub(super) variance_test: Option<VarianceTest>,
    pub(super) bootstrap: Option<Bootstrap>,
}

/// True for binomial models with one random intercept.
pub(super) fn is_one(data: &MixedData) -> bool {
    data.family() == Family::Binomial && data.has_one_intercept()
}

/// The part of the report; none for other models.
///
/// # Errors
/// If the bootstrap that was asked for cannot be made.
pub(super) fn of(
    data: &MixedData,
    frame: &Frame,
    found: &MixedFit,
    limit: Option<&Limit>,
    common: Common<'_>,
    mut no_interval: Vec<MissingInterval>,
    cross_check: CrossCheck,
) -> Result<Option<OneIntercept>, CliError> {
    if !is_one(data) {
        require(
            common.bootstrap.is_none(),
            || "--bootstrap needs a binomial model with one random intercept, like (1|group)",
        )?;
        return Ok(None);
    }
    let formula = data.formula();
    let random_sd_interval = match common.ci {
        IntervalMethod::Profile => profile(data, found, limit, RANDOM_SD, common.level, &mut no_interval),
        IntervalMethod::Wald => None,
    };
    let (of_rows, its_fit) = limit.map_or((data, found), |limit| (&limit.data, &limit.fit));
    let bootstrap = match (common.bootstrap, found.coefficients.get(1)) {
        (None, _) => None,
        (Some(_), None) => return Err(CliError::usage("--bootstrap needs a fixed effect; add --fixed")),
        (Some(resamples), Some(first)) => {
            let integral = match found.method {
                Method::Quadrature => IntegralChoice::Quadrature { points: found.points },
                Method::Laplace => IntegralChoice::Laplace,
                _ => {
                    return Err(CliError::usage(
                        "--bootstrap refits by Laplace's approximation or quadrature; leave --objective out",
                    ));
                }
            };
            let options = MixedOptions { integral, ..MixedOptions::default() };
            let name = &first.name;
            let made = bootstrap_model(data, &options, name, resamples, common.seed, common.level);
            Some(made.map_err(|error| {
                let what = format!("cannot bootstrap `{name}`; without --bootstrap the fit's diagnoses are printed");
                about(what, &error)
            })?)
        }
    };
    let labels = factors(data).into_iter().filter_map(|column| match frame.column(&column) {
        Ok(Column::Labels(labels)) => {
            let (reference, levels) = labels.levels.split_first()?;
            Some(Labels { column, reference: reference.clone(), levels: levels.to_vec() })
        }
        _ => None,
    });
    Ok(Some(OneIntercept {
        response: formula.response.clone(),
        fixed: formula.fixed.variables.clone(),
        group: formula.random[0].group_name(),
        labels: labels.collect(),
        random_sd_interval,
        no_interval,
        cross_check,
        // A fit without numbers has no test either.
        variance_test: found.is_usable().then(|| variance_test(of_rows, its_fit).ok()).flatten(),
        bootstrap,
    }))
}

/// The profile interval of a coefficient or of [`RANDOM_SD`]; by quadrature where Laplace's approximation takes values far from its fit for
/// better ones. Where there is none, the reason is added to `missing`.
pub(super) fn profile(
    data: &MixedData,
    found: &MixedFit,
    limit: Option<&Limit>,
    name: &str,
    level: f64,
    missing: &mut Vec<MissingInterval>,
) -> Option<Interval> {
    let by = |found: &MixedFit, limit: Option<&Limit>| ends(data, found, limit, name, level);
    let made = match by(found, limit) {
        Err(MixedError::NotTheBest { .. }) if found.method == Method::Laplace => {
            let options = MixedOptions { integral: IntegralChoice::QUADRATURE, ..MixedOptions::default() };
            let by_quadrature = || -> Result<(MixedInterval, usize), MixedError> {
                let (interval, found) = match limit {
                    Some(limit) => {
                        let refitted = Limit { data: limit.data.clone(), fit: fit(&limit.data, &options)? };
                        (by(found, Some(&refitted))?, refitted.fit)
                    }
                    None => {
                        let refitted = fit(data, &options)?;
                        (by(&refitted, None)?, refitted)
                    }
                };
                Ok((interval, found.points))
            };
            by_quadrature().map(|(interval, points)| Interval::profile(interval, Some(points)))
        }
        made => made.map(|interval| Interval::profile(interval, None)),
    };
    made.map_err(|error| missing.push(MissingInterval { parameter: name.to_owned(), reason: error.to_string() })).ok()
}

fn ends(
    data: &MixedData,
    found: &MixedFit,
    limit: Option<&Limit>,
    name: &str,
    level: f64,
) -> Result<MixedInterval, MixedError> {
    let none = |reason: &str| Err(MixedError::NotEstimated { reason: reason.to_owned() });
    if found.method == Method::Lme4 {
        return none("a profile interval needs a smooth likelihood; fit with the converged objective");
    }
    let separation = found.diagnoses.iter().find_map(|one| match one {
        MixedDiagnosis::Separation { unbounded, complete, .. } => Some((unbounded, *complete)),
        _ => None,
    });
    if let Some((unbounded, complete)) = separation {
        if let Some(one) = unbounded.iter().find(|one| one.name == name) {
            return match (limit, complete) {
                (None, false) => none("the rows that are not predicted perfectly are no model"),
                (limit, _) => profile_separated(data, limit.map(|limit| &limit.fit), one, level),
            };
        }
        if complete {
            return none("every row is predicted perfectly, so nothing tells of it");
        }
    }
    let (data, found) = match (separation, limit) {
        (Some(_), Some(limit)) => (&limit.data, &limit.fit),
        (Some(_), None) => return none("the rows that are not predicted perfectly are no model"),
        (None, _) => (data, found),
    };
    if found.minus_two_log_likelihood.is_none() {
        return none("the fit has no likelihood, see its diagnoses");
    }
    if found.errors == Errors::Robust {
        return none("profile intervals trust the random effects, which the scatter between groups does not bear out");
    }
    if name == RANDOM_SD {
        return profile_deviation(data, found, level);
    }
    if found.coefficient(name).is_none() {
        return none("the rows that are not predicted perfectly do not determine it");
    }
    profile_interval(data, found, name, level)
}

/// A fit with the numbers of its only random effect beside the others.
pub(super) fn with_its_numbers<S: Serializer>(found: &&MixedFit, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Objective {
        Converged { points: usize },
        Lme4 { tolerance: f64 },
    }
    #[derive(Serialize)]
    struct Its<'a> {
        #[serde(flatten)]
        found: &'a MixedFit,
        #[serde(skip_serializing_if = "Option::is_none")]
        objective: Option<Objective>,
        random_sd: Option<f64>,
        random_sd_error: Option<f64>,
        groups: Option<usize>,
    }
    let objective = match found.method {
        Method::Laplace | Method::Quadrature => Some(Objective::Converged { points: found.points }),
        Method::Lme4 => Some(Objective::Lme4 { tolerance: lme4::DEFAULT_TOLERANCE }),
        Method::MaximumLikelihood | Method::Restricted => None,
    };
    let one = found.random.first().filter(|one| found.random.len() == 1 && one.terms.len() == 1);
    let random_sd = one.and_then(|_| found.deviation());
    let random_sd_error = one.and_then(|_| found.deviation_error());
    Its { found, objective, random_sd, random_sd_error, groups: one.map(|one| one.groups) }.serialize(serializer)
}
