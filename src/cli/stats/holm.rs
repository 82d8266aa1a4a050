//! `earnest stats holm`.
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::columns::{self, Kind, Missing};
use super::failed::{not_fitted, require};
use super::frame::{self, ColumnOptions};
use super::model;
use super::number_format::table;
use super::source::{Input, Pair, Source};
use crate::cli::Exit;
use crate::cli::args::ResultsArgs;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::values::counted;
use earnest_results::StoredRun;
use earnest_stats::mixed::{MixedData, MixedOptions, fit};
use earnest_stats::multiplicity::{benjamini_hochberg, holm};

/// Options of `earnest stats holm`: p values, a column of them, or those of an effect in stored runs.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  earnest stats holm 0.01 0.04 0.03
  earnest stats holm --file models.csv --p p --label model
  earnest stats holm --run 1f2e3d4c,5b6a7988,77a0c1d2 --where task=gsm

Holm's adjustment bounds the probability of any false finding among those below the level. Benjamini and Hochberg's (BH) bounds \
the expected share of false ones among the findings, for tests that are independent or depend positively; it suits many tests, \
such as those of 50 tasks.

With --run, a mixed model is fitted to every run and the p values of the first fixed effect are adjusted. A run without an \
estimate stays in the family with p = 1, as in the GSM-Symbolic study.")]
pub struct HolmArgs {
    /// p values
    #[arg(value_name = "P", required_unless_present_any = ["file", "runs"], conflicts_with_all = ["file", "runs"], allow_negative_numbers = true)]
    p_values: Vec<f64>,
    /// CSV file with a header line; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "p", conflicts_with = "runs")]
    file: Option<PathBuf>,
    /// Column of p values
    #[arg(long, value_name = "COLUMN", requires = "file")]
    p: Option<String>,
    /// Column of labels for the p values
    #[arg(long, value_name = "COLUMN", requires = "file")]
    label: Option<String>,
    /// Stored runs to fit a model to, instead of given p values
    #[arg(long = "run", value_name = "RUN,...", value_delimiter = ',')]
    runs: Vec<String>,
    /// With --run: fixed effects; the p values are those of the first one's
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', default_value = "variant", requires = "runs")]
    fixed: Vec<String>,
    /// With --run: column of outcomes
    #[arg(long, value_name = "COLUMN", default_value = "correct", requires = "runs")]
    response: String,
    /// With --run: column and value that rows must have; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "runs")]
    only: Vec<Pair>,
    #[command(flatten)]
    results: ResultsArgs,
    /// Significance level: of the family-wise error by Holm, of the share of false findings by Benjamini and Hochberg
    #[arg(long, value_name = "LEVEL", default_value_t = 0.05)]
    alpha: f64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// p values with labels; none for a model without an estimate.
struct Family {
    labels: Vec<String>,
    p_values: Vec<Option<f64>>,
    notes: Vec<String>,
}

impl HolmArgs {
    fn family(&self) -> Result<Family, CliError> {
        if !self.runs.is_empty() {
            return self.of_runs();
        }
        let (Some(file), Some(p)) = (&self.file, &self.p) else {
            let p_values = self.p_values.iter().map(|p| Some(*p)).collect();
            return Ok(Family { labels: numbered(self.p_values.len()), p_values, notes: Vec::new() });
        };
        let mut wanted = vec![(p.as_str(), Kind::Number)];
        wanted.extend(self.label.iter().map(|label| (label.as_str(), Kind::Label)));
        let found = columns::read(&Source { input: Input::File(file), only: &[] }, &wanted, Missing::DropRow)?;
        let mut notes = found.survey.notes;
        if found.survey.dropped > 0 {
            notes.push(format!(
                "{} dropped and not in the family",
                match found.survey.dropped {
                    1 => "1 row with a missing value was".to_owned(),
                    count => format!("{count} rows with missing values were"),
                }
            ));
        }
        let labels = match found.values.get(1) {
            Some(indices) => indices.iter().map(|index| found.survey.labels[1][*index as usize].clone()).collect(),
            None => numbered(found.values[0].len()),
        };
        Ok(Family { labels, p_values: found.values[0].iter().map(|p| Some(*p)).collect(), notes })
    }

