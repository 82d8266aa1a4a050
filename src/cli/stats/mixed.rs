//! Fit and report of a mixed model.
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::columns::Survey;
use super::failed::{not_fitted, of_option, require};
use super::frame::{self, ColumnOptions};
use super::glmm::IntervalMethod;
use super::mixed_text;
use super::one_intercept::{self, CrossCheck, OneIntercept};
use super::source::{Pair, Source};
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::figures::{figure_file, write_figure};
use crate::cli::output::{output_file, write_file};
use crate::cli::printer::Printer;
use earnest_report::plot::{Forest, ForestRow, forest};
use earnest_results::RowsError;
use earnest_stats::mixed::{
    Contrast, Errors, Family, Formula, Frame, INTERCEPT, IntegralChoice, Limit, Marginal, MixedCoefficient, MixedData,
    MixedDiagnosis, MixedError, MixedFit, MixedInterval, MixedOptions, OpenEnd, Prediction, TermTest, contrasts,
    disagreement, factors, fit, limit, lme4, marginal, method_paragraph, predictions, profile_interval, profile_p,
    term_tests, with_robust_errors,
};

/// Variances and correlations of the random effects from which a fit is announced.
const MANY_COVARIANCES: usize = 15;

/// Different rows times parameters from which a fit is announced: each of some hundred evaluations then takes about a second.
const MUCH_WORK: usize = 5_000_000;

/// Distribution of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FamilyChoice {
    /// Outcomes 0 and 1, by log odds
    Binomial,
    /// Measured values with normal errors
    Gaussian,
}

/// Options of models with a formula.
#[derive(Debug, Clone, Args)]
pub struct FormulaArgs {
    /// Model in lme4's language, with any number of random effects, e.g. 'correct ~ model*variant + (1+variant|template) +
    /// (1|item)'; instead of --response, --fixed and --group
    #[arg(long, value_name = "FORMULA", conflicts_with_all = ["response", "fixed", "group"])]
    pub(super) formula: Option<String>,
    /// Distribution of the response
    #[arg(long, value_name = "NAME", value_enum, default_value_t = FamilyChoice::Binomial)]
    family: FamilyChoice,
    /// With --family gaussian: maximum likelihood instead of REML
    #[arg(long, conflicts_with = "reml")]
    ml: bool,
    /// With --family gaussian: REML, the default
    #[arg(long)]
    reml: bool,
    /// Standard errors by the scatter between groups where the model's are too small
    #[arg(long)]
    robust: bool,
    /// Terms to test by likelihood ratio, e.g. model:variant; `all` tests every term that no interaction holds
    #[arg(long, value_name = "TERM,...", value_delimiter = ',')]
    drop: Vec<String>,
    /// Weighted sum of coefficients to test, e.g. 'modelb=1,modelc=-1'; may be repeated
    #[arg(long, value_name = "NAME=WEIGHT,...")]
    contrast: Vec<String>,
    /// File for predictions of every different row, as CSV; `-` is standard output
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(super) predictions: Option<PathBuf>,
    /// File for a forest plot of the odds ratios: .svg, .pdf or .png
    #[arg(long, value_name = "FILE", value_parser = figure_file)]
    pub(super) plot: Option<PathBuf>,
}

impl FormulaArgs {
    /// Options that were given although the default model of stored runs has no use for them.
    pub(super) fn unused(&self) -> Vec<&'static str> {
        let given = [
            ("--family", self.family != FamilyChoice::Binomial),
            ("--ml", self.ml),
            ("--reml", self.reml),
            ("--robust", self.robust),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

/// Options that all models share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common<'a> {
    pub(super) factor: &'a [String],
    pub(super) reference: &'a [Pair],
    pub(super) ci: IntervalMethod,
    pub(super) level: f64,
    pub(super) json: bool,
    /// Resamples of the groups, and their seed.
    pub(super) bootstrap: Option<usize>,
    pub(super) seed: u64,
    /// True for the numbers of the rows that are not predicted perfectly, where outcomes are separated.
    pub(super) limit: bool,
    /// True if `--cross-check` was given.
    pub(super) asked_to_check: bool,
}

/// Integral over the random effects of a binomial model, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integral {
    /// Quadrature where it differs from Laplace's approximation; `always` however many rows there are.
    Automatic {
        always: bool,
    },
    /// Laplace's approximation; compared with quadrature if there is one random effect.
    Laplace {
        compared: bool,
        always: bool,
    },
    Quadrature {
        points: usize,
    },
    /// lme4's default objective.
    Lme4,
}

