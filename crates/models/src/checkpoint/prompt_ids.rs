//! Token ids of rendered prompts.
use super::Checkpoint;

/// Token ids of a prompt that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptIdsError {
    /// The tokenizer's own message.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
    /// Several BOS ids begin the prompt. Models lose accuracy on such prompts, so this is never sent.
    #[error("the prompt begins with {count} BOS tokens (id {bos}) instead of one: the chat template writes it twice")]
    RepeatedBos { count: usize, bos: u32 },
}

/// Token ids with exactly one BOS at their beginning where the tokenizer adds one; also the number of BOS ids there.
///
/// Templates of Llama 3 or Gemma write BOS themselves, those of others leave it to the tokenizer; a second one, or none at all, is
/// the most reported silent accuracy loss of evaluators.
pub fn with_one_bos(mut ids: Vec<u32>, bos: Option<u32>, adds_bos: bool) -> Result<(Vec<u32>, usize), PromptIdsError> {
    let Some(bos) = bos else { return Ok((ids, 0)) };
    if adds_bos && ids.first() != Some(&bos) {
        ids.insert(0, bos);
    }
    let count = ids.iter().take_while(|&&id| id == bos).count();
    if count > 1 { Err(PromptIdsError::RepeatedBos { count, bos }) } else { Ok((ids, count)) }
}

impl Checkpoint {
    /// True if the tokenizer puts BOS before every text by itself, which is how a checkpoint says that the model was trained with it.
    pub fn adds_bos(&self) -> bool {
        let Some(bos) = self.tokenizer.bos() else { return false };
        // A digit is in every vocabulary; a text that can not be encoded has no special tokens either.
        self.tokenizer.encode("1", true).is_ok_and(|ids| ids.first() == Some(&bos))
    }

    /// Token ids of a rendered prompt, with exactly one BOS where the checkpoint uses one.
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>, PromptIdsError> {
        let ids = self.tokenizer.encode(text, false).map_err(|error| PromptIdsError::Tokenizer(error.to_string()))?;
        Ok(with_one_bos(ids, self.tokenizer.bos(), self.adds_bos())?.0)
    }
}
