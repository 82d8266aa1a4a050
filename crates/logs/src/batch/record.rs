//! Requests and responses of a batch.
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::fault::LogFault;
use super::super::json::{content, count, id_text, messages, plain};
use super::super::sample::{LogPrompt, LogSample};

/// A line of a file of requests.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Request {
    #[serde(default)]
    custom_id: Value,
    #[serde(default)]
    body: Map<String, Value>,
}

/// A line of a file of responses or errors.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    #[serde(default)]
    custom_id: Value,
    #[serde(default)]
    response: Option<Answer>,
    #[serde(default)]
    error: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
struct Answer {
    #[serde(default)]
    status_code: Option<u64>,
    #[serde(default)]
    body: Value,
}

impl Request {
    /// Its id.
    ///
    /// # Errors
    /// A request without one.
    pub fn id(&self) -> Result<String, LogFault> {
        id_text(&self.custom_id).ok_or(NO_ID)
    }

    /// The sample without its answer.
    pub fn sample(self, id: String) -> LogSample {
        let mut chat = None;
        let mut prompt = None;
        for key in ["messages", "input", "prompt"] {
            let Some(value) = self.body.get(key) else { continue };
            chat = messages(value);
            prompt = match (value, &chat) {
                (_, Some(chat)) => Some(LogPrompt::Chat(chat.clone())),
                (Value::String(text), None) => Some(LogPrompt::Text(text.clone())),
                (Value::Array(texts), None) => match texts.as_slice() {
                    [Value::String(text)] => Some(LogPrompt::Text(text.clone())),
                    _ => None,
                },
                _ => None,
            };
            break;
        }
        let asked = chat.into_iter().flatten().rev().find(|(role, _)| role == "user").map(|(_, text)| text);
        // A prompt of a text completion may hold worked examples; the input of a response is the question alone.
        let alone = self.body.get("input").and_then(Value::as_str).map(str::to_owned);
        LogSample { id, question: asked.or(alone), prompt, ..LogSample::default() }
    }
}

impl Response {
    /// The sample of a response whose request is unknown.
    ///
    /// # Errors
    /// The reason, if it has no id or a layout that is not known.
    pub fn alone(self) -> Result<LogSample, LogFault> {
        let id = id_text(&self.custom_id).ok_or(NO_ID)?;
        let mut sample = LogSample { id, ..LogSample::default() };
        self.fill(&mut sample)?;
        Ok(sample)
    }

    /// Adds the answer, or the error in its place.
    ///
    /// # Errors
    /// The reason, if the layout is not known: its answer would be lost without a word.
    pub fn fill(self, sample: &mut LogSample) -> Result<(), LogFault> {
        if self.response.is_none()
            && self.error.is_null()
            && let Some(member) = ["result", "body", "output"].into_iter().find(|name| self.rest.contains_key(*name))
        {
            return Err(LogFault::NoResponse { member });
        }
        let answer = self.response.unwrap_or_default();
        let body = answer.body;
        let refused = answer.status_code.is_some_and(|code| code >= 400);
        let said = [&self.error, body.get("error").unwrap_or(&Value::Null)].into_iter().find_map(message);
        if said.is_some() || refused || body.is_null() {
            let code = answer.status_code.map_or_else(String::new, |code| format!(" (status {code})"));
            sample.error = Some(said.unwrap_or_else(|| format!("the request was not answered{code}")));
            return Ok(());
        }
        if body.get("choices").or_else(|| body.get("output")).is_none_or(|answers| !answers.is_array()) {
            let object = body.get("object").and_then(Value::as_str).map(str::to_owned);
            return Err(LogFault::NoChoices { object });
        }
        for choice in body.get("choices").and_then(Value::as_array).into_iter().flatten() {
            let text = match (choice.get("message"), choice.get("text")) {
                (Some(message), _) => content(message.get("content").unwrap_or(&Value::Null)),
                (None, Some(text)) => content(text),
                (None, None) => continue,
            };
            sample.completions.push(text);
        }
        sample.finish = body.pointer("/choices/0/finish_reason").and_then(Value::as_str).map(str::to_owned);
        // The newer form of responses: a list of what the model did.
        if let Some(output) = body.get("output").and_then(Value::as_array) {
            let spoken = output.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some("message"));
            let text: String = spoken.map(|part| content(part.get("content").unwrap_or(&Value::Null))).collect();
            sample.completions.push(text);
            sample.finish = body.get("status").and_then(Value::as_str).map(str::to_owned);
        }
        let used = |names: [&str; 2]| names.into_iter().find_map(|name| count(body.get("usage")?.get(name)));
        sample.prompt_tokens = used(["prompt_tokens", "input_tokens"]);
        sample.completion_tokens = used(["completion_tokens", "output_tokens"]);
        Ok(())
    }
}

