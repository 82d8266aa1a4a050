//! Body of a request.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Dialect;
use crate::{Input, Rejected, Request, SamplingKey};

/// API of the protocol for generating text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// `/completions`: raw text, or token ids where there is a tokenizer here.
    Completions,
    /// `/chat/completions`: messages, to which the endpoint applies its own chat template.
    Chat,
}

impl Api {
    /// The path below the address.
    pub(super) fn path(self) -> &'static str {
        match self {
            Api::Completions => "completions",
            Api::Chat => "chat/completions",
        }
    }
}

impl std::fmt::Display for Api {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Api::Completions => "completions",
            Api::Chat => "chat",
        })
    }
}

/// Settings that all bodies of an engine share.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub model: String,
    pub api: Api,
    pub dialect: Dialect,
    /// Newer models of OpenAI refuse `max_tokens`.
    pub max_completion_tokens: bool,
    /// The chat template's switch, for endpoints that apply the template.
    pub enable_thinking: Option<bool>,
}

/// A seed that every server takes: 31 bits of the key.
pub(super) fn seed(key: SamplingKey) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&key.0[..4]);
    u32::from_le_bytes(bytes) >> 1
}

impl Form {
    /// The field with the most tokens to generate.
    pub fn budget_field(&self) -> &'static str {
        if self.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" }
    }

    /// Most tokens to generate. Where only the prompt is scored, servers that may refuse to generate nothing generate one token.
    fn budget(&self, request: &Request) -> usize {
        match self.dialect {
            Dialect::Earnest | Dialect::Vllm => request.max_tokens,
            Dialect::Sglang | Dialect::LlamaCpp | Dialect::Unknown => request.max_tokens.max(1),
        }
    }

    /// Makes the body of a request.
    ///
    /// # Errors
    /// [`Rejected::Unsupported`] names what this API can not carry.
    pub fn body(&self, request: &Request) -> Result<Value, Rejected> {
        let unsupported = |what: &str| Err(Rejected::Unsupported(what.to_owned()));
        let mut body = Map::new();
        body.insert("model".into(), json!(self.model));
        match (&request.input, self.api) {
            (Input::Ids(ids), Api::Completions) => body.insert("prompt".into(), json!(ids)),
            (Input::Text(text), Api::Completions) => body.insert("prompt".into(), json!(text)),
            (Input::Messages(messages), Api::Chat) => body.insert("messages".into(), json!(messages)),
            (Input::Messages(_), Api::Completions) => return unsupported("the completions API takes no messages"),
            (Input::Ids(_) | Input::Text(_), Api::Chat) => return unsupported("the chat API takes messages only"),
        };
        body.insert(self.budget_field().into(), json!(self.budget(request)));
        let sampling = &request.sampling;
        body.insert("temperature".into(), json!(sampling.temperature));
        body.insert("top_p".into(), json!(sampling.top_p));
        body.insert("seed".into(), json!(seed(request.sampling_key)));
        // A server that cuts a stop string off does not say which one it was. Where the string is wanted and the server has no
        // way to leave it in, the completion goes on, and is cut here.
        let keeps = match self.dialect {
            Dialect::Earnest | Dialect::Vllm => Some("include_stop_str_in_output"),
            Dialect::Sglang => Some("no_stop_trim"),
            Dialect::LlamaCpp | Dialect::Unknown => None,
        };
        if !request.stop_strings.is_empty() && (!request.keep_stop || keeps.is_some()) {
            // OpenAI takes four, and so do servers that follow it. The reply is cut at the others too.
            let most = match self.dialect {
                Dialect::Earnest | Dialect::Unknown => 4,
                Dialect::Vllm | Dialect::Sglang | Dialect::LlamaCpp => usize::MAX,
            };
            let sent = &request.stop_strings[..request.stop_strings.len().min(most)];
            body.insert("stop".into(), json!(sent));
            if let (true, Some(name)) = (request.keep_stop, keeps) {
                body.insert(name.into(), json!(true));
            }
        }
        // Servers that know these have defaults of their own (a model's generation_config, top-k 40), so what is meant is
        // always said; others refuse fields they do not know, so there only what changes something is said.
        let knows = self.dialect != Dialect::Unknown;
        if knows || sampling.top_k > 0 {
            let all = -1;
            body.insert("top_k".into(), if sampling.top_k == 0 { json!(all) } else { json!(sampling.top_k) });
        }
        if knows || sampling.min_p > 0.0 {
            body.insert("min_p".into(), json!(sampling.min_p));
        }
        if knows || sampling.repetition_penalty != 1.0 {
            let name = if self.dialect == Dialect::LlamaCpp { "repeat_penalty" } else { "repetition_penalty" };
            body.insert(name.into(), json!(sampling.repetition_penalty));
        }
        if matches!(self.dialect, Dialect::Earnest | Dialect::Vllm) {
            body.insert("return_token_ids".into(), json!(true));
        }
        if matches!(self.dialect, Dialect::Earnest | Dialect::Vllm | Dialect::Sglang) && !request.stop_ids.is_empty() {
            body.insert("stop_token_ids".into(), json!(request.stop_ids));
        }
        if self.dialect == Dialect::Earnest {
            body.insert("sampling_key".into(), json!(earnest_digest::hex(&request.sampling_key.0)));
        }
        if let (Api::Chat, Some(on), true) = (self.api, self.enable_thinking, knows) {
            body.insert("chat_template_kwargs".into(), json!({"enable_thinking": on}));
        }
        if request.logprobs.prompt_from.is_some() {
            if self.api == Api::Chat {
                return unsupported("the chat API gives no log-probabilities of a prompt, the completions API does");
            }
            if request.max_tokens > 0 || request.logprobs.top > 0 {
                return unsupported("an endpoint gives log-probabilities of a prompt or of new tokens, not of both");
            }
            body.insert("echo".into(), json!(true));
            body.insert("logprobs".into(), json!(1));
        }
        if request.logprobs.top > 0 {
            match self.api {
                Api::Completions => body.insert("logprobs".into(), json!(request.logprobs.top)),
                Api::Chat => {
                    body.insert("logprobs".into(), json!(true));
                    body.insert("top_logprobs".into(), json!(request.logprobs.top))
                }
            };
            if matches!(self.dialect, Dialect::Earnest | Dialect::Vllm) {
                body.insert("return_tokens_as_token_ids".into(), json!(true));
            }
        }
        Ok(Value::Object(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logprobs, RequestId};
    use earnest_models::checkpoint::ChatMessage;

    fn form(api: Api, dialect: Dialect) -> Form {
        Form { model: "m".into(), api, dialect, max_completion_tokens: false, enable_thinking: None }
    }

    #[test]
    fn unknown_servers_get_the_plain_protocol() {
        let request = Request {
            stop_ids: vec![2],
            stop_strings: vec!["\n".into()],
            ..Request::greedy(RequestId(1), vec![1, 5], 7)
        };
        let body = form(Api::Completions, Dialect::Unknown).body(&request).unwrap();
        assert_eq!(
            body,
            json!({"model": "m", "prompt": [1, 5], "max_tokens": 7, "temperature": 0.0, "top_p": 1.0, "seed": 0, "stop": ["\n"]})
        );
        let narrow = Request {
            sampling: crate::Sampling { top_k: 4, min_p: 0.5, repetition_penalty: 1.5, ..request.sampling.clone() },
            ..request
        };
        let body = form(Api::Completions, Dialect::Unknown).body(&narrow).unwrap();
        assert_eq!(
            (&body["top_k"], &body["min_p"], &body["repetition_penalty"]),
            (&json!(4), &json!(0.5), &json!(1.5))
        );
    }

    #[test]
    fn stop_strings_that_are_kept_are_left_to_servers_that_can() {
        let request = Request {
            stop_strings: vec!["\nQ:".into()],
            keep_stop: true,
            ..Request::greedy(RequestId(1), vec![1, 5], 7)
        };
        let body = |dialect| form(Api::Completions, dialect).body(&request).unwrap();
        for (dialect, name) in [
            (Dialect::Earnest, "include_stop_str_in_output"),
            (Dialect::Vllm, "include_stop_str_in_output"),
            (Dialect::Sglang, "no_stop_trim"),
        ] {
            let body = body(dialect);
            assert_eq!((&body["stop"], &body[name]), (&json!(["\nQ:"]), &json!(true)));
        }
        for dialect in [Dialect::LlamaCpp, Dialect::Unknown] {
            assert_eq!(body(dialect).get("stop"), None, "it would take away what is wanted");
        }
        let cut = Request { keep_stop: false, ..request.clone() };
        let body = form(Api::Completions, Dialect::Vllm).body(&cut).unwrap();
        assert_eq!((&body["stop"], body.get("include_stop_str_in_output")), (&json!(["\nQ:"]), None));
        // Where only four are taken, the first four are sent.
        let many = Request { stop_strings: ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(), ..cut };
        let sent = |dialect| form(Api::Completions, dialect).body(&many).unwrap()["stop"].as_array().unwrap().len();
        assert_eq!([sent(Dialect::Earnest), sent(Dialect::Unknown), sent(Dialect::Vllm)], [4, 4, 5]);
    }

    #[test]
    fn known_servers_are_told_everything() {
        let request = Request { stop_ids: vec![2], ..Request::greedy(RequestId(1), vec![1], 7) };
        let vllm = form(Api::Completions, Dialect::Vllm).body(&request).unwrap();
        assert_eq!(
            (&vllm["top_k"], &vllm["repetition_penalty"], &vllm["stop_token_ids"]),
            (&json!(-1), &json!(1.0), &json!([2]))
        );
        assert_eq!(vllm["return_token_ids"], json!(true));
        let llama = form(Api::Completions, Dialect::LlamaCpp).body(&request).unwrap();
        assert_eq!(llama["repeat_penalty"], json!(1.0));
        assert!(llama.get("stop_token_ids").is_none());
    }

    #[test]
    fn each_api_takes_its_input() {
        let ids = Request::greedy(RequestId(1), vec![1], 7);
        let messages = Request { input: Input::Messages(vec![ChatMessage::new("user", "1+1?")]), ..ids.clone() };
        let chat = Form { enable_thinking: Some(false), max_completion_tokens: true, ..form(Api::Chat, Dialect::Vllm) };
        let body = chat.body(&messages).unwrap();
        assert_eq!(body["messages"], json!([{"role": "user", "content": "1+1?"}]));
        assert_eq!(body["chat_template_kwargs"], json!({"enable_thinking": false}));
        assert_eq!(body["max_completion_tokens"], json!(7));
        assert!(chat.body(&ids).is_err());
        assert!(form(Api::Completions, Dialect::Vllm).body(&messages).is_err());
    }

    #[test]
    fn prompts_are_scored_by_the_completions_api() {
        let logprobs = Logprobs { top: 0, prompt_from: Some(3) };
        let scored = Request { logprobs, ..Request::greedy(RequestId(1), vec![1, 2, 3, 4], 0) };
        for (dialect, tokens) in
            [(Dialect::Earnest, 0), (Dialect::Vllm, 0), (Dialect::Sglang, 1), (Dialect::Unknown, 1)]
        {
            let body = form(Api::Completions, dialect).body(&scored).unwrap();
            assert_eq!(
                (&body["echo"], &body["logprobs"], &body["max_tokens"]),
                (&json!(true), &json!(1), &json!(tokens))
            );
        }
        let messages = Input::Messages(vec![ChatMessage::new("user", "1+1?")]);
        let refused = form(Api::Chat, Dialect::Vllm).body(&Request { input: messages, ..scored.clone() }).unwrap_err();
        assert!(refused.to_string().contains("the chat API gives no log-probabilities"), "{refused}");
        let both = Request { max_tokens: 4, ..scored };
        assert!(form(Api::Completions, Dialect::Vllm).body(&both).is_err());
    }

    #[test]
    fn seeds_fit_every_server_and_follow_the_key() {
        assert_eq!(seed(SamplingKey([0xff; 32])), 0x7fff_ffff);
        assert_ne!(seed(SamplingKey([1; 32])), seed(SamplingKey([2; 32])));
    }
}
