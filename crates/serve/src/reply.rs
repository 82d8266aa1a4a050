//! Completions become what clients read.
use std::time::SystemTime;

use serde_json::{Value, json};

use super::ask::{Asked, Served};
use super::desk::Part;
use earnest_engine::endpoint::Api;
use earnest_engine::{Completion, FinishReason, Input, Request, TokenLogprobs};

/// What an HTTP request asked for, and what all of its answer has in common.
pub(super) struct Answer<'a> {
    pub api: Api,
    pub number: u64,
    pub asked: &'a Asked,
    pub served: &'a Served,
}

impl Answer<'_> {
    /// The whole reply.
    pub fn json(&self, completions: &[Completion]) -> Value {
        let mut reply = self.envelope(match self.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion",
        });
        let choices = completions.iter().enumerate().map(|(place, completion)| {
            let mut choice = self.choice(place, &completion.ids, completion.logprobs.as_deref());
            match self.api {
                Api::Completions => choice["text"] = json!(completion.text),
                Api::Chat => choice["message"] = json!({"role": "assistant", "content": completion.text}),
            }
            put_end(&mut choice, completion);
            if self.asked.token_ids {
                choice["prompt_token_ids"] = json!(prompt(&self.asked.requests[place]));
            }
            choice
        });
        reply["choices"] = choices.collect();
        reply["usage"] = self.usage(completions);
        reply
    }

    fn envelope(&self, object: &str) -> Value {
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let prefix = if self.api == Api::Chat { "chatcmpl" } else { "cmpl" };
        json!({"id": format!("{prefix}-{}", self.number), "object": object, "created": created, "model": self.served.name})
    }

    /// A choice, or a part of one, without its text and its end.
    fn choice(&self, place: usize, ids: &[u32], logprobs: Option<&[TokenLogprobs]>) -> Value {
        let mut choice = json!({"index": place, "finish_reason": null, "logprobs": null});
        if let (Some(top), Some(logprobs)) = (self.asked.logprobs, logprobs) {
            choice["logprobs"] = self.logprobs(ids, logprobs, top);
        }
        if self.asked.token_ids {
            choice["token_ids"] = json!(ids);
        }
        choice
    }

    /// Prompt tokens are counted once for all completions of a prompt that comes several times in a row.
    fn usage(&self, completions: &[Completion]) -> Value {
        let mut prompt_tokens = 0;
        let mut last: Option<&[u32]> = None;
        for request in &self.asked.requests {
            let prompt = prompt(request);
            if last != Some(prompt) {
                prompt_tokens += prompt.len();
            }
            last = Some(prompt);
        }
        let generated: usize = completions.iter().map(|completion| completion.ids.len()).sum();
        let cached: usize = completions.iter().map(|completion| completion.cached_tokens).sum();
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

    fn logprobs(&self, ids: &[u32], logprobs: &[TokenLogprobs], top: usize) -> Value {
        let tokens = ids.iter().zip(logprobs);
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

/// The same answer as events, part by part. All parts of a choice joined are the choice of the whole answer.
pub(super) struct Stream<'a> {
    answer: Answer<'a>,
    envelope: Value,
    /// For each choice the tokens and the bytes of text that were sent; none before its first event.
    sent: Vec<Option<(usize, usize)>>,
}

impl<'a> Stream<'a> {
    pub fn new(answer: Answer<'a>) -> Stream<'a> {
        let mut envelope = answer.envelope(match answer.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion.chunk",
        });
        if answer.asked.stream_usage {
            // OpenAI's: every chunk but the last has it empty.
            envelope["usage"] = Value::Null;
        }
        Stream { envelope, sent: vec![None; answer.asked.requests.len()], answer }
    }

    fn event(&self, choice: Value) -> String {
        let mut chunk = self.envelope.clone();
        chunk["choices"] = json!([choice]);
        chunk.to_string()
    }

    fn part_event(&mut self, place: usize, part: &Part, end: Option<&Completion>) -> String {
        let mut choice = self.answer.choice(place, &part.ids, part.logprobs.as_deref());
        let first = self.sent[place].is_none();
        match self.answer.api {
            Api::Completions => choice["text"] = json!(part.text),
            Api::Chat if first => choice["delta"] = json!({"role": "assistant", "content": part.text}),
            Api::Chat => choice["delta"] = json!({"content": part.text}),
        }
        if first && self.answer.asked.token_ids {
            choice["prompt_token_ids"] = json!(prompt(&self.answer.asked.requests[place]));
        }
        if let Some(completion) = end {
            put_end(&mut choice, completion);
        }
        let (ids, bytes) = self.sent[place].unwrap_or_default();
        self.sent[place] = Some((ids + part.ids.len(), bytes + part.text.len()));
        self.event(choice)
    }

    /// A part of a choice; none while nothing of it can be shown.
    pub fn part(&mut self, place: usize, part: &Part) -> Option<String> {
        // Tokens whose text is kept back come with it, unless their ids or probabilities are asked for.
        let told = !part.text.is_empty() || self.answer.asked.token_ids || part.logprobs.is_some();
        if told {
            return Some(self.part_event(place, part, None));
        }
        let (ids, bytes) = self.sent[place]?;
        self.sent[place] = Some((ids + part.ids.len(), bytes));
        None
    }

    /// The end of a choice, with what was not sent of it.
    pub fn end(&mut self, place: usize, completion: &Completion) -> String {
        let (ids, bytes) = self.sent[place].unwrap_or_default();
        let rest = Part {
            ids: completion.ids.get(ids..).unwrap_or_default().to_vec(),
            text: completion.text.get(bytes..).unwrap_or_default().to_owned(),
            logprobs: completion.logprobs.as_ref().map(|all| all.get(ids..).unwrap_or_default().to_vec()),
        };
        self.part_event(place, &rest, Some(completion))
    }

    /// What follows the last choice.
    pub fn close(&self, completions: &[Completion]) -> Vec<String> {
        let mut events = Vec::new();
        if self.answer.asked.stream_usage {
            let mut chunk = self.envelope.clone();
            chunk["choices"] = json!([]);
            chunk["usage"] = self.answer.usage(completions);
            events.push(chunk.to_string());
        }
        events.push("[DONE]".to_owned());
        events
    }
}

/// How a choice ended.
fn put_end(choice: &mut Value, completion: &Completion) {
    choice["finish_reason"] = json!(match completion.finish {
        FinishReason::Eos | FinishReason::StopString => "stop",
        FinishReason::Length | FinishReason::Cancelled => "length",
    });
    // OpenAI's schema does not tell an end of sequence from a stop string.
    choice["earnest_finish"] = json!(completion.finish);
}

/// The ids of a prompt.
fn prompt(request: &Request) -> &[u32] {
    match &request.input {
        Input::Ids(ids) => ids,
        Input::Text(_) | Input::Messages(_) => &[],
    }
}
