//! Profile-likelihood intervals and likelihood-ratio tests.
//!
//! The interval of a parameter holds the values that a likelihood-ratio test does not reject: those where minus twice the
//! log-likelihood, minimised over all other parameters, exceeds its minimum by less than the chi-squared quantile. It needs
//! no standard error, follows the likelihood's asymmetry, and has a finite end even for a separated coefficient.
use std::fmt;

use serde::Serialize;

use super::data::GlmmData;
use super::diagnosis::{Diagnosis, SeparationKind};
use super::error::GlmmError;
use super::likelihood::Likelihood;
use super::optimiser;
use super::result::{GlmmFit, GlmmOptions, Objective};
use super::separation::by_fixed_effects;
use crate::distribution::{chi_squared_upper, normal_quantile};
use crate::matrix::Matrix;

/// A parameter of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter<'a> {
    /// The standard deviation of the random intercepts.
    RandomSd,
    /// A fixed effect, by name.
    Coefficient(&'a str),
}

/// A profile-likelihood interval; an absent end is infinite, for the reason beside it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProfileInterval {
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Reason for an infinite lower end.
    pub low_open: Option<OpenEnd>,
    /// Reason for an infinite upper end.
    pub high_open: Option<OpenEnd>,
    /// Quadrature points of the likelihood: the fit's; or [`QUADRATURE`] for a Laplace fit whose profile meets values that
    /// Laplace's approximation takes for better than the fit (hardly any success, large random SDs).
    pub points: usize,
}

/// Points of the quadrature that a profile of a Laplace fit falls back on.
pub const QUADRATURE: usize = 25;

/// Reason for an infinite end of a profile interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenEnd {
    /// The coefficient is separated: the likelihood rises towards this end.
    Separated,
    /// The likelihood stays near its maximum as far as the search went: the data hardly limit this side.
    Flat,
}

impl fmt::Display for OpenEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            OpenEnd::Separated => "separation, the likelihood rises towards it",
            OpenEnd::Flat => "the likelihood does not fall enough within reach of the search",
        })
    }
}

/// A Wald interval of a coefficient: estimate plus and minus quantile times standard error.
pub fn wald_interval(estimate: f64, standard_error: f64, level: f64) -> Result<(f64, f64), GlmmError> {
    let reach = quantile(level)? * standard_error;
    Ok((estimate - reach, estimate + reach))
}

fn quantile(level: f64) -> Result<f64, GlmmError> {
    if level > 0.0 && level < 1.0 {
        Ok(normal_quantile(0.5 + 0.5 * level))
    } else {
        Err(GlmmError::Confidence { level })
    }
}

