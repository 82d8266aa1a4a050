//! A checkpoint as the source of prompts.
use super::PromptSource;
use crate::checkpoint::{ChatMessage, Checkpoint};

impl PromptSource for Checkpoint {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        self.tokenizer.encode(text, false).map_err(|error| error.to_string())
    }

    fn bos(&self) -> Option<u32> {
        self.tokenizer.bos()
    }

    fn adds_bos(&self) -> bool {
        let Some(bos) = self.tokenizer.bos() else {
            return false;
        };
        // A digit is in every vocabulary; a text that can not be encoded has no special tokens either.
        self.tokenizer.encode("1", true).is_ok_and(|ids| ids.first() == Some(&bos))
    }

    fn has_template(&self) -> bool {
        self.chat_template.is_some()
    }

    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, String> {
        let template = self.chat_template.as_ref().ok_or("the checkpoint has no chat template")?;
        template.render(messages, true).map_err(|error| error.to_string())
    }
}
