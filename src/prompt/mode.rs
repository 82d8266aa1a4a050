//! How the pieces of a prompt are joined.
use serde::{Deserialize, Serialize};

/// What the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeRequest {
    /// Chat if the checkpoint has a chat template, raw otherwise.
    #[default]
    Auto,
    /// The checkpoint's chat template; an error if it has none.
    Chat,
    /// The bare text.
    Raw,
}

/// What is done; part of a run's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// System message, shots and question become the turns of a conversation, rendered by the chat template.
    Chat,
    /// The suite's raw text, or its pieces joined by newlines.
    Raw,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Mode::Chat => "chat",
            Mode::Raw => "raw",
        })
    }
}
