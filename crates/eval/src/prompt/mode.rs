//! How the pieces of a prompt are joined.
use serde::{Deserialize, Serialize};

pub use earnest_tasks::suite::registry::Mode;

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

impl From<Mode> for ModeRequest {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Chat => ModeRequest::Chat,
            Mode::Raw => ModeRequest::Raw,
        }
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
