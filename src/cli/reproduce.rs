//! `earnest reproduce`.
use super::args::ReproduceArgs;
use super::error::CliError;
use super::printer::Printer;
use super::stored::{StoredRun, write_file};
use super::{Exit, model};
use crate::prompt::Prompter;
use crate::report::plot::{Curve, CurvePlot, curves};
use crate::report::{ReportError, Rows};
use crate::reproduce::arithmetic_bench::{Ours, compare, plan};
use crate::reproduce::{Comparison, render, render_plan};

const SUITE: &str = "arithmetic-bench";

/// The paper's tables beside the runs', or what must be run.
pub fn execute(args: &ReproduceArgs, printer: Printer) -> Result<Exit, CliError> {
    if args.plan {
        return show_plan(args, printer);
    }
    let stored = if args.runs.is_empty() {
        // Without any results the published tables alone are worth showing.
        let all = if args.results.exists() { StoredRun::all(&args.results)? } else { Vec::new() };
        all.into_iter().filter(|run| run.manifest.settings.suite == SUITE).collect()
    } else {
        args.runs.iter().map(|name| StoredRun::open(&args.results, name)).collect::<Result<Vec<_>, _>>()?
    };
    let mut runs = Vec::with_capacity(stored.len());
    for run in stored {
        if run.manifest.settings.suite != SUITE {
            return Err(CliError::usage(format!(
                "{} is a run of {}, not of {SUITE}",
                run.place, run.manifest.settings.suite
            )));
        }
        let mut ours = Ours::new(run.manifest.clone());
        run.walk(&mut |sample| {
            ours.add(sample);
            Ok(())
        })?;
        runs.push(ours);
    }
    let comparison = compare(&runs);
    if let Some(folder) = &args.svg {
        draw(&comparison, folder, printer)?;
    }
    if args.json {
        printer.json(&comparison)?;
    } else {
        printer.result(&render(&comparison, printer.width()))?;
    }
    Ok(Exit::Success)
}

/// Figure 1 of ours.
fn draw(comparison: &Comparison, folder: &std::path::Path, printer: Printer) -> Result<(), CliError> {
    let curve = |(series, curve): (usize, &crate::reproduce::ComparedCurve)| Curve {
        label: curve.model.clone(),
        series,
        points: curve.points.iter().filter_map(|p| Some((p.x as f64, p.items, *p.ours.get("compat")?))).collect(),
    };
    let figure = curves(&CurvePlot {
        name: "arithmetic-bench-figure-1".into(),
        title: "Multiplication by length".into(),
        x_label: "digits".into(),
        y_label: "accuracy (compat), %".into(),
        curves: comparison.curves.iter().enumerate().map(curve).collect(),
        legend: true,
    });
    std::fs::create_dir_all(folder).map_err(|source| ReportError::Write { path: folder.to_owned(), source })?;
    let path = folder.join(format!("{}.svg", figure.name));
    write_file(&path, |out| {
        out.write_all(figure.standalone().as_bytes())
            .map_err(|source| ReportError::Write { path: path.clone(), source })
    })?;
    printer.message(&format!("{}: Figure 1", path.display()));
    Ok(())
}

fn show_plan(args: &ReproduceArgs, printer: Printer) -> Result<Exit, CliError> {
    let plan = match &args.model {
        None => plan(None),
        Some(path) => {
            let checkpoint = model::open(path)?;
            let prompter = Prompter::new(&checkpoint, args.prompt.into())?;
            // A template that fails fails at the first item; the plan then has no count.
            let mut plan = plan(Some(&|item| prompter.render(&item.segments).ok().map(|rendered| rendered.ids.len())));
            plan.notes.push(format!("Prompt tokens are those of {}; other models have others.", path.display()));
            plan
        }
    };
    if args.json {
        printer.json(&plan)?;
    } else {
        printer.result(&render_plan(&plan, printer.width()))?;
    }
    Ok(Exit::Success)
}
