//! A suite with checked options, before it is known how its questions reach a model.
use serde::{Deserialize, Serialize};

use super::OptionError;
use crate::suite::Suite;

/// Form of a prompt; part of a run's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// The way of questions to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Form of the prompts.
    pub mode: Mode,
    /// An endpoint is asked, not an engine of this machine.
    pub endpoint: bool,
    /// Thinking of the chat template that renders the prompts; none where it knows none, or renders elsewhere.
    pub thinking: Option<TemplateThinking>,
    /// Forms of prompts that can be asked beside each other.
    pub takes: Takes,
}

/// Forms of prompts that a model takes: those of the mode that was asked for, or all where none was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takes {
    /// Conversations of one turn.
    pub chat: bool,
    /// Conversations with earlier turns, which some templates refuse.
    pub turns: bool,
    /// Raw text, which endpoints with a chat API do not take.
    pub raw: bool,
}

impl Takes {
    /// The forms of one mode.
    pub fn only(mode: Mode) -> Self {
        let chat = mode == Mode::Chat;
        Takes { chat, turns: chat, raw: !chat }
    }
}

/// Thinking of a chat template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateThinking {
    /// The template can turn it on and off.
    pub switch: bool,
    /// Marker with which a prompt opens it when it is on.
    pub opened: Option<&'static str>,
}

impl Channel {
    /// To an engine of this machine.
    pub fn local(mode: Mode) -> Self {
        Channel { mode, endpoint: false, thinking: None, takes: Takes::only(mode) }
    }

    /// Deciding scorer: the one that is asked for, or `last` for conversations and endpoints, whose models talk around their
    /// answers, or `usual` for texts to continue, where a paper's number is reproduced.
    pub fn scorer<P>(self, asked: Option<P>, last: P, usual: P) -> P {
        let talks = self.endpoint || self.mode == Mode::Chat;
        asked.unwrap_or(if talks { last } else { usual })
    }
}

/// A question by its task (by the name that items carry) and operands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GivenQuestion {
    /// Name of the task.
    pub task: String,
    /// First operand.
    pub a: String,
    /// Second operand.
    pub b: Option<String>,
}

/// A suite with checked options; what its items look like is settled once the channel is known.
pub trait Choice {
    /// Suite with items as this channel needs them and the deciding scorer that is usual there.
    ///
    /// # Errors
    /// If the options do not fit the channel.
    fn suite(&self, channel: Channel) -> Result<Suite, OptionError>;

    /// Form of prompts where none is asked for; none is that of the registration.
    fn mode(&self) -> Option<Mode> {
        None
    }

    /// Sentences that the user should read before the run.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Suite with these questions instead of its own; none where it cannot be asked other questions.
    ///
    /// # Errors
    /// If one of them is impossible.
    fn given(&self, _channel: Channel, _questions: &[GivenQuestion]) -> Result<Option<Suite>, OptionError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_and_endpoints_are_read_by_their_final_answer() {
        let of = |mode, endpoint, asked| Channel { endpoint, ..Channel::local(mode) }.scorer(asked, "final", "strict");
        assert_eq!(of(Mode::Raw, false, None), "strict");
        assert_eq!(of(Mode::Chat, false, None), "final");
        assert_eq!(of(Mode::Raw, true, None), "final");
        assert_eq!(of(Mode::Chat, true, Some("ref")), "ref");
        assert_eq!(Channel::local(Mode::Raw).scorer(Some("paper"), "final", "strict"), "paper");
    }
}
