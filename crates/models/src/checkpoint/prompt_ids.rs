//! Token ids of rendered prompts.
use super::Checkpoint;

/// Reasons why a prompt cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptIdsError {
    /// The tokenizer failed, with its message.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
    /// The prompt begins with several BOS ids. Models lose accuracy on such prompts, so they are never sent.
    #[error("the prompt begins with {count} BOS tokens (id {bos}) instead of one: the chat template repeats it")]
    RepeatedBos { count: usize, bos: u32 },
}

/// Returns token ids with exactly one BOS at the start if the tokenizer adds one, and the number of BOS ids at the start.
///
/// The templates of Llama 3 and Gemma write BOS, others leave it to the tokenizer. A second BOS, or none, is the most frequently
/// reported silent loss of accuracy in evaluation harnesses.
///
/// # Errors
/// [`PromptIdsError::RepeatedBos`].
pub fn with_one_bos(mut ids: Vec<u32>, bos: Option<u32>, adds_bos: bool) -> Result<(Vec<u32>, usize), PromptIdsError> {
    let Some(bos) = bos else { return Ok((ids, 0)) };
    if adds_bos && ids.first() != Some(&bos) {
        ids.insert(0, bos);
    }
    let count = ids.iter().take_while(|&&id| id == bos).count();
    if count > 1 { Err(PromptIdsError::RepeatedBos { count, bos }) } else { Ok((ids, count)) }
}

impl Checkpoint {
    /// True if the tokenizer adds BOS to every text, as a model trained with BOS requires.
    pub fn adds_bos(&self) -> bool {
        let Some(bos) = self.tokenizer.bos() else { return false };
        // Every vocabulary has digits; a text that cannot be encoded has no special tokens either.
        self.tokenizer.encode("1", true).is_ok_and(|ids| ids.first() == Some(&bos))
    }

    /// Encodes a rendered prompt, with exactly one BOS if the checkpoint uses one.
    ///
    /// # Errors
    /// [`PromptIdsError`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>, PromptIdsError> {
        let ids = self.tokenizer.encode(text, false).map_err(|error| PromptIdsError::Tokenizer(error.to_string()))?;
        Ok(with_one_bos(ids, self.tokenizer.bos(), self.adds_bos())?.0)
    }
}