/// A fixed effect's interval, in log odds or the response's unit; an absent end is infinite.
#[derive(Debug, Serialize)]
pub(super) struct Interval {
    pub(super) method: IntervalMethod,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// Reason for an infinite end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) low_open: Option<OpenEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) high_open: Option<OpenEnd>,
    /// Quadrature points of a profile likelihood, if different from the fit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) points: Option<usize>,
}

impl Interval {
    pub(super) fn profile(found: MixedInterval, points: Option<usize>) -> Self {
        let MixedInterval { low, high, low_open, high_open, .. } = found;
        Interval { method: IntervalMethod::Profile, low, high, low_open, high_open, points }
    }
}

/// A ratio of odds with its interval.
#[derive(Debug, Serialize)]
struct OddsRatio {
    name: String,
    odds_ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// Everything that a fit says.
#[derive(Debug, Serialize)]
pub(super) struct MixedReport<'a> {
    pub(super) formula: String,
    pub(super) family: Family,
    pub(super) runs: &'a [String],
    pub(super) rows_in_file: usize,
    pub(super) rows_dropped: usize,
    pub(super) missing: &'a BTreeMap<String, usize>,
    pub(super) references: Vec<(String, String)>,
    pub(super) level: f64,
    #[serde(serialize_with = "one_intercept::with_its_numbers")]
    pub(super) fit: &'a MixedFit,
    pub(super) intervals: Vec<Option<Interval>>,
    odds_ratios: Vec<OddsRatio>,
    /// Probabilities and their differences by factor, averaged over rows and random effects.
    pub(super) marginal: Vec<Marginal>,
    pub(super) no_marginal: Option<String>,
    pub(super) tests: Vec<TermTest>,
    pub(super) contrasts: Vec<Contrast>,
    /// Origin of the standard errors, and of the intervals and p values made from them.
    errors: Errors,
    /// Finite estimates where the outcomes are separated, with p values by the ratio of penalised likelihoods for the effects that have a
    /// prior.
    pub(super) penalised: Option<MixedFit>,
    /// Intervals of the penalised coefficients: by the profile of the penalised likelihood for those with a prior.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) penalised_intervals: Vec<Option<Interval>>,
    pub(super) choice: &'a [String],
    pub(super) method: String,
    pub(super) notes: &'a [String],
    #[serde(flatten)]
    pub(super) one_intercept: Option<OneIntercept>,
}

/// A model that was fitted to rows.
pub(super) struct Fitted {
    pub(super) frame: Frame,
    pub(super) survey: Survey,
    pub(super) data: MixedData,
    pub(super) fit: MixedFit,
    /// Reasons for the formula, if none was given.
    pub(super) choice: Vec<String>,
    /// True for the default model, of which no likelihood is trusted beyond its errors: separated outcomes have neither a penalised fit nor profiles.
    pub(super) is_default: bool,
    pub(super) integral: IntegralChoice,
    pub(super) cross_check: CrossCheck,
}

