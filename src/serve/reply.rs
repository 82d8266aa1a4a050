//! Completions become what clients read.
use std::time::SystemTime;

use serde_json::{Value, json};

use super::ask::{Asked, Served};
use crate::engine::openai::Api;
use crate::engine::{Completion, FinishReason, Input, Request, TokenLogprobs};

/// What an HTTP request asked for and got.
pub(super) struct Answered<'a> {
    pub api: Api,
    pub number: u64,
    pub asked: &'a Asked,
    pub completions: &'a [Completion],
    pub served: &'a Served,
}

impl Answered<'_> {
    /// The whole reply.
    pub fn json(&self) -> Value {
        let mut reply = self.envelope(match self.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion",
        });
        reply["choices"] = self.choices(|choice, completion| match self.api {
            Api::Completions => choice["text"] = json!(completion.text),
            Api::Chat => choice["message"] = json!({"role": "assistant", "content": completion.text}),
        });
        reply["usage"] = self.usage();
        reply
    }

    /// The same as the events of a stream. The text comes in one piece, when it is whole.
    pub fn events(&self) -> Vec<String> {
        let mut chunk = self.envelope(match self.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion.chunk",
        });
        chunk["choices"] = self.choices(|choice, completion| match self.api {
            Api::Completions => choice["text"] = json!(completion.text),
            Api::Chat => choice["delta"] = json!({"role": "assistant", "content": completion.text}),
        });
        let mut events = vec![chunk.to_string()];
        if self.asked.stream_usage {
            chunk["choices"] = json!([]);
            chunk["usage"] = self.usage();
            events.push(chunk.to_string());
        }
        events.push("[DONE]".to_owned());
        events
    }

    fn envelope(&self, object: &str) -> Value {
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let prefix = if self.api == Api::Chat { "chatcmpl" } else { "cmpl" };
        json!({"id": format!("{prefix}-{}", self.number), "object": object, "created": created, "model": self.served.name})
    }

    fn choices(&self, put: impl Fn(&mut Value, &Completion)) -> Value {
        let choices =
            self.completions.iter().zip(&self.asked.requests).enumerate().map(|(index, (completion, request))| {
                let finish = match completion.finish {
                    FinishReason::Eos | FinishReason::StopString => "stop",
                    FinishReason::Length | FinishReason::Cancelled => "length",
                };
                let mut choice = json!({"index": index, "finish_reason": finish, "logprobs": null});
                // OpenAI's schema does not tell an end of sequence from a stop string.
                choice["earnest_finish"] = json!(completion.finish);
                put(&mut choice, completion);
                if let (Some(top), Some(logprobs)) = (self.asked.logprobs, &completion.logprobs) {
                    choice["logprobs"] = self.logprobs(completion, logprobs, top);
                }
                if self.asked.token_ids {
                    choice["token_ids"] = json!(completion.ids);
                    choice["prompt_token_ids"] = json!(prompt(request));
                }
                choice
            });
        choices.collect()
    }

    /// Prompt tokens are counted once for all completions of a prompt that comes several times in a row.
    fn usage(&self) -> Value {
        let mut prompt_tokens = 0;
        let mut last: Option<&[u32]> = None;
        for request in &self.asked.requests {
            let prompt = prompt(request);
            if last != Some(prompt) {
                prompt_tokens += prompt.len();
            }
            last = Some(prompt);
        }
        let generated: usize = self.completions.iter().map(|completion| completion.ids.len()).sum();
        let cached: usize = self.completions.iter().map(|completion| completion.cached_tokens).sum();
        json!({
            "prompt_tokens": prompt_tokens, "completion_tokens": generated, "total_tokens": prompt_tokens + generated,
            "prompt_tokens_details": {"cached_tokens": cached.min(prompt_tokens)},
        })
    }

    fn name(&self, id: u32) -> String {
        if self.asked.names_are_ids {
            return format!("token_id:{id}");
        }
        let tokenizer = &self.served.checkpoint.tokenizer;
        let text = tokenizer.decode(&[id], false);
        if text.is_empty() { tokenizer.token(id).unwrap_or(text) } else { text }
    }

    fn logprobs(&self, completion: &Completion, logprobs: &[TokenLogprobs], top: usize) -> Value {
        let tokens = completion.ids.iter().zip(logprobs);
        match self.api {
            Api::Completions => {
                let alternatives = |one: &TokenLogprobs| -> Value {
                    one.top
                        .iter()
                        .take(top)
                        .map(|(id, value)| (self.name(*id), json!(value)))
                        .collect::<serde_json::Map<_, _>>()
                        .into()
                };
                json!({
                    "tokens": tokens.clone().map(|(id, _)| self.name(*id)).collect::<Vec<_>>(),
                    "token_logprobs": tokens.clone().map(|(_, one)| one.chosen).collect::<Vec<_>>(),
                    "top_logprobs": tokens.map(|(_, one)| alternatives(one)).collect::<Vec<_>>(),
                })
            }
            Api::Chat => {
                let entry = |id: u32, value: f32| {
                    let name = self.name(id);
                    json!({"token": name, "logprob": value, "bytes": name.as_bytes()})
                };
                let content = tokens.map(|(id, one)| {
                    let mut whole = entry(*id, one.chosen);
                    whole["top_logprobs"] = one.top.iter().take(top).map(|(id, value)| entry(*id, *value)).collect();
                    whole
                });
                json!({"content": content.collect::<Vec<_>>()})
            }
        }
    }
}

/// The ids of a prompt.
fn prompt(request: &Request) -> &[u32] {
    match &request.input {
        Input::Ids(ids) => ids,
        Input::Text(_) | Input::Messages(_) => &[],
    }
}
