//! What rendering needs of a checkpoint.
use earnest_models::checkpoint::ChatMessage;

/// The tokenizer and chat template that prompts are rendered with, by a thread beside the engine's.
pub trait PromptSource: Sync {
    /// False if prompts go to an endpoint as text or messages, which makes ids of them by itself. Nothing is encoded then, and
    /// [`PromptSource::has_template`] says which of the two it takes.
    fn tokenises(&self) -> bool {
        true
    }

    /// The ids of a text. Special tokens written in the text are recognised, none is added. The error is the
    /// tokenizer's own message.
    fn encode(&self, text: &str) -> Result<Vec<u32>, String>;

    /// The id that begins a sequence, if the checkpoint names one.
    fn bos(&self) -> Option<u32>;

    /// True if the tokenizer puts [`PromptSource::bos`] before every text by itself, which is how a checkpoint says
    /// that the model was trained with it.
    fn adds_bos(&self) -> bool;

    /// True if there is a chat template.
    fn has_template(&self) -> bool;

    /// Renders a conversation up to and including the header of the assistant's next turn. The error is the
    /// template's own message.
    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, String>;
}
