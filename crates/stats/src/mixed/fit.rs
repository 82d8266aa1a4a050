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
use super::separated::separation;
use super::summary::{self, Summary};

/// Options of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixedOptions {
    /// REML instead of maximum likelihood, for linear models.
    pub restricted: bool,
    /// Standard deviation, in log odds over standardised columns, of a normal prior of every fixed effect but the intercept
    /// (2.5 is weak: odds ratios of 12 for one standard deviation are not surprising).
    pub prior: Option<f64>,
    /// The integral over the random effects of binomial models.
    pub integral: IntegralChoice,
}

impl Default for MixedOptions {
    fn default() -> Self {
        MixedOptions { restricted: true, prior: None, integral: IntegralChoice::Automatic }
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
    let precision = options.prior.map(|prior| precision(data, prior));
    let fatal = if precision.is_some() {
        constant_response(data)
    } else {
        constant_response(data).or_else(|| separation(data))
    };
    if let Some(diagnosis) = fatal {
        return Ok(summary::without_estimates(data, Method::Laplace, diagnosis));
    }
    let precision = precision.unwrap_or_else(|| vec![0.0; data.columns()]);
    let by = |method| by_integral(data, layout, options.prior, &precision, method);
    match options.integral {
        IntegralChoice::Quadrature if data.has_one_effect() => by(Method::Quadrature),
        IntegralChoice::Automatic if data.has_one_effect() => {
            let (laplace, quadrature) = (by(Method::Laplace)?, by(Method::Quadrature)?);
            Ok(if agree(&laplace, &quadrature) { laplace } else { quadrature })
        }
        _ => by(Method::Laplace),
    }
}

/// True if Laplace's approximation is as good as the quadrature, or the quadrature found no maximum.
fn agree(laplace: &MixedFit, quadrature: &MixedFit) -> bool {
    let near = |(laplace, quadrature): (&MixedCoefficient, &MixedCoefficient)| {
        let both = laplace.estimate.zip(quadrature.estimate).zip(quadrature.standard_error);
        both.is_some_and(|((laplace, quadrature), error)| (laplace - quadrature).abs() <= AGREES * error)
    };
    let deviation = |fit: &MixedFit| fit.random.first().map_or(0.0, |effect| effect.sd[0]);
    let (one, other) = (deviation(laplace), deviation(quadrature));
    !quadrature.converged
        || laplace.converged
            && laplace.coefficients.iter().zip(&quadrature.coefficients).all(near)
            && (one - other).abs() <= DEVIATION_AGREES * one.max(other)
}

/// Laplace's criterion with a prior.
fn penalised<'d>(data: &'d MixedData, layout: &'d Layout, precision: &[f64]) -> Laplace<'d> {
    let mut criterion = Laplace::new(data, layout);
    criterion.precision = precision.to_vec();
    criterion
}

/// The fit by one of the integrals over the random effects.
fn by_integral(
    data: &MixedData,
    layout: &Layout,
    prior: Option<f64>,
    precision: &[f64],
    method: Method,
) -> Result<MixedFit, MixedError> {
    let mut criterion = penalised(data, layout, precision);
    let minimum = if method == Method::Quadrature {
        let mut criterion = Quadrature::new(data, layout);
        criterion.laplace.precision = precision.to_vec();
        best(&mut criterion)
    } else {
        best(&mut criterion).map(|minimum| {
            by_pivots(&mut criterion, data, minimum, &|data| best(&mut penalised(data, layout, precision)))
        })
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
    Ok(summary.binomial(method, prior, criterion.conditional_deviance()))
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

/// Inverse variances of the prior, by coefficient.
fn precision(data: &MixedData, prior: f64) -> Vec<f64> {
    let fixed = &data.fixed;
    let rows = data.rows as f64;
    let of = |(index, column): (usize, &super::design::DesignColumn)| {
        if column.pieces.is_empty() {
            return 0.0;
        }
        let value = |cell: usize| -> f64 {
            (0..=index).map(|inner| fixed.from_caller.get(inner, index) * fixed.cell(cell)[inner]).sum()
        };
        let mean = (0..data.cells()).map(|cell| data.weight[cell] * value(cell)).sum::<f64>() / rows;
        let squares = (0..data.cells()).map(|cell| data.weight[cell] * (value(cell) - mean).powi(2)).sum::<f64>();
        squares / rows / (prior * prior)
    };
    data.columns.iter().enumerate().map(of).collect()
}

fn constant_response(data: &MixedData) -> Option<MixedDiagnosis> {
    let first = data.total[0] / data.weight[0];
    let constant =
        data.within == 0.0 && data.total.iter().zip(&data.weight).all(|(total, weight)| total / weight == first);
    constant.then_some(MixedDiagnosis::ConstantResponse { value: first })
}
