//! A sample record.
use std::collections::HashMap;
use std::fmt::Formatter;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::super::fault::{LayoutFault, LogFault};
use super::super::json::{Ordered, content, count, is_not_finite, messages, plain, texts};
use super::super::limits::check_scores;
use super::super::sample::{LogPrompt, LogSample, LogScore};
use super::header::kind_of;
use earnest_results::LogCard;

/// The parts of a record that are used; events, stores and the like are passed over.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Record {
    #[serde(default)]
    pub id: Value,
    #[serde(default)]
    epoch: Option<u32>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    choices: Value,
    #[serde(default)]
    target: Value,
    #[serde(default)]
    messages: Value,
    #[serde(default)]
    output: Option<Output>,
    #[serde(default)]
    scores: Option<Given>,
    /// That of the only scorer, in version 1.
    #[serde(default)]
    score: Option<Value>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    attachments: Option<HashMap<String, Value>>,
    /// Events and attachments in earlier versions.
    #[serde(default)]
    transcript: Option<Transcript>,
}

#[derive(Debug, Default, Deserialize)]
struct Transcript {
    #[serde(default)]
    content: Option<HashMap<String, Value>>,
}

/// Value of `scores`: an object by scorer, or the kind of another value.
#[derive(Debug)]
enum Given {
    ByScorer(Ordered<Value>),
    Other(&'static str),
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Given;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Given::ByScorer(Ordered(members)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Given, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Given::Other("a list"))
            }

