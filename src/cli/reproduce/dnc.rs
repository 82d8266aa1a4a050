//! `earnest reproduce dnc`.
use std::path::PathBuf;

use clap::Args;

use super::compared::ComparedRuns;
use crate::cli::Exit;
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
#[cfg(not(feature = "train"))]
use crate::cli::left_out;
use crate::cli::models::HubArgs;
use crate::cli::printer::Printer;
use earnest_papers::dnc::{EvaluatedRun, compare, render};
use earnest_results::Rows;

const SUITE: &str = "dnc";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce dnc
  earnest reproduce dnc RUN --json
  earnest reproduce dnc --run --experiment defence.toml     (trains clean and defended models, asks them, shows the Defense rows)
  earnest reproduce dnc --experiment defence                (the folder of such an experiment, or its results.json)

With --run, the same command continues after an interruption at any point. docs/dnc.md documents the keys of the file.")]
pub struct DncArgs {
    #[command(flatten)]
    pub compared: ComparedRuns,

    /// Train and ask what is missing of the experiment first: one model on clean questions and one on those of each perturbation
    #[arg(long, requires = "experiment", conflicts_with = "runs")]
    pub run: bool,

    /// Experiment of the trained defence: with --run its file (TOML), otherwise its folder or results.json [default: our own, which is part
    /// of the program, after the runs]
    #[arg(long, value_name = "PATH", conflicts_with = "runs")]
    pub experiment: Option<PathBuf>,

    #[command(flatten)]
    pub hub: HubArgs,

    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Prints the paper's tables beside the runs', or an experiment's.
pub fn execute(args: &DncArgs, printer: Printer) -> Result<Exit, CliError> {
    if args.compared.figures.figures.is_some() {
        return Err(CliError::usage("DNC has no figures to draw; leave --figures out"));
    }
    if let Some(experiment) = &args.experiment {
        #[cfg(feature = "train")]
        return super::dnc_defence::execute(args, experiment, printer);
        #[cfg(not(feature = "train"))]
        return Err(left_out::error(&format!("the trained defence ({})", experiment.display()), "train"));
    }
    let mut runs = Vec::new();
    for run in args.compared.shown(SUITE, printer)? {
        let mut ours = EvaluatedRun::new(run.manifest.clone());
        run.walk(&mut |sample| {
            ours.add(&sample);
            Ok(())
        })?;
        runs.push(ours);
    }
    #[cfg(feature = "train")]
    let comparison = compare(&runs, super::dnc_defence::ours());
    #[cfg(not(feature = "train"))]
    let comparison = compare(&runs);
    if args.compared.json {
        printer.json(&comparison)?;
    } else {
        printer.result(&render(&comparison, printer.width()))?;
    }
    Ok(Exit::Success)
}
