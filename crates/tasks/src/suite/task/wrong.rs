//! A text of a task file that cannot be used.
use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// A text of a task file that is wrong, and why. It may come from the process that compiles templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Wrong {
    /// Empty where no single text is to blame.
    pub text: String,
    pub reason: String,
}

impl Wrong {
    pub(super) fn new(text: impl Into<String>, reason: impl Display) -> Self {
        Wrong { text: text.into(), reason: reason.to_string() }
    }
}
