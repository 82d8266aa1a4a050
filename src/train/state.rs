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
    let earlier = read(folder)?.map(|earlier| earlier.step);
    let text = serde_json::to_string_pretty(header).expect("numbers and text are JSON");
    put(&header_path(folder), text.as_bytes())?;
    if let Some(step) = earlier.filter(|step| *step != header.step) {
        // It is superseded; a file that can not be removed harms nobody.
        std::fs::remove_file(tensors_path(folder, step)).ok();
    }
    Ok(())
}

/// The state that a folder holds, if any.
pub(super) fn read(folder: &Path) -> Result<Option<Header>, TrainError> {
    let path = header_path(folder);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TrainError::File { path, source }),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| TrainError::Resume { path, problem: error.to_string() })
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
    let problem = |problem: String| TrainError::Resume { path: path.clone(), problem };
    let bytes = std::fs::read(&path).map_err(|source| TrainError::File { path: path.clone(), source })?;
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
    if let Some(header) = read(folder)? {
        let path = header_path(folder);
        std::fs::remove_file(&path).map_err(|source| TrainError::File { path, source })?;
        std::fs::remove_file(tensors_path(folder, header.step)).ok();
    }
    Ok(())
}
