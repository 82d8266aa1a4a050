//! Fit of a mixed model.
use super::MixedError;
use super::data::{Family, MixedData};
use super::design::INTERCEPT;
use super::diagnosis::{Disagreement, MixedDiagnosis};
use super::formula::{RandomTerm, Terms};
use super::gaussian::Gaussian;
use super::laplace::{Criterion, Laplace};
use super::layout::Layout;
use super::optimum::{best, by_pivots, without_effect};
use super::quadrature::{POINTS, Quadrature};
use super::refusal::refusals;
use super::result::{Method, MixedCoefficient, MixedFit};
use super::rule::{FINE_POINTS, LARGEST_POINTS};
use super::search::Minimum;
use super::separated::{all_or_nothing, separation};
use super::summary::{self, Summary};

/// Options of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixedOptions {
    /// REML instead of maximum likelihood, for linear models.
    pub restricted: bool,
    /// A log-F(1,1) prior on the fixed effects that separate the outcomes, which makes their estimates finite; nothing where none do.
    pub penalised: bool,
    /// The integral over the random effects of binomial models.
    pub integral: IntegralChoice,
}

impl Default for MixedOptions {
    fn default() -> Self {
        MixedOptions { restricted: true, penalised: false, integral: IntegralChoice::Automatic }
    }
}

/// Integration over the random effects of a binomial model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegralChoice {
    /// Laplace's approximation, as lme4 by default; quadrature instead, with 25 points or, where these are too few, by a trapezoidal rule of 401, where there is one random effect a
    /// group of one grouping factor and both differ.
    Automatic,
    /// Laplace's approximation, as lme4 by default. With few answers a group it is poor.
    Laplace,
    /// Quadrature with an odd number of points where there is one random effect a group of one grouping factor, else Laplace's
    /// approximation.
    Quadrature { points: usize },
}

impl IntegralChoice {
    /// Quadrature with 25 points.
    pub const QUADRATURE: IntegralChoice = IntegralChoice::Quadrature { points: POINTS };
}

/// Part of a standard error, and of the random effects' deviation, by which Laplace's approximation may differ from the quadrature and be
/// reported.
const AGREES: f64 = 0.05;
const DEVIATION_AGREES: f64 = 0.1;

/// Change of -2 log L by the finest rule from which a quadrature has too few points.
const SAME: f64 = 0.001;

/// Standard errors by which a coefficient may move from Laplace's approximation to quadrature and be called the same.
const SHIFT: f64 = 0.1;

/// Answers of a group below which Laplace's approximation is poor, and below which it is compared with quadrature: where groups nearly always agree a
/// dozen answers are too few.
const FEW_ANSWERS: f64 = 4.0;
const COMPARED_ANSWERS: f64 = 30.0;

/// Part of the outcomes' variance that residuals must have.
const NO_RESIDUAL: f64 = 1e-10;

/// Most variances and correlations of the random effects. Every one is a dimension of the search, and the matrices of a step have its
/// square.
const MOST_COVARIANCES: usize = 40;

/// Fits a model. A fit that did not converge, a binomial one that misses the data or an effect, or whose random effects ran away, has no numbers and says why.
///
/// # Errors
/// If the number of points is even, if there are more variances and correlations than a fit can find, or if the matrices would be too large;
/// what is wrong with a fit itself is among its diagnoses.
pub fn fit(data: &MixedData, options: &MixedOptions) -> Result<MixedFit, MixedError> {
    let found = unrefused(data, options)?;
    let refusals = refusals(data, &found, options);
    Ok(if refusals.is_empty() { found } else { summary::refused(data, &found, refusals) })
}

/// Fits a model, and keeps the numbers of a fit that is to be refused: for those who look for a simpler one, and for comparisons of engines.
pub fn unrefused(data: &MixedData, options: &MixedOptions) -> Result<MixedFit, MixedError> {
    if let IntegralChoice::Quadrature { points } = options.integral
        && (points > LARGEST_POINTS && points != FINE_POINTS || points % 2 == 0)
    {
        return Err(MixedError::Points { points, largest: LARGEST_POINTS });
    }
    let parameters = data.covariances();
    if parameters > MOST_COVARIANCES {
        return Err(MixedError::ManyCovariances { parameters, most: MOST_COVARIANCES });
    }
    let layout = Layout::new(data)?;
    match data.family {
        Family::Binomial => fit_binomial(data, &layout, options),
        Family::Gaussian => fit_gaussian(data, &layout, options.restricted),
    }
}

