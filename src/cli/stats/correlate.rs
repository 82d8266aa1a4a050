//! `earnest stats correlate`.
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::values::counted;
use std::fmt::Write as _;

use clap::Args;

use super::columns::{self, Kind, Missing};
use super::source::SourceArgs;
use crate::cli::Exit;
use earnest_stats::{Coefficient, correlation};

/// Options of `earnest stats correlate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  earnest stats correlate models.csv --columns mul,aime
  earnest stats correlate --run 1f2e3d4c --columns length,completion_tokens --json")]
pub struct CorrelateArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// The two columns of numbers; rows that lack either are dropped
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1.., required = true)]
    columns: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CorrelateArgs, printer: Printer) -> Result<Exit, CliError> {
    let [one, two] = args.columns.as_slice() else {
        return Err(CliError::usage(format!(
            "--columns names {}, expected two",
            counted(args.columns.len(), "column")
        )));
    };
    let wanted = [(one.as_str(), Kind::Number), (two.as_str(), Kind::Number)];
    let found = columns::read(&args.source.source(), &wanted, Missing::DropRow)?;
    let survey = &found.survey;
    let both = [Coefficient::Pearson, Coefficient::Spearman]
        .map(|coefficient| correlation(&found.values[0], &found.values[1], coefficient));
    let both = both.into_iter().collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let value = serde_json::json!({
            "columns": [one, two], "correlations": both, "missing": survey.missing, "notes": survey.notes,
        });
        printer.json(&value)?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    writeln!(text, "{one} and {two}, n {}", found.values[0].len())?;
    for correlation in both {
        let name = match correlation.coefficient {
            Coefficient::Pearson => "Pearson's r",
            Coefficient::Spearman => "Spearman's rho",
        };
        let interval = correlation
            .interval
            .map_or_else(String::new, |(low, high)| format!(", 95 % interval {low:.4} to {high:.4}"));
        writeln!(text, "{name:<14} {:.6}{interval}, p {:.6e} (two-sided)", correlation.value, correlation.p)?;
    }
    let missing: Vec<String> = survey.missing.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if !missing.is_empty() {
        writeln!(text, "rows dropped for missing values: {}", missing.join(", "))?;
    }
    for note in &survey.notes {
        writeln!(text, "warning: {note}")?;
    }
    printer.result(&text)?;
    Ok(Exit::Success)
}
