//! `earnest stats glmm`.
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::default_model;
use super::failed::require;
use super::mixed::{self, Common, FormulaArgs, Integral};
use super::model::ModelArgs;
use super::one_intercept::When;
use super::source::SourceArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_stats::mixed::Formula;

/// Method of the intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// Estimate plus and minus a multiple of the standard error; by profile likelihood if it has none
    Wald,
    /// Profile likelihood
    Profile,
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
--group are short for 'response ~ fixed + (1|group)'. One random effect is fitted by quadrature where that differs from Laplace's
approximation.

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
    /// Number of points of adaptive Gauss-Hermite quadrature, odd; 1 is the Laplace approximation [default: 1; with one random effect
    /// 25 where that differs]
    #[arg(long, value_name = "N")]
    nagq: Option<usize>,
    /// Comparison of a Laplace fit with 25-point quadrature, in models with one random effect [default: unless more than 100,000 different rows
    /// are in groups with 50 or more answers of both kinds]
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

    fn integral(&self) -> Result<Integral, CliError> {
        Ok(match (self.objective, self.nagq, self.cross_check) {
            (ObjectiveChoice::Lme4, None | Some(1), _) => Integral::Lme4,
            (ObjectiveChoice::Lme4, ..) => {
                return Err(CliError::usage("--objective lme4 reproduces lme4's default only; leave --nagq out"));
            }
            (_, None, Some(When::Never)) | (_, Some(1), _) => Integral::Laplace {
                compared: self.cross_check != Some(When::Never),
                always: self.cross_check == Some(When::Always),
            },
            (_, None, asked) => Integral::Automatic { always: asked.is_some() },
            (_, Some(points), _) => Integral::Quadrature { points },
        })
    }
}

pub(super) fn run(args: &GlmmArgs, printer: Printer) -> Result<Exit, CliError> {
    require(args.level > 0.0 && args.level < 1.0, || {
        format!("--level is {}, expected a number between 0 and 1", args.level)
    })?;
    require(args.bootstrap != Some(0), || "--bootstrap 0 means no resamples; leave it out, or use e.g. 1000")?;
    let source = args.source.source();
    let common = Common {
        factor: &args.model.factor,
        reference: &args.model.reference,
        ci: args.ci,
        level: args.level,
        json: args.json,
        bootstrap: args.bootstrap,
        seed: args.seed,
        limit: args.formula.formula.is_none(),
        asked_to_check: args.cross_check.is_some(),
    };
    let given = args.formula.formula.is_some() || args.model.group.is_some();
    if !args.source.runs.is_empty() && !given && !args.needs_one_intercept() {
        let mut unused = args.formula.unused();
        unused.extend(args.nagq.map(|_| "--nagq"));
        require(unused.is_empty(), || {
            format!(
                "{} need{} a model; name it by --formula or --group",
                unused.join(", "),
                if unused.len() == 1 { "s" } else { "" }
            )
        })?;
        let common = Common { limit: false, ..common };
        let fitted = default_model::choose(&source, args.model.response(), &args.model.fixed, common)?;
        return mixed::report(&args.formula, common, fitted, &args.source.runs, printer);
    }
    require(
        given || !args.model.fixed.is_empty() || args.source.runs.is_empty(),
        || "--objective, --bootstrap and --cross-check need a model; name it, e.g. --group cluster --fixed model,variant",
    )?;
    let formula: Formula = match &args.formula.formula {
        Some(text) => text.parse()?,
        None => args.model.formula()?,
    };
    mixed::run(&args.formula, &formula, args.integral()?, common, &source, &args.source.runs, printer)
}