fn fit_binomial(data: &MixedData, layout: &Layout, options: &MixedOptions) -> Result<MixedFit, MixedError> {
    if let Some(diagnosis) = constant_response(data) {
        return Ok(summary::without_estimates(data, Method::Laplace, diagnosis));
    }
    let mut units = vec![0.0; data.columns()];
    if let Some(separated) = separation(data) {
        if !options.penalised {
            return Ok(summary::without_estimates(data, Method::Laplace, separated.diagnosis(data)));
        }
        units = separated.units(data);
    } else if let Some(diagnosis) = all_or_nothing(data)? {
        return Ok(summary::without_estimates(data, Method::Laplace, diagnosis));
    }
    let laplace = || by_integral(data, layout, &units, 1);
    match options.integral {
        IntegralChoice::Quadrature { points } if data.has_one_effect() => {
            let mut fit = by_integral(data, layout, &units, points)?;
            let change = change_by_points(data, layout, &fit);
            if points > 1 && change > SAME {
                fit.diagnoses.push(MixedDiagnosis::FewPoints { points, change });
            }
            Ok(fit)
        }
        IntegralChoice::Automatic if data.has_one_effect() => {
            let mut laplace = laplace()?;
            match by_enough_points(data, layout, &units) {
                Ok(quadrature) if quadrature.converged => {
                    return Ok(if agree(&laplace, &quadrature) { laplace } else { quadrature });
                }
                _ => laplace.diagnoses.push(MixedDiagnosis::NoQuadrature),
            }
            Ok(laplace)
        }
        _ if data.has_one_effect() => laplace(),
        _ => {
            let mut laplace = laplace()?;
            laplace.diagnoses.extend(poor_laplace(data));
            Ok(laplace)
        }
    }
}

/// The fit by quadrature with 25 points, or by the finest rule where these are too few.
fn by_enough_points(data: &MixedData, layout: &Layout, units: &[f64]) -> Result<MixedFit, MixedError> {
    let fit = by_integral(data, layout, units, POINTS)?;
    if change_by_points(data, layout, &fit) <= SAME {
        return Ok(fit);
    }
    by_integral(data, layout, units, FINE_POINTS)
}

/// Change of -2 log L at a fit by the finest rule.
fn change_by_points(data: &MixedData, layout: &Layout, fit: &MixedFit) -> f64 {
    let mut finer = Quadrature::new(data, layout, FINE_POINTS);
    finer.laplace.units = fit.units.clone();
    let values = finer.evaluate(&fit.at, None).zip(fit.minus_two_log_likelihood);
    values.map_or(f64::INFINITY, |(finer, value)| (finer - value).abs())
}

/// Distance of Laplace's approximation from a quadrature of the same model, if it is more than a tenth of a standard error in a coefficient or
/// a tenth of the random deviation.
pub fn disagreement(laplace: &MixedFit, quadrature: &MixedFit) -> Option<MixedDiagnosis> {
    let (laplace_sd, quadrature_sd) = (laplace.deviation()?, quadrature.deviation()?);
    let (coefficient, standard_errors) = largest_shift(laplace, quadrature, |_| true)?;
    let differs = standard_errors > SHIFT || (laplace_sd - quadrature_sd).abs() > 0.1 * laplace_sd.max(quadrature_sd);
    let points = quadrature.points;
    differs.then_some(MixedDiagnosis::ApproximationsDisagree(Disagreement {
        coefficient,
        standard_errors,
        laplace_sd,
        quadrature_sd,
        points,
    }))
}

/// Minus twice the marginal log-likelihood of a model with one random effect at given parameters: its standard deviation and the
/// coefficients, with any number of quadrature points.
pub fn minus_two_log_likelihood(
    data: &MixedData,
    deviation: f64,
    coefficients: &[f64],
    points: usize,
) -> Result<f64, MixedError> {
    if points == 0 || points > LARGEST_POINTS {
        return Err(MixedError::Points { points, largest: LARGEST_POINTS });
    }
    let missing = |reason: &str| MixedError::NotEstimated { reason: reason.to_owned() };
    if !data.has_one_effect() || data.family != Family::Binomial || coefficients.len() != data.columns() {
        return Err(missing("a likelihood at given parameters needs one random effect and a number for every column"));
    }
    let layout = Layout::new(data)?;
    let mut at = vec![deviation * data.groupings[0].scale[0]];
    at.extend(data.fixed.from_caller.times(coefficients));
    let value = match points {
        1 => Laplace::new(data, &layout).evaluate(&at, None),
        _ => Quadrature::new(data, &layout, points).evaluate(&at, None),
    };
    value.ok_or_else(|| missing("the likelihood is no number there"))
}

