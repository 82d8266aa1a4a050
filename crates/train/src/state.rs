//! Saved state of a training, from which it resumes exactly.
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use earnest_digest::input;
use serde::{Deserialize, Serialize};

use super::folder::{StoredType, safetensors_bytes, write_atomic};
use super::{AdamW, AdamWSettings, Parameters, TrainError};

/// Largest file of a training's own tensors, in bytes: weights and moments, or an adapter.
pub(crate) const MOST_TENSORS: u64 = 64 << 30;

/// Path of the weights and moments. The step is part of the name, so that replacing `state.json` switches states atomically.
fn tensors_path(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("state-{step}.safetensors"))
}

fn header_path(folder: &Path) -> PathBuf {
    folder.join("state.json")
}

/// Content of `state.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Completed steps.
    pub(super) step: u64,
    /// SHA-256 of the settings, in hexadecimal.
    pub(super) settings: String,
    /// Exact match of the best validation so far, and its step.
    pub(super) best: Option<(f64, u64)>,
}

/// Saves the state; the previous one is removed once the new one is complete.
pub(super) fn save(
    folder: &Path,
    header: &Header,
    parameters: &Parameters,
    optimiser: &AdamW,
) -> Result<(), TrainError> {
    let moments: Vec<(String, &Tensor)> = optimiser.tensors().collect();
    let all = parameters
        .iter()
        .map(|(name, variable)| (name, variable.as_tensor()))
        .chain(moments.iter().map(|(name, tensor)| (name.as_str(), *tensor)));
    write_atomic(&tensors_path(folder, header.step), &safetensors_bytes(all, StoredType::F32)?)?;
    let text = serde_json::to_string_pretty(header).expect("numbers and text are JSON");
    write_atomic(&header_path(folder), text.as_bytes())?;
    remove_tensors(folder, Some(header.step));
    Ok(())
}

/// Removes the weights and moments of all steps but `kept`. Files that cannot be removed are ignored: they are never read again.
fn remove_tensors(folder: &Path, kept: Option<u64>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let step =
            name.to_str().and_then(|name| name.strip_prefix("state-")?.strip_suffix(".safetensors")?.parse().ok());
        if step.is_some_and(|step: u64| Some(step) != kept) {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

/// Error for a damaged state, with the next step.
fn damaged(path: PathBuf, problem: &str) -> TrainError {
    let problem = format!(
        "{problem}; the state is damaged. Delete state.json in its folder to restart the training, or choose another folder"
    );
    TrainError::Resume { path, problem }
}

/// Reads the header of the state in a folder, if any.
fn read(folder: &Path) -> Result<Option<Header>, TrainError> {
    let path = header_path(folder);
    let text = match input::read_text(&path, input::MOST_SETTINGS) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TrainError::File { path, source }),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| damaged(path, &error.to_string()))
}

/// Restores the state of a training with this text of its settings, its weights into `parameters`, or begins one. The optimiser of a step
/// has done `optimised` steps.
///
/// # Errors
/// [`TrainError::Resume`] for a training with other settings and for a damaged state, [`TrainError::File`].
pub(super) fn resume(
    folder: &Path,
    text: &str,
    settings: AdamWSettings,
    optimised: impl FnOnce(u64) -> u64,
    parameters: &Parameters,
    device: &Device,
) -> Result<(Header, AdamW), TrainError> {
    let digest = earnest_digest::hex(&earnest_digest::sha256(text.as_bytes()));
    match read(folder)? {
        None => Ok((Header { step: 0, settings: digest, best: None }, AdamW::new(settings))),
        Some(header) if header.settings == digest => {
            let optimised = if header.step == 0 { 0 } else { optimised(header.step) };
            let optimiser = restore(folder, &header, optimised, settings, parameters, device)?;
            Ok((header, optimiser))
        }
        Some(_) => {
            let problem = "it holds a training with other settings; choose another folder".to_owned();
            Err(TrainError::Resume { path: folder.to_owned(), problem })
        }
    }
}

/// Restores the saved weights into `parameters`, and returns the optimiser, which has done `optimised` steps.
fn restore(
    folder: &Path,
    header: &Header,
    optimised: u64,
    settings: AdamWSettings,
    parameters: &Parameters,
    device: &Device,
) -> Result<AdamW, TrainError> {
    let path = tensors_path(folder, header.step);
    let problem = |problem: String| damaged(path.clone(), &problem);
    let bytes = match input::read(&path, MOST_TENSORS) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(problem("it is missing".to_owned())),
        Err(source) => return Err(TrainError::File { path, source }),
    };
    let tensors = candle_core::safetensors::load_buffer(&bytes, device).map_err(|error| problem(error.to_string()))?;
    for (name, variable) in parameters.iter() {
        let saved = tensors.get(name).ok_or_else(|| problem(format!("{name} is missing")))?;
        if saved.shape() != variable.shape() {
            return Err(problem(format!("{name} has shape {:?} instead of {:?}", saved.shape(), variable.shape())));
        }
        variable.set(saved)?;
    }
    AdamW::restore(settings, optimised, parameters, |name| tensors.get(name).cloned())
        .map_err(|error| problem(error.to_string()))
}

/// Removes the state of a finished training.
pub(super) fn remove(folder: &Path) -> Result<(), TrainError> {
    if read(folder)?.is_some() {
        let path = header_path(folder);
        std::fs::remove_file(&path).map_err(|source| TrainError::File { path, source })?;
        remove_tensors(folder, None);
    }
    Ok(())
}
