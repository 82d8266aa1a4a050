//! What must be run to reproduce a paper.
use serde::Serialize;

use super::nupa::Rate;

/// The runs behind a paper's tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub paper: String,
    pub rows: Vec<PlanRow>,
    pub notes: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Hours if every answer used its whole budget, where tokens and a rate are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_hours: Option<f64>,
    pub command: String,
}

impl Plan {
    /// Hours of each row whose tokens are counted, at a rate that was measured with one model: rows of larger models take longer.
    pub fn estimate(&mut self, rate: &Rate) {
        for row in &mut self.rows {
            row.most_hours = row.prompt_tokens.map(|tokens| rate.hours(tokens, row.most_new_tokens));
        }
        self.notes.push(format!("Hours at most: whole budgets at {}; larger models take longer.", rate.describe()));
    }
}
