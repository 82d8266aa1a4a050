//! `earnest train experiment`.
use std::path::{Path, PathBuf};

use clap::Args;

use super::progress::Progress;
use super::threads::choose_threads;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::output::{output_file, write_text};
use crate::cli::printer::Printer;
use earnest_report::{Align, Table};
use earnest_results::output::are_same;
use earnest_train::experiment::{
    CellEvent, CellState, EXPERIMENT_FILE, Experiment, ExperimentError, ExperimentOutcome, ExperimentResults, GridCell,
    Memorisation, SeedMean, cell_state, memorisation, run, seconds_per_step,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest train experiment docs/training/section-3.toml --out section-3 --plan
  earnest train experiment docs/training/section-3.toml --out section-3
  earnest reproduce nupa --section 3 --experiment section-3

The same command continues after Ctrl-C, a kill or a power cut. Several processes of it share the work: each trains what no \
other one has taken. With parts = 1, one process per core is faster than one process for all cores.

docs/training.md documents the keys of the file.")]
pub struct ExperimentArgs {
    /// Experiment file (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Folder for the results, with one folder per training [default: the file's name without .toml]
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print the trainings, their state and their estimated CPU time, and train nothing
    #[arg(long)]
    pub plan: bool,

    /// JSON file for the results so far, for `earnest reproduce nupa --section 3 --experiment FILE`
    #[arg(long, value_name = "FILE", conflicts_with = "plan", value_parser = output_file())]
    pub summary: Option<PathBuf>,

    /// Number of threads for evaluating the trained models [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Trains and evaluates the cells that are missing.
pub fn execute(args: &ExperimentArgs, printer: Printer) -> Result<Exit, CliError> {
    let experiment = Experiment::read(&args.file)?;
    let out = args.out.clone().unwrap_or_else(|| args.file.with_extension("").file_name().unwrap_or_default().into());
    if args.plan {
        let states = experiment
            .cells
            .iter()
            .map(|cell| cell_state(&out, cell))
            .collect::<Result<Vec<CellState>, ExperimentError>>()?;
        let measured = measure(&experiment, &states)?;
        printer.result(&plan(&experiment, &states, &measured))?;
        return Ok(Exit::Success);
    }
    // Checked before anything is written: the folder may hold other trainings.
    for cell in &experiment.cells {
        cell_state(&out, cell)?;
    }
    keep_file(args, &out)?;
    let largest = experiment.cells.iter().max_by_key(|cell| cell.settings.size.parameters());
    if let Some(cell) = largest {
        choose_threads(cell.settings.parts, cell.settings.size.parameters());
    }
    let stop = stop_on_signal()?;
    let total = experiment.cells.len();
    let number = |cell: &GridCell| 1 + experiment.cells.iter().position(|other| other == cell).unwrap_or_default();
    let mut progress: Option<Progress> = None;
    let gathered = run(&experiment, &out, args.threads, &stop, &mut |event| match event {
        CellEvent::Begins(cell, steps) => {
            progress = Some(Progress::new(printer, cell.settings.steps));
            let from = if steps > 0 { format!(", continuing after step {steps}") } else { String::new() };
            printer.message(&format!("{} of {total}: {}{from}", number(cell), cell.name()));
        }
        CellEvent::Training(event) => {
            if let Some(progress) = &mut progress {
                progress.event(event);
            }
        }
        CellEvent::Evaluated(cell, evaluation) => {
            let scores = evaluation.scores.iter().map(|score| {
                let star = if score.learnt { "" } else { "*" };
                format!("{}{star}: {:.0} %", score.length, 100.0 * score.exact_match)
            });
            let scores = scores.collect::<Vec<_>>().join(", ");
            printer.message(&format!("{}: exact by length {scores}", cell.name()));
        }
    })?;
    if let Some(path) = &args.summary {
        write_text(path, &ExperimentResults::gather(&experiment, &out)?.to_text())?;
    }
    match gathered {
        ExperimentOutcome::Stopped => {
            Err(CliError::new(Exit::Interrupted, "interrupted; the state is saved").help("the same command continues"))
        }
        ExperimentOutcome::Locked(count) => {
            printer.result(&format!("{count} of {total} trainings are in progress in another process.\n"))?;
            Ok(Exit::Success)
        }
        ExperimentOutcome::Complete => {
            let remembered = memory(&memorisation(&ExperimentResults::gather(&experiment, &out)?));
            let next = format!("Next: earnest reproduce nupa --section 3 --experiment {}\n", out.display());
            // Memorised digits are not part of that paper.
            let next = if remembered.is_empty() { next } else { String::new() };
            printer.result(&format!(
                "{remembered}{} holds {total} trained and evaluated models.\n{next}",
                out.display()
            ))?;
            Ok(Exit::Success)
        }
    }
}

/// Copies the experiment file into the results folder, which is then self-contained.
fn keep_file(args: &ExperimentArgs, out: &Path) -> Result<(), CliError> {
    let failed = |path: &Path, error: std::io::Error| {
        CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    let kept = out.join(EXPERIMENT_FILE);
    // By whatever name or link: a file that is copied onto itself is empty afterwards.
    if are_same(&args.file, &kept) {
        return Ok(());
    }
    write_text(&kept, &std::fs::read_to_string(&args.file).map_err(|error| failed(&args.file, error))?)
}

/// Table of memorisation: digits recalled by models trained on them; empty without such models.
fn memory(memories: &[Memorisation]) -> String {
    if memories.is_empty() {
        return String::new();
    }
    let names = ["digits of", "size", "parameters", "digits", "before the change, %", "right, %", "bits a parameter"];
    let mut table = Table::with_left(2, names);
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
        "{}\n± is the standard error over seeds. Parameters count the embedding of the tokens that occur; a guess is right \
         one time in ten.\n\n",
        table.render()
    )
}

/// Steps that measure a kind of training: whole groups of eight.
const MEASURED_STEPS: u64 = 16;

/// Seconds per step of every training that is not finished, measured once for all seeds.
fn measure(experiment: &Experiment, states: &[CellState]) -> Result<Vec<Option<f64>>, CliError> {
    let open = |state: &CellState| matches!(state, CellState::Open | CellState::Begun(_));
    let largest = experiment.cells.iter().max_by_key(|cell| cell.settings.size.parameters());
    if let Some(cell) = largest {
        choose_threads(cell.settings.parts, cell.settings.size.parameters());
    }
    let mut measured: Vec<Option<f64>> = Vec::new();
    for (at, (cell, state)) in experiment.cells.iter().zip(states).enumerate() {
        let known = experiment.cells[..at].iter().zip(&measured).find(|(other, _)| other.choice == cell.choice);
        let seconds = match known.and_then(|(_, seconds)| *seconds) {
            _ if !open(state) => None,
            Some(seconds) => Some(seconds),
            None => Some(seconds_per_step(cell, MEASURED_STEPS)?),
        };
        measured.push(seconds);
    }
    Ok(measured)
}

fn plan(experiment: &Experiment, states: &[CellState], measured: &[Option<f64>]) -> String {
    let columns = [
        ("training", Align::Left),
        ("steps", Align::Right),
        ("questions", Align::Right),
        ("CPU min", Align::Right),
        ("state", Align::Left),
    ];
    let mut table = Table::new(columns.map(|(name, align)| (name.to_owned(), align)));
    let (mut left, mut hours) = (0, 0.0);
    for ((cell, state), seconds) in experiment.cells.iter().zip(states).zip(measured) {
        let settings = &cell.settings;
        let shown = match state {
            CellState::Open => "-".to_owned(),
            CellState::Begun(step) => format!("step {step}"),
            CellState::Trained => "trained".to_owned(),
            CellState::Evaluated(_) => "done".to_owned(),
        };
        let own = match state {
            CellState::Open => settings.total_steps(),
            CellState::Begun(step) => settings.total_steps().saturating_sub(*step),
            CellState::Trained | CellState::Evaluated(_) => 0,
        };
        left = own.saturating_add(left);
        // A part is computed by one thread.
        let cost = seconds.map(|seconds| seconds * own as f64 * settings.parts as f64 / 3600.0);
        hours += cost.unwrap_or(0.0);
        let minutes = cost.map_or_else(|| "-".to_owned(), |cost| format!("{:.1}", 60.0 * cost));
        let questions = settings.steps.saturating_mul(settings.batch as u64);
        table.row(vec![cell.name(), settings.steps.to_string(), questions.to_string(), minutes, shown]);
    }
    let most = if experiment.cells.iter().any(|cell| cell.settings.until.is_some()) { "at most " } else { "" };
    format!(
        "{}\n\n{}\n{} trainings, {most}{left} steps to go, {most}about {hours:.1} hours of one core by {MEASURED_STEPS} timed steps of every kind; \
         validations and evaluations come on top\n",
        experiment.title,
        table.render(),
        states.len()
    )
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
