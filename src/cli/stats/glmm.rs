//! `earnest stats glmm`.
use std::io::Write;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::default_model::{self, Chosen};
use super::glmm_text::print;
use super::mixed::{self, Common, FormulaArgs};
use super::model::{Model, ModelArgs};
use super::source::SourceArgs;
use crate::cli::Exit;
use earnest_stats::bootstrap::{Bootstrap, bootstrap_glmm};
use earnest_stats::glmm::{
    Diagnosis, GlmmData, GlmmError, GlmmFit, GlmmOptions, LikelihoodRatio, Objective, OpenEnd, Parameter, Term,
    disagreement, fit, profile_interval, small_errors, variance_ratio, wald_interval,
};

/// Method of the intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// Estimate plus and minus a multiple of the standard error; by profile if it has none
    Wald,
    /// Profile likelihood
    Profile,
}

/// `--cross-check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Whatever the size of the data
    Always,
    /// No comparison
    Never,
}

/// Function to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectiveChoice {
    /// Fully converged Laplace or quadrature
    Converged,
    /// lme4's default objective with its artefacts, only to compare with published lme4 results. Its objective jumps, and rounding
    /// decides where the search ends: of 46 recorded lme4 fits on data without separation, 44 are reproduced
    Lme4,
}

/// Options of `earnest stats glmm`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  earnest stats glmm answers.csv --formula 'correct ~ model*variant + (1+variant|template) + (1|item)'
  earnest stats glmm answers.csv --formula 'latency ~ model + (1|item)' --family gaussian --drop model
  earnest stats glmm --run 1f2e3d4c,5b6a7988
  earnest stats glmm --run 1f2e3d4c,5b6a7988 --formula 'strict ~ model*variant + (1+model+variant|cluster)' --ci profile
  earnest stats glmm answers.csv --response correct --fixed variant,gamma_c --group id --nagq 25

A random intercept, (1|template), makes templates differ in difficulty. An effect that may differ between templates needs a slope
as well, (1+variant|template): without it, standard errors of many answers a template are far too small. Stored runs without
--formula and --group get the maximal model that their design supports, and the output says which. --response, --fixed and
--group fit one random intercept, by quadrature if wanted.

A column of labels is coded as 0 and 1 for every label but the reference, which is the first in order unless --reference names
another; a coefficient is then the difference from the reference. Equal rows are counted, so a fit costs as much as the number of
different rows.")]
pub struct GlmmArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    formula: FormulaArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Number of points of adaptive Gauss-Hermite quadrature, odd; 1 is the Laplace approximation [default: 1; a formula with one
    /// random effect takes 25 where that differs]
    #[arg(long, value_name = "N")]
    nagq: Option<usize>,
    /// Comparison of a Laplace fit with 25-point quadrature [default: up to 100,000 different rows]
    #[arg(long, value_name = "WHEN", value_enum)]
    cross_check: Option<When>,
    /// Method of the intervals
    #[arg(long, value_name = "METHOD", value_enum, default_value_t = IntervalMethod::Wald)]
    ci: IntervalMethod,
    /// Confidence level of the intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    level: f64,
    /// Function to minimise
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ObjectiveChoice::Converged)]
    objective: ObjectiveChoice,
    /// Number of bootstrap resamples of the groups, for the first coefficient after the intercept [default: none]
    #[arg(long, value_name = "N")]
    bootstrap: Option<usize>,
    /// Seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl GlmmArgs {
    /// True if an option asks for what only models with one random intercept have.
    fn needs_one_intercept(&self) -> bool {
        self.objective != ObjectiveChoice::Converged || self.bootstrap.is_some() || self.cross_check.is_some()
    }
}

/// An interval of a coefficient, in log odds; an absent end is infinite.
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
    /// Quadrature points of a profile, if different from the fit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) points: Option<usize>,
}

/// A parameter without an interval.
#[derive(Debug, Serialize)]
pub(super) struct MissingInterval {
    pub(super) parameter: String,
    pub(super) reason: String,
}

/// The 25-point quadrature that a Laplace fit is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CrossCheck {
    /// Done; a disagreement is among the diagnoses.
    Done,
    /// Skipped by `--cross-check never`.
    SkippedAsAsked,
    /// Skipped because there are too many different rows.
    SkippedForSize,
    /// Not applicable: quadrature already, lme4's objective, or no estimates.
    NotApplicable,
}

