//! Prompts of a checkpoint.
use super::{PromptError, PromptSource};
use earnest_models::checkpoint::{ChatMessage, Checkpoint, PromptIdsError};

impl PromptSource for Checkpoint {
    fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        Ok(self.tokenizer.encode(text, false).map_err(|error| PromptIdsError::Tokenizer(error.to_string()))?)
    }

    fn bos(&self) -> Option<u32> {
        self.tokenizer.bos()
    }

    fn adds_bos(&self) -> bool {
        Checkpoint::adds_bos(self)
    }

    fn text_start(&self) -> Option<u32> {
        self.tokenizer.bos().or(self.tokenizer.eos())
    }

    fn has_template(&self) -> bool {
        self.chat_template.is_some()
    }

    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError> {
        let template = self.chat_template.as_ref().ok_or(PromptError::NoTemplate)?;
        template.render(messages, true).map_err(|error| PromptError::Template(error.to_string()))
    }
}
