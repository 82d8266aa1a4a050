//! Preview of a prompt: the exact text and tokens of one item, without asking a model.
use std::path::PathBuf;

use serde::Serialize;

use earnest_models::checkpoint::Tokenizer;
use earnest_models::hub::HubSettings;
use earnest_tasks::suite::registry::{Channel, OptionValues};
use earnest_tasks::suite::{Budget, Item, Suite};

use crate::model::LocatedModel;
use crate::prompt::{Prompter, WithThinking};
use crate::{EvalError, model};
use earnest_results::suites::configure;
use earnest_results::{Mode, ModeRequest};

#[derive(Debug, Clone)]
pub struct PreviewSettings {
    /// Name of the suite.
    pub suite: String,
    /// Options of the suite, its seed and prompts among them.
    pub options: OptionValues,
    pub item: ItemChoice,
    /// Path or reference of the model; no weights are loaded.
    pub model: PathBuf,
    pub hub: HubSettings,
    /// Form of the prompt; none for the suite's default.
    pub prompt: Option<ModeRequest>,
    /// Value of the chat template's thinking switch.
    pub thinking: Option<bool>,
}

impl PreviewSettings {
    /// The first item of a suite with default options and seed 1.
    pub fn new(suite: impl Into<String>, model: impl Into<PathBuf>) -> Self {
        PreviewSettings {
            suite: suite.into(),
            options: OptionValues::new(1, Vec::new()),
            item: ItemChoice::First,
            model: model.into(),
            hub: HubSettings::default(),
            prompt: None,
            thinking: None,
        }
    }
}

/// The item to preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ItemChoice {
    #[default]
    First,
    /// The first item of a task.
    Task(String),
    /// The item with this id.
    Id(String),
}

/// A rendered prompt with what is known of its item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preview {
    pub suite: String,
    pub item: String,
    pub task: String,
    pub gold: String,
    pub budget: Budget,
    pub stop_strings: Vec<String>,
    /// A stop string stays in the completion, as its end.
    pub keep_stop: bool,
    #[serde(rename = "prompt")]
    pub mode: Mode,
    pub text: String,
    /// Number of BOS tokens at the beginning.
    pub bos: usize,
    /// BOS token of the checkpoint.
    pub bos_token: Option<Token>,
    /// SHA-256 over the token ids, each as four little-endian bytes, as stored with samples.
    pub ids_sha256: String,
    /// SHA-256 over the text in UTF-8.
    pub text_sha256: String,
    pub tokens: Vec<Token>,
    /// Continuations that are scored after the prompt, each with its tokens; empty where text is generated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub continuations: Vec<(String, Vec<Token>)>,
    /// Context length of the checkpoint, in tokens.
    pub context: usize,
    /// Warnings about the model.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// End-of-sequence tokens of the checkpoint.
    #[serde(skip)]
    pub eos_tokens: Vec<Token>,
}

/// A token of a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    pub id: u32,
    /// Decoded text; of a token that is a part of a character, the vocabulary's spelling.
    pub piece: String,
}

impl Token {
    fn new(tokenizer: &Tokenizer, id: u32) -> Self {
        let text = tokenizer.decode(&[id], false);
        let whole = !text.is_empty() && !text.contains('\u{fffd}');
        let piece = if whole { text } else { tokenizer.token(id).unwrap_or(text) };
        Token { id, piece }
    }
}

/// Renders the prompt of an item as a run would.
///
/// # Errors
/// If the suite has no such item, or the model cannot be opened or takes no such prompt.
pub fn preview(settings: &PreviewSettings) -> Result<Preview, EvalError> {
    let configured = configure(&settings.suite, &with_task_prompt(settings))?;
    let item = match &settings.item {
        ItemChoice::Task(task) => ItemChoice::Task(configured.registration.task(task)?),
        other => other.clone(),
    };
    let located = LocatedModel::find(&settings.model, &settings.hub, Default::default())?;
    let checkpoint = model::open(&located)?;
    let source = WithThinking { checkpoint: &checkpoint, enable_thinking: settings.thinking };
    let prompter = Prompter::new(&source, settings.prompt.unwrap_or_else(|| configured.default_mode()))?;
    let suite = configured.choice.suite(Channel::local(prompter.mode()))?;
    let item = find(&suite, &item)?;
    let (rendered, continuations) = prompter.render_item(&item)?;
    let token = |id: u32| Token::new(&checkpoint.tokenizer, id);
    Ok(Preview {
        suite: suite.scoring.name().to_owned(),
        item: item.id,
        task: item.task,
        gold: item.gold,
        budget: item.budget,
        stop_strings: item.stop_strings,
        keep_stop: item.keep_stop,
        mode: prompter.mode(),
        text_sha256: earnest_digest::hex(&earnest_digest::sha256(rendered.text.as_bytes())),
        text: rendered.text,
        bos: rendered.bos,
        bos_token: checkpoint.tokenizer.bos().map(token),
        ids_sha256: rendered.sha256,
        tokens: rendered.ids.iter().copied().map(token).collect(),
        continuations: item
            .continuations
            .into_iter()
            .zip(&continuations)
            .map(|(text, one)| (text, one.ids().iter().copied().map(token).collect()))
            .collect(),
        context: checkpoint.config.max_positions,
        warnings: checkpoint.pre_tokenizer.iter().map(|supplied| supplied.note.clone()).collect(),
        eos_tokens: checkpoint.generation.eos_ids.iter().copied().map(token).collect(),
    })
}

/// Returns the options with the item's task as the prompt where none is chosen and the suite's prompts are its tasks.
fn with_task_prompt(settings: &PreviewSettings) -> OptionValues {
    let mut options = settings.options.clone();
    let task = match &settings.item {
        ItemChoice::First => None,
        ItemChoice::Task(task) => Some(task.as_str()),
        ItemChoice::Id(id) => id.split('/').next(),
    };
    let prompts = earnest_tasks::suite::registry::find(&settings.suite).map_or(&[][..], |suite| suite.card().prompts);
    if let Some(task) = task.filter(|task| options.prompts.is_empty() && prompts.contains(task)) {
        options.prompts.push(task.to_owned());
    }
    options
}

fn find(suite: &Suite, choice: &ItemChoice) -> Result<Item, EvalError> {
    let chosen = |item: &Item| match choice {
        ItemChoice::First => true,
        ItemChoice::Task(task) => item.task == *task,
        ItemChoice::Id(id) => item.id == *id,
    };
    suite.items.iter().find(chosen).ok_or_else(|| match choice {
        ItemChoice::First => EvalError::setting(format!("{} has no items under these options", suite.scoring.name())),
        ItemChoice::Task(task) => {
            EvalError::setting(format!("{} has no task {task} under these options", suite.scoring.name()))
                .hint("`earnest suites` lists the tasks")
        }
        ItemChoice::Id(id) => {
            EvalError::setting(format!("{} has no item {id} under these options", suite.scoring.name()))
                .hint("`earnest samples` shows ids; the options of the items must be those of the run")
        }
    })
}
