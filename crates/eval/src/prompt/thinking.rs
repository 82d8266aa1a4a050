//! Prompts of a checkpoint with a thinking switch.
use super::{PromptError, PromptSource};
use earnest_models::checkpoint::{ChatMessage, Checkpoint};

/// A checkpoint with a value for the template's variable `enable_thinking`.
#[derive(Debug, Clone, Copy)]
pub struct WithThinking<'a> {
    pub checkpoint: &'a Checkpoint,
    pub enable_thinking: Option<bool>,
}

impl WithThinking<'_> {
    fn render(&self, messages: &[ChatMessage], thinking: Option<bool>) -> Result<String, PromptError> {
        let template = self.checkpoint.chat_template.as_ref().ok_or(PromptError::NoTemplate)?;
        let rendered = template.render_thinking(messages, true, thinking);
        rendered.map_err(|error| PromptError::Template(error.to_string()))
    }
}

impl PromptSource for WithThinking<'_> {
    fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        self.checkpoint.encode(text)
    }

    fn bos(&self) -> Option<u32> {
        self.checkpoint.bos()
    }

    fn adds_bos(&self) -> bool {
        self.checkpoint.adds_bos()
    }

    fn text_start(&self) -> Option<u32> {
        self.checkpoint.text_start()
    }

    fn has_template(&self) -> bool {
        self.checkpoint.has_template()
    }

    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError> {
        self.render(messages, self.enable_thinking)
    }

    fn thinks(&self) -> bool {
        self.checkpoint.chat_template.as_ref().is_some_and(|template| template.thinks())
    }

    fn apply_template_thinking(&self, messages: &[ChatMessage], thinking: bool) -> Result<String, PromptError> {
        self.render(messages, Some(thinking))
    }
}
