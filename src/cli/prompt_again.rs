//! The prompts of a stored run, rendered once more: a row has its prompt's hash, the suite its pieces, the model's files the chat
//! template around them.
use std::path::{Path, PathBuf};

use super::model;
use super::models::HubArgs;
use crate::checkpoint::Checkpoint;
use crate::engine::openai::Api;
use crate::prompt::{Mode, ModeRequest, PromptSource, Prompter, Remote, WithThinking};
use crate::run::{Manifest, Sample};
use crate::suite::Item;

/// A prompt as far as it is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// What was asked: it has the row's hash.
    Asked(String),
    /// The text that the suite prescribes, which nothing here can be held against, and why.
    Unchecked(String, String),
    /// Only the suite's pieces are known, and, where there is a reason to say it, why.
    Pieces(Option<String>),
}

/// What renders a run's prompts.
pub struct Again {
    source: Source,
    mode: Mode,
    /// Why the model's files do not.
    reason: Option<String>,
}

enum Source {
    Checkpoint(Box<Checkpoint>, Option<bool>),
    /// An endpoint has the template.
    Remote(Remote),
    /// Nothing is known of prompts.
    Nothing,
}

impl Again {
    /// Looks where the run found its model; opens no connection and reads no weights.
    pub fn of(manifest: &Manifest) -> Self {
        let settings = &manifest.settings;
        let mode = settings.prompt_mode;
        if settings.imported() {
            return Again { source: Source::Nothing, mode, reason: None };
        }
        if let Some(endpoint) = settings.endpoint.as_ref().filter(|_| settings.model_files.is_empty()) {
            let remote = if endpoint.api == Api::Chat { Remote::Messages } else { Remote::Text };
            return Again { source: Source::Remote(remote), mode, reason: None };
        }
        let list = std::env::var_os("EARNEST_MODELS_TOML").map(PathBuf::from);
        let hub = HubArgs { models: list, offline: true };
        let path = Path::new(&manifest.model.path);
        let opened = model::choose_tokenizer(path, &hub)
            .ok()
            .and_then(|chosen| Checkpoint::open_without_weights(chosen.path()).ok());
        match opened {
            Some(checkpoint) => {
                Again { source: Source::Checkpoint(Box::new(checkpoint), settings.enable_thinking), mode, reason: None }
            }
            None => {
                // A raw prompt is the suite's text alone.
                let source = if mode == Mode::Raw { Source::Remote(Remote::Text) } else { Source::Nothing };
                let reason = Some(format!("the model is not at {}", manifest.model.path));
                Again { source, mode, reason }
            }
        }
    }

    /// What [`Again::prompter`] needs.
    pub fn source(&self) -> Option<Box<dyn PromptSource + '_>> {
        match &self.source {
            Source::Checkpoint(checkpoint, enable_thinking) => {
                Some(Box::new(WithThinking { checkpoint, enable_thinking: *enable_thinking }))
            }
            Source::Remote(remote) => Some(Box::new(*remote)),
            Source::Nothing => None,
        }
    }

    /// Renders prompts in the run's mode; none where the template is not known.
    pub fn prompter<'a>(&self, source: Option<&'a (dyn PromptSource + 'a)>) -> Option<Prompter<'a>> {
        let request = match self.mode {
            Mode::Chat => ModeRequest::Chat,
            Mode::Raw => ModeRequest::Raw,
        };
        Prompter::new(source?, request).ok()
    }

    /// The prompt of a sample.
    pub fn prompt(&self, prompter: Option<&Prompter<'_>>, item: &Item, sample: &Sample) -> Prompt {
        // Nothing was asked where the prompt could not be rendered, and nothing is known of prompts made elsewhere.
        if sample.prompt_sha256.is_empty() {
            return Prompt::Pieces(None);
        }
        let Some(rendered) = prompter.and_then(|prompter| prompter.render(&item.segments).ok()) else {
            return Prompt::Pieces(self.reason.clone());
        };
        match &self.reason {
            Some(reason) => Prompt::Unchecked(rendered.text, reason.clone()),
            None if rendered.sha256 == sample.prompt_sha256 => Prompt::Asked(rendered.text),
            None => Prompt::Pieces(Some("the suite and the model's files make another prompt today".to_owned())),
        }
    }
}