const NO_ID: LogFault = LogFault::Without { whose: "it", what: "custom_id" };

/// The message of an error; some servers put the error into a member `error` of it.
fn message(error: &Value) -> Option<String> {
    match error {
        Value::Null => None,
        Value::Object(members) => match (members.get("message"), members.get("error")) {
            (Some(message), _) if !message.is_null() => Some(plain(message)),
            (_, Some(inner)) => message(inner),
            _ => Some(error.to_string()),
        },
        other => Some(plain(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(response: Value) -> LogSample {
        let response: Response = serde_json::from_value(response).unwrap();
        response.alone().unwrap()
    }

    #[test]
    fn answers_and_errors_of_every_style() {
        let chat = answered(json!({"custom_id": "a", "response": {"status_code": 200, "body": {
            "choices": [{"message": {"content": "x"}, "finish_reason": "length"}, {"message": {"content": null}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2}}}}));
        assert_eq!((chat.completions, chat.finish.as_deref()), (vec!["x".to_owned(), String::new()], Some("length")));
        assert_eq!((chat.prompt_tokens, chat.completion_tokens, chat.error), (Some(3), Some(2), None));
        let newer = answered(
            json!({"custom_id": 1, "response": {"status_code": 200, "body": {"status": "completed", "output": [
            {"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "y"}]}]}}}),
        );
        assert_eq!((newer.id.as_str(), newer.completions), ("1", vec!["y".to_owned()]));
        for (response, error) in [
            (json!({"response": null, "error": {"code": "batch_expired", "message": "late"}}), "late"),
            (json!({"response": {"status_code": 400, "body": {"error": {"message": "no"}}}, "error": null}), "no"),
            (json!({"response": {"status_code": 400, "body": null}, "error": {"message": "no"}}), "no"),
            (json!({"response": {"status_code": 500, "body": {}}}), "the request was not answered (status 500)"),
            (json!({}), "the request was not answered"),
        ] {
            let mut response = response;
            response["custom_id"] = "a".into();
            assert_eq!(answered(response).error.as_deref(), Some(error));
        }
    }

    #[test]
    fn layouts_that_are_not_known_are_named() {
        for (line, reason) in [
            (
                json!({"custom_id": "a", "result": {"type": "succeeded"}}),
                "it has `result` in the place of `response`, as Anthropic's batches have: a layout",
            ),
            (
                json!({"custom_id": "a", "response": {"status_code": 200, "body": {"object": "list", "data": [1]}}}),
                "the body of the response (object `list`) has neither a list `choices` nor `output`: a layout",
            ),
        ] {
            let response: Response = serde_json::from_value(line).unwrap();
            let found = response.alone().unwrap_err().to_string();
            assert!(found.starts_with(reason), "{found}");
        }
    }

    #[test]
    fn questions_of_chats_are_the_last_of_the_user() {
        let request = |body: Value| {
            let request: Request = serde_json::from_value(json!({"custom_id": "a", "body": body})).unwrap();
            request.sample("a".into())
        };
        let chat = request(json!({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}));
        assert_eq!(chat.question.as_deref(), Some("q"));
        let text = request(json!({"prompt": "examples and q"}));
        assert_eq!((text.question, text.prompt), (None, Some(LogPrompt::Text("examples and q".into()))));
    }
}
