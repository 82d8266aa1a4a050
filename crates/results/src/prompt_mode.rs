//! Modes of prompts, and the place of a system message in them.
use serde::{Deserialize, Serialize};

pub use earnest_tasks::suite::registry::Mode;

/// A requested prompt mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeRequest {
    /// Chat if the checkpoint has a chat template, raw otherwise.
    #[default]
    Auto,
    /// The checkpoint's chat template; an error without one.
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

/// Position of a suite's system message; part of a run's identity unless it is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemPlace {
    /// A separate message.
    #[default]
    Own,
    /// Before the text of the first user turn, separated by a blank line, for chat templates without system messages.
    FirstUserTurn,
}

impl SystemPlace {
    /// True for [`SystemPlace::Own`].
    pub fn is_own(&self) -> bool {
        *self == SystemPlace::Own
    }
}
