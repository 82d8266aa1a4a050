//! Completions as OpenAI's JSON, whole or streamed.
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::queue::Delta;
use super::request::{ApiRequest, ServedModel};
use earnest_engine::endpoint::Api;
use earnest_engine::{Completion, FinishReason, TokenLogprobs};
use earnest_models::checkpoint::TextStream;

/// Context of the response to one HTTP request.
pub(crate) struct Response {
    pub api: Api,
    /// Serial number, part of the response's `id`.
    pub number: u64,
    pub request: Arc<ApiRequest>,
    pub model: Arc<ServedModel>,
}

impl Response {
    /// Returns the body of a response that is not streamed.
    pub fn json(&self, completions: &[Completion]) -> Value {
        let mut body = self.envelope(match self.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion",
        });
        let choices = completions.iter().enumerate().map(|(index, completion)| {
            let mut offsets = TextOffsets::new(&self.model);
            let mut choice = self.choice(index, &completion.ids, completion.logprobs.as_deref(), &mut offsets);
            match self.api {
                Api::Completions if self.request.echo => self.echo(&mut choice, index, completion),
                Api::Completions => choice["text"] = json!(completion.text),
                Api::Chat => choice["message"] = json!({"role": "assistant", "content": completion.text}),
            }
            set_finish(&mut choice, completion);
            if self.request.token_ids {
                choice["prompt_token_ids"] = json!(self.request.choices[index].prompt[..]);
            }
            choice
        });
        body["choices"] = choices.collect();
        body["usage"] = self.usage(completions);
        body
    }

    /// Puts the prompt before the completion of a choice: its text, and its tokens with their log-probabilities.
    fn echo(&self, choice: &mut Value, index: usize, completion: &Completion) {
        let prompt = EchoedPrompt::of(&self.request.choices[index].prompt, &self.model);
        choice["text"] = json!(format!("{}{}", prompt.text, completion.text));
        let (Some(top), Some(tokens)) = (self.request.logprobs, &completion.prompt_logprobs) else { return };
        let mut offsets = TextOffsets { offset: prompt.text.chars().count(), ..TextOffsets::new(&self.model) };
        let logprobs = completion.logprobs.as_deref().unwrap_or_default();
        let mut joined = self.logprobs(&completion.ids, logprobs, top, &mut offsets);
        // The first token has no log-probability.
        let none = || std::iter::once(Value::Null);
        let scored = none().chain(tokens.iter().map(|token| json!(token.chosen)));
        let named = |token: &EchoedToken| match self.request.tokens_as_ids {
            true => self.token_name(token.id),
            false => token.text.clone(),
        };
        let listed =
            prompt.tokens.iter().skip(1).zip(tokens).map(|(token, found)| self.listed(named(token), found, top));
        let before = [
            ("tokens", prompt.tokens.iter().map(|token| json!(named(token))).collect::<Vec<_>>()),
            ("token_logprobs", scored.collect()),
            ("top_logprobs", none().chain(listed).collect()),
            ("text_offset", prompt.tokens.iter().map(|token| json!(token.offset)).collect()),
        ];
        for (name, mut values) in before {
            if let Value::Array(generated) = joined[name].take() {
                values.extend(generated);
            }
            joined[name] = Value::Array(values);
        }
        choice["logprobs"] = joined;
    }

    /// Returns the fields that every chunk of the response shares.
    fn envelope(&self, object: &str) -> Value {
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let prefix = if self.api == Api::Chat { "chatcmpl" } else { "cmpl" };
        json!({"id": format!("{prefix}-{}", self.number), "object": object, "created": created, "model": self.model.name})
    }

    /// Returns a choice, or a chunk of one, without text and finish reason.
    fn choice(
        &self,
        index: usize,
        ids: &[u32],
        logprobs: Option<&[TokenLogprobs]>,
        offsets: &mut TextOffsets,
    ) -> Value {
        let mut choice = json!({"index": index, "finish_reason": null, "logprobs": null});
        if let (Some(top), Some(logprobs)) = (self.request.logprobs, logprobs) {
            choice["logprobs"] = self.logprobs(ids, logprobs, top, offsets);
        }
        if self.request.token_ids {
            choice["token_ids"] = json!(ids);
        }
        choice
    }

    /// Returns the token counts; consecutive requests with the same prompt count its tokens once.
    fn usage(&self, completions: &[Completion]) -> Value {
        let mut prompt_tokens = 0;
        let mut previous: Option<&[u32]> = None;
        for choice in &self.request.choices {
            if previous != Some(&*choice.prompt) {
                prompt_tokens += choice.prompt.len();
            }
            previous = Some(&*choice.prompt);
        }
        let generated: usize = completions.iter().map(|completion| completion.ids.len()).sum();
        let cached: usize = completions.iter().map(|completion| completion.cached_tokens).sum();
        json!({
            "prompt_tokens": prompt_tokens, "completion_tokens": generated, "total_tokens": prompt_tokens + generated,
            "prompt_tokens_details": {"cached_tokens": cached.min(prompt_tokens)},
        })
    }

    /// Returns a token's name in log-probabilities.
    fn token_name(&self, id: u32) -> String {
        if self.request.tokens_as_ids {
            return format!("token_id:{id}");
        }
        let tokenizer = &self.model.checkpoint.tokenizer;
        let text = tokenizer.decode(&[id], false);
        if text.is_empty() { tokenizer.token(id).unwrap_or(text) } else { text }
    }

    /// Returns the most probable tokens at a place, and the token there, by name, as OpenAI lists them.
    fn listed(&self, name: String, token: &TokenLogprobs, top: usize) -> Value {
        let mut listed = serde_json::Map::new();
        let others = token.top.iter().take(top).map(|&(id, value)| (self.token_name(id), value));
        for (name, value) in others.chain([(name, token.chosen)]) {
            // Different ids may have one name; the more probable one keeps it.
            listed.entry(name).or_insert_with(|| json!(value));
        }
        listed.into()
    }

    fn logprobs(&self, ids: &[u32], logprobs: &[TokenLogprobs], top: usize, offsets: &mut TextOffsets) -> Value {
        let tokens = ids.iter().zip(logprobs);
        match self.api {
            Api::Completions => {
                json!({
                    "tokens": tokens.clone().map(|(id, _)| self.token_name(*id)).collect::<Vec<_>>(),
                    "token_logprobs": tokens.clone().map(|(_, token)| token.chosen).collect::<Vec<_>>(),
                    "top_logprobs": tokens.clone().map(|(id, token)| self.listed(self.token_name(*id), token, top)).collect::<Vec<_>>(),
                    "text_offset": tokens.map(|(id, _)| offsets.push(*id)).collect::<Vec<_>>(),
                })
            }
            Api::Chat => {
                let entry = |id: u32, value: f32| {
                    let name = self.token_name(id);
                    json!({"token": name, "logprob": value, "bytes": name.as_bytes()})
                };
                let content = tokens.map(|(id, token)| {
                    let mut chosen = entry(*id, token.chosen);
                    chosen["top_logprobs"] = token.top.iter().take(top).map(|(id, value)| entry(*id, *value)).collect();
                    chosen
                });
                json!({"content": content.collect::<Vec<_>>()})
            }
        }
    }
}

