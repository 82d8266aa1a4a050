//! `earnest train experiment`.
use std::path::{Path, PathBuf};

use clap::Args;

use super::progress::Progress;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::printer::Printer;
use earnest_eval::report::{Align, Table};
use earnest_train::experiment::{
    CellEvent, CellState, EXPERIMENT_FILE, Experiment, ExperimentError, ExperimentOutcome, ExperimentResults, GridCell,
    Memorisation, SeedMean, cell_state, memorisation, run,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest train experiment docs/training/section-3.toml --out section-3 --plan
  earnest train experiment docs/training/section-3.toml --out section-3
  earnest reproduce nupa --section 3 --experiment section-3

The same command goes on after Ctrl-C, a kill or a power cut. Started a second time while it runs, it shares the work: each \
process trains what no other one has. With RAYON_NUM_THREADS=1 and parts = 1, one process a core is faster than one with all.

docs/training.md has the keys of the file.")]
pub struct ExperimentArgs {
    /// The experiment file (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The folder of the results; each training has one of its own in it [default: the file's name without .toml]
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Say what would be trained and where it stands, and do nothing
    #[arg(long)]
    pub plan: bool,

    /// Write the results that are there into this file (JSON), for `earnest reproduce nupa --section 3 --experiment FILE`
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    pub summary: Option<PathBuf>,

    /// Threads of the engine that asks the trained models [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Trains what is missing.
pub fn execute(args: &ExperimentArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let experiment = Experiment::read(&args.file)?;
    let out = args.out.clone().unwrap_or_else(|| args.file.with_extension("").file_name().unwrap_or_default().into());
    if args.plan {
        let states = experiment
            .cells
            .iter()
            .map(|cell| cell_state(&out, cell))
            .collect::<Result<Vec<CellState>, ExperimentError>>()?;
        printer.result(&plan(&experiment, &states))?;
        return Ok(Exit::Success);
    }
    // Before anything is written: the folder may hold other trainings.
    for cell in &experiment.cells {
        cell_state(&out, cell)?;
    }
    keep_file(args, &out)?;
    let stop = stop_on_signal()?;
    let total = experiment.cells.len();
    let place = |cell: &GridCell| 1 + experiment.cells.iter().position(|other| other == cell).unwrap_or_default();
    let mut progress: Option<Progress> = None;
    let gathered = run(&experiment, &out, args.threads, &stop, &mut |event| match event {
        CellEvent::Begins(cell, steps) => {
            progress = Some(Progress::new(printer, quiet, cell.settings.steps));
            if !quiet {
                let from = if steps > 0 { format!(", going on after step {steps}") } else { String::new() };
                printer.message(&format!("{} of {total}: {}{from}", place(cell), cell.name()));
            }
        }
        CellEvent::Training(event) => {
            if let Some(progress) = &mut progress {
                progress.event(event);
            }
        }
        CellEvent::Evaluated(cell, found) => {
            if !quiet {
                let scores = found.scores.iter().map(|score| {
                    let star = if score.learnt { "" } else { "*" };
                    format!("{}{star}: {:.0} %", score.length, 100.0 * score.exact_match)
                });
                let scores = scores.collect::<Vec<_>>().join(", ");
                printer.message(&format!("{}: exact by length {scores}", cell.name()));
            }
        }
    })?;
    if let Some(path) = &args.summary {
        let text = ExperimentResults::gather(&experiment, &out)?.to_text();
        std::fs::write(path, text)
            .map_err(|error| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display())))?;
    }
    match gathered {
        ExperimentOutcome::Stopped => {
            Err(CliError::new(Exit::Interrupted, "interrupted; what was done is saved")
                .help("the same command goes on"))
        }
        ExperimentOutcome::Locked(count) => {
            printer.result(&format!("{count} of {total} trainings are in the hands of another process.\n"))?;
            Ok(Exit::Success)
        }
        ExperimentOutcome::Complete => {
            let remembered = memory(&memorisation(&ExperimentResults::gather(&experiment, &out)?));
            let next = format!("Next: earnest reproduce nupa --section 3 --experiment {}\n", out.display());
            // Digits that are learnt by heart are no part of that paper.
            let next = if remembered.is_empty() { next } else { String::new() };
            printer
                .result(&format!("{remembered}{} holds {total} trained and asked models.\n{next}", out.display()))?;
            Ok(Exit::Success)
        }
    }
}

