//! One line of a samples file: a document's answers as one filter left them.
use std::borrow::Cow;
use std::fmt::Formatter;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::super::json::{IdOf, messages, number, plain, texts};
use super::super::sample::{LogLikelihood, LogPrompt, LogSample};
use earnest_tasks::suite::task::usual;

/// Identity of a line.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Key {
    #[serde(default)]
    pub doc_id: Value,
    #[serde(default)]
    pub doc: IdOf,
    #[serde(default)]
    pub filter: Option<String>,
}

/// A line. Without `FULL` only the scores and answers are kept, because other filters repeat the rest.
#[derive(Debug, Default)]
pub(super) struct Line<const FULL: bool> {
    pub doc_id: Value,
    pub doc: Value,
    pub target: Value,
    pub arguments: Value,
    pub responses: Value,
    pub filtered: Value,
    pub metrics: Option<Vec<String>>,
    pub document_hash: Option<String>,
    pub prompt_hash: Option<String>,
    /// Everything else, the scores among it.
    pub rest: Map<String, Value>,
}

impl<'de, const FULL: bool> Deserialize<'de> for Line<FULL> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members<const FULL: bool>;
        impl<'de, const FULL: bool> Visitor<'de> for Members<FULL> {
            type Value = Line<FULL>;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line<FULL>, A::Error> {
                let mut line = Line::default();
                while let Some(key) = map.next_key::<Cow<'_, str>>()? {
                    match key.as_ref() {
                        "doc" | "target" | "arguments" | "resps" | "doc_hash" | "prompt_hash" if !FULL => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        "filter" | "target_hash" => drop(map.next_value::<IgnoredAny>()?),
                        "doc_id" => line.doc_id = map.next_value()?,
                        "doc" => line.doc = map.next_value()?,
                        "target" => line.target = map.next_value()?,
                        "arguments" => line.arguments = map.next_value()?,
                        "resps" => line.responses = map.next_value()?,
                        "filtered_resps" => line.filtered = map.next_value()?,
                        "metrics" => line.metrics = map.next_value()?,
                        "doc_hash" => line.document_hash = map.next_value()?,
                        "prompt_hash" => line.prompt_hash = map.next_value()?,
                        _ => drop(line.rest.insert(key.into_owned(), map.next_value()?)),
                    }
                }
                Ok(line)
            }
        }
        from.deserialize_map(Members::<FULL>)
    }
}

impl<const FULL: bool> Line<FULL> {
    /// The answer that the filter left; none for log-likelihoods.
    pub fn answer(&self) -> Option<String> {
        match self.filtered.as_array().map(Vec::as_slice) {
            Some([Value::String(answer)]) => Some(answer.clone()),
            // One log-likelihood.
            Some([Value::Array(pair)]) if pair.len() == 2 && matches!(pair[1].as_str(), Some("True" | "False")) => None,
            Some([Value::Array(answers)]) if answers.iter().all(Value::is_string) && !answers.is_empty() => {
                match answers.as_slice() {
                    [answer] => Some(plain(answer)),
                    _ => Some(self.filtered[0].to_string()),
                }
            }
            Some([answer @ (Value::Number(_) | Value::Bool(_))]) => Some(answer.to_string()),
            Some(answers @ [_, _, ..]) if answers.iter().all(Value::is_string) => Some(self.filtered.to_string()),
            _ => self.filtered.as_str().map(str::to_owned),
        }
    }
}

