//! A mixed model's fit as the study reports it, with the rule for artefacts.
use serde::Serialize;

use earnest_stats::mixed::{
    IntegralChoice, Method, MixedCoefficient, MixedData, MixedDiagnosis, MixedError, MixedFit, MixedOptions,
    disagreement, fit, lme4, unrefused,
};

/// The multiple of the standard error in the study's intervals.
const WALD: f64 = 1.96;

/// A coefficient, in log odds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    pub estimate: f64,
    pub standard_error: f64,
    pub z: f64,
    /// Two-sided.
    pub p: f64,
    /// Estimate plus and minus 1.96 standard errors.
    pub low: f64,
    pub high: f64,
}

impl Effect {
    /// Effect of a coefficient; `None` without an estimate or a standard error.
    pub(super) fn of(coefficient: Option<&MixedCoefficient>) -> Option<Self> {
        let coefficient = coefficient?;
        let (estimate, standard_error) = (coefficient.estimate?, coefficient.standard_error?);
        let (z, p) = (coefficient.z?, coefficient.p?);
        let usable = [estimate, standard_error, z, p].iter().all(|value| value.is_finite());
        let reach = WALD * standard_error;
        usable.then_some(Effect { estimate, standard_error, z, p, low: estimate - reach, high: estimate + reach })
    }

    /// True if p is below 5 %, uncorrected.
    pub fn is_significant(&self) -> bool {
        self.p < 0.05
    }
}

/// Fit of the same rows with lme4's default settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lme4Fit {
    pub variant: Option<Effect>,
    pub gamma: Option<Effect>,
    /// A standard error below 0.01, or all of them equal: the artefact of lme4's inner tolerance.
    pub degenerate: bool,
}

/// GLMM 1 or 2 of one model and prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFit {
    pub rows: usize,
    pub groups: usize,
    /// Rows left out because the question has no number (GLMM 2).
    pub dropped: usize,
    /// Fully converged estimates, by quadrature where Laplace's approximation differs; absent if a diagnosis rules out an estimate.
    pub intercept: Option<Effect>,
    pub variant: Option<Effect>,
    /// Log odds for each unit of the centred metric (GLMM 2).
    pub gamma: Option<Effect>,
    pub random_variance: Option<f64>,
    /// The variant's estimate by 25-point quadrature.
    pub quadrature: Option<f64>,
    /// The rule for artefacts applied to the converged fit itself.
    pub degenerate: bool,
    /// The same rows under lme4's default settings.
    pub lme4: Option<Lme4Fit>,
    /// Diagnoses as stable words, and explained in sentences.
    pub diagnoses: Vec<&'static str>,
    pub explanations: Vec<String>,
}

impl ModelFit {
    /// Reason for the fit having no estimate, in a word.
    pub fn problem(&self) -> Option<&str> {
        match (self.variant.is_none(), self.diagnoses.first()) {
            (true, Some(word)) => Some(word),
            (true, None) => Some("no estimate"),
            (false, _) => None,
        }
    }

    /// A fit that could not be attempted.
    fn not_fitted(rows: usize, dropped: usize, word: &'static str, why: String) -> Self {
        ModelFit {
            rows,
            groups: 0,
            dropped,
            intercept: None,
            variant: None,
            gamma: None,
            random_variance: None,
            quadrature: None,
            degenerate: false,
            lme4: None,
            diagnoses: vec![word],
            explanations: vec![why],
        }
    }
}

/// The columns of a model: response, variant, centred gamma (GLMM 2) and group.
pub(super) struct Columns {
    pub(super) response: Vec<f64>,
    pub(super) variant: Vec<f64>,
    pub(super) gamma: Option<Vec<f64>>,
    pub(super) group: Vec<u64>,
    pub(super) dropped: usize,
}

impl Columns {
    pub(super) fn data(&self) -> Result<MixedData, MixedError> {
        let mut fixed: Vec<(&str, &[f64])> = vec![("variant", &self.variant)];
        fixed.extend(self.gamma.as_ref().map(|gamma| ("gamma_c", gamma.as_slice())));
        MixedData::of_columns(&self.response, &fixed, &self.group)
    }
}

/// Fits a model: converged, with quadrature as a cross-check, and with lme4's default settings.
pub(super) fn fit_columns(columns: &Columns) -> ModelFit {
    fitted(columns).unwrap_or_else(|error| {
        ModelFit::not_fitted(columns.response.len(), columns.dropped, "no-model", error.to_string())
    })
}

fn fitted(columns: &Columns) -> Result<ModelFit, MixedError> {
    let data = columns.data()?;
    let options = |integral| MixedOptions { integral, ..MixedOptions::default() };
    let shown = fit(&data, &options(IntegralChoice::Automatic))?;
    let usable = shown.is_usable();
    let lme4 = if usable { Some(lme4::fit(&data, lme4::Lme4Options::default())?) } else { None };
    let quadrature = match shown.method {
        _ if !usable => None,
        Method::Quadrature => Some(shown.clone()),
        _ => Some(fit(&data, &options(IntegralChoice::QUADRATURE))?),
    };
    let mut diagnoses = shown.diagnoses.clone();
    if let Some(quadrature) = &quadrature {
        diagnoses.extend(disagreement(&unrefused(&data, &options(IntegralChoice::Laplace))?, quadrature));
    }
    let variant = |fit: &MixedFit| Effect::of(fit.coefficient("variant"));
    let gamma = |fit: &MixedFit| Effect::of(fit.coefficient("gamma_c"));
    Ok(ModelFit {
        rows: shown.rows,
        groups: data.first_groups(),
        dropped: columns.dropped,
        intercept: Effect::of(shown.coefficients.first()),
        variant: variant(&shown),
        gamma: gamma(&shown),
        random_variance: shown.deviation().map(|sd| sd * sd),
        quadrature: quadrature.as_ref().and_then(|fit| fit.coefficient("variant")?.estimate),
        degenerate: is_degenerate(&shown),
        lme4: lme4.map(|fit| Lme4Fit { variant: variant(&fit), gamma: gamma(&fit), degenerate: is_degenerate(&fit) }),
        diagnoses: diagnoses.iter().map(MixedDiagnosis::word).collect(),
        explanations: diagnoses.iter().map(MixedDiagnosis::to_string).collect(),
    })
}

/// Rule for artefacts: a standard error below 0.01, or equal ones across coefficients.
fn is_degenerate(fit: &MixedFit) -> bool {
    let errors: Vec<f64> = fit.coefficients.iter().filter_map(|coefficient| coefficient.standard_error).collect();
    let (low, high) = errors.iter().fold((f64::INFINITY, 0.0f64), |(low, high), e| (low.min(*e), high.max(*e)));
    low < 0.01 || (errors.len() > 1 && high - low < 1e-3 * high)
}
