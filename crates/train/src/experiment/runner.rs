//! Runner of experiments: trains and evaluates the models one after the other, and resumes interrupted ones.
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use earnest_digest::input;

use super::cell::GridCell;
use super::error::ExperimentError;
use super::evaluation::{EVALUATION_FORMAT, Evaluation, evaluate};
use super::file::Experiment;
use crate::{TrainEvent, TrainOutcome, TrainSettings, Trainer};

/// Name of the experiment file in a results folder.
pub const EXPERIMENT_FILE: &str = "experiment.toml";

/// State of a training.
#[derive(Debug, Clone, PartialEq)]
pub enum CellState {
    /// Not started.
    Open,
    /// Interrupted after this many saved steps.
    Begun(u64),
    /// Trained, not evaluated.
    Trained,
    /// Trained and evaluated.
    Evaluated(Evaluation),
}

/// Event of an experiment.
pub enum CellEvent<'a> {
    /// A training starts, or resumes after this many steps.
    Begins(&'a GridCell, u64),
    /// Event of the current training.
    Training(&'a TrainEvent),
    /// A model was evaluated.
    Evaluated(&'a GridCell, &'a Evaluation),
}

/// Outcome of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentOutcome {
    /// All models are trained and evaluated.
    Complete,
    /// Stopped on request.
    Stopped,
    /// The rest, this many trainings, is locked by other processes.
    Locked(usize),
}

/// Returns the folder of a training.
pub fn cell_folder(results: &Path, cell: &GridCell) -> PathBuf {
    results.join(cell.name())
}

/// Determines the state of a training.
///
/// # Errors
/// [`ExperimentError::Folder`] if the folder holds another training or is damaged.
pub fn cell_state(results: &Path, cell: &GridCell) -> Result<CellState, ExperimentError> {
    let folder = cell_folder(results, cell);
    let failed = |name: &str, problem: String| ExperimentError::Folder { path: folder.join(name), problem };
    let Some(text) = read(&folder.join("training.json"))? else { return Ok(CellState::Open) };
    let settings: crate::TrainSettings =
        serde_json::from_str(&text).map_err(|error| failed("training.json", error.to_string()))?;
    if settings != cell.settings {
        let problem =
            "it holds a training with other settings than the experiment file; choose another folder, setting `out`";
        return Err(failed("", problem.to_owned()));
    }
    if let Some(text) = read(&folder.join("evaluation.json"))? {
        let evaluation: Evaluation =
            serde_json::from_str(&text).map_err(|error| failed("evaluation.json", error.to_string()))?;
        if evaluation.format == EVALUATION_FORMAT {
            return Ok(CellState::Evaluated(evaluation));
        }
    }
    #[derive(serde::Deserialize)]
    struct Header {
        step: u64,
    }
    if let Some(text) = read(&folder.join("state.json"))? {
        let header: Header = serde_json::from_str(&text).map_err(|error| {
            failed("state.json", format!("{error}; the state is damaged. Delete the file to restart the training"))
        })?;
        return Ok(CellState::Begun(header.step));
    }
    // A training killed before its first saved state leaves a log that does not reach the last step.
    let trained = cell.settings.is_complete(&events(&folder)?);
    Ok(if trained && folder.join("model.safetensors").exists() { CellState::Trained } else { CellState::Begun(0) })
}

/// Reads the log of a training, up to a truncated line.
///
/// # Errors
/// [`ExperimentError::Folder`] if it cannot be read.
pub fn events(folder: &Path) -> Result<Vec<TrainEvent>, ExperimentError> {
    let path = folder.join("log.jsonl");
    let failed = |error: std::io::Error| ExperimentError::Folder { path: path.clone(), problem: error.to_string() };
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for line in BufReader::new(input::open(&path).map_err(failed)?).lines() {
        match serde_json::from_str(&line.map_err(failed)?) {
            Ok(event) => all.push(event),
            // Truncated by a kill.
            Err(_) => break,
        }
    }
    Ok(all)
}