/// Number of different rows (of fixed effects within a group) up to which a Laplace fit is compared with quadrature by default; takes
/// a few seconds.
pub(super) const CROSS_CHECKED_ROWS: usize = 100_000;

/// A column of labels among the fixed effects.
#[derive(Debug, Serialize)]
pub(super) struct Labels<'a> {
    pub(super) column: &'a str,
    /// Reference level.
    pub(super) reference: &'a str,
    pub(super) levels: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    pub(super) response: &'a str,
    pub(super) fixed: &'a [String],
    pub(super) group: &'a str,
    pub(super) runs: &'a [String],
    /// Reasons for the model of stored runs.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) choice: &'a [String],
    pub(super) labels: Vec<Labels<'a>>,
    pub(super) rows_in_file: usize,
    pub(super) rows_dropped: usize,
    pub(super) missing: &'a std::collections::BTreeMap<String, usize>,
    pub(super) level: f64,
    pub(super) fit: &'a GlmmFit,
    pub(super) intervals: Vec<Option<Interval>>,
    pub(super) random_sd_interval: Option<Interval>,
    /// Parameters without an interval, and the reason.
    pub(super) no_interval: Vec<MissingInterval>,
    pub(super) cross_check: CrossCheck,
    pub(super) variance_test: Option<LikelihoodRatio>,
    pub(super) bootstrap: Option<Bootstrap>,
    pub(super) notes: &'a [String],
}

