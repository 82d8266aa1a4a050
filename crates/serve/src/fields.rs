//! Typed access to the fields of a JSON object without parsing more of it than is wanted.
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::error::ApiError;

/// Longest field, in bytes of JSON, apart from prompts and messages: enough for four stop strings with every character escaped.
const MAX_FIELD_BYTES: usize = 32 << 10;

/// The known fields of an object, as JSON. A list of a million elements costs nothing until it is parsed.
pub(crate) struct Fields<'a>(Vec<(&'static str, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Parses a body and keeps the fields with known names.
    pub fn of_body(body: &'a [u8], known: &'static [&'static str]) -> Result<Fields<'a>, ApiError> {
        let mut parser = serde_json::Deserializer::from_slice(body);
        let parsed = KnownFields(known).deserialize(&mut parser).and_then(|fields| parser.end().map(|()| fields));
        parsed.map_err(|error| match error.classify() {
            Category::Data => ApiError::invalid("the body is not a JSON object"),
            _ => ApiError::invalid(format!("the body is not JSON: {error}")),
        })
    }

    /// Parses an object inside a body; none if it is not one.
    pub fn of_value(value: &'a RawValue, known: &'static [&'static str]) -> Option<Fields<'a>> {
        KnownFields(known).deserialize(&mut serde_json::Deserializer::from_str(value.get())).ok()
    }

    /// Returns a field as JSON; null counts as absent.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().rev().find(|(known, _)| *known == name)?;
        Some(value.get()).filter(|text| *text != "null")
    }

    /// Parses a field.
    ///
    /// # Errors
    /// 400 if it is longer than any that is meant.
    pub fn get(&self, name: &'static str) -> Result<Option<Value>, ApiError> {
        let Some(text) = self.raw(name) else { return Ok(None) };
        if text.len() > MAX_FIELD_BYTES {
            let message = format!("is too long: {} bytes, at most {MAX_FIELD_BYTES} are accepted", text.len());
            return Err(ApiError::field(name, message));
        }
        serde_json::from_str(text).map(Some).map_err(|error| ApiError::field(name, error.to_string()))
    }

    pub fn number(&self, name: &'static str, default: f32) -> Result<f32, ApiError> {
        let Some(value) = self.get(name)? else { return Ok(default) };
        value.as_f64().map(|value| value as f32).ok_or_else(|| ApiError::field(name, "must be a number"))
    }

    pub fn count(&self, name: &'static str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| ApiError::field(name, "must be a non-negative integer"))
    }

    pub fn flag(&self, name: &'static str) -> Result<bool, ApiError> {
        let Some(value) = self.get(name)? else { return Ok(false) };
        value.as_bool().ok_or_else(|| ApiError::field(name, "must be true or false"))
    }
}

/// Parses an object and keeps the fields with these names.
struct KnownFields(&'static [&'static str]);

impl<'a> DeserializeSeed<'a> for KnownFields {
    type Value = Fields<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Fields<'a>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for KnownFields {
    type Value = Fields<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Fields<'a>, A::Error> {
        let mut fields: Vec<(&'static str, &'a RawValue)> = Vec::new();
        while let Some(name) = map.next_key::<Cow<'a, str>>()? {
            match self.0.iter().find(|known| **known == name) {
                Some(known) => {
                    let value = map.next_value()?;
                    // The last one counts, as in most parsers.
                    fields.retain(|(other, _)| other != known);
                    fields.push((*known, value));
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Fields(fields))
    }
}

/// Parses a list; none if it is not a list of `T`, and an error if it has more than `most` elements, which are then not kept.
pub(crate) fn list<'a, T: Deserialize<'a>>(text: &'a str, most: usize) -> Option<Result<Vec<T>, TooMany>> {
    let exceeded = Cell::new(false);
    let seed = AtMost { most, exceeded: &exceeded, element: PhantomData };
    match seed.deserialize(&mut serde_json::Deserializer::from_str(text)) {
        Ok(list) => Some(Ok(list)),
        Err(_) => exceeded.get().then_some(Err(TooMany)),
    }
}

/// A list with more elements than are accepted.
pub(crate) struct TooMany;

/// Parses a list of at most so many elements.
struct AtMost<'f, T> {
    most: usize,
    /// Set if the parsing ended because there are more.
    exceeded: &'f Cell<bool>,
    element: PhantomData<T>,
}

impl<'a, T: Deserialize<'a>> DeserializeSeed<'a> for AtMost<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a, T: Deserialize<'a>> Visitor<'a> for AtMost<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = sequence.next_element()? {
            if list.len() == self.most {
                self.exceeded.set(true);
                return Err(A::Error::custom("too many elements"));
            }
            list.push(element);
        }
        Ok(list)
    }
}
