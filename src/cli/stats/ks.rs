//! `earnest stats ks`.
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::values::counted;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};

use super::columns::{self, Kind, Missing, Survey};
use super::source::SourceArgs;
use crate::cli::Exit;
use earnest_stats::kolmogorov_smirnov::{KsMethod, kolmogorov_smirnov};

/// Method of the p value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodChoice {
    /// Exact up to 10,000 values in the larger sample, else asymptotic
    Auto,
    /// Exact
    Exact,
    /// Asymptotic
    Asymptotic,
}

/// Options of `earnest stats ks`: two columns, or one column split by another.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  earnest stats ks numbers.csv --columns original,variants
  earnest stats ks answers.csv --value gamma --by variant
  earnest stats ks --run 1f2e3d4c --where task=gsm --value gamma --by variant")]
pub struct KsArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// The two columns to compare; missing values are dropped from each
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1.., required_unless_present = "value", conflicts_with_all = ["value", "by"])]
    columns: Vec<String>,
    /// Column of values
    #[arg(long, value_name = "COLUMN", requires = "by")]
    value: Option<String>,
    /// Column with exactly two labels that split the values
    #[arg(long, value_name = "COLUMN", requires = "value")]
    by: Option<String>,
    /// Method of the p value
    #[arg(long, value_name = "METHOD", value_enum, default_value_t = MethodChoice::Auto)]
    method: MethodChoice,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &KsArgs, printer: Printer) -> Result<Exit, CliError> {
    let survey: Survey;
    let (names, first, second) = match (&args.value, &args.by, args.columns.as_slice()) {
        (Some(value), Some(by), _) => {
            let wanted = [(value.as_str(), Kind::Number), (by.as_str(), Kind::Label)];
            let found = columns::read(&args.source.source(), &wanted, Missing::DropRow)?;
            survey = found.survey.clone();
            let labels = &found.survey.labels[1];
            let [one, two] = labels.as_slice() else {
                let notes: String = found.survey.notes.iter().map(|note| format!(" ({note})")).collect();
                return Err(CliError::usage(format!(
                    "column `{by}` has {}, expected two{notes}",
                    counted(labels.len(), "different label")
                )));
            };
            let part = |label: f64| -> Vec<f64> {
                let pairs = found.values[0].iter().zip(&found.values[1]);
                pairs.filter(|(_, of)| **of == label).map(|(value, _)| *value).collect()
            };
            ([one.clone(), two.clone()], part(0.0), part(1.0))
        }
        (_, _, [one, two]) => {
            let wanted = [(one.as_str(), Kind::Number), (two.as_str(), Kind::Number)];
            let mut found = columns::read(&args.source.source(), &wanted, Missing::DropValue)?;
            survey = found.survey.clone();
            let second = found.values.pop().unwrap_or_default();
            let first = found.values.pop().unwrap_or_default();
            ([one.clone(), two.clone()], first, second)
        }
        (_, _, other) => {
            return Err(CliError::usage(format!("--columns names {}, expected two", counted(other.len(), "column"))));
        }
    };
    let method = match args.method {
        MethodChoice::Auto => KsMethod::Auto,
        MethodChoice::Exact => KsMethod::Exact,
        MethodChoice::Asymptotic => KsMethod::Asymptotic,
    };
    let test = kolmogorov_smirnov(&first, &second, method)?;
    if args.json {
        let value = serde_json::json!({
            "samples": names, "test": test, "missing": survey.missing, "notes": survey.notes,
        });
        printer.json(&value)?;
    } else {
        let mut text = String::new();
        let method = if test.method == KsMethod::Exact { "exact" } else { "asymptotic" };
        writeln!(text, "{} (n {}) against {} (n {})", names[0], test.sizes.0, names[1], test.sizes.1)?;
        writeln!(text, "D {:.6} at {}, p {:.6e} (two-sided, {method})", test.statistic, test.location, test.p)?;
        let missing: Vec<String> = survey.missing.iter().map(|(name, count)| format!("{name} {count}")).collect();
        if !missing.is_empty() {
            writeln!(text, "missing values dropped: {}", missing.join(", "))?;
        }
        for note in &survey.notes {
            writeln!(text, "warning: {note}")?;
        }
        printer.result(&text)?;
    }
    Ok(Exit::Success)
}
