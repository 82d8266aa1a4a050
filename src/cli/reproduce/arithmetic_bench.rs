//! `earnest reproduce arithmetic-bench`.
use std::path::PathBuf;

use clap::Args;

use super::compared::ComparedRuns;
use super::device::{self, MeasureArgs, MeasureOnArgs};
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::figures::FigureArgs;
use crate::cli::models::{HubArgs, locate, open};
use crate::cli::printer::Printer;
use crate::cli::values::Prompts;
use earnest_eval::prompt::Prompter;
use earnest_papers::arithmetic_bench::{EvaluatedRun, compare, plan};
use earnest_papers::{Comparison, render, render_plan};
use earnest_report::plot::{Curve, CurvePlot, Measure, curves};
use earnest_results::Rows;
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};

const SUITE: &str = "arithmetic-bench";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce arithmetic-bench
  earnest reproduce arithmetic-bench RUN --json
  earnest reproduce arithmetic-bench --plan --model model.gguf --measure")]
pub struct ArithmeticBenchArgs {
    #[command(flatten)]
    pub compared: ComparedRuns,

    /// Print a plan of the runs to make instead: prompts, tokens, commands
    #[arg(long, conflicts_with_all = ["runs", "figures"])]
    pub plan: bool,

    #[command(flatten)]
    pub measure: MeasureArgs,

    #[command(flatten)]
    pub on: MeasureOnArgs,

    /// Model whose tokenizer counts the plan's prompt tokens
    #[arg(long, value_name = "MODEL", requires = "plan")]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Prompt format of that model: auto, chat or raw [default: auto]
    #[arg(long, value_name = "MODE", requires = "plan")]
    pub prompt: Option<Prompts>,
}

/// Prints the paper's tables beside the runs', or the plan of runs to make.
pub fn execute(args: &ArithmeticBenchArgs, printer: Printer) -> Result<Exit, CliError> {
    if args.plan {
        return show_plan(args, printer);
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
    let comparison = compare(&runs);
    draw(&comparison, &args.compared.figures, printer)?;
    if args.compared.json {
        printer.json(&comparison)?;
    } else {
        printer.result(&render(&comparison, printer.width()))?;
    }
    Ok(Exit::Success)
}

/// Draws Figure 1 for the runs, if asked to.
fn draw(comparison: &Comparison, args: &FigureArgs, printer: Printer) -> Result<(), CliError> {
    let Some(folder) = &args.figures else { return Ok(()) };
    let curve = |(series, curve): (usize, &earnest_papers::ComparedCurve)| Curve {
        label: curve.model.clone(),
        series,
        points: curve.points.iter().filter_map(|p| Some((p.x as f64, p.items, *p.ours.get("compat")?))).collect(),
    };
    let figure = curves(&CurvePlot {
        name: "arithmetic-bench-figure-1".into(),
        title: "Multiplication by length".into(),
        x_label: "digits".into(),
        y_label: "accuracy (compat), %".into(),
        measure: Measure::Share,
        curves: comparison.curves.iter().enumerate().map(curve).collect(),
        legend: true,
    });
    for path in args.write(folder, [&figure])?.into_iter().flatten() {
        printer.remark(&format!("{}: Figure 1", path.display()));
    }
    Ok(())
}

fn show_plan(args: &ArithmeticBenchArgs, printer: Printer) -> Result<Exit, CliError> {
    let plan = match args.measure.model(args.model.as_ref(), args.measure.measure || args.prompt.is_some())? {
        None => plan(None),
        Some(path) => {
            let checkpoint = open(&locate(&path, &args.hub, args.measure.weights(), printer)?, printer)?;
            let prompts = args.prompt.clone().unwrap_or_default();
            if let Some(name) = prompts.names.first() {
                return Err(
                    CliError::usage(format!("{SUITE} has no prompt {name}")).help("--prompt takes auto, chat or raw")
                );
            }
            let prompter = Prompter::new(&checkpoint, prompts.mode.unwrap_or_default())?;
            // A template that fails does so at the first item; the plan then has no token counts.
            let mut plan = plan(Some(&|item| prompter.render(&item.segments).ok().map(|rendered| rendered.ids.len())));
            plan.notes.push(format!("Prompt tokens are counted with the tokenizer of {}.", path.display()));
            if args.measure.measure {
                let engine = args.on.engine()?;
                let suite = ArithmeticBench::new(Options::default());
                let suite = suite.map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
                let rate = device::measured_rate(&checkpoint, &engine, &prompter, &suite, printer)?;
                let options = device::weight_options(&args.measure.weights()) + &device::engine_options(&engine);
                plan.estimate(&rate, device::parameters_in_use(&checkpoint.config), &options);
            }
            plan
        }
    };
    if args.compared.json {
        printer.json(&plan)?;
    } else {
        printer.result(&render_plan(&plan, printer.width()))?;
    }
    Ok(Exit::Success)
}