/// Reads the rows and fits the formula.
pub(super) fn run(
    args: &FormulaArgs,
    formula: &Formula,
    integral: Integral,
    common: Common<'_>,
    source: &Source<'_>,
    runs: &[String],
    printer: Printer,
) -> Result<Exit, CliError> {
    require(
        !(common.json && args.predictions.as_deref().is_some_and(|path| path.as_os_str() == "-")),
        || "--json and --predictions - both write to standard output; name a file for the predictions",
    )?;
    let family = match args.family {
        FamilyChoice::Binomial => Family::Binomial,
        FamilyChoice::Gaussian => Family::Gaussian,
    };
    require(
        family == Family::Gaussian || !(args.ml || args.reml),
        || "--ml and --reml are for --family gaussian; a binomial model is always fitted by maximum likelihood",
    )?;
    let kinds = frame::kinds(formula, common.factor);
    let options = ColumnOptions { family, factor: common.factor, reference: common.reference };
    let (frame, mut survey) = frame::read_counts(source, &formula.response, &kinds, options)?;
    let data = MixedData::new(formula, &frame, family).map_err(|error| not_fitted(source, &survey, &error))?;
    require(
        !(args.robust && integral == Integral::Lme4),
        || "--robust needs the scores of a smooth likelihood; leave it or --objective lme4 out",
    )?;
    require(
        !common.asked_to_check || data.has_one_effect() && family == Family::Binomial,
        || "--cross-check compares binomial models with one random effect, like (1|group); leave it out",
    )?;
    if let Integral::Quadrature { .. } = integral {
        require(
            data.has_one_effect() && family == Family::Binomial,
            || "--nagq needs a binomial model with one random effect, like one random intercept (1|group)",
        )?;
    }
    let parameters = data.covariances() + data.columns();
    if data.covariances() > MANY_COVARIANCES || data.cells().saturating_mul(parameters) > MUCH_WORK {
        printer.remark(&format!(
            "the random effects have {} variances and correlations to find over {} different rows, which can take minutes; fewer \
             random terms take less, and || instead of | leaves the correlations out",
            data.covariances(),
            data.cells()
        ));
    }
    let with = |integral| fit(&data, &MixedOptions { restricted: !args.ml, integral, ..MixedOptions::default() });
    let large = one_intercept::is_large(&data);
    let chosen = match integral {
        Integral::Automatic { always: false } if large => IntegralChoice::Laplace,
        Integral::Automatic { .. } | Integral::Lme4 => IntegralChoice::Automatic,
        Integral::Laplace { .. } => IntegralChoice::Laplace,
        Integral::Quadrature { points } => IntegralChoice::Quadrature { points },
    };
    let mut fitted = match integral {
        Integral::Lme4 => lme4::fit(&data, lme4::Lme4Options::default())?,
        _ => with(chosen)?,
    };
    if integral == Integral::Lme4
        && let Some(reason) = with(IntegralChoice::Automatic)?.refusal()
    {
        survey
            .notes
            .push(format!("these are where lme4's search stopped; the converged fit has no estimates: {reason}"));
    }
    let cross_check = match integral {
        _ if !fitted.is_usable() || !data.has_one_effect() || family == Family::Gaussian => CrossCheck::NotApplicable,
        Integral::Laplace { compared: false, .. } => CrossCheck::SkippedAsAsked,
        Integral::Automatic { always: false } | Integral::Laplace { always: false, .. } if large => {
            CrossCheck::SkippedForSize
        }
        Integral::Automatic { .. } | Integral::Laplace { .. } => CrossCheck::Done,
        Integral::Quadrature { .. } | Integral::Lme4 => CrossCheck::NotApplicable,
    };
    if let (Integral::Laplace { .. }, CrossCheck::Done) = (integral, cross_check) {
        fitted.diagnoses.extend(disagreement(&fitted, &with(IntegralChoice::QUADRATURE)?));
    }
    let robust = if integral == Integral::Lme4 { fitted.clone() } else { with_robust_errors(&data, fitted.clone()) };
    let fit = match &robust.robust {
        Some(basis) if !args.robust => {
            let why = &basis.reason;
            survey.notes.push(format!(
                "the standard errors are the model's, and some are too small: {why}; --robust prints the larger ones, and an effect that \
                 varies between groups needs a slope, such as (1+variant|group)"
            ));
            fitted
        }
        _ => robust,
    };
    report(
        args,
        common,
        Fitted { frame, survey, data, fit, choice: Vec::new(), is_default: false, integral: chosen, cross_check },
        runs,
        printer,
    )
}