/// The profile-likelihood interval of a parameter of a converged fit of these data.
///
/// Under separation the coefficients that run away have an interval with one end; the others, and the random SD, have that of
/// the rows that overlap, because the separated rows are predicted perfectly whatever their value is.
///
/// # Errors
/// [`GlmmError::Incomparable`] where there is no interval, with the reason: the fit has no likelihood or is not its maximum.
pub fn profile_interval(
    data: &GlmmData,
    fit: &GlmmFit,
    parameter: Parameter<'_>,
    level: f64,
) -> Result<ProfileInterval, GlmmError> {
    let quantile = quantile(level)?;
    let Objective::Converged { points } = fit.objective else {
        return Err(incomparable("a profile needs a smooth likelihood; fit with the converged objective"));
    };
    if fit.coefficients.len() != data.columns() || fit.rows != data.rows() {
        return Err(incomparable("the fit is not of these data"));
    }
    let index = match parameter {
        Parameter::RandomSd => 0,
        Parameter::Coefficient(name) => {
            let found = data.names().iter().position(|known| known == name);
            1 + found.ok_or_else(|| incomparable(&format!("there is no coefficient `{name}`")))?
        }
    };
    let separation = fit.diagnoses.iter().find_map(|diagnosis| match diagnosis {
        Diagnosis::Separation { kind, unbounded, .. } => Some((*kind, unbounded)),
        _ => None,
    });
    let minimum = match (fit.minus_two_log_likelihood, separation) {
        (Some(value), _) => value + data.twice_log_constant(),
        // Every row is predicted perfectly in the limit.
        (None, Some((SeparationKind::Complete, _))) => 0.0,
        (None, _) => return Err(incomparable(NO_LIKELIHOOD)),
    };
    let unbounded = separation.map(|(_, unbounded)| unbounded);
    let runs_away = |name: &str| unbounded.and_then(|unbounded| unbounded.iter().find(|one| one.name == name));
    let found = match (index.checked_sub(1).and_then(|column| runs_away(&data.names()[column])), separation) {
        (Some(found), _) => Some(found.increasing),
        (None, None) => None,
        (None, Some((SeparationKind::Complete, _))) => {
            return Err(incomparable("every row is predicted perfectly, so nothing tells of it"));
        }
        (None, Some((SeparationKind::Quasi, _))) => return overlapping_profile(data, points, parameter, level),
    };
    // Without centring every coefficient, the intercept too, is one inner parameter times a scale.
    let caller = data;
    let uncentred;
    let data = if index == 1 {
        uncentred = data.uncentred();
        &uncentred
    } else {
        data
    };
    let scale = data.to_caller().get(index, index);
    let mut profile = Profile { likelihood: Likelihood::new(data, points), index, minimum, lowest: minimum };
    let interval = match found {
        Some(increasing) => profile.separated(fit.random_sd.unwrap_or(1.0).max(0.1), increasing, quantile),
        None => {
            let estimates: Option<Vec<f64>> = fit
                .random_sd
                .into_iter()
                .map(Some)
                .chain(fit.coefficients.iter().map(|coefficient| coefficient.estimate))
                .collect();
            let at = data.to_inner(&estimates.ok_or_else(|| incomparable(NO_LIKELIHOOD))?);
            let error = if index == 0 { fit.random_sd_error } else { fit.coefficients[index - 1].standard_error };
            profile.both_sides(&at, error.map_or(1.0, |error| error / scale), quantile)
        }
    };
    if profile.lowest < profile.minimum - BETTER {
        if points == 1 {
            let quadrature = super::fit::fit(caller, &GlmmOptions::quadrature(QUADRATURE))?;
            return profile_interval(caller, &quadrature, parameter, level);
        }
        return Err(incomparable(&format!(
            "the search met a -2 log L that is {:.2e} below the fit's, which is therefore not the best one",
            profile.minimum - profile.lowest
        )));
    }
    let unit = |end: Option<f64>| end.map(|end| end * scale);
    Ok(ProfileInterval { low: unit(interval.low), high: unit(interval.high), points, ..interval })
}

const NO_LIKELIHOOD: &str = "the fit has no likelihood, see its diagnoses";

/// The interval of what separation leaves alone: that of the rows that overlap.
fn overlapping_profile(
    data: &GlmmData,
    points: usize,
    parameter: Parameter<'_>,
    level: f64,
) -> Result<ProfileInterval, GlmmError> {
    let separation = by_fixed_effects(data).ok_or_else(|| incomparable("the fit is not of these data"))?;
    let (rest, _) = data.restricted(&separation.overlapping);
    if let Parameter::Coefficient(name) = parameter
        && !rest.names().iter().any(|known| known == name)
    {
        return Err(incomparable("the rows that are not predicted perfectly do not determine it"));
    }
    let limit = super::fit::fit(&rest, &GlmmOptions::quadrature(points))?;
    profile_interval(&rest, &limit, parameter, level)
}

fn incomparable(reason: &str) -> GlmmError {
    GlmmError::Incomparable { reason: reason.to_owned() }
}

/// Multiples of a standard error (or of one) after which an end counts as infinite.
const FARTHEST: f64 = 64.0;
/// A -2 log L that is lower by more than this is another one.
const BETTER: f64 = 1e-5;
/// Accuracy of the root of the likelihood ratio at an end.
const ROOT_TOLERANCE: f64 = 1e-7;

struct Profile<'a> {
    likelihood: Likelihood<'a>,
    index: usize,
    /// -2 log L of the fit.
    minimum: f64,
    /// The lowest that the search met.
    lowest: f64,
}

