//! Trains and asks the models of a grid, one after the other; whatever is interrupted goes on.
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::Device;

use super::cell::GridCell;
use super::evaluation::{EVALUATION_FORMAT, Evaluation, evaluate};
use super::file::{Experiment, ExperimentError};
use crate::{Ended, TrainEvent, Trainer};

/// In a folder of results, the file that they are of.
pub const EXPERIMENT_FILE: &str = "experiment.toml";

/// Where a training of the grid stands.
#[derive(Debug, Clone, PartialEq)]
pub enum CellState {
    /// Nothing is there.
    Open,
    /// So many steps are saved.
    Begun(u64),
    /// The model is there and has not been asked.
    Trained,
    /// Done.
    Evaluated(Evaluation),
}

/// What the runner tells.
pub enum CellEvent<'a> {
    /// A training begins, or goes on after so many steps.
    Begins(&'a GridCell, u64),
    /// Of the training at hand.
    Training(&'a TrainEvent),
    /// A model was asked.
    Evaluated(&'a GridCell, &'a Evaluation),
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathered {
    /// Every model is there.
    Complete,
    /// Asked to stop.
    Stopped,
    /// So many trainings are in the hands of other processes.
    Elsewhere(usize),
}

/// The folder of a cell.
pub fn cell_folder(results: &Path, cell: &GridCell) -> PathBuf {
    results.join(cell.name())
}

/// Where a cell stands.
///
/// # Errors
/// [`ExperimentError::Folder`] if its folder holds another training or is damaged.
pub fn cell_state(results: &Path, cell: &GridCell) -> Result<CellState, ExperimentError> {
    let folder = cell_folder(results, cell);
    let failed = |name: &str, problem: String| ExperimentError::Folder { path: folder.join(name), problem };
    let Some(text) = read(&folder.join("training.json"))? else { return Ok(CellState::Open) };
    let found: crate::TrainSettings =
        serde_json::from_str(&text).map_err(|error| failed("training.json", error.to_string()))?;
    if found != cell.settings {
        let problem = "it holds a training with other settings than the file; choose another folder with --out";
        return Err(failed("", problem.to_owned()));
    }
    if let Some(text) = read(&folder.join("evaluation.json"))? {
        let found: Evaluation =
            serde_json::from_str(&text).map_err(|error| failed("evaluation.json", error.to_string()))?;
        if found.format == EVALUATION_FORMAT {
            return Ok(CellState::Evaluated(found));
        }
    }
    #[derive(serde::Deserialize)]
    struct Header {
        step: u64,
    }
    if let Some(text) = read(&folder.join("state.json"))? {
        let header: Header = serde_json::from_str(&text).map_err(|error| {
            failed("state.json", format!("{error}; the state is damaged: delete it, and the training is made again"))
        })?;
        return Ok(CellState::Begun(header.step));
    }
    // Killed before its first state, a training leaves a log that does not reach the end.
    let trained = events(&folder)?.iter().any(|event| match event {
        TrainEvent::Saved { step } => *step == cell.settings.steps,
        _ => false,
    });
    Ok(if trained && folder.join("model.safetensors").exists() { CellState::Trained } else { CellState::Begun(0) })
}

/// The log of a training, as far as it is whole.
///
/// # Errors
/// [`ExperimentError::Folder`] if it can not be read.
pub fn events(folder: &Path) -> Result<Vec<TrainEvent>, ExperimentError> {
    let path = folder.join("log.jsonl");
    let failed = |error: std::io::Error| ExperimentError::Folder { path: path.clone(), problem: error.to_string() };
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for line in BufReader::new(File::open(&path).map_err(failed)?).lines() {
        match serde_json::from_str(&line.map_err(failed)?) {
            Ok(event) => all.push(event),
            // Cut by a kill.
            Err(_) => break,
        }
    }
    Ok(all)
}

/// Trains and asks what is missing. Several processes may do this in one folder at the same time: each takes trainings that no
/// other one has.
///
/// # Errors
/// The first failure; what was done before it stays.
pub fn run(
    experiment: &Experiment,
    results: &Path,
    threads: Option<usize>,
    stop: &AtomicBool,
    report: &mut dyn FnMut(CellEvent<'_>),
) -> Result<Gathered, ExperimentError> {
    let mut elsewhere = 0;
    for cell in &experiment.cells {
        if matches!(cell_state(results, cell)?, CellState::Evaluated(found) if found.questions == experiment.questions)
        {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Gathered::Stopped);
        }
        let folder = cell_folder(results, cell);
        let io = |path: &Path, error: std::io::Error| ExperimentError::Folder {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        std::fs::create_dir_all(&folder).map_err(|error| io(&folder, error))?;
        let lock_path = folder.join("lock");
        let lock = File::create(&lock_path).map_err(|error| io(&lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                elsewhere += 1;
                continue;
            }
            Err(TryLockError::Error(error)) => return Err(io(&lock_path, error)),
        }
        // Another process may have finished it before the lock was free.
        let state = cell_state(results, cell)?;
        if matches!(&state, CellState::Evaluated(found) if found.questions == experiment.questions) {
            continue;
        }
        if matches!(state, CellState::Open | CellState::Begun(_)) {
            let failed = |source| ExperimentError::Training { cell: cell.name(), source: Box::new(source) };
            let mut trainer = Trainer::open(cell.settings.clone(), &folder, &Device::Cpu).map_err(failed)?;
            report(CellEvent::Begins(cell, trainer.steps_done()));
            let ended = trainer.run(stop, &mut |event| report(CellEvent::Training(event))).map_err(failed)?;
            if ended == Ended::Stopped {
                return Ok(Gathered::Stopped);
            }
        }
        let found = evaluate(cell, &folder, experiment.questions, threads)
            .map_err(|problem| ExperimentError::Evaluation { cell: cell.name(), problem })?;
        let path = folder.join("evaluation.json");
        let text = serde_json::to_string_pretty(&found).expect("numbers and text are JSON");
        crate::put(&path, format!("{text}\n").as_bytes())
            .map_err(|error| ExperimentError::Folder { path: path.clone(), problem: error.to_string() })?;
        report(CellEvent::Evaluated(cell, &found));
    }
    Ok(if elsewhere > 0 { Gathered::Elsewhere(elsewhere) } else { Gathered::Complete })
}

fn read(path: &Path) -> Result<Option<String>, ExperimentError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ExperimentError::Folder { path: path.to_owned(), problem: error.to_string() }),
    }
}
