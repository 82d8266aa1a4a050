//! Prompts and their tokens, rendered again from the run's own checkpoint, and the log-probabilities of its answers.
use earnest_results::{Manifest, Mode, Origin, Sample};
use std::path::Path;

use earnest_engine::{Event, Input, Logprobs, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;
use earnest_models::hub::HubSettings;
use earnest_tasks::suite::Item;

use crate::EvalError;
use crate::model;
use crate::model::{EngineSettings, LocatedModel};
use crate::prompt::{Prompter, Rendered, WithThinking};

/// A token: its id, and the text that it completes, control tokens included. Bytes of a character are shown with its last token.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Token {
    pub id: u32,
    pub text: String,
    /// Natural logarithm of its probability given the tokens before it, by the model alone (before temperature and filters); none where it was not computed.
    pub logprob: Option<f32>,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SampleTokens {
    /// None unless the prompt comes out again as it was asked.
    pub prompt: Option<Vec<Token>>,
    /// Empty where the ids of the completion are not stored.
    pub completion: Vec<Token>,
}

/// Returns the tokens of a sample; none if the run's checkpoint is not at hand.
pub fn tokens(manifest: &Manifest, item: &Item, sample: &Sample) -> Option<SampleTokens> {
    let renderer = PromptRenderer::open(manifest)?;
    let split = |ids: &[u32]| renderer.split(ids);
    let ids = sample.completion.as_ref().map_or(&[][..], |completion| &completion.ids);
    Some(SampleTokens {
        prompt: renderer.rendered(item, sample).map(|prompt| split(&prompt.ids)),
        completion: split(ids),
    })
}

/// Returns the tokens of a sample with the log-probabilities of its answer, which are computed again: weights are loaded as the run had them. None if the run's
/// checkpoint is not at hand, its prompt does not come out again, or no ids are stored.
///
/// # Errors
/// Weights that are not those of the run or cannot be loaded, and an engine that fails.
pub fn scored_tokens(manifest: &Manifest, item: &Item, sample: &Sample) -> Result<Option<SampleTokens>, EvalError> {
    let Some(renderer) = PromptRenderer::open(manifest) else { return Ok(None) };
    let ids = sample.completion.as_ref().map_or(&[][..], |completion| &completion.ids);
    let Some(prompt) = renderer.rendered(item, sample).filter(|_| !ids.is_empty()) else { return Ok(None) };
    let checkpoint = &renderer.checkpoint;
    if model::hash_files(checkpoint, |_, _| ())? != manifest.settings.model_files {
        let message = format!("the files of {} are not those of {}", manifest.model.path, manifest.run);
        return Err(EvalError::setting(message).hint("log-probabilities need the weights that answered"));
    }
    let mut engine = model::load(checkpoint, &EngineSettings::default())?.engine;
    let request = Request {
        input: Input::Ids([&prompt.ids, ids].concat()),
        max_tokens: 0,
        logprobs: Logprobs { top: 0, prompt_from: Some(prompt.ids.len()) },
        ..Request::greedy(RequestId(0), Vec::new(), 0)
    };
    let refused = |error: &dyn std::fmt::Display| EvalError::model(format!("the answer cannot be scored: {error}"));
    engine.submit(request).map_err(|error| refused(&error))?;
    let found = loop {
        let events = engine.poll().map_err(|error| refused(&error))?;
        let failed = events.is_empty();
        let ended = events.into_iter().find_map(|event| match event {
            Event::Finished(completion) => Some(Ok(completion.prompt_logprobs.unwrap_or_default())),
            Event::Failed { error, .. } => Some(Err(error)),
            _ => None,
        });
        match ended {
            Some(ended) => break ended.map_err(|message| refused(&message))?,
            None if failed => return Err(refused(&"the engine ended without an answer")),
            None => {}
        }
    };
    if found.len() != ids.len() {
        return Err(refused(&format!("{} of {} tokens have a log-probability", found.len(), ids.len())));
    }
    let mut completion = renderer.split(ids);
    for (token, found) in completion.iter_mut().zip(found) {
        token.logprob = Some(found.chosen);
    }
    Ok(Some(SampleTokens { prompt: Some(renderer.split(&prompt.ids)), completion }))
}

/// Checkpoint of a run, for the tokens of its prompts.
pub struct PromptRenderer {
    checkpoint: Checkpoint,
    enable_thinking: Option<bool>,
    mode: Mode,
}

impl PromptRenderer {
    /// Opens the run's checkpoint without weights; none for endpoints, imported runs and checkpoints that are gone.
    pub fn open(manifest: &Manifest) -> Option<Self> {
        let settings = &manifest.settings;
        if settings.endpoint.is_some() || settings.origin() != Origin::Evaluated {
            return None;
        }
        let allow_config = manifest.model.allowed_config.clone();
        let hub = HubSettings { offline: true, allow_config, ..HubSettings::default() };
        let located =
            LocatedModel::find(Path::new(&manifest.model.path), &hub, settings.weights.unwrap_or_default()).ok()?;
        let checkpoint = model::open(&located).ok()?;
        Some(PromptRenderer { checkpoint, enable_thinking: settings.enable_thinking, mode: settings.prompt_mode })
    }

    /// Returns the bytes of the tokens of a sample's prompt; control tokens have none. None unless its ids have the digest of the row,
    /// so that it is the one that was asked.
    pub fn prompt_tokens(&self, item: &Item, sample: &Sample) -> Option<Vec<Vec<u8>>> {
        let rendered = self.rendered(item, sample)?;
        let tokenizer = &self.checkpoint.tokenizer;
        Some(rendered.ids.iter().map(|&id| tokenizer.token_bytes(id).to_vec()).collect())
    }

    fn split(&self, ids: &[u32]) -> Vec<Token> {
        let mut stream = self.checkpoint.tokenizer.whole_stream();
        let mut tokens: Vec<Token> =
            ids.iter().map(|&id| Token { id, text: stream.push(id).to_owned(), logprob: None }).collect();
        if let Some(last) = tokens.last_mut() {
            last.text.push_str(stream.finish());
        }
        tokens
    }

    fn rendered(&self, item: &Item, sample: &Sample) -> Option<Rendered> {
        let source = WithThinking { checkpoint: &self.checkpoint, enable_thinking: self.enable_thinking };
        let rendered = Prompter::new(&source, self.mode.into()).ok()?.render(&item.segments).ok()?;
        (rendered.sha256 == sample.prompt_sha256).then_some(rendered)
    }
}