pub(super) fn run(args: &GlmmArgs, output: &mut dyn Write) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        args.level > 0.0 && args.level < 1.0,
        "--level is {}, expected a number between 0 and 1",
        args.level
    );
    let source = args.source.source();
    let common = Common {
        factor: &args.model.factor,
        reference: &args.model.reference,
        ci: args.ci,
        level: args.level,
        json: args.json,
    };
    if let Some(text) = &args.formula.formula {
        anyhow::ensure!(
            !args.needs_one_intercept(),
            "--objective, --bootstrap and --cross-check are for models with one random intercept; name it by --group instead of \
             --formula"
        );
        return mixed::run(&args.formula, text, args.nagq, common, &source, &args.source.runs, output);
    }
    let mut formula = args.model.formula();
    let unused = args.formula.unused();
    anyhow::ensure!(
        unused.is_empty(),
        "{} need{} a formula; write the model as `--formula '{} ~ {} + (1|{})'`",
        unused.join(", "),
        if unused.len() == 1 { "s" } else { "" },
        formula.response,
        if formula.fixed.is_empty() { "1".to_owned() } else { formula.fixed.join(" + ") },
        formula.group
    );
    let (mut fixed, mut group, mut choice) = (Vec::new(), String::new(), Vec::new());
    if !args.source.runs.is_empty() && args.model.group.is_none() && !args.needs_one_intercept() {
        match default_model::choose(&source, formula.response, &args.model.fixed, common)? {
            Chosen::Mixed(fitted) => return mixed::report(&args.formula, common, *fitted, &args.source.runs, output),
            Chosen::Simple(chosen) => (fixed, group, choice) = (chosen.fixed, chosen.group, chosen.choice),
        }
    }
    if !group.is_empty() {
        formula = formula.with(&fixed, &group);
    }
    anyhow::ensure!(
        args.formula.plot.is_none() && args.formula.predictions.is_none(),
        "--plot and --predictions need a formula; write the model as `--formula '{} ~ {} + (1|{})'`",
        formula.response,
        if formula.fixed.is_empty() { "1".to_owned() } else { formula.fixed.join(" + ") },
        formula.group
    );
    let Model { data, terms, survey } = formula.read(&source)?;
    let options = match args.objective {
        ObjectiveChoice::Converged => GlmmOptions::quadrature(args.nagq.unwrap_or(1)),
        ObjectiveChoice::Lme4 if args.nagq.is_none_or(|points| points == 1) => GlmmOptions::lme4(),
        ObjectiveChoice::Lme4 => anyhow::bail!("--objective lme4 reproduces lme4's default only; leave --nagq out"),
    };
    let mut fitted = fit(&data, &options)?;
    let cross_check = cross_check(args.cross_check, &data, &fitted);
    if cross_check == CrossCheck::Done {
        let quadrature = fit(&data, &GlmmOptions::quadrature(25))?;
        fitted.diagnoses.extend(disagreement(&fitted, &quadrature).map(Diagnosis::ApproximationsDisagree));
    }
    let converged = matches!(options.objective, Objective::Converged { .. });
    if converged {
        fitted.diagnoses.extend(small_errors(&data, &fitted));
    }
    let mut no_interval = Vec::new();
    let mut profile =
        |name: &str, parameter: Parameter<'_>| match profile_interval(&data, &fitted, parameter, args.level) {
            Ok(found) => Some(Interval {
                method: IntervalMethod::Profile,
                low: found.low,
                high: found.high,
                low_open: found.low_open,
                high_open: found.high_open,
                points: (fitted.objective != Objective::Converged { points: found.points }).then_some(found.points),
            }),
            Err(error) => {
                no_interval.push(MissingInterval { parameter: name.to_owned(), reason: reason(&error) });
                None
            }
        };
    let intervals = fitted
        .coefficients
        .iter()
        .map(|coefficient| -> anyhow::Result<Option<Interval>> {
            if let (IntervalMethod::Wald, Some(estimate), Some(error)) =
                (args.ci, coefficient.estimate, coefficient.standard_error)
            {
                let (low, high) = wald_interval(estimate, error, args.level)?;
                let (low, high) = (Some(low), Some(high));
                let method = IntervalMethod::Wald;
                return Ok(Some(Interval { method, low, high, low_open: None, high_open: None, points: None }));
            }
            Ok(profile(&coefficient.name, Parameter::Coefficient(&coefficient.name)))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let random_sd_interval = match args.ci {
        IntervalMethod::Profile => profile(RANDOM_SD, Parameter::RandomSd),
        IntervalMethod::Wald => None,
    };
    let bootstrap = match (args.bootstrap, data.names().get(1)) {
        (Some(0), _) => anyhow::bail!("--bootstrap 0 means no resamples; leave it out, or use e.g. 1000"),
        (Some(resamples), Some(first)) => {
            Some(bootstrap_glmm(&data, &options, first, resamples, args.seed, args.level).with_context(|| {
                format!("cannot bootstrap `{first}`; without --bootstrap the fit's diagnoses are printed")
            })?)
        }
        (Some(_), None) => anyhow::bail!("--bootstrap needs a fixed effect; add --fixed"),
        (None, _) => None,
    };
    let labels = terms.iter().filter_map(|term| match term {
        Term::Number(_) => None,
        Term::Factor(factor) => {
            Some(Labels { column: factor.name(), reference: factor.reference(), levels: factor.compared().collect() })
        }
    });
    let report = Report {
        response: formula.response,
        fixed: formula.fixed,
        group: formula.group,
        runs: &args.source.runs,
        choice: &choice,
        labels: labels.collect(),
        rows_in_file: survey.rows,
        rows_dropped: survey.dropped,
        missing: &survey.missing,
        level: args.level,
        notes: &survey.notes,
        intervals,
        random_sd_interval,
        no_interval,
        cross_check,
        variance_test: if converged { variance_ratio(&data, &fitted).ok() } else { None },
        bootstrap,
        fit: &fitted,
    };
    if args.json {
        serde_json::to_writer_pretty(&mut *output, &report)?;
        writeln!(output)?;
    } else {
        print(&report, &survey, output)?;
    }
    let usable = fitted.coefficients.iter().any(|coefficient| coefficient.estimate.is_some());
    Ok(if usable { Exit::Success } else { Exit::FailedSamples })
}

/// Name of the random SD beside the coefficients.
pub(super) const RANDOM_SD: &str = "random SD";

/// Reason for a missing interval.
fn reason(error: &GlmmError) -> String {
    match error {
        GlmmError::Incomparable { reason } => reason.clone(),
        other => other.to_string(),
    }
}

fn cross_check(asked: Option<When>, data: &GlmmData, fitted: &GlmmFit) -> CrossCheck {
    let laplace = fitted.objective == (Objective::Converged { points: 1 });
    match asked {
        _ if !laplace || fitted.diagnoses.iter().any(Diagnosis::is_fatal) => CrossCheck::NotApplicable,
        Some(When::Never) => CrossCheck::SkippedAsAsked,
        None if data.cells() > CROSS_CHECKED_ROWS => CrossCheck::SkippedForSize,
        Some(When::Always) | None => CrossCheck::Done,
    }
}