/// Prints a fit and writes the files asked for.
pub(super) fn report(
    args: &FormulaArgs,
    common: Common<'_>,
    fitted: Fitted,
    runs: &[String],
    printer: Printer,
) -> Result<Exit, CliError> {
    let Fitted { frame, survey, data, fit, choice, is_default, integral, cross_check } = fitted;
    let family = data.family();
    let mut notes = survey.notes.clone();
    let separated = match fit.diagnoses.first() {
        Some(MixedDiagnosis::Separation { columns, .. }) => Some(columns.clone()),
        _ => None,
    };
    let (limit, fit) = of_other_rows(&data, fit, separated.as_deref(), is_default, integral, common, &mut notes)?;
    if family == Family::Gaussian && common.ci == IntervalMethod::Profile {
        notes.push("profile intervals are for binomial models, so these are Wald's".to_owned());
    }
    if fit.is("missed-effect") {
        notes.push("--nagq 1 prints Laplace's approximation, as lme4 makes it".to_owned());
    }
    let mut missing = Vec::new();
    let is_refused_default = is_default && !fit.is_usable();
    let intervals = match is_refused_default {
        true => fit.coefficients.iter().map(|_| None).collect(),
        false => intervals(&data, &fit, limit.as_ref(), common, &mut missing),
    };
    let (penalised, penalised_intervals) = match &separated {
        Some(columns) if !is_default => penalised(&data, columns, integral, common.level, &mut notes)?,
        Some(_) => {
            notes.push(format!(
                "no penalised fit, whose errors would be the model's alone; `--formula '{}'` makes one",
                data.formula()
            ));
            (None, Vec::new())
        }
        None => (None, Vec::new()),
    };
    if !one_intercept::is_one(&data) {
        notes.extend(missing.drain(..).map(|one| format!("no interval of {}: {}", one.parameter, one.reason)));
    }
    let mut one_intercept = one_intercept::of(&data, &frame, &fit, limit.as_ref(), common, missing, cross_check)?;
    if let Some(one) = one_intercept.as_mut().filter(|_| is_refused_default) {
        // The refusal says why.
        one.no_interval.clear();
    }
    let (averaged, no_marginal) = marginals(&data, &fit, common.level)?;
    let drop: &[String] = if args.drop.iter().any(|name| name == "all") { &[] } else { &args.drop };
    let tests = match args.drop.is_empty() {
        true => Vec::new(),
        false => or_note(term_tests(data.formula(), &frame, &fit, drop), "likelihood-ratio tests", &mut notes)?,
    };
    let contrasts = match &args.contrast[..] {
        [] => Vec::new(),
        wanted => {
            let wanted = wanted.iter().map(|text| contrast(text)).collect::<Result<Vec<_>, CliError>>()?;
            or_note(contrasts(&fit, &wanted, common.level), "contrasts", &mut notes)?
        }
    };
    let predicted = match &args.predictions {
        None => None,
        Some(path) => Some((path, or_note(predictions(&data, &fit), "predictions", &mut notes)?)),
    };
    notes.extend(distrusted(&fit, common.ci, !tests.is_empty()));
    let shown = penalised.as_ref().filter(|_| !fit.is_usable()).unwrap_or(&fit);
    let report = MixedReport {
        formula: data.formula().to_string(),
        family,
        runs,
        rows_in_file: survey.rows,
        rows_dropped: survey.dropped,
        missing: &survey.missing,
        references: references(&data, &frame),
        level: common.level,
        odds_ratios: if family == Family::Binomial { odds_ratios(&fit, &intervals) } else { Vec::new() },
        intervals,
        marginal: averaged,
        no_marginal,
        tests,
        contrasts,
        choice: &choice,
        method: method_paragraph(&data, shown, common.level),
        notes: &notes,
        errors: fit.errors,
        penalised: penalised.clone(),
        penalised_intervals,
        fit: &fit,
        one_intercept,
    };
    write_files(args, &report, &data, predicted)?;
    if common.json {
        printer.json(&report)?;
    } else {
        let mut text = String::new();
        mixed_text::print(&report, &mut text)?;
        printer.result(&text)?;
    }
    Ok(if fit.is_usable() { Exit::Success } else { Exit::FailedSamples })
}

