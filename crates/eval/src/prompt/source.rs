//! Tokenizer and chat template behind prompts.
use super::PromptError;
use earnest_models::checkpoint::ChatMessage;

/// Tokenizer and chat template of prompts; used on other threads than the engine's.
pub trait PromptSource: Sync {
    /// False if an endpoint tokenises prompts. Nothing is encoded then, and [`PromptSource::has_template`] is true for endpoints
    /// that take messages, false for text.
    fn tokenises(&self) -> bool {
        true
    }

    /// Returns the ids of a text. Special tokens in the text are recognised, none is added.
    fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError>;

    /// Returns the BOS id, if the checkpoint has one.
    fn bos(&self) -> Option<u32>;

    /// True if the tokenizer adds [`PromptSource::bos`] to every text, as for models trained with it.
    fn adds_bos(&self) -> bool;

    /// Returns the id that stands before a text without a context: BOS, else the end of the text before.
    fn text_start(&self) -> Option<u32> {
        self.bos()
    }

    /// True if there is a chat template.
    fn has_template(&self) -> bool;

    /// Renders a conversation including the header of the assistant's next turn.
    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError>;

    /// True if there is a chat template that makes the model think, or can.
    fn thinks(&self) -> bool {
        false
    }

    /// Renders a conversation as [`PromptSource::apply_template`], with a value for the template's thinking switch; a template without one
    /// ignores it.
    fn apply_template_thinking(&self, messages: &[ChatMessage], thinking: bool) -> Result<String, PromptError> {
        let _ = thinking;
        self.apply_template(messages)
    }
}