    fn of_runs(&self) -> Result<Family, CliError> {
        let mut family = Family { labels: Vec::new(), p_values: Vec::new(), notes: Vec::new() };
        let mut seen: Vec<String> = Vec::new();
        for run in &self.runs {
            // Two abbreviations may name the same run.
            let found =
                StoredRun::open(&self.results.folder, run).map_err(|error| CliError::usage(error.to_string()))?;
            let name = found.manifest.run;
            require(!seen.contains(&name), || format!("--run names {name} twice"))?;
            seen.push(name);
            let input = Input::Runs { names: std::slice::from_ref(run), folder: &self.results.folder };
            let formula = model::of_runs(&self.response, &self.fixed)?;
            let source = Source { input, only: &self.only };
            let options = ColumnOptions { family: earnest_stats::mixed::Family::Binomial, factor: &[], reference: &[] };
            let (frame, survey) =
                frame::read_counts(&source, &formula.response, &frame::kinds(&formula, &[]), options)?;
            let data = MixedData::new(&formula, &frame, options.family)
                .map_err(|error| not_fitted(&source, &survey, &error))?;
            let fitted = fit(&data, &MixedOptions::default())?;
            let p = fitted.coefficients.get(1).and_then(|coefficient| coefficient.p);
            if let Some(reasons) = fitted.refusal() {
                family.notes.push(format!("{run} has no estimate: {reasons}"));
            }
            family.labels.push(run.clone());
            family.p_values.push(p);
            family.notes.extend(survey.notes);
        }
        Ok(family)
    }
}

pub(super) fn run(args: &HolmArgs, printer: Printer) -> Result<Exit, CliError> {
    require(args.alpha > 0.0 && args.alpha < 1.0, || {
        format!("--alpha is {}, expected a number between 0 and 1", args.alpha)
    })?;
    let Family { labels, p_values, notes } = args.family()?;
    require(!p_values.is_empty(), || "there are no p values to adjust")?;
    let filled: Vec<f64> = p_values.iter().map(|p| p.unwrap_or(1.0)).collect();
    let size = filled.len();
    // What has no p value is in the family, and has no adjusted one.
    let of_tests = |adjusted: Vec<f64>| -> Vec<Option<f64>> {
        adjusted.into_iter().zip(&p_values).map(|(adjusted, p)| p.map(|_| adjusted)).collect()
    };
    let (by_holm, by_share) = (of_tests(holm(&filled)?), of_tests(benjamini_hochberg(&filled)?));
    let is_below = |adjusted: Option<f64>| adjusted.is_some_and(|adjusted| adjusted < args.alpha);
    let usable = if p_values.iter().any(Option::is_some) { Exit::Success } else { Exit::FailedSamples };
    let tests = labels.iter().zip(&p_values).zip(by_holm.iter().zip(&by_share));
    if args.json {
        let rows: Vec<_> = tests
            .map(|((label, p), (by_holm, by_share))| {
                serde_json::json!({
                    "label": label, "p": p, "holm": by_holm, "significant": is_below(*by_holm),
                    "benjamini_hochberg": by_share, "significant_benjamini_hochberg": is_below(*by_share), "family_size": size,
                })
            })
            .collect();
        let family = serde_json::json!({ "alpha": args.alpha, "family_size": size, "family": rows, "notes": notes });
        printer.json(&family)?;
        return Ok(usable);
    }
    let below = format!("below {}", args.alpha);
    let mut rows = vec![["", "p", "Holm", below.as_str(), "BH", below.as_str()].map(str::to_owned).to_vec()];
    let number = |value: Option<f64>| match value {
        Some(value) if value < 1e-4 => "< 0.0001".to_owned(),
        Some(value) => format!("{value:.4}"),
        None => "-".to_owned(),
    };
    for ((label, p), (by_holm, by_share)) in tests {
        let verdict = |adjusted: Option<f64>| if is_below(adjusted) { "yes" } else { "no" }.to_owned();
        let (of_holm, of_share) = (verdict(*by_holm), verdict(*by_share));
        rows.push(vec![label.clone(), number(*p), number(*by_holm), of_holm, number(*by_share), of_share]);
    }
    let mut text = table(rows);
    writeln!(text, "adjusted for {} by Holm and by Benjamini and Hochberg (BH)", counted(size, "test"))?;
    for note in &notes {
        writeln!(text, "warning: {note}")?;
    }
    printer.result(&text)?;
    Ok(usable)
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|index| index.to_string()).collect()
}
