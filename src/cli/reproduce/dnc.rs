//! `earnest reproduce dnc`.
use clap::Args;

use super::ComparedRuns;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_eval::report::Rows;
use earnest_papers::dnc::{EvaluatedRun, compare, render};

const SUITE: &str = "dnc";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce dnc
  earnest reproduce dnc RUN --json")]
pub struct DncArgs {
    #[command(flatten)]
    pub compared: ComparedRuns,
}

/// Prints the paper's tables beside the runs'.
pub fn execute(args: &DncArgs, printer: Printer) -> Result<Exit, CliError> {
    if args.compared.figures.figures.is_some() {
        return Err(CliError::usage("DNC has no figures to draw; leave --figures out"));
    }
    let mut runs = Vec::new();
    for run in args.compared.open(SUITE)? {
        let mut ours = EvaluatedRun::new(run.manifest.clone());
        run.walk(&mut |sample| {
            ours.add(&sample);
            Ok(())
        })?;
        runs.push(ours);
    }
    let comparison = compare(&runs);
    if args.compared.json {
        printer.json(&comparison)?;
    } else {
        printer.result(&render(&comparison, printer.width()))?;
    }
    Ok(Exit::Success)
}