            fn visit_str<E>(self, _: &str) -> Result<Given, E> {
                Ok(Given::Other("a text"))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Given, E> {
                Ok(Given::Other("true or false"))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Given, E> {
                Ok(Given::Other("a number"))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Given, E> {
                Ok(Given::Other("a number"))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Given, E> {
                Ok(Given::Other("a number"))
            }
        }
        from.deserialize_any(Any)
    }
}

/// Checks that a score says its value, which may be null.
fn check_score(name: &str, score: &Value) -> Result<(), LayoutFault> {
    match score {
        Value::Null => Ok(()),
        Value::Object(score) if score.contains_key("value") => Ok(()),
        Value::Object(_) => Err(LayoutFault::Without { whose: name.to_owned(), member: "value" }),
        other => {
            let (what, kind) = (format!("{name} is"), kind_of(other));
            Err(LayoutFault::Kind { what, kind, expected: "an object with a `value`" })
        }
    }
}

/// Name of the only scorer, where nothing names it.
const UNNAMED: &str = "score";

#[derive(Debug, Default, Deserialize)]
struct Output {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    /// Text of the first choice.
    #[serde(default)]
    completion: Value,
    #[serde(default)]
    usage: Option<Map<String, Value>>,
    #[serde(default)]
    time: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
struct Choice {
    #[serde(default)]
    message: Value,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Number of hexadecimal digits that name an attachment.
const DIGITS: usize = 32;

/// Most bytes that attachments may add to a sample: one may be named in many places.
const MOST_ATTACHED: usize = 64 << 20;

/// A text with its attachments in their places; `left` is the number of bytes that they may still add.
///
/// # Errors
/// The reason, where they are more.
fn attached(text: &str, attachments: &HashMap<String, Value>, left: &mut usize) -> Result<Option<String>, LogFault> {
    const SCHEME: &str = "attachment://";
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find(SCHEME) {
        let after = &rest[at + SCHEME.len()..];
        match after.get(..DIGITS).and_then(|name| attachments.get(name)).and_then(Value::as_str) {
            Some(attachment) => {
                found = true;
                *left = left.checked_sub(attachment.len()).ok_or(LogFault::Attached { mib: MOST_ATTACHED >> 20 })?;
                out.push_str(&rest[..at]);
                out.push_str(attachment);
                rest = &after[DIGITS..];
            }
            None => {
                out.push_str(&rest[..at + SCHEME.len()]);
                rest = after;
            }
        }
    }
    Ok(found.then(|| out + rest))
}

/// Puts attachments into the texts of a value; see [`attached`].
fn attach(value: &mut Value, attachments: &HashMap<String, Value>, left: &mut usize) -> Result<(), LogFault> {
    match value {
        Value::String(text) => {
            if let Some(whole) = attached(text, attachments, left)? {
                *text = whole;
            }
        }
        Value::Array(values) => values.iter_mut().try_for_each(|value| attach(value, attachments, left))?,
        Value::Object(members) => members.values_mut().try_for_each(|value| attach(value, attachments, left))?,
        _ => {}
    }
    Ok(())
}

impl Record {
    /// True if the record has a place for scores, which may be empty; none for a sample that failed before it could have one.
    /// An error says what of the scores is in no layout that is known.
    pub fn has_scores(&self) -> Option<Result<bool, LayoutFault>> {
        if let Err(fault) = self.check_scores() {
            return Some(Err(fault));
        }
        let has = self.scores.is_some() || self.score.is_some();
        (has || self.error.is_null()).then_some(Ok(has))
    }

    fn check_scores(&self) -> Result<(), LayoutFault> {
        match &self.scores {
            Some(Given::Other(kind)) => {
                Err(LayoutFault::Kind { what: "`scores` is".to_owned(), kind, expected: "an object by scorer" })
            }
            Some(Given::ByScorer(scores)) => {
                scores.0.iter().try_for_each(|(scorer, score)| check_score(&format!("the score of {scorer}"), score))
            }
            None => Ok(()),
        }?;
        self.score.iter().try_for_each(|score| check_score("`score`", score))
    }

    /// The sample. `order` has the indices of ids in the data set.
    ///
    /// # Errors
    /// Records without an id, with scores in another layout, or beyond a limit.
    pub fn sample(mut self, card: &LogCard, order: &HashMap<String, u64>) -> Result<LogSample, LogFault> {
        if !matches!(self.id, Value::String(_) | Value::Number(_)) {
            return Err(LogFault::Without { whose: "the sample", what: "id" });
        }
        self.check_scores()?;
        let mut scores = match (self.score.take(), self.scores.take()) {
            (Some(_), Some(_)) => return Err(LogFault::BothScores),
            (Some(score), None) => vec![(card.scorers.first().map_or(UNNAMED, String::as_str).to_owned(), score)],
            (None, Some(Given::ByScorer(scores))) => scores.0,
            (None, Some(Given::Other(_)) | None) => Vec::new(),
        };
        check_scores(scores.len())?;
        let attachments = self.attachments.take().or_else(|| self.transcript.take()?.content);
        if let Some(attachments) = attachments.filter(|attachments| !attachments.is_empty()) {
            let outputs = self.output.iter_mut().flat_map(|output| {
                let messages = output.choices.iter_mut().flatten().map(|choice| &mut choice.message);
                messages.chain([&mut output.completion])
            });
            let scores = scores.iter_mut().map(|(_, value)| value);
            let metadata = self.metadata.iter_mut().flat_map(|metadata| metadata.values_mut());
            let own = [&mut self.input, &mut self.choices, &mut self.target, &mut self.messages, &mut self.error];
            let mut values = own.into_iter().chain(outputs).chain(scores).chain(metadata);
            let mut left = MOST_ATTACHED;
            values.try_for_each(|value| attach(value, &attachments, &mut left))?;
        }
        let id = plain(&self.id);
        let output = self.output.unwrap_or_default();
        let used = |key: &str| output.usage.as_ref().and_then(|usage| count(usage.get(key)));
        let read = ["input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"].map(used);
        let choices = output.choices.unwrap_or_default();
        let text = |choice: &Choice| content(choice.message.get("content").unwrap_or(&Value::Null));
        let mut sample = LogSample {
            index: order.get(&id).copied(),
            id,
            epoch: self.epoch.unwrap_or(1).saturating_sub(1),
            question: question(&self.input),
            prompt: prompt(&self.messages, &self.input),
            choices: texts(&self.choices),
            targets: texts(&self.target),
            completions: match (choices.as_slice(), output.completion.as_str()) {
                ([_, others @ ..], Some(first)) => {
                    std::iter::once(first.to_owned()).chain(others.iter().map(text)).collect()
                }
                (all, _) => all.iter().map(text).collect(),
            },
            error: match &self.error {
                Value::Null => None,
                Value::Object(error) => Some(error.get("message").map(plain).unwrap_or_default()),
                other => Some(plain(other)),
            },
            finish: choices.first().and_then(|choice| choice.stop_reason.clone()),
            prompt_tokens: read[0].map(|_| read.iter().flatten().fold(0u64, |sum, tokens| sum.saturating_add(*tokens))),
            completion_tokens: used("output_tokens"),
            seconds: output.time,
            document: self.metadata.unwrap_or_default(),
            ..LogSample::default()
        };
        let index = |name: &String| card.scorers.iter().position(|known| known == name).unwrap_or(usize::MAX);
        scores.sort_by_key(|(name, _)| index(name));
        for (scorer, score) in scores {
            let text = |key: &str| score.get(key).filter(|value| !value.is_null()).map(plain);
            match score.get("value") {
                // The tool writes NaN for a sample that it did not score.
                None | Some(Value::Null) => {}
                Some(value) if is_not_finite(value) => {}
                Some(value) => sample.scores.push(LogScore {
                    scorer,
                    value: value.clone(),
                    answer: text("answer"),
                    explanation: text("explanation"),
                }),
            }
        }
        Ok(sample)
    }
}

/// The question: the input, of a chat the last message of the user.
fn question(input: &Value) -> Option<String> {
    match input {
        Value::String(text) => Some(text.clone()),
        list => {
            let mut chat = messages(list)?;
            chat.reverse();
            chat.into_iter().find(|(role, _)| role == "user").map(|(_, text)| text)
        }
    }
}

/// The messages without the last one of the assistant; the input where there are none.
fn prompt(list: &Value, input: &Value) -> Option<LogPrompt> {
    match messages(list) {
        Some(mut chat) => {
            if let Some(last) = chat.iter().rposition(|(role, _)| role == "assistant") {
                chat.remove(last);
            }
            Some(LogPrompt::Chat(chat))
        }
        None => match input {
            Value::String(text) => Some(LogPrompt::Text(text.clone())),
            list => messages(list).map(LogPrompt::Chat),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use earnest_results::{LogStatus, Tool};

    fn sample(record: Value) -> LogSample {
        let record: Record = serde_json::from_value(record).unwrap();
        let mut card = LogCard::new(Tool::Inspect, "m".into(), "t".into(), LogStatus::Finished);
        card.scorers = vec!["z".into(), "a".into()];
        record.sample(&card, &HashMap::from([("7".to_owned(), 3)])).unwrap()
    }

    #[test]
    fn scores_of_every_shape_are_kept_as_they_are() {
        let read = sample(json!({
            "id": 7, "epoch": 2, "input": "q", "target": ["a", "b"],
            "scores": {
                "a": {"value": {"x": 1, "y": [true, "C"]}, "answer": null}, "z": {"value": "P", "answer": 4},
                "nothing": {"value": "NaN"}, "none": {"value": null},
            },
            "output": {"choices": [{"message": {"content": [{"type": "reasoning", "reasoning": "r"}, {"type": "text", "text": "t"}]},
                "stop_reason": "stop"}], "usage": {"input_tokens": 1, "input_tokens_cache_read": 4, "output_tokens": 2}, "time": 0.5},
        }));
        assert_eq!((read.id.as_str(), read.index, read.epoch), ("7", Some(3), 1));
        let scores: Vec<(&str, Option<&str>)> =
            read.scores.iter().map(|score| (score.scorer.as_str(), score.answer.as_deref())).collect();
        assert_eq!(scores, [("z", Some("4")), ("a", None)]);
        assert_eq!(read.scores[1].value, json!({"x": 1, "y": [true, "C"]}));
        assert_eq!((read.completions, read.targets.len()), (vec!["t".to_owned()], 2));
        assert_eq!((read.prompt_tokens, read.completion_tokens, read.seconds), (Some(5), Some(2), Some(0.5)));
    }

    #[test]
    fn the_score_of_version_1_is_that_of_the_only_scorer() {
        let record = json!({"id": 1, "input": "q", "target": "a", "score": {"value": "P", "answer": "b"}});
        let read = sample(record.clone());
        assert_eq!((read.scores.len(), read.scores[0].scorer.as_str(), &read.scores[0].value), (1, "z", &json!("P")));
        let mut both = record;
        both["scores"] = json!({"z": {"value": "C"}});
        let card = LogCard::new(Tool::Inspect, "m".into(), "t".into(), LogStatus::Finished);
        let record: Record = serde_json::from_value(both).unwrap();
        assert!(matches!(record.sample(&card, &HashMap::new()), Err(LogFault::BothScores)));
        let known = |record: Value| serde_json::from_value::<Record>(record).unwrap().has_scores();
        assert_eq!(known(json!({"scores": {}})), Some(Ok(true)));
        assert_eq!(known(json!({"id": 1, "scores": null})), Some(Ok(false)));
        assert_eq!(known(json!({"error": {"message": "broke"}})), None);
    }

    #[test]
    fn scores_in_another_layout_are_never_left_out_without_a_word() {
        let card = LogCard::new(Tool::Inspect, "m".into(), "t".into(), LogStatus::Finished);
        for (scores, reason) in [
            (json!({"scores": [{"value": "C"}]}), "`scores` is a list, not an object by scorer"),
            (json!({"scores": 0.5}), "`scores` is a number"),
            (json!({"scores": "C"}), "`scores` is a text"),
            (json!({"scores": {"z": 1.0}}), "the score of z is a number, not an object with a `value`"),
            (json!({"scores": {"a": null, "z": {"answer": "b"}}}), "the score of z has no `value`"),
            (json!({"score": [1]}), "`score` is a list"),
            (json!({"score": {}}), "`score` has no `value`"),
        ] {
            let mut record = scores;
            record["id"] = 1.into();
            let read = || serde_json::from_value::<Record>(record.clone()).unwrap();
            let said = read().has_scores().unwrap().unwrap_err().to_string();
            assert!(said.starts_with(reason), "{said}");
            let said = read().sample(&card, &HashMap::new()).unwrap_err().to_string();
            assert!(said.starts_with(reason) && said.ends_with("Inspect's logs that is not known"), "{said}");
        }
    }

    #[test]
    fn attachments_and_prompts() {
        let name = "0123456789abcdef0123456789abcdef";
        let link = format!("attachment://{name}");
        let read = sample(json!({
            "id": "x", "input": [{"role": "system", "content": "s"}, {"role": "user", "content": link}],
            "messages": [
                {"role": "user", "content": link}, {"role": "assistant", "content": "one"},
                {"role": "user", "content": format!("more {link}; attachment://unknown")}, {"role": "assistant", "content": "two"},
            ],
            "attachments": {name: "long"}, "error": {"message": "it broke"},
        }));
        assert_eq!(read.question.as_deref(), Some("long"));
        let chat = ["user long", "assistant one", "user more long; attachment://unknown"];
        let expected =
            chat.map(|line| line.split_once(' ').map(|(role, text)| (role.to_owned(), text.to_owned())).unwrap());
        assert_eq!(read.prompt, Some(LogPrompt::Chat(expected.to_vec())));
        assert_eq!(read.error.as_deref(), Some("it broke"));
        assert!(read.completions.is_empty() && read.scores.is_empty());
    }
}
