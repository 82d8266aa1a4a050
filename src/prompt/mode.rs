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

/// Where a suite's system message goes; part of a run's identity where it is not the usual place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemPlace {
    /// A message of its own.
    #[default]
    Own,
    /// Before the first user turn's text, a blank line between: the chat template takes no system message.
    FirstUserTurn,
}

impl SystemPlace {
    /// True for [`SystemPlace::Own`].
    pub fn is_own(&self) -> bool {
        *self == SystemPlace::Own
    }
}
