//! Fit of a mixed model.
use super::MixedError;
use super::data::{Family, MixedData};
use super::diagnosis::MixedDiagnosis;
use super::gaussian::Gaussian;
use super::laplace::{Criterion, Laplace};
use super::layout::Layout;
use super::optimum::{best, by_pivots};
use super::quadrature::Quadrature;
use super::refusal::refusals;
use super::result::{Method, MixedCoefficient, MixedFit};
use super::separated::{separated_units, separation};
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
    /// Laplace's approximation, as lme4 by default; quadrature instead where there is one random effect a group of one grouping factor and
    /// both differ.
    Automatic,
    /// Laplace's approximation, as lme4 by default. With few answers a group it is poor.
    Laplace,
    /// Quadrature with 25 points where there is one random effect a group of one grouping factor, else Laplace's approximation.
    Quadrature,
}

/// Part of a standard error, and of the random effects' deviation, by which Laplace's approximation may differ from the quadrature and be
/// reported.
const AGREES: f64 = 0.05;
const DEVIATION_AGREES: f64 = 0.1;

/// Answers of a group below which Laplace's approximation is poor.
const FEW_ANSWERS: f64 = 4.0;

/// Most variances and correlations of the random effects. Every one is a dimension of the search, and the matrices of a step have its
/// square.
const MOST_COVARIANCES: usize = 40;

/// Fits a model. A binomial fit that misses the data, or whose random effects ran away, has no numbers and says why.
///
/// # Errors
/// If there are more variances and correlations than a fit can find, or if the matrices would be too large; what is wrong with a fit itself is among its diagnoses.
pub fn fit(data: &MixedData, options: &MixedOptions) -> Result<MixedFit, MixedError> {
    let found = unrefused(data, options)?;
    let refusals = refusals(data, &found);
    Ok(if refusals.is_empty() { found } else { summary::refused(data, &found, refusals) })
}

/// Fits a model, and keeps the numbers of a fit that is to be refused, for those who look for a simpler one.
pub(crate) fn unrefused(data: &MixedData, options: &MixedOptions) -> Result<MixedFit, MixedError> {
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
    if let Some(diagnosis) = separation(data) {
        if !options.penalised {
            return Ok(summary::without_estimates(data, Method::Laplace, diagnosis));
        }
        units = separated_units(data, &diagnosis);
    }
    let by = |method| by_integral(data, layout, &units, method);
    match options.integral {
        IntegralChoice::Quadrature if data.has_one_effect() => by(Method::Quadrature),
        IntegralChoice::Automatic if data.has_one_effect() => {
            let mut laplace = by(Method::Laplace)?;
            match by(Method::Quadrature) {
                Ok(quadrature) if quadrature.converged => {
                    return Ok(if agree(&laplace, &quadrature) { laplace } else { quadrature });
                }
                _ => laplace.diagnoses.push(MixedDiagnosis::NoQuadrature),
            }
            Ok(laplace)
        }
        IntegralChoice::Laplace => by(Method::Laplace),
        _ => {
            let mut laplace = by(Method::Laplace)?;
            laplace.diagnoses.extend(poor_laplace(data));
            Ok(laplace)
        }
    }
}

/// The warning of models whose finest groups have too few answers for Laplace's approximation.
fn poor_laplace(data: &MixedData) -> Option<MixedDiagnosis> {
    let grouping = data.groupings.first()?;
    let answers = data.rows as f64 / grouping.levels.len() as f64;
    (answers < FEW_ANSWERS).then(|| MixedDiagnosis::PoorLaplace { group: grouping.name.clone(), answers })
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

/// The fit by one of the integrals over the random effects.
fn by_integral(data: &MixedData, layout: &Layout, units: &[f64], method: Method) -> Result<MixedFit, MixedError> {
    let mut criterion = penalised(data, layout, units);
    let minimum = if method == Method::Quadrature {
        let mut criterion = Quadrature::new(data, layout);
        criterion.laplace.units = units.to_vec();
        best(&mut criterion)
    } else {
        best(&mut criterion)
            .map(|minimum| by_pivots(&mut criterion, data, minimum, &|data| best(&mut penalised(data, layout, units))))
    };
    let minimum = minimum.ok_or_else(|| MixedError::NotEstimated {
        reason: "the likelihood cannot be computed; check the columns' units".into(),
    })?;
    let theta_map = criterion.theta.clone();
    let lambda = theta_map.factors(&minimum.at[..theta_map.len()]);
    criterion
        .evaluate(&minimum.at, None)
        .ok_or_else(|| MixedError::NotEstimated { reason: "the likelihood is no number at the estimate".into() })?;
    let information = criterion.information(&lambda);
    let modes = criterion.modes.clone();
    let summary =
        Summary { data, layout, theta: &theta_map, minimum: &minimum, information: &information, modes: &modes };
    Ok(summary.binomial(method, units.to_vec(), criterion.conditional_deviance()))
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
    if variance.is_nan() || variance <= 0.0 {
        return Err(no_error());
    }
    let theta = criterion.theta.clone();
    let information = criterion.information.clone();
    let modes = criterion.modes.clone();
    let summary = Summary { data, layout, theta: &theta, minimum: &minimum, information: &information, modes: &modes };
    Ok(summary.gaussian(method, variance, &criterion.beta))
}

fn constant_response(data: &MixedData) -> Option<MixedDiagnosis> {
    let first = data.total[0] / data.weight[0];
    let constant =
        data.within == 0.0 && data.total.iter().zip(&data.weight).all(|(total, weight)| total / weight == first);
    constant.then_some(MixedDiagnosis::ConstantResponse { value: first })
}
