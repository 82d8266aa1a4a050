//! Prompts that an endpoint tokenises.
use super::{PromptError, PromptSource};
use earnest_models::checkpoint::{ChatMessage, PromptIdsError};

/// Form of prompts for an endpoint without a local tokenizer. BOS and chat template are the endpoint's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    Text,
    Messages,
}

impl PromptSource for Remote {
    fn tokenises(&self) -> bool {
        false
    }

    fn encode(&self, _: &str) -> Result<Vec<u32>, PromptError> {
        Err(PromptIdsError::Tokenizer("there is no local tokenizer, only the endpoint's".to_owned()).into())
    }

    fn bos(&self) -> Option<u32> {
        None
    }

    fn adds_bos(&self) -> bool {
        false
    }

    fn has_template(&self) -> bool {
        *self == Remote::Messages
    }

    /// Concatenates the messages. The endpoint's template is unknown, so no role counts as unsupported.
    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError> {
        Ok(messages.iter().map(|message| format!("{}: {}\n", message.role, message.content)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::{Prompter, Wire};
    use earnest_results::ModeRequest;
    use earnest_tasks::suite::Segments;

    #[test]
    fn messages_and_text_go_out_as_they_are() {
        let segments = Segments { system: Some("Be brief.".into()), ..Segments::question("1+1=?") };
        let chat = Prompter::new(&Remote::Messages, ModeRequest::Auto).unwrap().render(&segments).unwrap();
        let turns = vec![ChatMessage::new("system", "Be brief."), ChatMessage::new("user", "1+1=?")];
        assert_eq!(chat.wire, Wire::Messages(turns));
        assert!(chat.ids.is_empty() && chat.text.contains("Be brief."));
        let raw = Prompter::new(&Remote::Text, ModeRequest::Auto).unwrap().render(&segments).unwrap();
        assert_eq!((raw.wire, raw.text.as_str()), (Wire::Text, "Be brief.\n1+1=?"));
        assert_ne!(raw.sha256, chat.sha256);
        assert!(matches!(Prompter::new(&Remote::Text, ModeRequest::Chat), Err(PromptError::NoTemplate)));
    }
}
