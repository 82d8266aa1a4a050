//! A reader of JSON that counts the memory of what it builds, because a byte of JSON may take a hundred: `{"":0}` is a node of a tree.
//! Members that a type passes over cost nothing.
use std::cell::Cell;
use std::fmt::Formatter;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

/// Memory that the values of one record or document may take, in bytes. A text takes its length, so that no model's answer is near it.
pub(super) const MEMORY: u64 = 64 << 20;

/// Longest text among the facts of a log in bytes.
const LONGEST_FACT: usize = 1 << 20;

/// Memory of a list's first element and of the others: lists grow to twice what they hold.
const LIST: u64 = 144;
const ELEMENT: u64 = 64;
/// Memory of an object's first member, and of the others: a tree whose nodes have room for eleven.
const OBJECT: u64 = 640;
const MEMBER: u64 = 112;
/// Memory of a text beside its bytes.
const TEXT: u64 = 32;

/// Message of the error of values that take too much.
pub(super) fn too_much() -> String {
    format!("its values take more than {} MiB of memory, which is what a record may take", MEMORY >> 20)
}

/// Begins the text that stands for one that was left out.
const LEFT_OUT: &str = "(left out: a text of ";

/// True for a text that stands for one that was left out.
pub(super) fn is_left_out(text: &str) -> bool {
    text.starts_with(LEFT_OUT)
}

/// Memory that is left, and the longest text in bytes that is kept as it is.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    left: Cell<u64>,
    longest: usize,
}

impl Memory {
    /// Memory of a record whose texts are all kept.
    pub fn of_record() -> Self {
        Memory { left: Cell::new(MEMORY), longest: usize::MAX }
    }

    /// Memory of the facts of a whole log: a sentence stands for a text that is too long to be kept.
    pub fn of_facts() -> Self {
        Memory { left: Cell::new(MEMORY), longest: LONGEST_FACT }
    }

    /// Gives back what was taken since.
    pub fn restore(&self, before: &Memory) {
        self.left.set(before.left.get());
    }

    fn take<E: Error>(&self, bytes: u64) -> Result<(), E> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(E::custom(too_much())),
        }
    }

    /// The sentence in place of a text that is too long.
    fn in_place_of(&self, length: usize) -> Option<String> {
        (length > self.longest).then(|| format!("{LEFT_OUT}{length} bytes)"))
    }
}

/// A reader or a part of it (an access, a seed, a visitor) whose values are counted.
pub(super) struct Bounded<'m, T> {
    pub inner: T,
    pub memory: &'m Memory,
}

impl<'m, T> Bounded<'m, T> {
    fn with<U>(&self, inner: U) -> Bounded<'m, U> {
        Bounded { inner, memory: self.memory }
    }
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method($($argument,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }
}

macro_rules! visit {
    ($($method:ident($kind:ty);)*) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool);
        visit_i64(i64);
        visit_u64(u64);
        visit_f64(f64);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<V::Value, E> {
        if let Some(instead) = self.memory.in_place_of(value.len()) {
            return self.inner.visit_string(instead);
        }
        self.memory.take(TEXT + value.len() as u64)?;
        self.inner.visit_str(value)
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<V::Value, E> {
        if let Some(instead) = self.memory.in_place_of(value.len()) {
            return self.inner.visit_string(instead);
        }
        self.memory.take(TEXT + value.len() as u64)?;
        self.inner.visit_borrowed_str(value)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<V::Value, D::Error> {
        let reader = self.with(reader);
        self.inner.visit_some(reader)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, reader: D) -> Result<V::Value, D::Error> {
        let reader = self.with(reader);
        self.inner.visit_newtype_struct(reader)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        let elements = Counted { inner: elements, memory: self.memory, next: LIST };
        self.inner.visit_seq(elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        let members = Counted { inner: members, memory: self.memory, next: OBJECT };
        self.inner.visit_map(members)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variants: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(variants)
    }
}

/// Elements or members, with the memory of the next one.
struct Counted<'m, A> {
    inner: A,
    memory: &'m Memory,
    next: u64,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        let element = self.inner.next_element_seed(Bounded { inner: seed, memory: self.memory })?;
        if element.is_some() && size_of::<T::Value>() > 0 {
            self.memory.take(self.next)?;
            self.next = ELEMENT;
        }
        Ok(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(Bounded { inner: seed, memory: self.memory })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        if size_of::<T::Value>() > 0 {
            self.memory.take(self.next)?;
            self.next = MEMBER;
        }
        self.inner.next_value_seed(Bounded { inner: seed, memory: self.memory })
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<T::Value, D::Error> {
        let reader = self.with(reader);
        self.inner.deserialize(reader)
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{parse, parse_facts};
    use serde_json::Value;

    use super::*;

    #[test]
    fn values_are_counted_and_what_is_passed_over_is_not() {
        #[derive(serde::Deserialize)]
        struct Id {
            id: u32,
        }
        let count = MEMORY as usize / 64 + 10_000;
        for piece in ["0,", "[],", "[0],", "{},", "{\"\":0},", "\"\",", "null,"] {
            let text = format!("{{\"id\": 7, \"x\": [{}0]}}", piece.repeat(count));
            let error = parse::<Value>(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("more than 64 MiB of memory"), "{piece}: {error}");
            assert_eq!(parse::<Id>(text.as_bytes()).unwrap().id, 7, "{piece}");
        }
        // A text takes its length.
        let text = format!("{{\"x\": \"{}\"}}", "a".repeat(40 << 20));
        assert_eq!(parse::<Value>(text.as_bytes()).unwrap()["x"].as_str().map(str::len), Some(40 << 20));
        assert!(parse::<Value>(format!("[{text},{text}]").as_bytes()).is_err());
    }

    #[test]
    fn long_texts_of_facts_are_replaced_by_a_sentence() {
        let facts: Value =
            parse_facts(format!("{{\"a\": \"{}\", \"b\": \"x\"}}", "\\n".repeat(2 << 20)).as_bytes()).unwrap();
        assert_eq!(facts, serde_json::json!({"a": "(left out: a text of 2097152 bytes)", "b": "x"}));
        assert!(is_left_out(facts["a"].as_str().unwrap()));
    }
}