/// Offsets of the tokens of a choice in its text, in characters.
struct TextOffsets {
    stream: TextStream,
    offset: usize,
}

impl TextOffsets {
    fn new(model: &ServedModel) -> TextOffsets {
        TextOffsets { stream: model.checkpoint.tokenizer.stream(), offset: 0 }
    }

    /// Adds a token and returns its offset.
    fn push(&mut self, id: u32) -> usize {
        let before = self.offset;
        self.offset += self.stream.push(id).chars().count();
        before
    }
}

/// A prompt as text, with its tokens.
struct EchoedPrompt {
    /// Without a leading BOS, which is no part of the text.
    text: String,
    tokens: Vec<EchoedToken>,
}

/// A token of a prompt.
struct EchoedToken {
    id: u32,
    /// The text that it completes; nothing for a part of a character.
    text: String,
    /// Characters of the prompt before it.
    offset: usize,
}

impl EchoedPrompt {
    fn of(ids: &[u32], model: &ServedModel) -> Self {
        let tokenizer = &model.checkpoint.tokenizer;
        let mut prompt = EchoedPrompt { text: String::new(), tokens: Vec::with_capacity(ids.len()) };
        let mut stream = tokenizer.whole_stream();
        let mut offset = 0;
        for (index, &id) in ids.iter().enumerate() {
            if index == 0 && tokenizer.bos() == Some(id) {
                prompt.tokens.push(EchoedToken { id, text: tokenizer.token(id).unwrap_or_default(), offset });
                continue;
            }
            let text = stream.push(id).to_owned();
            prompt.text.push_str(&text);
            let characters = text.chars().count();
            prompt.tokens.push(EchoedToken { id, text, offset });
            offset += characters;
        }
        prompt.text.push_str(stream.finish());
        prompt
    }
}

