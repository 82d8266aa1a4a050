//! A checkpoint whose chat template's thinking switch is set.
use super::PromptSource;
use earnest_models::checkpoint::{ChatMessage, Checkpoint};

/// A checkpoint as the source of prompts, with the template's variable `enable_thinking` given.
#[derive(Debug, Clone, Copy)]
pub struct WithThinking<'a> {
    pub checkpoint: &'a Checkpoint,
    pub enable_thinking: Option<bool>,
}

impl PromptSource for WithThinking<'_> {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        self.checkpoint.encode(text)
    }

    fn bos(&self) -> Option<u32> {
        self.checkpoint.bos()
    }

    fn adds_bos(&self) -> bool {
        self.checkpoint.adds_bos()
    }

    fn has_template(&self) -> bool {
        self.checkpoint.has_template()
    }

    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, String> {
        let template = self.checkpoint.chat_template.as_ref().ok_or("the checkpoint has no chat template")?;
        template.render_thinking(messages, true, self.enable_thinking).map_err(|error| error.to_string())
    }
}