/// The warning of models whose finest groups have too few answers for Laplace's approximation.
fn poor_laplace(data: &MixedData) -> Option<MixedDiagnosis> {
    let grouping = data.groupings.first()?;
    let answers = data.rows as f64 / grouping.levels.len() as f64;
    let alone = (answers < COMPARED_ANSWERS).then(|| shift_alone(data, &grouping.name)).flatten();
    let is_poor = answers < FEW_ANSWERS || alone.is_some();
    is_poor.then(|| MixedDiagnosis::PoorLaplace { group: grouping.name.clone(), answers, alone })
}

/// Distance of Laplace's approximation from quadrature in the effect that moves most, where only the intercepts of one factor's groups vary; none
/// if it is at most a tenth of a standard error, or if one of both has no estimates.
fn shift_alone(data: &MixedData, group: &str) -> Option<Disagreement> {
    let of_group = |term: &&RandomTerm| term.group_name() == group;
    let term = data.formula.random.iter().find(of_group)?;
    let only = RandomTerm { effects: Terms::intercept(), group: term.group.clone(), independent: false };
    let only = data.with_random(vec![only]).ok()?;
    let by = |integral: IntegralChoice| {
        let fitted = unrefused(&only, &MixedOptions { integral, ..MixedOptions::default() });
        fitted.ok().filter(|fitted| fitted.is_usable() && fitted.converged)
    };
    let (laplace, quadrature) = (by(IntegralChoice::Laplace)?, by(IntegralChoice::Automatic)?);
    let (coefficient, standard_errors) = largest_shift(&laplace, &quadrature, |name| name != INTERCEPT)?;
    (standard_errors > SHIFT).then_some(Disagreement {
        coefficient,
        standard_errors,
        laplace_sd: laplace.deviation()?,
        quadrature_sd: quadrature.deviation()?,
        points: quadrature.points,
    })
}

/// The coefficient among some that differs most between two fits, and by how many standard errors of the second.
fn largest_shift(one: &MixedFit, other: &MixedFit, among: impl Fn(&str) -> bool) -> Option<(String, f64)> {
    let shift = |(left, right): (&MixedCoefficient, &MixedCoefficient)| {
        let shift = (left.estimate? - right.estimate?).abs() / right.standard_error?;
        Some((left.name.clone(), shift))
    };
    let pairs = one.coefficients.iter().zip(&other.coefficients).filter(|(one, _)| among(&one.name));
    pairs.filter_map(shift).max_by(|left, right| left.1.total_cmp(&right.1))
}

/// True if Laplace's approximation is as good as the quadrature.
fn agree(laplace: &MixedFit, quadrature: &MixedFit) -> bool {
    let near = |(laplace, quadrature): (&MixedCoefficient, &MixedCoefficient)| {
        let both = laplace.estimate.zip(quadrature.estimate).zip(quadrature.standard_error);
        both.is_some_and(|((laplace, quadrature), error)| (laplace - quadrature).abs() <= AGREES * error)
    };
    let deviation = |fit: &MixedFit| fit.random.first().map_or(0.0, |effect| effect.sd[0]);
    let (one, other) = (deviation(laplace), deviation(quadrature));
    laplace.converged
        && laplace.coefficients.iter().zip(&quadrature.coefficients).all(near)
        && (one - other).abs() <= DEVIATION_AGREES * one.max(other)
}

/// Laplace's criterion with log-F priors.
fn penalised<'d>(data: &'d MixedData, layout: &'d Layout, units: &[f64]) -> Laplace<'d> {
    let mut criterion = Laplace::new(data, layout);
    criterion.units = units.to_vec();
    criterion
}