/// The question of a document's own fields.
pub(in super::super) fn question(document: &Map<String, Value>) -> Option<String> {
    let text = |name: &&str| document.get(*name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    usual::QUESTION.iter().find_map(text).map(str::to_owned)
}

impl Line<true> {
    /// The sample without scores. `rolling` says that responses are log-likelihoods of whole texts.
    pub fn sample(self, id: Option<String>, rolling: bool) -> LogSample {
        let document = match self.doc {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            other => Map::from_iter([("doc".to_owned(), other)]),
        };
        let index = self.doc_id.as_u64();
        let mut sample = LogSample {
            id: id.unwrap_or_else(|| plain(&self.doc_id)),
            index,
            question: question(&document),
            prompt: argument(&self.arguments, 0, 0).and_then(prompt),
            targets: texts(&self.target),
            document_hash: self.document_hash,
            prompt_hash: self.prompt_hash,
            ..LogSample::default()
        };
        for (request, responses) in self.responses.as_array().into_iter().flatten().enumerate() {
            let one = std::slice::from_ref(responses);
            for response in responses.as_array().map_or(one, Vec::as_slice) {
                let continuation = || argument(&self.arguments, request, 1).and_then(Value::as_str).map(str::to_owned);
                match (response, response.as_array().map(Vec::as_slice)) {
                    (_, Some([value, greedy])) if number(value).is_some() => sample.likelihoods.push(LogLikelihood {
                        continuation: continuation(),
                        log_likelihood: number(value).unwrap_or_default(),
                        greedy: match greedy {
                            Value::Bool(greedy) => Some(*greedy),
                            Value::String(greedy) if greedy == "True" => Some(true),
                            Value::String(greedy) if greedy == "False" => Some(false),
                            _ => None,
                        },
                    }),
                    (value, _) if (rolling || value.is_number()) && number(value).is_some() => {
                        sample.likelihoods.push(LogLikelihood {
                            continuation: None,
                            log_likelihood: number(value).unwrap_or_default(),
                            greedy: None,
                        });
                    }
                    (Value::Null, _) => {}
                    (text, _) => sample.completions.push(plain(text)),
                }
            }
        }
        if let Some(Value::Array(choices)) = document.get("choices")
            && choices.iter().all(Value::is_string)
        {
            sample.choices = texts(&document["choices"]);
        } else if sample.likelihoods.len() > 1 {
            sample.choices = sample.likelihoods.iter().filter_map(|one| one.continuation.clone()).collect();
        }
        sample.document = document;
        sample
    }
}

/// An argument of a request. They are `{"gen_args_0": {"arg_0": ...}}`, in older versions lists of lists.
fn argument(arguments: &Value, request: usize, index: usize) -> Option<&Value> {
    let of = match arguments {
        Value::Object(requests) => requests.get(&format!("gen_args_{request}"))?,
        Value::Array(requests) => requests.get(request)?,
        _ => return None,
    };
    match of {
        Value::Object(arguments) => arguments.get(&format!("arg_{index}")),
        Value::Array(arguments) => arguments.get(index),
        _ => None,
    }
}

/// A prompt: a text, or the messages of a chat as JSON in a list or as text.
fn prompt(argument: &Value) -> Option<LogPrompt> {
    match argument {
        Value::String(text) => Some(match chat(text) {
            Some(chat) => LogPrompt::Chat(chat),
            None => LogPrompt::Text(text.clone()),
        }),
        Value::Array(list) => match list.as_slice() {
            [Value::String(text)] => prompt(&Value::String(text.clone())),
            _ => messages(argument).map(LogPrompt::Chat),
        },
        _ => None,
    }
}

fn chat(text: &str) -> Option<Vec<(String, String)>> {
    let start = text.trim_start();
    if !start.starts_with("[{") {
        return None;
    }
    messages(&serde_json::from_str(start).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(line: &Value) -> LogSample {
        let line: Line<true> = serde_json::from_value(line.clone()).unwrap();
        line.sample(None, false)
    }

    #[test]
    fn old_and_new_arguments_are_read() {
        let new = json!({"doc_id": 3, "doc": {"question": "q"}, "target": 4, "filtered_resps": ["4"],
            "arguments": {"gen_args_0": {"arg_0": "p", "arg_1": {"until": []}}}, "resps": [["a", "b"]]});
        let mut old = new.clone();
        old["arguments"] = json!([["p", {"until": []}]]);
        assert_eq!(sample(&new), sample(&old));
        let read = sample(&new);
        assert_eq!((read.id.as_str(), read.index), ("3", Some(3)));
        assert_eq!(read.prompt, Some(LogPrompt::Text("p".into())));
        assert_eq!((read.completions, read.targets), (vec!["a".to_owned(), "b".into()], vec!["4".to_owned()]));
        let chat = json!({"arguments": {"gen_args_0": {"arg_0": ["[{\"role\": \"user\", \"content\": \"hi\"}]"]}}});
        assert_eq!(sample(&chat).prompt, Some(LogPrompt::Chat(vec![("user".into(), "hi".into())])));
    }

    #[test]
    fn likelihoods_are_numbers_and_texts() {
        let line = json!({"arguments": [["p", " a"], ["p", " b"]], "resps": [[["-1.5", "True"]], [[-2.5, null]]]});
        let read = sample(&line);
        let one = |text: &str, log_likelihood, greedy| LogLikelihood {
            continuation: Some(text.into()),
            log_likelihood,
            greedy,
        };
        assert_eq!(read.likelihoods, [one(" a", -1.5, Some(true)), one(" b", -2.5, None)]);
        assert_eq!(read.choices, [" a", " b"]);
        let rolling: Line<true> = serde_json::from_value(json!({"resps": [["-12.5"]]})).unwrap();
        assert_eq!(rolling.sample(None, true).likelihoods[0].log_likelihood, -12.5);
    }

    #[test]
    fn answers_are_those_of_the_filter() {
        let answer = |filtered: Value| {
            let line: Line<false> =
                serde_json::from_value(json!({"filtered_resps": filtered, "resps": [["x"]]})).unwrap();
            line.answer()
        };
        assert_eq!(answer(json!(["18"])).as_deref(), Some("18"));
        assert_eq!(answer(json!([["18"]])).as_deref(), Some("18"));
        assert_eq!(answer(json!([["1", "2"]])).as_deref(), Some("[\"1\",\"2\"]"));
        assert_eq!(answer(json!([["-1.5", "True"], ["-2", "False"]])), None);
        assert_eq!(answer(json!([["-1.5", "True"]])), None);
        assert_eq!(answer(json!("18")).as_deref(), Some("18"));
    }
}