/// A streamed response: the deltas of each choice add up to the choice of the whole response.
pub(crate) struct EventStream {
    response: Response,
    envelope: Value,
    /// Text offsets of each choice.
    offsets: Vec<TextOffsets>,
    /// Tokens and bytes of text sent so far for each choice; none before its first event.
    sent: Vec<Option<(usize, usize)>>,
}

impl EventStream {
    pub fn new(response: Response) -> EventStream {
        let mut envelope = response.envelope(match response.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion.chunk",
        });
        if response.request.stream_usage {
            // OpenAI's chunks all have the field, null in all but the last.
            envelope["usage"] = Value::Null;
        }
        let choices = response.request.choices.len();
        let offsets = std::iter::repeat_with(|| TextOffsets::new(&response.model)).take(choices).collect();
        EventStream { envelope, offsets, sent: vec![None; choices], response }
    }

    fn event(&self, choice: Value) -> String {
        let mut chunk = self.envelope.clone();
        chunk["choices"] = json!([choice]);
        chunk.to_string()
    }

    fn delta_event(&mut self, index: usize, delta: &Delta, end: Option<&Completion>) -> String {
        let offsets = &mut self.offsets[index];
        let mut choice = self.response.choice(index, &delta.ids, delta.logprobs.as_deref(), offsets);
        let first = self.sent[index].is_none();
        match self.response.api {
            Api::Completions => choice["text"] = json!(delta.text),
            Api::Chat if first => choice["delta"] = json!({"role": "assistant", "content": delta.text}),
            Api::Chat => choice["delta"] = json!({"content": delta.text}),
        }
        if first && self.response.request.token_ids {
            choice["prompt_token_ids"] = json!(self.response.request.choices[index].prompt[..]);
        }
        if let Some(completion) = end {
            set_finish(&mut choice, completion);
        }
        let (ids, bytes) = self.sent[index].unwrap_or_default();
        self.sent[index] = Some((ids + delta.ids.len(), bytes + delta.text.len()));
        self.event(choice)
    }

    /// Returns the event for a delta; none if it has nothing to show yet.
    pub fn delta(&mut self, index: usize, delta: &Delta) -> Option<String> {
        // A token whose text is held back needs an event only if the client asked for ids or log-probabilities.
        let visible = !delta.text.is_empty() || self.response.request.token_ids || delta.logprobs.is_some();
        if visible {
            return Some(self.delta_event(index, delta, None));
        }
        let (ids, bytes) = self.sent[index]?;
        self.sent[index] = Some((ids + delta.ids.len(), bytes));
        None
    }

    /// Returns the last event of a choice: its finish reason and whatever was not sent yet.
    pub fn finish(&mut self, index: usize, completion: &Completion) -> String {
        let (ids, bytes) = self.sent[index].unwrap_or_default();
        let rest = Delta {
            ids: completion.ids.get(ids..).unwrap_or_default().to_vec(),
            text: completion.text.get(bytes..).unwrap_or_default().to_owned(),
            logprobs: completion.logprobs.as_ref().map(|all| all.get(ids..).unwrap_or_default().to_vec()),
        };
        self.delta_event(index, &rest, Some(completion))
    }

    /// Returns the events after the last choice.
    pub fn end(&self, completions: &[Completion]) -> Vec<String> {
        let mut events = Vec::new();
        if self.response.request.stream_usage {
            let mut chunk = self.envelope.clone();
            chunk["choices"] = json!([]);
            chunk["usage"] = self.response.usage(completions);
            events.push(chunk.to_string());
        }
        events.push("[DONE]".to_owned());
        events
    }
}

/// Sets the finish reason of a choice.
fn set_finish(choice: &mut Value, completion: &Completion) {
    choice["finish_reason"] = json!(match completion.finish {
        FinishReason::Eos | FinishReason::StopString => "stop",
        FinishReason::Length | FinishReason::Cancelled => "length",
    });
    // OpenAI's schema does not tell an end of sequence from a stop string.
    choice["earnest_finish"] = json!(completion.finish);
}