impl Profile<'_> {
    /// Minimises over the other parameters with this one held at `value`; returns the square root of the excess over the
    /// fit, and the point.
    fn excess(&mut self, value: f64, start: &[f64], inverse: &Matrix) -> (f64, Vec<f64>) {
        let index = self.index;
        let free = |full: &[f64]| -> Vec<f64> {
            full.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, value)| *value).collect()
        };
        let mut full = start.to_vec();
        full[index] = value;
        let mut full_gradient = vec![0.0; full.len()];
        let likelihood = &mut self.likelihood;
        let mut objective = |at: &[f64], gradient: &mut [f64]| {
            let mut rest = at.iter();
            for (other, value) in full.iter_mut().enumerate() {
                if other != index
                    && let Some(next) = rest.next()
                {
                    *value = *next;
                }
            }
            let result = likelihood.evaluate(&full, &mut full_gradient);
            gradient.copy_from_slice(&free(&full_gradient));
            result
        };
        let found = optimiser::minimise(&mut objective, &free(start), inverse.clone());
        let mut at = found.at;
        at.insert(index, value);
        let excess = found.value - self.minimum;
        self.lowest = self.lowest.min(found.value);
        (excess.max(0.0).sqrt(), at)
    }

    fn both_sides(&mut self, at: &[f64], error: f64, quantile: f64) -> ProfileInterval {
        let size = at.len();
        let mut start = at.to_vec();
        let likelihood = &mut self.likelihood;
        let hessian =
            optimiser::hessian(&mut |at, gradient| likelihood.evaluate(at, gradient), &start, &vec![1.0; size]);
        let others = hessian.without(self.index);
        // At a singular fit the function is flat in the random SD by symmetry; a small one leaves the saddle, if any.
        let inverse = others.cholesky().map_or_else(|| optimiser::identity(size - 1), |factor| factor.inverse());
        if self.index != 0 {
            start[0] = start[0].max(0.05);
        }
        let high = self.side(&start, at[self.index], error, quantile, &inverse);
        let low = if self.index == 0 {
            let (excess, _) = self.excess(0.0, &start, &inverse);
            if excess <= quantile { Some(0.0) } else { self.side(&start, at[0], -error, quantile, &inverse) }
        } else {
            self.side(&start, at[self.index], -error, quantile, &inverse)
        };
        let open = |end: Option<f64>| end.is_none().then_some(OpenEnd::Flat);
        ProfileInterval { low, high, low_open: open(low), high_open: open(high), points: 1 }
    }

    /// The end in the direction of `error`: brackets by steps of the error, then regula falsi with bisection. The root of the
    /// excess is nearly linear in the parameter, so a few evaluations do.
    fn side(&mut self, start: &[f64], from: f64, error: f64, quantile: f64, inverse: &Matrix) -> Option<f64> {
        let (mut near, mut near_root) = (from, -quantile);
        let mut point = start.to_vec();
        let mut step = error * quantile;
        let (mut far, mut far_root);
        loop {
            far = near + step;
            if self.index == 0 {
                far = far.max(0.0);
            }
            let (excess, at) = self.excess(far, &point, inverse);
            far_root = excess - quantile;
            if !excess.is_finite() {
                return None;
            }
            point = at;
            if far_root >= 0.0 {
                break;
            }
            (near, near_root) = (far, far_root);
            step *= 1.5;
            if (far - from).abs() > FARTHEST * error.abs() * quantile {
                return None;
            }
        }
        self.root(near, near_root, far, far_root, &point, inverse, quantile)
    }

    #[expect(clippy::too_many_arguments, reason = "the two ends of a bracket with their values")]
    fn root(
        &mut self,
        mut near: f64,
        mut near_root: f64,
        mut far: f64,
        mut far_root: f64,
        point: &[f64],
        inverse: &Matrix,
        quantile: f64,
    ) -> Option<f64> {
        let mut point = point.to_vec();
        for iteration in 0..60 {
            let share = if iteration % 4 == 3 { 0.5 } else { near_root / (near_root - far_root) };
            let middle = near + share * (far - near);
            let (excess, at) = self.excess(middle, &point, inverse);
            let root = excess - quantile;
            point = at;
            if root.abs() < ROOT_TOLERANCE || (far - near).abs() < 1e-12 * (1.0 + middle.abs()) {
                return Some(middle);
            }
            if root < 0.0 { (near, near_root) = (middle, root) } else { (far, far_root) = (middle, root) }
        }
        Some(0.5 * (near + far))
    }

    /// A separated coefficient: infinite on one side, and the excess falls monotonically towards it. `random_sd` is where
    /// the search of the others begins.
    fn separated(&mut self, random_sd: f64, increasing: bool, quantile: f64) -> ProfileInterval {
        let end = self.separated_end(random_sd, increasing, quantile);
        let open = Some(OpenEnd::Separated);
        let other = end.is_none().then_some(OpenEnd::Flat);
        if increasing {
            ProfileInterval { low: end, high: None, low_open: other, high_open: open, points: 1 }
        } else {
            ProfileInterval { low: None, high: end, low_open: open, high_open: other, points: 1 }
        }
    }

    fn separated_end(&mut self, random_sd: f64, increasing: bool, quantile: f64) -> Option<f64> {
        let sign = if increasing { 1.0 } else { -1.0 };
        let columns = self.likelihood.columns();
        let inverse = optimiser::identity(columns);
        let mut start = vec![0.0; columns + 1];
        start[0] = random_sd;
        // From zero outwards in both directions, by doubling: towards infinity the excess falls below the quantile.
        let (mut excess, mut point) = self.excess(0.0, &start, &inverse);
        let outside = excess > quantile;
        let direction = if outside { sign } else { -sign };
        let (mut previous, mut previous_root) = (0.0, excess - quantile);
        let mut step = 0.05;
        for _ in 0..12 {
            let value = direction * step;
            (excess, point) = self.excess(value, &point, &inverse);
            let root = excess - quantile;
            if (root > 0.0) != outside {
                let (near, near_root, far, far_root) = if outside {
                    (value, root, previous, previous_root)
                } else {
                    (previous, previous_root, value, root)
                };
                return self.root(near, near_root, far, far_root, &point, &inverse, quantile);
            }
            (previous, previous_root) = (value, root);
            step *= 2.0;
        }
        None
    }
}