/// The limit of separated outcomes, and the fit with its numbers where those are asked for and tell of anything else.
fn of_other_rows(
    data: &MixedData,
    fit: MixedFit,
    separated: Option<&[String]>,
    is_default: bool,
    integral: IntegralChoice,
    common: Common<'_>,
    notes: &mut Vec<String>,
) -> Result<(Option<Limit>, MixedFit), MixedError> {
    let limit = match separated {
        Some(_) if !is_default && one_intercept::is_one(data) => {
            limit(data, &MixedOptions { integral, ..MixedOptions::default() })?
        }
        _ => None,
    };
    // Numbers of the other rows, if they tell of anything that is not separated.
    let tells = |limit: &Limit, columns: &[String]| {
        let mut names = limit.fit.coefficients.iter().filter(|one| one.estimate.is_some()).map(|one| &one.name);
        names.any(|name| !columns.contains(name))
    };
    let fit = match (&limit, separated) {
        (Some(limit), Some(columns)) if common.limit && tells(limit, columns) => {
            notes.push(format!(
                "every number but those of the separated effects is of the {} other rows in {} groups, which are not predicted",
                limit.fit.rows,
                limit.data.first_groups()
            ));
            fit.with_limit(limit)
        }
        _ => fit,
    };
    Ok((limit, fit))
}

