//! Prompts of runs that stored none, rendered again from the run's own checkpoint.
use std::path::Path;

use earnest_models::checkpoint::Checkpoint;
use earnest_models::hub::HubSettings;
use earnest_tasks::suite::Item;

use crate::model::{self, LocatedModel};
use crate::prompt::{Mode, Prompter, WithThinking};
use crate::run::{Manifest, Sample};

/// Checkpoint of a run of an earlier version, for its prompts.
pub(crate) struct PromptRenderer {
    checkpoint: Checkpoint,
    enable_thinking: Option<bool>,
    mode: Mode,
}

impl PromptRenderer {
    /// Opens the run's checkpoint without weights; none for endpoints, imported runs and checkpoints that are gone.
    pub(crate) fn open(manifest: &Manifest) -> Option<Self> {
        let settings = &manifest.settings;
        if settings.endpoint.is_some() || settings.imported() {
            return None;
        }
        let allow_config = manifest.model.allowed_config.clone();
        let hub = HubSettings { offline: true, allow_config, ..HubSettings::default() };
        let located = LocatedModel::find(Path::new(&manifest.model.path), &hub, Default::default()).ok()?;
        let checkpoint = model::open(&located).ok()?;
        Some(PromptRenderer { checkpoint, enable_thinking: settings.enable_thinking, mode: settings.prompt_mode })
    }

    /// Returns the prompt of a sample; none unless its ids have the digest of the row, so that it is the one that was asked.
    pub(crate) fn prompt(&self, item: &Item, sample: &Sample) -> Option<String> {
        let source = WithThinking { checkpoint: &self.checkpoint, enable_thinking: self.enable_thinking };
        let rendered = Prompter::new(&source, self.mode.into()).ok()?.render(&item.segments).ok()?;
        (rendered.sha256 == sample.prompt_sha256).then_some(rendered.text)
    }
}