/// A likelihood-ratio test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LikelihoodRatio {
    /// Difference of minus twice the log-likelihoods.
    pub statistic: f64,
    /// Difference of the numbers of parameters.
    pub degrees_of_freedom: usize,
    /// Upper chi-squared tail.
    pub p: f64,
}

/// Compares two nested fits of the same rows.
pub fn likelihood_ratio(null: &GlmmFit, full: &GlmmFit) -> Result<LikelihoodRatio, GlmmError> {
    if null.objective != full.objective {
        return Err(incomparable("they were fitted with different objectives"));
    }
    if (null.rows, null.groups) != (full.rows, full.groups) {
        return Err(incomparable(&format!(
            "one has {} rows in {} groups, the other {} in {}; drop the same rows with missing values from both",
            null.rows, null.groups, full.rows, full.groups
        )));
    }
    let nested = null.coefficients.iter().all(|coefficient| full.coefficient(&coefficient.name).is_some());
    if !nested || null.coefficients.len() >= full.coefficients.len() {
        return Err(incomparable("the first must have a part of the second's fixed effects"));
    }
    let (Some(small), Some(large)) = (null.minus_two_log_likelihood, full.minus_two_log_likelihood) else {
        return Err(incomparable("a fit has no likelihood, see its diagnoses"));
    };
    let degrees_of_freedom = full.coefficients.len() - null.coefficients.len();
    let statistic = small - large;
    Ok(LikelihoodRatio { statistic, degrees_of_freedom, p: chi_squared_upper(statistic, degrees_of_freedom as f64) })
}

/// Tests a random variance of zero: the ratio against logistic regression, whose reference is an equal mixture of
/// chi-squared with 0 and 1 degrees of freedom, as zero is on the boundary (Self and Liang 1987).
pub fn variance_ratio(data: &GlmmData, fit: &GlmmFit) -> Result<LikelihoodRatio, GlmmError> {
    let full =
        fit.minus_two_log_likelihood.ok_or_else(|| incomparable("the fit has no likelihood, see its diagnoses"))?;
    // Rows that are predicted perfectly add nothing to either.
    let overlapping = by_fixed_effects(data).map(|separation| data.restricted(&separation.overlapping).0);
    let null = super::logistic::fit(overlapping.as_ref().unwrap_or(data));
    if !null.converged {
        return Err(incomparable("the model without random intercepts has no finite estimates"));
    }
    let statistic = null.minus_two_log_likelihood - data.twice_log_constant() - full;
    let p = if statistic <= 1e-8 { 1.0 } else { 0.5 * chi_squared_upper(statistic, 1.0) };
    Ok(LikelihoodRatio { statistic: statistic.max(0.0), degrees_of_freedom: 1, p })
}