/// Marginal effects of every factor, or the reason why there are none.
fn marginals(data: &MixedData, fit: &MixedFit, level: f64) -> Result<(Vec<Marginal>, Option<String>), MixedError> {
    let (mut averaged, mut no_marginal) = (Vec::new(), None);
    let names = factors(data);
    let wanted = if names.is_empty() { vec![None] } else { names.iter().map(|name| Some(name.as_str())).collect() };
    for name in wanted {
        match marginal(data, fit, name, level) {
            Ok(found) => averaged.push(found),
            Err(error @ MixedError::NotEstimated { .. }) => no_marginal = Some(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok((averaged, no_marginal))
}

/// Notes on numbers that trust random effects which robust errors do not.
fn distrusted(fit: &MixedFit, ci: IntervalMethod, tested: bool) -> Vec<String> {
    if fit.robust.is_none() {
        return Vec::new();
    }
    let trusting = [("profile intervals", ci == IntervalMethod::Profile), ("likelihood-ratio tests", tested)];
    let notes = trusting.iter().filter(|(_, asked)| *asked).map(|(name, _)| {
            match fit.errors {
                Errors::Robust => format!("{name} trust the random effects, which the scatter between groups does not bear out; use the robust intervals and p values"),
                Errors::Model => format!("{name} have the distribution of many clusters, and these are few; use the intervals and p values of the table, which have Student's t"),
            }
    });
    notes.collect()
}

/// Writes the predictions and the plot that were asked for.
fn write_files(
    args: &FormulaArgs,
    report: &MixedReport<'_>,
    data: &MixedData,
    predicted: Option<(&PathBuf, Vec<Prediction>)>,
) -> Result<(), CliError> {
    if let Some((path, rows)) = predicted.filter(|(_, rows)| !rows.is_empty()) {
        let names = data.formula().variables().into_iter().map(str::to_owned).collect::<Vec<_>>();
        write_predictions(path, &names, &rows).map_err(|error| of_option(error.into()))?;
    }
    if let Some(path) = &args.plot {
        require(report.family == Family::Binomial, || "--plot draws odds ratios, which a gaussian model has not")?;
        write_figure(path, &plot(report)).map_err(of_option)?;
    }
    Ok(())
}

/// The rows that were made; none, and a note with the reason, if the fit has no estimates for them.
fn or_note<T>(made: Result<Vec<T>, MixedError>, what: &str, notes: &mut Vec<String>) -> Result<Vec<T>, CliError> {
    match made {
        Err(error @ MixedError::NotEstimated { .. }) => {
            notes.push(format!("no {what}: {error}"));
            Ok(Vec::new())
        }
        made => Ok(made?),
    }
}

/// The fit of separated data with a prior on the columns that separate them, and its intervals; none where that is refused too, or where a profile
/// finds that it is not the best one.
fn penalised(
    data: &MixedData,
    columns: &[String],
    integral: IntegralChoice,
    level: f64,
    notes: &mut Vec<String>,
) -> Result<(Option<MixedFit>, Vec<Option<Interval>>), CliError> {
    let mut found = fit(data, &MixedOptions { penalised: true, integral, ..MixedOptions::default() })?;
    if !found.is_usable() {
        return Ok((None, Vec::new()));
    }
    let mut intervals = Vec::new();
    for index in 0..found.coefficients.len() {
        let one = &found.coefficients[index];
        if one.name == INTERCEPT || !columns.contains(&one.name) {
            intervals.push(wald(&found, one, level));
            continue;
        }
        let interval = profile_interval(data, &found, &one.name, level);
        let p = profile_p(data, &found, &one.name);
        for error in [interval.as_ref().err(), p.as_ref().err()].into_iter().flatten() {
            if matches!(error, MixedError::NotTheBest { .. }) {
                notes.push(format!("no penalised fit: {error}"));
                return Ok((None, Vec::new()));
            }
        }
        let mut note = |what: &str, error: MixedError| notes.push(format!("no {what} of {}: {error}", one.name));
        let interval = interval.map_err(|error| note("profile interval", error));
        intervals.push(interval.ok().map(|interval| Interval::profile(interval, None)));
        let p = p.map_err(|error| note("p value", error)).ok();
        let one = &mut found.coefficients[index];
        (one.z, one.p) = (None, p);
    }
    Ok((Some(found), intervals))
}

/// The Wald interval of a coefficient.
fn wald(fit: &MixedFit, one: &MixedCoefficient, level: f64) -> Option<Interval> {
    let (low, high) = fit.wald_interval(one, level)?;
    let (low, high) = (Some(low), Some(high));
    Some(Interval { method: IntervalMethod::Wald, low, high, low_open: None, high_open: None, points: None })
}

/// The intervals of the coefficients; those that do not exist are named with their reasons.
fn intervals(
    data: &MixedData,
    fit: &MixedFit,
    limit: Option<&Limit>,
    common: Common<'_>,
    missing: &mut Vec<one_intercept::MissingInterval>,
) -> Vec<Option<Interval>> {
    let mut interval = |one: &MixedCoefficient| -> Option<Interval> {
        let binomial = data.family() == Family::Binomial;
        let asked = binomial && common.ci == IntervalMethod::Profile && fit.robust.is_none();
        let by_profile = one.standard_error.is_none() || asked;
        if by_profile && one_intercept::is_one(data) {
            return one_intercept::profile(data, fit, limit, &one.name, common.level, missing);
        }
        if by_profile && one.standard_error.is_some() {
            let made = profile_interval(data, fit, &one.name, common.level);
            let none = |error: MixedError| one_intercept::MissingInterval {
                parameter: one.name.clone(),
                reason: error.to_string(),
            };
            return made.map_err(|error| missing.push(none(error))).ok().map(|made| Interval::profile(made, None));
        }
        wald(fit, one, common.level)
    };
    fit.coefficients.iter().map(&mut interval).collect()
}

fn odds_ratios(fit: &MixedFit, intervals: &[Option<Interval>]) -> Vec<OddsRatio> {
    let ratio = |(one, interval): (&MixedCoefficient, &Option<Interval>)| {
        let interval = interval.as_ref()?;
        Some(OddsRatio {
            name: one.name.clone(),
            odds_ratio: one.estimate?.exp(),
            low: interval.low.map(f64::exp),
            high: interval.high.map(f64::exp),
        })
    };
    fit.coefficients.iter().zip(intervals).filter_map(ratio).collect()
}

/// Factors of the fixed effects with their reference levels.
fn references(data: &MixedData, frame: &Frame) -> Vec<(String, String)> {
    let reference = |name: String| match frame.column(&name) {
        Ok(earnest_stats::mixed::Column::Labels(labels)) => Some((name, labels.levels.first()?.clone())),
        _ => None,
    };
    factors(data).into_iter().filter_map(reference).collect()
}

/// `NAME=WEIGHT,NAME=WEIGHT`.
fn contrast(text: &str) -> Result<(String, Vec<(String, f64)>), CliError> {
    let weight = |part: &str| -> Result<(String, f64), CliError> {
        let parsed = part.rsplit_once('=').and_then(|(name, weight)| {
            let weight = weight.trim().parse().ok().filter(|weight: &f64| weight.is_finite())?;
            Some((name.trim().to_owned(), weight))
        });
        parsed
            .ok_or_else(|| CliError::usage(format!("--contrast: `{part}` is not NAME=WEIGHT, e.g. modelb=1,modelc=-1")))
    };
    Ok((text.to_owned(), text.split(',').map(weight).collect::<Result<_, CliError>>()?))
}

fn write_predictions(path: &std::path::Path, names: &[String], rows: &[Prediction]) -> Result<(), RowsError> {
    write_file(path, |out| {
        let mut writer = csv::Writer::from_writer(out);
        let mut write = || -> csv::Result<()> {
            let own = ["rows", "observed", "conditional", "population"].map(str::to_owned);
            writer.write_record(names.iter().chain(&own))?;
            for row in rows {
                let numbers = [row.observed, row.conditional, row.population].map(|number| number.to_string());
                writer.write_record(row.values.iter().chain([&row.rows.to_string()]).chain(&numbers))?;
            }
            writer.flush()?;
            Ok(())
        };
        write().map_err(|error| RowsError::Write { path: path.to_owned(), source: std::io::Error::other(error) })
    })
}

/// Odds ratios of all effects but the intercept.
fn plot(report: &MixedReport<'_>) -> earnest_report::plot::Figure {
    let pairs = report.fit.coefficients.iter().zip(&report.intervals);
    let row = |(one, interval): (&MixedCoefficient, &Option<Interval>)| {
        let end = |value: Option<f64>, infinite: f64| value.map_or(infinite, f64::exp);
        let low = interval.as_ref().map_or(0.0, |interval| end(interval.low, 0.0));
        let high = interval.as_ref().map_or(f64::INFINITY, |interval| end(interval.high, f64::INFINITY));
        ForestRow {
            label: one.name.clone(),
            estimate: one.estimate.map_or(f64::NAN, f64::exp),
            low,
            high,
            significant: low > 1.0 || high < 1.0,
            problem: one
                .estimate
                .is_none()
                .then(|| report.fit.diagnoses.first().map_or("no estimate", MixedDiagnosis::word).to_owned()),
            series: 0,
        }
    };
    let rows = pairs.filter(|(one, _)| one.name != INTERCEPT).map(row).collect();
    let level = (report.level * 1e4).round() / 1e2;
    forest(&Forest {
        name: "odds-ratios".to_owned(),
        title: report.formula.clone(),
        x_label: format!("odds ratio with {level} % interval"),
        rows,
        series: Vec::new(),
    })
}
