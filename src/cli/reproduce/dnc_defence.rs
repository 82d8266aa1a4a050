//! `earnest reproduce dnc --experiment`: the trained defence.
use std::path::Path;

use super::dnc::DncArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::printer::Printer;
use crate::cli::study::Lines;
use crate::cli::train::progress::Progress;
use crate::cli::train::{choose_threads, warn_of_warm_up};
use crate::cli::values::counted;
use earnest_eval::study::{PlannedRun, StudyPlan};
use earnest_papers::dnc::defence::{
    DefenceEnd, DefenceError, DefenceEvent, DefenceExperiment, DefenceResults, DefenceSettings, DefenceTables,
    RESULTS_FILE, render_defence, run,
};

/// Our own experiment, from the repository.
const OURS: &str = include_str!("../../../docs/training/dnc-defence.json");
const OURS_NAME: &str = "earnest's own experiment, docs/training/dnc-defence.md";

/// The tables of our own experiment.
pub(super) fn ours() -> DefenceTables {
    DefenceTables::new(&DefenceResults::parse(OURS).expect("a test parses it"), OURS_NAME)
}

/// Runs an experiment if asked to, and prints its tables.
pub(super) fn execute(args: &DncArgs, path: &Path, printer: Printer) -> Result<Exit, CliError> {
    let (results, source) = match args.run {
        true => train_and_ask(args, path, printer)?,
        false => (DefenceResults::read(path).map_err(without_results)?, path.display().to_string()),
    };
    let tables = DefenceTables::new(&results, &source);
    if args.compared.json {
        printer.json(&tables)?;
    } else {
        printer.result(&render_defence(&tables, printer.width()))?;
    }
    Ok(Exit::Success)
}

/// The error of a folder without results: it is an experiment that has not begun, or none.
fn without_results(error: DefenceError) -> CliError {
    match &error {
        DefenceError::Folder { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            CliError::new(Exit::Results, format!("{} is missing: no model of an experiment is finished there", path.display())).help(
                format!("`earnest reproduce dnc --run --experiment FILE.toml` trains and asks; name its folder or its {RESULTS_FILE}"),
            )
        }
        _ => error.into(),
    }
}

fn train_and_ask(args: &DncArgs, path: &Path, printer: Printer) -> Result<(DefenceResults, String), CliError> {
    let experiment = DefenceExperiment::read(path)?;
    let out = experiment.out.clone().unwrap_or_else(|| path.with_extension(""));
    let (training, steps) = (&experiment.training, experiment.training.steps);
    warn_of_warm_up(printer, training.schedule());
    // LoRA is for models that people use, which are large in the sense of this choice.
    choose_threads(training.parts, usize::MAX);
    let settings = DefenceSettings {
        out: out.clone(),
        engine: args.engine.settings()?,
        hub: args.hub.settings(),
        stop: stop_on_signal()?,
    };
    let mut progress: Option<Progress> = None;
    let mut report = |event: DefenceEvent<'_>| match event {
        DefenceEvent::Trains { model, number: (number, of), steps_done, examples: (examples, perturbed) } => {
            progress = Some(Progress::new(printer, steps));
            let what = match perturbed {
                0 => String::new(),
                count => format!(", {count} of them perturbed"),
            };
            let from = if steps_done > 0 { format!(", continuing after step {steps_done}") } else { String::new() };
            let examples = counted(examples, "training question");
            printer.message(&format!("{number} of {of}: {} ({examples}{what}){from}", model.name()));
        }
        DefenceEvent::Training(event) => {
            if let Some(progress) = &mut progress {
                progress.event(event);
            }
        }
    };
    let label = Box::new(|plan: &StudyPlan, run: PlannedRun| format!("asking {}", plan.model(run).name));
    let mut watcher = Lines::new(printer, label);
    match run(&experiment, &settings, &mut report, &mut watcher)? {
        DefenceEnd::Complete(results) => Ok((*results, out.display().to_string())),
        DefenceEnd::Stopped => Err(CliError::new(
            Exit::Interrupted,
            format!("interrupted; what is trained and answered is in {}", out.display()),
        )
        .help("the same command continues")),
    }
}

impl From<DefenceError> for CliError {
    fn from(error: DefenceError) -> Self {
        match error {
            DefenceError::Training { model, source } => {
                let inner = CliError::from(*source);
                CliError { message: format!("{model}: {inner}"), ..inner }
            }
            DefenceError::Log(error) => CliError::from(*error),
            DefenceError::Study(error) => error.into(),
            DefenceError::Eval(error) => error.into(),
            DefenceError::File { .. } | DefenceError::Experiment(_) => CliError::usage(error.to_string())
                .help("docs/dnc.md documents the keys of an experiment of the trained defence"),
            DefenceError::Folder { .. } | DefenceError::Results { .. } => {
                CliError::new(Exit::Results, error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_experiment_is_read_and_complete() {
        let results = DefenceResults::parse(OURS).unwrap();
        assert_eq!(DefenceResults::parse(&results.to_text()).unwrap(), results);
        assert_eq!(results.missing(), Vec::<String>::new());
    }
}