/// Trains and evaluates all models that are missing. Several processes may share a folder: each takes trainings that no other
/// process has locked.
///
/// # Errors
/// The first failure; results before it are kept.
pub fn run(
    experiment: &Experiment,
    results: &Path,
    threads: Option<usize>,
    stop: &AtomicBool,
    report: &mut dyn FnMut(CellEvent<'_>),
) -> Result<ExperimentOutcome, ExperimentError> {
    let mut locked = 0;
    for cell in &experiment.cells {
        if is_evaluated(&cell_state(results, cell)?, experiment) {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(ExperimentOutcome::Stopped);
        }
        let folder = cell_folder(results, cell);
        let io = |path: &Path, error: std::io::Error| ExperimentError::Folder {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        std::fs::create_dir_all(&folder).map_err(|error| io(&folder, error))?;
        let lock_path = folder.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|error| io(&lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                locked += 1;
                continue;
            }
            Err(TryLockError::Error(error)) => return Err(io(&lock_path, error)),
        }
        // Another process may have finished the training before it released the lock.
        let state = cell_state(results, cell)?;
        if is_evaluated(&state, experiment) {
            continue;
        }
        if matches!(state, CellState::Open | CellState::Begun(_)) {
            let failed = |source| ExperimentError::Training { cell: cell.name(), source: Box::new(source) };
            let mut trainer = Trainer::open(cell.settings.clone(), &folder).map_err(failed)?;
            report(CellEvent::Begins(cell, trainer.steps_done()));
            let ended = trainer.run(stop, &mut |event| report(CellEvent::Training(event))).map_err(failed)?;
            if ended == TrainOutcome::Stopped {
                return Ok(ExperimentOutcome::Stopped);
            }
        }
        let evaluation = evaluate(cell, &folder, experiment.questions, threads)
            .map_err(|source| ExperimentError::Evaluation { cell: cell.name(), source: Box::new(source) })?;
        let path = folder.join("evaluation.json");
        let text = serde_json::to_string_pretty(&evaluation).expect("numbers and text are JSON");
        crate::write_atomic(&path, format!("{text}\n").as_bytes())
            .map_err(|error| ExperimentError::Folder { path: path.clone(), problem: error.to_string() })?;
        report(CellEvent::Evaluated(cell, &evaluation));
    }
    Ok(if locked > 0 { ExperimentOutcome::Locked(locked) } else { ExperimentOutcome::Complete })
}

/// Measures the seconds that a step of a training takes, with several steps of it in a temporary folder.
///
/// # Errors
/// The training's.
pub fn seconds_per_step(cell: &GridCell, steps: u64) -> Result<f64, ExperimentError> {
    let failed = |source| ExperimentError::Training { cell: cell.name(), source: Box::new(source) };
    // A new folder of a name that nobody can have prepared; it goes when it is dropped.
    let folder = tempfile::Builder::new()
        .prefix("earnest-plan-")
        .tempdir()
        .map_err(|error| ExperimentError::Folder { path: std::env::temp_dir(), problem: error.to_string() })?;
    // One question a length: only the steps are measured.
    let settings =
        TrainSettings { steps, validate_every: steps, validation: 1, then: None, until: None, ..cell.settings.clone() };
    let mut seconds = Vec::new();
    let trained = Trainer::open(settings, folder.path()).and_then(|mut trainer| {
        trainer.run(&AtomicBool::new(false), &mut |event| {
            if let TrainEvent::Step { seconds: took, .. } = event {
                seconds.push(*took);
            }
        })
    });
    trained.map_err(failed)?;
    // The first step makes the questions of eight, as every eighth does; the mean of whole groups is that of a long training.
    let whole = seconds.len() / 8 * 8;
    Ok(seconds[..whole].iter().sum::<f64>() / whole.max(1) as f64)
}

/// Returns true if the model was evaluated with the experiment's number of questions.
fn is_evaluated(state: &CellState, experiment: &Experiment) -> bool {
    matches!(state, CellState::Evaluated(evaluation) if evaluation.questions == experiment.questions)
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, ExperimentError> {
    match input::read_text(path, input::MOST_DOCUMENT) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ExperimentError::Folder { path: path.to_owned(), problem: error.to_string() }),
    }
}
