//! Prompts as token ids, refused before more work is done than their context is worth.
use std::sync::Arc;

use serde_json::value::RawValue;

use super::error::ApiError;
use super::fields::{self, TooMany};
use super::request::{MAX_COMPLETIONS, ServedModel};

/// Bytes of a text that are tokenised first, for each token of the context, and at least.
const FIRST_BYTES_PER_TOKEN: usize = 8;
const MIN_FIRST_BYTES: usize = 16 << 10;

/// Tokens that the end of a part of a text may have more than the same place in the whole.
const TOKENS_AT_THE_CUT: usize = 256;

/// Parses `prompt`: a text, a list of token ids, or a list of either.
pub(crate) fn parse(prompt: &str, model: &ServedModel) -> Result<Vec<Arc<[u32]>>, ApiError> {
    // A list of ids begins with a number, or is empty.
    let is_ids = |text: &str| {
        let inner = text.strip_prefix('[')?.trim_start();
        Some(inner.starts_with(|first: char| first == ']' || first == '-' || first.is_ascii_digit()))
    };
    let one = |text: &str| match is_ids(text) {
        Some(_) => ids(text, model),
        None => {
            let text: String = serde_json::from_str(text).map_err(|_| invalid())?;
            encode(&text, "prompt", model)
        }
    };
    if is_ids(prompt) != Some(false) {
        return Ok(vec![one(prompt)?]);
    }
    match fields::list::<&RawValue>(prompt, MAX_COMPLETIONS) {
        Some(Ok(prompts)) => prompts.into_iter().map(|prompt| one(prompt.get())).collect(),
        Some(Err(TooMany)) => Err(ApiError::field("prompt", format!("at most {MAX_COMPLETIONS} prompts are accepted"))),
        None => Err(invalid()),
    }
}

fn invalid() -> ApiError {
    ApiError::field("prompt", "must be a string, a list of token ids, or a list of either")
}

fn ids(text: &str, model: &ServedModel) -> Result<Arc<[u32]>, ApiError> {
    match fields::list::<u32>(text, model.context) {
        Some(Ok(ids)) => Ok(ids.into()),
        Some(Err(TooMany)) => Err(beyond_context("prompt", model.context)),
        None => Err(invalid()),
    }
}

fn beyond_context(field: &'static str, context: usize) -> ApiError {
    ApiError::field(field, format!("has more tokens than the context, which has {context}"))
}

/// Tokenises a text. A long one is tokenised in growing parts, from its beginning: once a part exceeds the context, so does the text.
///
/// # Errors
/// 400 with the name of the field.
pub(crate) fn encode(text: &str, field: &'static str, model: &ServedModel) -> Result<Arc<[u32]>, ApiError> {
    let encode =
        |text: &str| model.checkpoint.encode_prompt(text).map_err(|error| ApiError::field(field, error.to_string()));
    let mut part = model.context.saturating_mul(FIRST_BYTES_PER_TOKEN).max(MIN_FIRST_BYTES);
    while part < text.len() {
        let tokens = encode(&text[..text.floor_char_boundary(part)])?.len();
        if tokens > model.context.saturating_add(TOKENS_AT_THE_CUT) {
            return Err(beyond_context(field, model.context));
        }
        part = part.saturating_mul(2);
    }
    Ok(encode(text)?.into())
}
