//! Conversion of a reply into a completion.
use serde_json::Value;

use super::client::ExchangeError;
use super::echo::prompt_logprobs;
use super::probe::word;
use super::{Api, Dialect};
use crate::{Completion, FinishReason, Request, Timings, TokenLogprobs};

/// A reply, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub completion: Completion,
    /// Tokens generated, as the endpoint counts them.
    pub generated: u64,
    /// The model that answered, if the reply says.
    pub model: Option<String>,
    /// `system_fingerprint` of the reply.
    pub fingerprint: Option<String>,
}

fn malformed(what: &str) -> ExchangeError {
    ExchangeError::Malformed(format!("the reply has {what}"))
}

/// Reads a reply to `request`.
pub(super) fn answer(reply: &Value, request: &Request, api: Api, dialect: Dialect) -> Result<Answer, ExchangeError> {
    if let Some(error) = reply["error"]["message"].as_str() {
        // Some gateways put the error of a broken backend into a reply with status 200.
        return Err(ExchangeError::Malformed(format!(
            "the reply is an error: {}",
            error.chars().take(300).collect::<String>()
        )));
    }
    let choices = reply["choices"].as_array().ok_or_else(|| malformed("no choices"))?;
    let [choice] = &choices[..] else {
        return Err(malformed(&format!("{} choices where 1 is expected", choices.len())));
    };
    if let Some(from) = request.logprobs.prompt_from {
        return scored(reply, choice, request, from);
    }
    let usage = &reply["usage"];
    let generated = count(&usage["completion_tokens"], (request.max_tokens as u64).saturating_add(BESIDE));
    let text = match api {
        Api::Completions => choice["text"].as_str().ok_or_else(|| malformed("no text"))?.to_owned(),
        // A filter leaves no text; that it was one is said below.
        Api::Chat if choice["finish_reason"] == "content_filter" => String::new(),
        Api::Chat => chat_text(&choice["message"], generated)?,
    };
    let (text, cut) = cut_at_stops(text, &request.stop_strings, request.keep_stop);
    let finish = match choice["finish_reason"].as_str() {
        _ if cut => FinishReason::StopString,
        Some("stop" | "eos" | "eos_token") if stopped_by_string(choice, dialect) => FinishReason::StopString,
        Some("stop" | "eos" | "eos_token") => FinishReason::Eos,
        Some("length") => FinishReason::Length,
        Some("abort" | "error") => return Err(malformed("a completion that the endpoint gave up")),
        Some(other) => {
            let other: String = other.chars().take(100).collect();
            return Err(ExchangeError::Refused { status: 200, message: format!("the completion ended by {other}") });
        }
        None => return Err(malformed("no finish_reason")),
    };
    let ids = ids(&choice["token_ids"])?.unwrap_or_default();
    let generated = generated.unwrap_or(ids.len() as u64);
    if ids.len() > request.max_tokens.saturating_add(1) || (!ids.is_empty() && ids.len() as u64 != generated) {
        return Err(malformed(&format!(
            "{} token ids, {generated} tokens in its usage, of {} asked for",
            ids.len(),
            request.max_tokens
        )));
    }
    let counted_tokens = if ids.is_empty() { usize::try_from(generated).unwrap_or(0) } else { 0 };
    let (prompt_tokens, cached_tokens) = prompt_counts(usage, request);
    let completion = Completion {
        id: request.id,
        counted_tokens,
        text,
        finish,
        prompt_tokens,
        cached_tokens,
        logprobs: if request.logprobs.top > 0 { logprobs(choice, api, &ids) } else { None },
        prompt_logprobs: None,
        logits_hashes: None,
        timings: Timings::default(),
        ids,
    };
    Ok(answer_of(reply, completion, generated))
}

fn answer_of(reply: &Value, completion: Completion, generated: u64) -> Answer {
    Answer { completion, generated, model: word(&reply["model"]), fingerprint: word(&reply["system_fingerprint"]) }
}

/// Tokens that a server may count beside those that were asked for: the one that ended the answer, marks of a channel.
const BESIDE: u64 = 16;

/// Tokens that a chat template, with what a provider puts before it, may add to a prompt.
const OF_TEMPLATE: u64 = 1_000_000;

/// A count of tokens; none where the server gives none, or more than there can be: it would be believed in every sum.
fn count(value: &Value, most: u64) -> Option<u64> {
    value.as_u64().filter(|&count| count <= most)
}

