//! A checkpoint as the source of prompts.
use super::PromptSource;
use earnest_models::checkpoint::{ChatMessage, Checkpoint};

impl PromptSource for Checkpoint {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        self.tokenizer.encode(text, false).map_err(|error| error.to_string())
    }

    fn bos(&self) -> Option<u32> {
        self.tokenizer.bos()
    }

    fn adds_bos(&self) -> bool {
        Checkpoint::adds_bos(self)
    }

    fn has_template(&self) -> bool {
        self.chat_template.is_some()
    }

    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, String> {
        let template = self.chat_template.as_ref().ok_or("the checkpoint has no chat template")?;
        template.render(messages, true).map_err(|error| error.to_string())
    }
}