/// The minimum of Laplace's criterion; none where it is no number.
fn best_by_laplace(data: &MixedData, layout: &Layout, units: &[f64]) -> Result<Option<Minimum>, MixedError> {
    let merged = data.merged().map(|merged| Ok::<_, MixedError>((Layout::new(&merged)?, merged))).transpose()?;
    let (own, smaller) = merged.as_ref().map_or((layout, data), |(own, smaller)| (own, smaller));
    let mut criterion = penalised(smaller, own, units);
    let Some(found) = best(&mut criterion) else { return Ok(None) };
    let again = |data: &MixedData| best(&mut penalised(data, own, units));
    let minimum = by_pivots(&mut criterion, smaller, found, &again);
    // With few outcomes of a kind Laplace's approximation can have a second, lower minimum at a large deviation that the likelihood itself
    // does not have. Quadrature tells which of both it supports.
    if data.has_one_effect()
        && minimum.at[0] != 0.0
        && let Some(without) = without_effect(&mut criterion)
    {
        let mut quadrature = Quadrature::new(data, layout, POINTS);
        quadrature.laplace.units = units.to_vec();
        let values = quadrature.evaluate(&without.at, None).zip(quadrature.evaluate(&minimum.at, None));
        if values.is_some_and(|(without, with)| without < with) {
            return Ok(Some(without));
        }
    }
    Ok(Some(minimum))
}

/// The fit by an integral over the random effects with so many points; 1 is Laplace's approximation.
fn by_integral(data: &MixedData, layout: &Layout, units: &[f64], points: usize) -> Result<MixedFit, MixedError> {
    let method = if points == 1 { Method::Laplace } else { Method::Quadrature };
    let minimum = if method == Method::Quadrature {
        let mut criterion = Quadrature::new(data, layout, points);
        criterion.laplace.units = units.to_vec();
        best(&mut criterion)
    } else {
        best_by_laplace(data, layout, units)?
    };
    let minimum = minimum.ok_or_else(|| MixedError::NotEstimated {
        reason: "the likelihood cannot be computed; check the columns' units".into(),
    })?;
    let mut criterion = penalised(data, layout, units);
    let theta_map = criterion.theta.clone();
    let lambda = theta_map.factors(&minimum.at[..theta_map.len()]);
    criterion
        .evaluate(&minimum.at, None)
        .ok_or_else(|| MixedError::NotEstimated { reason: "the likelihood is no number at the estimate".into() })?;
    let information = criterion.information(&lambda);
    let modes = criterion.modes.clone();
    let summary =
        Summary { data, layout, theta: &theta_map, minimum: &minimum, information: &information, modes: &modes };
    let mut fit = summary.binomial(method, units.to_vec(), criterion.conditional_deviance());
    fit.points = points;
    Ok(fit)
}

fn fit_gaussian(data: &MixedData, layout: &Layout, restricted: bool) -> Result<MixedFit, MixedError> {
    let method = if restricted { Method::Restricted } else { Method::MaximumLikelihood };
    if let Some(diagnosis) = constant_response(data) {
        return Ok(summary::without_estimates(data, method, diagnosis));
    }
    let mut criterion = Gaussian::new(data, layout, restricted);
    let no_error = || MixedError::NotEstimated {
        reason: "the model fits every row without error, so there is no residual variance to \
                                                          compare effects with"
            .into(),
    };
    let minimum = best(&mut criterion).ok_or_else(no_error)?;
    let minimum = by_pivots(&mut criterion, data, minimum, &|data| best(&mut Gaussian::new(data, layout, restricted)));
    criterion.evaluate(&minimum.at, None).ok_or_else(no_error)?;
    let variance = criterion.squares / criterion.degrees();
    // Below that rounding is what the residuals show, and every error is computed from them.
    if variance.is_nan() || variance <= NO_RESIDUAL * response_variance(data) {
        return Err(no_error());
    }
    let theta = criterion.theta.clone();
    let information = criterion.information.clone();
    let modes = criterion.modes.clone();
    let summary = Summary { data, layout, theta: &theta, minimum: &minimum, information: &information, modes: &modes };
    Ok(summary.gaussian(method, variance, &criterion.beta))
}

/// Variance of the outcomes of all rows.
fn response_variance(data: &MixedData) -> f64 {
    let rows = data.rows as f64;
    let mean = data.total.iter().sum::<f64>() / rows;
    let between = data.total.iter().zip(&data.weight).map(|(total, weight)| weight * (total / weight - mean).powi(2));
    (between.sum::<f64>() + data.within) / rows
}

/// The diagnosis of outcomes that are all alike.
pub(crate) fn constant_response(data: &MixedData) -> Option<MixedDiagnosis> {
    let first = data.total[0] / data.weight[0];
    let constant =
        data.within == 0.0 && data.total.iter().zip(&data.weight).all(|(total, weight)| total / weight == first);
    constant.then_some(MixedDiagnosis::ConstantResponse { value: first })
}
