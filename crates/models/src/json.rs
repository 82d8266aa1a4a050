//! JSON of servers and of Python's tools: read with bounds, and with what Python writes beyond JSON.
//!
//! A byte of JSON can cost 32 bytes of [`Value`] and more. [`read`] keeps only the fields that are asked for, and counts what it keeps.
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Formatter;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Selection of the parts of a document to keep.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Names of the fields that are kept, on every level; others are skipped without being held.
    pub fields: &'a [&'a str],
    /// Fields kept with everything in them.
    pub whole: &'a [&'a str],
    /// Most values that are kept: texts, numbers, lists, objects.
    pub values: usize,
}

/// Reason for a document not being read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("not JSON: {0}")]
    NotJson(serde_json::Error),
    /// More values than are wanted, as the error says with the limit.
    #[error("{0}")]
    TooMany(serde_json::Error),
}

/// Reads the wanted fields of a document. Halves of surrogate pairs become U+FFFD, `NaN` and the infinities texts.
///
/// # Errors
/// A text that is not JSON, or that has more values than are wanted.
pub fn read(text: &[u8], wanted: Wanted<'_>) -> Result<Value, ReadError> {
    let parsed = parse(text, wanted).or_else(|error| match mended(text).filter(|_| error.is_syntax()) {
        Some(mended) => parse(&mended, wanted),
        None => Err(error),
    });
    parsed.map_err(|error| if error.is_data() { ReadError::TooMany(error) } else { ReadError::NotJson(error) })
}

fn parse(text: &[u8], wanted: Wanted<'_>) -> Result<Value, serde_json::Error> {
    let left = Cell::new(wanted.values);
    let mut from = serde_json::Deserializer::from_slice(text);
    let value = Part { wanted, left: &left, whole: false }.deserialize(&mut from)?;
    from.end().map(|()| value)
}

/// A value somewhere in a document.
#[derive(Clone, Copy)]
struct Part<'a> {
    wanted: Wanted<'a>,
    left: &'a Cell<usize>,
    /// True if all fields are kept.
    whole: bool,
}

impl Part<'_> {
    fn count<E: Error>(&self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| {
            E::custom(format!("it has more than {} values, the most that are read here", self.wanted.values))
        })?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.count()?;
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.count()?;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.count()?;
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        self.count()?;
        let mut members = Map::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if self.whole || self.wanted.fields.contains(&name.as_ref()) {
                let whole = self.whole || self.wanted.whole.contains(&name.as_ref());
                let value = map.next_value_seed(Part { whole, ..self })?;
                members.insert(name.into_owned(), value);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(members))
    }
}

/// Returns a text with what Python writes beyond JSON as JSON: `NaN` and the infinities as texts, halves of surrogate pairs as U+FFFD; none if
/// it has nothing of the kind.
pub fn mended(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() + 16);
    let (mut at, mut quoted, mut changed) = (0, false, false);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        if quoted && byte == b'\\' {
            let taken = match surrogate(rest) {
                Some(0xd800..=0xdbff) if matches!(rest.get(6..).and_then(surrogate), Some(0xdc00..=0xdfff)) => 12,
                Some(0xd800..=0xdfff) => {
                    changed = true;
                    out.extend_from_slice(b"\\ufffd");
                    at += 6;
                    continue;
                }
                _ => 2,
            };
            out.extend_from_slice(&rest[..taken.min(rest.len())]);
            at += taken;
            continue;
        }
        quoted ^= byte == b'"';
        let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word.as_bytes()));
        if let (false, Some(word)) = (quoted, word) {
            changed = true;
            out.extend_from_slice(format!("\"{word}\"").as_bytes());
            at += word.len();
            continue;
        }
        out.push(byte);
        at += 1;
    }
    changed.then_some(out)
}

/// The code unit of an escape `\uXXXX` at the beginning of a text.
fn surrogate(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn few(text: &str, values: usize) -> Result<Value, ReadError> {
        read(text.as_bytes(), Wanted { fields: &["a", "top"], whole: &["top"], values })
    }

    #[test]
    fn only_wanted_fields_are_kept() {
        let text = r#"{"a": [1, -2, 0.5, "x", null, true, {"a": 1, "b": 2}], "z": [[{}]], "top": {"b": {"c": 1}}, "a\u0062": 1}"#;
        let expected = json!({"a": [1, -2, 0.5, "x", null, true, {"a": 1}], "top": {"b": {"c": 1}}});
        assert_eq!(few(text, 100).unwrap(), expected);
        assert_eq!(few(r#"{"a": "\ud800 \ud83d\ude00"}"#, 9).unwrap(), json!({"a": "\u{fffd} \u{1f600}"}));
        assert_eq!(few(r#"{"a": NaN}"#, 9).unwrap(), json!({"a": "NaN"}));
        assert!(few("{} x", 9).is_err() && few("", 9).is_err() && few("{\"z\": [1,}", 9).is_err());
    }

    #[test]
    fn values_are_counted_and_skipped_ones_are_not() {
        let list = |name: &str| format!("{{\"{name}\": [{}0]}}", "0,".repeat(1000));
        assert!(few(&list("a"), 1003).is_ok() && few(&list("z"), 1).is_ok());
        let error = few(&list("a"), 1002).unwrap_err().to_string();
        assert!(error.contains("more than 1002 values"), "{error}");
        let deep = format!("{{\"a\": {}", "[".repeat(1 << 20));
        assert!(few(&deep, 1 << 30).unwrap_err().to_string().contains("recursion limit"));
    }
}
