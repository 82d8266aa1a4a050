//! JSON as Python's tools write it: with `NaN`, `Infinity` and halves of surrogate pairs.
use std::fmt::Formatter;
use std::marker::PhantomData;

use earnest_models::json::mended;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::bounded::{Bounded, Memory, too_much};
use super::fault::LogFault;

/// Parses a value of bounded memory. `NaN`, `Infinity` and `-Infinity` become texts, halves of surrogate pairs U+FFFD.
///
/// # Errors
/// [`LogFault::Json`], whose words are those of [`reason`].
pub(super) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, LogFault> {
    parse_within(text, &Memory::of_record())
}

/// Parses facts of a whole log as [`parse`] does; a sentence stands for a text that is too long to be kept.
///
/// # Errors
/// [`LogFault::Json`], whose words are those of [`reason`].
pub(super) fn parse_facts<T: DeserializeOwned>(text: &[u8]) -> Result<T, LogFault> {
    parse_within(text, &Memory::of_facts())
}

/// Parses a value within the memory that is left.
///
/// # Errors
/// [`LogFault::Json`], whose words are those of [`reason`].
pub(super) fn parse_within<T: DeserializeOwned>(text: &[u8], memory: &Memory) -> Result<T, LogFault> {
    let read = |text: &[u8], memory: &Memory| {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let value = T::deserialize(Bounded { inner: &mut reader, memory })?;
        reader.end().map(|()| value)
    };
    let before = memory.clone();
    match read(text, memory) {
        Ok(value) => Ok(value),
        Err(error) => match Some(text).filter(|_| error.is_syntax()).and_then(mended) {
            Some(mended) => {
                memory.restore(&before);
                Ok(read(&mended, memory)?)
            }
            None => Err(error.into()),
        },
    }
}

/// An error without its place.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let what = said.split(" at line ").next().unwrap_or_default();
    match what {
        what if what == too_much() => what.to_owned(),
        "recursion limit exceeded" => "lists and objects are nested more than 127 deep".to_owned(),
        _ if error.is_data() => format!("not of the expected form: {what}"),
        "EOF while parsing a string" => "it ends inside a text: the file was cut off".to_owned(),
        _ if error.is_eof() => "it ends too early: the file was cut off".to_owned(),
        _ => format!("not JSON: {what} (character {})", error.column()),
    }
}

/// True for the texts that stand for numbers which JSON cannot hold.
pub(super) fn is_not_finite(value: &Value) -> bool {
    matches!(value.as_str(), Some("NaN" | "Infinity" | "-Infinity"))
}

/// Members of an object in their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ordered<V>(pub Vec<(String, V)>);

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Ordered(Vec::new())
    }
}

impl<V> Ordered<V> {
    pub fn get(&self, key: &str) -> Option<&V> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
            type Value = Ordered<V>;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<V>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Ordered(members))
            }

            fn visit_unit<E>(self) -> Result<Ordered<V>, E> {
                Ok(Ordered(Vec::new()))
            }
        }
        from.deserialize_any(Members(PhantomData))
    }
}

/// Value of the one wanted member of an object; none for any other kind of value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct IdOf(pub Option<Value>);

impl<'de> Deserialize<'de> for IdOf {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Id;
        impl<'de> Visitor<'de> for Id {
            type Value = IdOf;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IdOf, A::Error> {
                let mut id = None;
                while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
                    if key == "id" {
                        id = Some(map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(IdOf(id))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<IdOf, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(IdOf(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<IdOf, E> {
                Ok(IdOf(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<IdOf, E> {
                Ok(IdOf(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<IdOf, E> {
                Ok(IdOf(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<IdOf, E> {
                Ok(IdOf(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<IdOf, E> {
                Ok(IdOf(None))
            }

            fn visit_unit<E>(self) -> Result<IdOf, E> {
                Ok(IdOf(None))
            }
        }
        from.deserialize_any(Id)
    }
}

/// An id that is a text or a number, as text; none for anything else and for an empty text.
pub(super) fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A text as it is, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Texts of a list, or of a value that is no list; none for null.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(values) => values.iter().map(plain).collect(),
        value => vec![plain(value)],
    }
}

/// A number, also one that is written as text.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

pub(super) fn count(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0).map(|n| n as u64))
}

/// The text of a message's content: a text, or the texts of its parts.
pub(super) fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| match part {
                Value::String(text) => Some(text.clone()),
                part => match part.get("type").and_then(Value::as_str) {
                    None | Some("text" | "input_text" | "output_text") => {
                        part.get("text").and_then(Value::as_str).map(str::to_owned)
                    }
                    Some(_) => None,
                },
            };
            parts.iter().filter_map(text).collect()
        }
        _ => String::new(),
    }
}

/// Role and text of each message of a list; none if it is no list of messages.
pub(super) fn messages(value: &Value) -> Option<Vec<(String, String)>> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    list.iter()
        .map(|message| {
            let role = message.get("role")?.as_str()?.to_owned();
            Some((role, content(message.get("content").unwrap_or(&Value::Null))))
        })
        .collect()
}

/// Adds a member unless it is null, an empty text, list or object.
pub(super) fn add(map: &mut Map<String, Value>, key: &str, value: Option<&Value>) {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if let Some(value) = value.filter(|value| !empty(value)) {
        map.insert(key.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_writes_beyond_json_is_read() {
        let value: Value =
            parse(br#"{"a": NaN, "b": [-Infinity, Infinity], "c": "NaN \ud83d x \ud83d\ude00 \udc00"}"#).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"a": "NaN", "b": ["-Infinity", "Infinity"], "c": "NaN \u{fffd} x \u{1f600} \u{fffd}"})
        );
        assert!(is_not_finite(&value["a"]) && !is_not_finite(&value["c"]));
    }

    #[test]
    fn reasons_are_in_words() {
        let reason = |text: &str| parse::<Value>(text.as_bytes()).unwrap_err().to_string();
        assert!(reason("{\"a\": 1").contains("cut off"));
        assert!(reason("{\"a\": \"x").contains("cut off"));
        assert!(reason("{a}").starts_with("not JSON: "));
        assert!(parse::<Value>(b"{\"a\": \"\xff\"}").is_err());
    }

    #[test]
    fn members_keep_their_order() {
        let members: Ordered<u32> = parse(br#"{"z": 1, "a": 2}"#).unwrap();
        assert_eq!(members.0, [("z".to_owned(), 1), ("a".to_owned(), 2)]);
        let id: IdOf = parse(br#"{"x": {"id": 1}, "id": "q"}"#).unwrap();
        assert_eq!(id.0, Some("q".into()));
        assert_eq!(parse::<IdOf>(b"[1, {}]").unwrap(), IdOf(None));
    }

    #[test]
    fn contents_are_texts() {
        let parts = serde_json::json!([{"type": "text", "text": "a"}, {"type": "image", "image": "x"}, {"type": "text", "text": "b"}]);
        assert_eq!(content(&parts), "ab");
        assert_eq!(
            messages(&serde_json::json!([{"role": "user", "content": parts}])),
            Some(vec![("user".into(), "ab".into())])
        );
        assert_eq!(messages(&serde_json::json!(["a"])), None);
    }
}
