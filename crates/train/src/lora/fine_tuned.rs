//! Exact match of a training of adapters, for Table 18 of the Number Cookbook.
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{LoraData, LoraSettings, Retrofit};
use crate::experiment::events;
use crate::{CellScore, FormatSettings, TrainError, TrainEvent};
use earnest_digest::input;

/// Best validation of a training of adapters, that of the adapters it keeps, with what the table varies: the checkpoint's retrofits and the format of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FineTuned {
    /// The model's name.
    pub model: String,
    /// Changes to the checkpoint before training.
    #[serde(default)]
    pub retrofit: Retrofit,
    /// Format of numbers.
    #[serde(default)]
    pub format: FormatSettings,
    /// Seed of the training.
    pub seed: u64,
    /// Completed steps of that validation.
    pub steps: u64,
    /// Scores by task and length.
    pub cells: Vec<CellScore>,
}

impl FineTuned {
    /// Reads the folder of a training on questions: its settings, and the best validation of its log after the first step.
    ///
    /// # Errors
    /// [`TrainError::Resume`] for a folder of another kind, or without a validation; [`TrainError::File`].
    pub fn read(folder: &Path) -> Result<Self, TrainError> {
        let path = folder.join("training.json");
        let text = input::read_text(&path, input::MOST_SETTINGS)
            .map_err(|source| TrainError::File { path: path.clone(), source })?;
        let invalid = |path: &Path, problem: String| TrainError::Resume { path: path.to_owned(), problem };
        let settings: LoraSettings = serde_json::from_str(&text).map_err(|error| invalid(&path, error.to_string()))?;
        let LoraData::Questions { format, .. } = settings.data else {
            let problem = "it is a training on pairs of texts; Table 18 is of questions of the NUPA Test".to_owned();
            return Err(invalid(&path, problem));
        };
        let path = folder.join("log.jsonl");
        let events = events(folder).map_err(|error| invalid(&path, error.to_string()))?;
        let validations = events.into_iter().filter_map(|event| match event {
            TrainEvent::Validated(validation) if validation.step > 0 => Some(validation),
            _ => None,
        });
        // Of equal ones the later, as the trainer keeps it.
        let Some(validation) = validations.max_by(|one, other| one.exact().total_cmp(&other.exact())) else {
            return Err(invalid(&path, "it has no validation of a trained model yet".to_owned()));
        };
        Ok(FineTuned {
            model: settings.base.model,
            retrofit: settings.retrofit,
            format,
            seed: settings.seed,
            steps: validation.step,
            cells: validation.cells,
        })
    }

    /// The variant as the table names it: `FT` without changes, else such as `NoPE + rev + 1d`.
    pub fn variant(&self) -> String {
        let mut parts = vec![if self.retrofit.nope { "NoPE".to_owned() } else { "RoPE".to_owned() }];
        match self.format.reversal.as_str() {
            "none" => {}
            "int" => parts.push("rev".to_owned()),
            other => parts.push(format!("rev {other}")),
        }
        parts.extend(self.format.zero_padding.then(|| "pad".to_owned()));
        parts.extend(self.format.index_hints.map(|_| "idx".to_owned()));
        parts.extend(self.retrofit.single_digits.then(|| "1d".to_owned()));
        if parts == ["RoPE"] { "FT".to_owned() } else { parts.join(" + ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_the_names_of_the_table() {
        let name = |nope, single_digits, reversal: &str, zero_padding| {
            let format = FormatSettings { reversal: reversal.to_owned(), zero_padding, ..FormatSettings::default() };
            let retrofit = Retrofit { nope, single_digits };
            FineTuned { model: String::new(), retrofit, format, seed: 0, steps: 1, cells: Vec::new() }.variant()
        };
        assert_eq!(name(false, false, "none", false), "FT");
        assert_eq!(name(true, false, "none", false), "NoPE");
        assert_eq!(name(false, true, "none", false), "RoPE + 1d");
        assert_eq!(name(true, true, "int", true), "NoPE + rev + pad + 1d");
        assert_eq!(name(false, false, "dec", false), "RoPE + rev dec");
    }
}