/// The counts of the prompt: its tokens, and those of them that were cached.
fn prompt_counts(usage: &Value, request: &Request) -> (usize, usize) {
    let most = (request.input.longest() as u64).saturating_add(OF_TEMPLATE);
    let prompt = count(&usage["prompt_tokens"], most).unwrap_or(0);
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"], prompt).unwrap_or(0);
    // Both fit: there are not more than bytes of the prompt and a million.
    (prompt as usize, cached as usize)
}

/// Reads the log-probabilities of a prompt; what was generated after it is dropped.
fn scored(reply: &Value, choice: &Value, request: &Request, from: usize) -> Result<Answer, ExchangeError> {
    let (prompt_tokens, cached_tokens) = prompt_counts(&reply["usage"], request);
    let completion = Completion {
        id: request.id,
        ids: Vec::new(),
        counted_tokens: 0,
        text: String::new(),
        finish: FinishReason::Length,
        prompt_tokens,
        cached_tokens,
        logprobs: None,
        prompt_logprobs: Some(
            prompt_logprobs(choice, &request.input, from)?
                .into_iter()
                .map(|chosen| TokenLogprobs { chosen, top: Vec::new() })
                .collect(),
        ),
        logits_hashes: None,
        timings: Timings::default(),
    };
    Ok(answer_of(reply, completion, 0))
}

/// The answer, after its thinking where the server took that apart: the suites want to see both. A message without a text is no answer,
/// unless the endpoint counts no token but the one that ended it.
fn chat_text(message: &Value, generated: Option<u64>) -> Result<String, ExchangeError> {
    let part = |name: &str| message[name].as_str().filter(|text| !text.is_empty());
    let thinking = part("reasoning_content").or_else(|| part("reasoning"));
    let content = match &message["content"] {
        Value::String(content) => content.as_str(),
        Value::Null if thinking.is_some() || generated.is_some_and(|count| count <= 1) => "",
        Value::Null if message.is_object() => {
            return Err(malformed(part("refusal").map_or("no content", |_| "a refusal and no content")));
        }
        _ => return Err(malformed("no message")),
    };
    Ok(match thinking {
        Some(thinking) if content.is_empty() => format!("<think>\n{thinking}"),
        Some(thinking) => format!("<think>\n{thinking}\n</think>\n\n{content}"),
        None => content.to_owned(),
    })
}

/// The text up to the first stop string, with it if `keep`; servers differ in whether they leave it in, and some take only
/// four.
fn cut_at_stops(mut text: String, stops: &[String], keep: bool) -> (String, bool) {
    let kept = |stop: &String| if keep { stop.len() } else { 0 };
    let found = |stop: &String| Some((text.find(stop.as_str())?, kept(stop)));
    let first = stops.iter().filter(|stop| !stop.is_empty()).filter_map(found).min();
    if let Some((at, kept)) = first {
        text.truncate(at + kept);
    }
    (text, first.is_some())
}

fn stopped_by_string(choice: &Value, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Earnest => choice["earnest_finish"] == "stop_string",
        _ => choice["stop_reason"].is_string() || choice["matched_stop"].is_string(),
    }
}

fn ids(value: &Value) -> Result<Option<Vec<u32>>, ExchangeError> {
    let Some(values) = value.as_array() else { return Ok(None) };
    let read = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
    values.iter().map(read).collect::<Option<Vec<u32>>>().map(Some).ok_or_else(|| malformed("token ids that are none"))
}

/// An id that is written as `token_id:17`.
fn token_id(name: &str) -> Option<u32> {
    name.strip_prefix("token_id:")?.parse().ok()
}

