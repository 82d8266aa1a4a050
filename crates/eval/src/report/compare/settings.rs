//! Settings in which compared runs differ.
use crate::run::{Manifest, SettingChange};

/// Returns the settings besides the model in which two runs differ. Includes the dtype of the weights as
/// `engine.weights_dtype`; leaves out the suite's version, because stored completions can be scored again.
pub fn differing_settings(baseline: &Manifest, run: &Manifest) -> Vec<SettingChange> {
    let (mine, theirs) = (&baseline.settings, &run.settings);
    let one_model = mine.model_files == theirs.model_files;
    let mut changes = mine.changes(theirs);
    changes.retain(|change| match change.name.as_str() {
        "suite" | "suite_version" | "model_files" | "endpoint.model" => false,
        // Says when a run ends, not what is asked.
        name if name == "until" || name.starts_with("until.") => false,
        // End-of-sequence ids differ between models anyway.
        "generation.stop_ids" => one_model,
        _ => true,
    });
    let dtype = |manifest: &Manifest| Some(manifest.engine.as_ref()?.card.weights_dtype.clone());
    if let (Some(one), Some(other)) = (dtype(baseline), dtype(run))
        && one != other
    {
        let name = "engine.weights_dtype".to_owned();
        changes.push(SettingChange { name, one: one.into(), other: other.into() });
    }
    changes
}
