//! What an interrupted training needs to go on exactly where it was.
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::folder::{StoredType, put, safetensors_bytes};
use super::{AdamW, AdamWSettings, Parameters, TrainError};

/// The file of weights and moments; the step is part of its name, so that the small file that names it decides alone.
fn tensors_path(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("state-{step}.safetensors"))
}

fn header_path(folder: &Path) -> PathBuf {
    folder.join("state.json")
}

/// The small file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Steps done.
    pub(super) step: u64,
    /// SHA-256 of the settings.
    pub(super) settings: String,
    /// The best validation so far, and its step.
    pub(super) best: Option<(f64, u64)>,
}

/// Saves; the earlier state stays until the new one is whole.
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
    put(&tensors_path(folder, header.step), &safetensors_bytes(all, StoredType::F32)?)?;
    let text = serde_json::to_string_pretty(header).expect("numbers and text are JSON");
    put(&header_path(folder), text.as_bytes())?;
    // Both are on the disk now.
    remove_tensors(folder, Some(header.step));
    Ok(())
}

/// Removes files of weights and moments, but for those of a step. They are superseded; one that can not be removed harms nobody.
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

/// An error for a state that can not be read, with the way on.
fn damaged(path: PathBuf, problem: &str) -> TrainError {
    let problem = format!(
        "{problem}; the state is damaged. Delete state.json in its folder and all steps are made again, or begin in another folder"
    );
    TrainError::Resume { path, problem }
}

/// The state that a folder holds, if any.
pub(super) fn read(folder: &Path) -> Result<Option<Header>, TrainError> {
    let path = header_path(folder);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TrainError::File { path, source }),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| damaged(path, &error.to_string()))
}

/// Puts the saved weights into the parameters and gives the optimiser back.
pub(super) fn restore(
    folder: &Path,
    header: &Header,
    settings: AdamWSettings,
    parameters: &Parameters,
    device: &Device,
) -> Result<AdamW, TrainError> {
    let path = tensors_path(folder, header.step);
    let problem = |problem: String| damaged(path.clone(), &problem);
    let bytes = match std::fs::read(&path) {
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
    AdamW::restore(settings, header.step, parameters, |name| tensors.get(name).cloned())
        .map_err(|name| problem(format!("{name} is missing or has another shape")))
}

/// Removes the state of a training that is done.
pub(super) fn remove(folder: &Path) -> Result<(), TrainError> {
    if read(folder)?.is_some() {
        let path = header_path(folder);
        std::fs::remove_file(&path).map_err(|source| TrainError::File { path, source })?;
        remove_tensors(folder, None);
    }
    Ok(())
}