/// Log-probabilities, where tokens are named by their ids; a token's text does not say which id it is.
fn logprobs(choice: &Value, api: Api, ids: &[u32]) -> Option<Vec<TokenLogprobs>> {
    let number = |value: &Value| value.as_f64().map(|value| value as f32);
    let sorted = |mut top: Vec<(u32, f32)>| {
        top.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        top
    };
    let found: Vec<TokenLogprobs> = match api {
        Api::Completions => {
            let chosen = choice["logprobs"]["token_logprobs"].as_array()?;
            let tops = choice["logprobs"]["top_logprobs"].as_array()?;
            let pairs = chosen.iter().zip(tops).map(|(chosen, top)| {
                let top = top.as_object()?.iter().map(|(name, value)| Some((token_id(name)?, number(value)?)));
                Some(TokenLogprobs { chosen: number(chosen)?, top: sorted(top.collect::<Option<_>>()?) })
            });
            pairs.collect::<Option<_>>()?
        }
        Api::Chat => {
            let entries = choice["logprobs"]["content"].as_array()?.iter().map(|entry| {
                let top = entry["top_logprobs"].as_array()?.iter();
                let top = top.map(|entry| Some((token_id(entry["token"].as_str()?)?, number(&entry["logprob"])?)));
                Some(TokenLogprobs { chosen: number(&entry["logprob"])?, top: sorted(top.collect::<Option<_>>()?) })
            });
            entries.collect::<Option<_>>()?
        }
    };
    (found.len() == ids.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestId;
    use serde_json::json;

    fn read(reply: Value, api: Api, dialect: Dialect) -> Result<Answer, ExchangeError> {
        let request = Request { stop_strings: vec!["\n".into()], ..Request::greedy(RequestId(1), vec![1], 5) };
        answer(&reply, &request, api, dialect)
    }

    #[test]
    fn texts_end_at_the_first_stop_string_with_it_or_before_it() {
        let stops = ["\nQ:".to_owned(), " Q:".to_owned(), String::new()];
        let cut = |text: &str, keep| cut_at_stops(text.to_owned(), &stops, keep);
        assert_eq!(cut("5. Q: 6\nQ: 7", false), ("5.".to_owned(), true));
        assert_eq!(cut("5. Q: 6\nQ: 7", true), ("5. Q:".to_owned(), true));
        assert_eq!(cut("5.", true), ("5.".to_owned(), false));
    }

    #[test]
    fn a_whole_reply() {
        let reply = json!({
            "model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            "choices": [{"text": "42", "finish_reason": "stop", "token_ids": [7, 2], "stop_reason": null}]
        });
        let found = read(reply, Api::Completions, Dialect::Vllm).unwrap();
        assert_eq!((found.generated, found.model.as_deref()), (2, Some("m")));
        let completion = found.completion;
        assert_eq!(
            (completion.text.as_str(), completion.finish, completion.ids),
            ("42", FinishReason::Eos, vec![7, 2])
        );
        assert_eq!((completion.prompt_tokens, completion.cached_tokens), (9, 4));
    }

    #[test]
    fn counts_beyond_what_was_asked_for_are_left_out() {
        // Five tokens were asked for, after a prompt of one.
        let counts = |completion: u64, prompt: u64, cached: u64| {
            let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": {"cached_tokens": cached}});
            let reply = json!({"choices": [{"text": "4", "finish_reason": "stop"}], "usage": usage});
            let found = read(reply, Api::Completions, Dialect::Unknown).unwrap();
            let Completion { counted_tokens, prompt_tokens, cached_tokens, .. } = found.completion;
            (found.generated, counted_tokens, prompt_tokens, cached_tokens)
        };
        assert_eq!(counts(5 + BESIDE, 300, 299), (5 + BESIDE, 21, 300, 299));
        assert_eq!(counts(6 + BESIDE, 300, 301), (0, 0, 300, 0));
        assert_eq!(counts(u64::MAX, u64::MAX, u64::MAX), (0, 0, 0, 0));
    }

    #[test]
    fn how_completions_end() {
        let finish = |choice: Value, dialect| {
            read(json!({"choices": [choice]}), Api::Completions, dialect)
                .map(|answer| (answer.completion.text, answer.completion.finish))
        };
        let stop = |extra: &str, value: Value| json!({"text": "4", "finish_reason": "stop", extra: value});
        assert_eq!(finish(stop("stop_reason", json!("\n")), Dialect::Vllm).unwrap().1, FinishReason::StopString);
        assert_eq!(finish(stop("stop_reason", json!(2)), Dialect::Vllm).unwrap().1, FinishReason::Eos);
        assert_eq!(finish(stop("matched_stop", json!("\n")), Dialect::Sglang).unwrap().1, FinishReason::StopString);
        assert_eq!(
            finish(stop("earnest_finish", json!("stop_string")), Dialect::Earnest).unwrap().1,
            FinishReason::StopString
        );
        assert_eq!(
            finish(json!({"text": "4\n5", "finish_reason": "length"}), Dialect::Unknown).unwrap(),
            ("4".into(), FinishReason::StopString)
        );
        assert_eq!(
            finish(json!({"text": "4", "finish_reason": "length"}), Dialect::Unknown).unwrap().1,
            FinishReason::Length
        );
        assert!(matches!(
            finish(json!({"text": "4", "finish_reason": "content_filter"}), Dialect::Unknown),
            Err(ExchangeError::Refused { .. })
        ));
        assert!(matches!(
            finish(json!({"text": "4", "finish_reason": null}), Dialect::Unknown),
            Err(ExchangeError::Malformed(_))
        ));
    }

    #[test]
    fn broken_replies_are_no_answers() {
        for wrong in [
            json!(null),
            json!([1]),
            json!({"choices": []}),
            json!({"choices": [{"text": 5, "finish_reason": "stop"}]}),
            json!({"choices": [{"text": "a", "finish_reason": "stop"}, {"text": "b", "finish_reason": "stop"}]}),
            json!({"error": {"message": "the backend died"}}),
            json!({"choices": [{"text": "a", "finish_reason": "stop", "token_ids": [-1]}]}),
            json!({"choices": [{"text": "a", "finish_reason": "stop", "token_ids": [1, 2, 3, 4, 5, 6, 7]}]}),
            json!({"choices": [{"text": "a", "finish_reason": "stop", "token_ids": [1]}], "usage": {"completion_tokens": 3}}),
        ] {
            assert!(
                matches!(read(wrong.clone(), Api::Completions, Dialect::Vllm), Err(ExchangeError::Malformed(_))),
                "{wrong}"
            );
        }
        assert!(
            read(json!({"choices": [{"message": "x", "finish_reason": "stop"}]}), Api::Chat, Dialect::Vllm).is_err()
        );
    }

    #[test]
    fn thinking_comes_before_the_answer() {
        let chat = |message: Value| {
            let reply = json!({"choices": [{"message": message, "finish_reason": "length"}]});
            let request = Request::greedy(RequestId(1), vec![1], 5);
            answer(&reply, &request, Api::Chat, Dialect::Vllm).unwrap().completion.text
        };
        assert_eq!(chat(json!({"content": "4"})), "4");
        assert_eq!(chat(json!({"content": "4", "reasoning_content": "2+2"})), "<think>\n2+2\n</think>\n\n4");
        assert_eq!(chat(json!({"content": null, "reasoning": "2+"})), "<think>\n2+");
    }

    #[test]
    fn a_message_without_content_is_no_answer() {
        let read = |message: Value, finish: &str, tokens: u64| {
            let reply = json!({
                "choices": [{"message": message, "finish_reason": finish}], "usage": {"completion_tokens": tokens}
            });
            answer(&reply, &Request::greedy(RequestId(1), vec![1], 5), Api::Chat, Dialect::Unknown)
        };
        let nothing = json!({"role": "assistant", "content": null});
        assert!(
            matches!(read(nothing.clone(), "stop", 3), Err(ExchangeError::Malformed(text)) if text.contains("no content"))
        );
        assert_eq!(read(nothing.clone(), "stop", 1).unwrap().completion.text, "");
        assert!(matches!(read(nothing, "content_filter", 3), Err(ExchangeError::Refused { .. })));
        let reply = json!({"choices": [{"message": {"content": null}, "finish_reason": "stop"}]});
        let request = Request::greedy(RequestId(1), vec![1], 5);
        assert!(answer(&reply, &request, Api::Chat, Dialect::Unknown).is_err());
    }

    #[test]
    fn logprobs_need_ids() {
        let request = Request {
            logprobs: crate::Logprobs { top: 2, prompt_from: None },
            ..Request::greedy(RequestId(1), vec![1], 5)
        };
        let reply = |names: [&str; 2]| {
            json!({"choices": [{
                "text": "4", "finish_reason": "length", "token_ids": [7],
                "logprobs": {"tokens": ["x"], "token_logprobs": [-0.5], "top_logprobs": [{names[0]: -1.5, names[1]: -0.5}]}
            }]})
        };
        let read =
            |names| answer(&reply(names), &request, Api::Completions, Dialect::Vllm).unwrap().completion.logprobs;
        let expected = vec![TokenLogprobs { chosen: -0.5, top: vec![(7, -0.5), (9, -1.5)] }];
        assert_eq!(read(["token_id:9", "token_id:7"]), Some(expected));
        assert_eq!(read([" a", " b"]), None);
    }
}
