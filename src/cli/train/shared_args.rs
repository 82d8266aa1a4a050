//! Options that trainings share, and their settings in a folder.
use std::path::Path;

use clap::{Args, Command, Id};
use serde::de::DeserializeOwned;

use crate::cli::Exit;
use crate::cli::error::CliError;
use earnest_digest::input;
use earnest_train::{AdamWSettings, StoredType};

/// Settings of the optimiser but for its learning rate.
#[derive(Debug, Args)]
pub struct OptimiserArgs {
    /// Largest norm of the gradients; larger ones are scaled down to it
    #[arg(long, value_name = "NORM", default_value_t = AdamWSettings::default().clip, help_heading = "Training")]
    pub clip: f64,

    /// Weight decay of matrices
    #[arg(long, value_name = "RATE", default_value_t = AdamWSettings::default().weight_decay, help_heading = "Training")]
    pub weight_decay: f64,

    /// AdamW's decay rate of the second moment
    #[arg(long, value_name = "BETA", default_value_t = AdamWSettings::default().beta2, help_heading = "Training")]
    pub beta2: f64,
}

impl OptimiserArgs {
    pub fn settings(&self) -> AdamWSettings {
        AdamWSettings {
            clip: self.clip,
            weight_decay: self.weight_decay,
            beta2: self.beta2,
            ..AdamWSettings::default()
        }
    }
}

/// Element types of written weights, for `--store`.
pub const STORED: &[(&str, &str, StoredType)] =
    &[("f32", "", StoredType::F32), ("bf16", "", StoredType::Bf16), ("f16", "", StoredType::F16)];

/// Names of the options of a structure, for those that exclude them all.
pub fn names_of<T: Args>() -> Vec<Id> {
    T::augment_args(Command::new("")).get_arguments().map(|option| option.get_id().clone()).collect()
}

/// Reads the settings of a training.
///
/// # Errors
/// The file cannot be read, or holds other settings.
pub fn read_settings<T: DeserializeOwned>(path: &Path) -> Result<T, CliError> {
    let failed = |what: String| CliError::new(Exit::Results, format!("cannot read {}: {what}", path.display()));
    let text = input::read_text(path, input::MOST_SETTINGS).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}
