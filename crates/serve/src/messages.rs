//! Messages of a conversation.
use serde_json::value::RawValue;

use super::error::ApiError;
use super::fields::{self, Fields, TooMany};
use earnest_models::checkpoint::ChatMessage;

/// Largest number of messages of a conversation, and of parts of a message.
const MAX_MESSAGES: usize = 1 << 16;

/// Parses `messages`.
pub(crate) fn parse(fields: &Fields<'_>) -> Result<Vec<ChatMessage>, ApiError> {
    let invalid = || ApiError::field("messages", "must be a non-empty list of messages");
    let messages = match fields.raw("messages").and_then(|text| fields::list::<&RawValue>(text, MAX_MESSAGES)) {
        Some(Ok(messages)) if !messages.is_empty() => messages,
        Some(Err(TooMany)) => {
            return Err(ApiError::field("messages", format!("at most {MAX_MESSAGES} messages are accepted")));
        }
        Some(Ok(_)) | None => return Err(invalid()),
    };
    messages.into_iter().map(parse_message).collect()
}

fn parse_message(value: &RawValue) -> Result<ChatMessage, ApiError> {
    let message = Fields::of_value(value, &["role", "content"]);
    let role = message.as_ref().and_then(|message| serde_json::from_str::<String>(message.raw("role")?).ok());
    let role = role.ok_or_else(|| ApiError::field("messages", "every message must have a role"))?;
    let content = message.and_then(|message| parse_content(message.raw("content")?));
    let content = content.ok_or_else(|| {
        ApiError::field("messages", "the content of a message must be a string or a list of parts of type text")
    })?;
    Ok(ChatMessage::new(role, content))
}

/// Parses the content of a message, a text or a list of parts; none if it is neither.
fn parse_content(text: &str) -> Option<String> {
    if !text.starts_with('[') {
        return serde_json::from_str(text).ok();
    }
    let mut content = String::new();
    for part in fields::list::<&RawValue>(text, MAX_MESSAGES)?.ok()? {
        let part = Fields::of_value(part, &["type", "text"])?;
        let kind: String = serde_json::from_str(part.raw("type")?).ok()?;
        if kind != "text" {
            return None;
        }
        content.push_str(&serde_json::from_str::<String>(part.raw("text")?).ok()?);
    }
    Some(content)
}
