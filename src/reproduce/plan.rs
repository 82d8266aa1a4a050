//! What must be run to reproduce a paper.
use serde::Serialize;

/// The runs behind a paper's tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub paper: String,
    pub rows: Vec<PlanRow>,
    pub notes: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanRow {
    pub model: String,
    /// The tables it fills.
    pub tables: Vec<u8>,
    pub prompts: usize,
    /// Characters of all questions, without the chat template.
    pub prompt_characters: usize,
    /// Tokens of all prompts as the checkpoint given sees them.
    pub prompt_tokens: Option<usize>,
    /// Upper bound of generated tokens.
    pub most_new_tokens: usize,
    pub command: String,
}
