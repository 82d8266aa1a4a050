//! Models on this machine.
use std::path::{Path, PathBuf};

use earnest_models::checkpoint::{WeightFormat, is_pre_tokenizer, named_pre_tokenizer};
use earnest_models::hub::{CommitReference, Decoding, HubSettings, beside};

use super::built_in::{BUILT_IN, built_in_folder, without_word};
use super::shared::Opened;
use crate::EvalError;
use earnest_results::{Notice, Pinned, Teller};

/// A model reference and its location.
#[derive(Debug, Clone)]
pub struct LocatedModel {
    /// The reference as given.
    pub(super) given: PathBuf,
    /// The folder or file.
    pub(super) path: PathBuf,
    pub(super) pinned: Option<Pinned>,
    pub(super) weights: WeightFormat,
    /// As in [`HubSettings::allow_config`].
    pub(super) allow_config: Vec<String>,
    /// As in [`HubSettings::shared_config`], without what the model has of its own.
    pub(super) shared_config: Vec<String>,
    /// Sampling that the list of models recommends.
    pub(super) decoding: Option<Decoding>,
    /// Note for the user on how the commit was chosen, if the reference does not name it.
    pub note: Option<String>,
    /// The opened checkpoint, which copies share.
    pub(super) opened: Opened,
}

/// Returns the pre-tokenizer that entries of `--allow-config` name.
///
/// # Errors
/// Entries that no model could have.
pub fn checked_name(allow: &[String]) -> Result<Option<&str>, EvalError> {
    named_pre_tokenizer(allow).map_err(|error| EvalError::setting(error.to_string()).hint(error.help()))
}

impl LocatedModel {
    /// Resolves a path, a name in the list of models or `org/repo@commit`. Fetches nothing.
    ///
    /// # Errors
    /// Models that are not in the cache or cannot run here; the error names the command to use.
    pub fn find(given: &Path, hub: &HubSettings, weights: WeightFormat) -> Result<Self, EvalError> {
        let given = without_word(given);
        if let Some(text) = given.to_str().filter(|text| *text != BUILT_IN) {
            CommitReference::check_runnable(text, hub)?;
        }
        Self::locate(given, hub, weights, true)
    }

    /// Resolves a model for mistral.rs, which may run what the native engine does not.
    ///
    /// # Errors
    /// Models that are not in the cache.
    pub fn find_for_mistralrs(given: &Path, hub: &HubSettings) -> Result<Self, EvalError> {
        Self::locate(given, hub, WeightFormat::default(), true)
    }

    /// Resolves a model that runs elsewhere, of which the tokenizer's files are enough.
    pub fn find_tokenizer(given: &Path, hub: &HubSettings) -> Result<Self, EvalError> {
        Self::locate(given, hub, WeightFormat::default(), false)
    }

    fn locate(given: &Path, hub: &HubSettings, weights: WeightFormat, with_weights: bool) -> Result<Self, EvalError> {
        let word = given;
        let given = without_word(given);
        let named = given.to_str().filter(|text| *text != BUILT_IN);
        let reference = named.map(|text| CommitReference::find(text, hub)).transpose()?.flatten();
        let own = checked_name(&hub.allow_config)?;
        checked_name(&hub.shared_config)?;
        let shared_config = hub.shared_config.iter().filter(|entry| own.is_none() || !is_pre_tokenizer(entry));
        let shared_config: Vec<String> = shared_config.cloned().collect();
        let allow_config = hub.allow_config.clone();
        let Some(reference) = reference else {
            // Never a folder of that name, which is `./NAME`.
            let is_built_in = given.as_os_str() == BUILT_IN;
            let path = if is_built_in { built_in_folder()? } else { given.to_owned() };
            let note = (is_built_in && word.exists()).then(|| beside(&word.to_string_lossy()));
            return Ok(LocatedModel {
                given: given.to_owned(),
                path,
                pinned: None,
                weights,
                allow_config,
                shared_config,
                decoding: None,
                note,
                opened: Opened::default(),
            });
        };
        let path = reference.folder(hub, with_weights)?;
        let note = reference.note;
        let decoding = reference.entry.as_ref().and_then(|entry| entry.decoding);
        let pinned = Pinned {
            repo: reference.repo.to_string(),
            commit: reference.commit.to_string(),
            name: reference.entry.map(|entry| entry.name),
        };
        Ok(LocatedModel {
            given: given.to_owned(),
            path,
            pinned: Some(pinned),
            weights,
            allow_config,
            shared_config,
            decoding,
            note,
            opened: Opened::default(),
        })
    }

    /// Returns the notice of how the commit was chosen.
    pub(super) fn notice(&self) -> Option<Notice> {
        self.note.as_ref().map(|note| Notice::told(Teller::Model, note))
    }

    /// Shares the opened checkpoint of another model if it is the same one: same files, opened in the same way.
    pub(crate) fn share(&mut self, other: &LocatedModel) -> bool {
        // Links have their own names in the record of a run's files.
        let is_same = std::path::absolute(&self.path).ok() == std::path::absolute(&other.path).ok()
            && (self.weights, &self.allow_config, &self.shared_config)
                == (other.weights, &other.allow_config, &other.shared_config);
        if is_same {
            self.opened = other.opened.clone();
        }
        is_same
    }

    /// The folder or file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