/// Puts the experiment file into the folder of its results, so that they can be read without it.
fn keep_file(args: &ExperimentArgs, out: &Path) -> Result<(), CliError> {
    let failed = |path: &Path, error: std::io::Error| {
        CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    let kept = out.join(EXPERIMENT_FILE);
    if args.file != kept {
        std::fs::copy(&args.file, &kept).map_err(|error| failed(&kept, error))?;
    }
    Ok(())
}

/// What models that learnt digits by heart keep; nothing if there are none.
fn memory(memories: &[Memorisation]) -> String {
    if memories.is_empty() {
        return String::new();
    }
    let names = ["digits of", "size", "parameters", "digits", "before the change, %", "right, %", "bits a parameter"];
    let align = |place| if place < 2 { Align::Left } else { Align::Right };
    let mut table = Table::new(names.iter().enumerate().map(|(place, name)| ((*name).to_owned(), align(place))));
    let shown = |mean: &SeedMean, factor: f64, digits: usize| {
        let error = mean.std_err.map_or_else(String::new, |error| format!(" ±{:.digits$}", factor * error));
        format!("{:.digits$}{error}", factor * mean.mean)
    };
    for memory in memories {
        table.row(vec![
            memory.task.trim_start_matches("memorise:").to_owned(),
            memory.choice.size.clone(),
            memory.parameters.to_string(),
            memory.digits.to_string(),
            memory.before.as_ref().map_or_else(|| "-".to_owned(), |before| shown(before, 100.0, 1)),
            shown(&memory.recalled, 100.0, 1),
            shown(&memory.bits, 1.0, 2),
        ]);
    }
    format!(
        "{}\n± is the standard error over seeds. Parameters count the embedding of the tokens that occur; one digit of ten is \
         right by chance.\n\n",
        table.render()
    )
}

fn plan(experiment: &Experiment, states: &[CellState]) -> String {
    let columns =
        [("training", Align::Left), ("steps", Align::Right), ("questions", Align::Right), ("state", Align::Left)];
    let mut table = Table::new(columns.map(|(name, align)| (name.to_owned(), align)));
    let mut left = 0;
    for (cell, state) in experiment.cells.iter().zip(states) {
        let settings = &cell.settings;
        let shown = match state {
            CellState::Open => "-".to_owned(),
            CellState::Begun(step) => format!("step {step}"),
            CellState::Trained => "trained".to_owned(),
            CellState::Evaluated(_) => "done".to_owned(),
        };
        left += match state {
            CellState::Open => settings.steps,
            CellState::Begun(step) => settings.steps.saturating_sub(*step),
            CellState::Trained | CellState::Evaluated(_) => 0,
        };
        let questions = settings.steps * settings.batch as u64;
        table.row(vec![cell.name(), settings.steps.to_string(), questions.to_string(), shown]);
    }
    format!("{}\n\n{}\n{} trainings, {left} steps to make\n", experiment.title, table.render(), states.len())
}

impl From<ExperimentError> for CliError {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Training { cell, source } => {
                let inner = CliError::from(*source);
                CliError { message: format!("{cell}: {inner}"), ..inner }
            }
            ExperimentError::Read { .. } | ExperimentError::File { .. } => CliError::usage(error.to_string()),
            ExperimentError::Folder { .. } => CliError::new(Exit::Results, error.to_string()),
            ExperimentError::Evaluation { .. } => CliError::new(Exit::Engine, error.to_string()),
        }
    }
}
