//! A row of JSON: checked strictly, with its numbers as they are written.
use std::collections::BTreeMap;
use std::fmt::{Formatter, Result as FormatResult};

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Values of a row, and its numbers that JSON would print otherwise than they are written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parsed {
    pub values: Map<String, Value>,
    pub written: BTreeMap<String, String>,
}

/// An error in a text: its line and its character in the line, both from 1, none where there is no such place, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub place: Option<(u64, u64)>,
    pub reason: String,
}

impl Fault {
    /// A fault at a byte of a text.
    pub fn at(text: &[u8], byte: usize, reason: impl Into<String>) -> Self {
        let before = &text[..byte.min(text.len())];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Fault { place: Some((line as u64, 1 + characters(&before[start..]))), reason: reason.into() }
    }
}

/// Number of characters, those of bytes that are not UTF-8 included.
pub(super) fn characters(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| !is_continuation(**byte)).count() as u64
}

/// True for a byte that continues a character of UTF-8.
pub(super) fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Command that makes a text of Latin-1 readable.
pub(super) const NOT_UTF8: &str = "not UTF-8; if the file is Latin-1, `iconv -f LATIN1 -t UTF-8` converts it";

/// Reads an object. A number keeps its type where 64 bits hold the very value that is written, and is a text otherwise. Inside of
/// lists and objects every number that JSON would print otherwise is a text, because only columns have a written form beside it.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| Fault::at(bytes, error.valid_up_to(), NOT_UTF8))?;
    let first = text.bytes().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    if bytes.get(first) != Some(&b'{') {
        let reason = match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => "the row is not a JSON object, such as {\"question\": \"...\", \"answer\": \"...\"}".to_owned(),
            Err(error) => reason(&error),
        };
        return Err(Fault::at(bytes, first, reason));
    }
    let mut numbers = Numbers { text, at: 0, changed: None, left: MEMORY };
    let mut reader = serde_json::Deserializer::from_str(text);
    let row = Row(&mut numbers).deserialize(&mut reader);
    row.and_then(|row| reader.end().map(|()| row)).map_err(|error| fault(text, &error))
}

fn fault(text: &str, error: &serde_json::Error) -> Fault {
    let start = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let line = &text.as_bytes()[start..];
    // Its column is that of the last byte read, from 1; at the end of a text it may be the one before.
    let end = error.column().min(line.len());
    let place = (error.line().max(1) as u64, characters(&line[..end]).max(1));
    let reason = if line[..end].contains(&0) || line.get(end) == Some(&0) {
        "there is a zero byte in it".to_owned()
    } else {
        reason(error)
    };
    Fault { place: Some(place), reason }
}

/// The error without its place, which counts from the start of the row.
fn reason(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
    match what {
        "number out of range" => "the number is beyond those of 64 bits; write it in quotes".to_owned(),
        "recursion limit exceeded" => "lists and objects are nested more than 127 deep".to_owned(),
        _ if error.is_data() => what.to_owned(),
        "EOF while parsing a string" => "not JSON: the row ends inside a text".to_owned(),
        _ if error.is_eof() => "not JSON: the row ends too early".to_owned(),
        _ => format!("not JSON: {what}"),
    }
}

/// Numbers of a JSON text as they are written, in the order in which a reader meets them.
struct Numbers<'t> {
    text: &'t str,
    at: usize,
    /// Written form of the last number, if JSON would print it otherwise.
    changed: Option<&'t str>,
    /// Memory that the values of the row may still take.
    left: u64,
}

/// Memory that the values of a row may take beside their texts, in bytes: a byte of JSON may take a hundred.
const MEMORY: u64 = 64 << 20;

/// Memory of an element of a list, of an object's first member, which is a node with room for eleven, and of the others.
const ELEMENT: u64 = 64;
const OBJECT: u64 = 640;
const MEMBER: u64 = 112;

impl<'t> Numbers<'t> {
    /// Takes memory for a value.
    fn take<E: serde::de::Error>(&mut self, bytes: u64) -> Result<(), E> {
        let too_much = || E::custom(format!("its lists and objects take more than {} MiB of memory", MEMORY >> 20));
        self.left = self.left.checked_sub(bytes).ok_or_else(too_much)?;
        Ok(())
    }

    fn next(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let mut quoted = false;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\\' if quoted => self.at += 1,
                b'"' => quoted = !quoted,
                b'-' | b'0'..=b'9' if !quoted => {
                    let rest = &bytes[self.at..];
                    let part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    let start = self.at;
                    self.at += rest.iter().position(|byte| !part(byte)).unwrap_or(rest.len());
                    return &self.text[start..self.at];
                }
                _ => {}
            }
            self.at += 1;
        }
        ""
    }

    /// The value of a number that was read as floating-point.
    fn float(&mut self, value: f64, nested: bool) -> Value {
        let written = self.next();
        let Some(number) = Number::from_f64(value) else { return written.into() };
        let printed = number.to_string();
        if printed == written {
            return Value::Number(number);
        }
        if nested || decimal(&printed) != decimal(written) {
            return written.into();
        }
        self.changed = Some(written);
        Value::Number(number)
    }
}

/// Sign, digits and exponent of a JSON number, the same for all ways to write a value.
fn decimal(text: &str) -> (bool, String, i64) {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    // An exponent beyond 64 bits is of a zero or of a number that is read as one; both stay as they are written.
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX);
    let exponent = exponent.saturating_sub(fraction.len() as i64).saturating_add((all.len() - digits.len()) as i64);
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { (negative, String::new(), 0) } else { (negative, digits.to_owned(), exponent) }
}

/// Reader of the object itself.
struct Row<'n, 't>(&'n mut Numbers<'t>);

impl<'de> DeserializeSeed<'de> for Row<'_, '_> {
    type Value = Parsed;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Parsed, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_, '_> {
    type Value = Parsed;

    fn expecting(&self, f: &mut Formatter<'_>) -> FormatResult {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Parsed, A::Error> {
        let Row(numbers) = self;
        let mut row = Parsed::default();
        while let Some(key) = new_key(&mut members, &row.values)? {
            numbers.changed = None;
            numbers.take(MEMBER)?;
            let value = members.next_value_seed(Any { numbers: &mut *numbers, nested: false })?;
            if let Some(written) = numbers.changed.take() {
                row.written.insert(key.clone(), written.to_owned());
            }
            row.values.insert(key, value);
        }
        Ok(row)
    }
}

/// The next key, which the object must not have yet: readers disagree on which of two values counts.
fn new_key<'de, A: MapAccess<'de>>(members: &mut A, known: &Map<String, Value>) -> Result<Option<String>, A::Error> {
    match members.next_key::<String>()? {
        Some(key) if known.contains_key(&key) => Err(A::Error::custom(format!("the key {key:?} stands twice"))),
        key => Ok(key),
    }
}

/// Reader of any value.
struct Any<'n, 't> {
    numbers: &'n mut Numbers<'t>,
    nested: bool,
}

impl<'de> DeserializeSeed<'de> for Any<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> FormatResult {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    // An integer of 64 bits is printed as it is written.
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        self.numbers.next();
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.numbers.next();
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(self.numbers.float(value, self.nested))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Any { numbers: &mut *self.numbers, nested: true })? {
            // The first takes room for four.
            self.numbers.take(if list.is_empty() { 2 * ELEMENT } else { ELEMENT })?;
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = new_key(&mut members, &object)? {
            self.numbers.take(if object.is_empty() { OBJECT } else { MEMBER })?;
            let value = members.next_value_seed(Any { numbers: &mut *self.numbers, nested: true })?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

/// A text as JSON writes it.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing a text to memory cannot fail.
    serde_json::to_writer(out, text).unwrap_or_default();
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn refused(text: &[u8]) -> (u64, u64, String) {
        let fault = parse(text).unwrap_err();
        let (line, column) = fault.place.unwrap();
        (line, column, fault.reason)
    }

    #[test]
    fn numbers_keep_the_form_in_which_they_are_written() {
        let text = r#"{"a": 1.50, "b": 1.5, "c": 7, "d": -0, "e": 1e3, "big": 123456789012345678901234, "max": 18446744073709551615,
            "fine": 0.10000000000000000555, "tiny": 1e-400, "list": [1.50, 2.5, 1e2, {"x": 3.0}], "\"1": "1.50 \\\" 2", "n": null, "t": true, "z": 0.0}"#;
        let row = parse(text.as_bytes()).unwrap();
        assert_eq!(
            Value::Object(row.values),
            json!({"a": 1.5, "b": 1.5, "c": 7, "d": -0.0, "e": 1000.0, "big": "123456789012345678901234",
                "max": u64::MAX, "fine": "0.10000000000000000555", "tiny": "1e-400", "list": ["1.50", 2.5, "1e2", {"x": 3.0}],
                "\"1": "1.50 \\\" 2", "n": null, "t": true, "z": 0.0})
        );
        let written: Vec<(&str, &str)> = row.written.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(written, [("a", "1.50"), ("d", "-0"), ("e", "1e3")]);
    }

    #[test]
    fn the_memory_of_a_row_is_bounded() {
        for piece in ["0,", "[],", "{\"\":0},", "{\"a\":{}},"] {
            let text = format!("{{\"x\": [{}0]}}", piece.repeat(1_200_000));
            assert_eq!(refused(text.as_bytes()).2, "its lists and objects take more than 64 MiB of memory", "{piece}");
        }
        let long = format!("{{\"x\": \"{}\"}}", "a".repeat(2_000_000));
        assert!(parse(long.as_bytes()).is_ok());
    }

    #[test]
    fn values_are_compared_as_decimals() {
        for (a, b) in [("1.50", "1.5"), ("100000.0", "1e5"), ("0.001", "1E-3"), ("-12.0", "-1.2e+1"), ("0.0", "0e7")] {
            assert_eq!(decimal(a), decimal(b), "{a} {b}");
        }
        for (a, b) in [("1.5", "1.51"), ("1.5", "-1.5"), ("1e5", "1e6"), ("0.0", "1e-400")] {
            assert_ne!(decimal(a), decimal(b), "{a} {b}");
        }
    }

    #[test]
    fn faults_are_named_with_line_and_character() {
        assert_eq!(refused(b"{\"a\": 1, \"b\" 2}"), (1, 14, "not JSON: expected `:`".into()));
        assert_eq!(refused("{\"ä\": x}".as_bytes()), (1, 7, "not JSON: expected value".into()));
        assert_eq!(refused(b"{\"a\": 1,\n \"b\": 1e400}").0, 2);
        assert!(refused(b"{\"b\": 1e400}").2.contains("beyond those of 64 bits"));
        assert_eq!(refused(b"{\"a\": 1, \"a\": 2}").2, "the key \"a\" stands twice");
        assert_eq!(refused(b"{\"a\": {\"b\": 1, \"\\u0062\": 2}}").2, "the key \"b\" stands twice");
        assert_eq!(
            refused(b"{\"a\": \"at line 5\", \"at line 7\": 1, \"at line 7\": 1}").2,
            "the key \"at line 7\" stands twice"
        );
        assert_eq!(refused(b"{\"a\": \"b"), (1, 8, "not JSON: the row ends inside a text".into()));
        assert_eq!(refused(b"{\"a\": 1").2, "not JSON: the row ends too early");
        assert_eq!(refused(b"{\"a\": 1} {}").2, "not JSON: trailing characters");
        for text in ["[1]", " 5", "\"x\"", "null"] {
            assert!(refused(text.as_bytes()).2.contains("not a JSON object"), "{text}");
        }
        assert_eq!(refused(b" oops").1, 2);
        assert_eq!(refused(b"{\"a\": \"\xe9\"}"), (1, 8, NOT_UTF8.into()));
        assert_eq!(refused(b"{\"a\": \"b\0\"}").2, "there is a zero byte in it");
        assert!(refused(b"{\"a\": \"\\ud800\"}").2.starts_with("not JSON: "));
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(200), "]".repeat(200));
        assert!(refused(deep.as_bytes()).2.contains("127 deep"));
    }

    /// Any JSON value whose numbers are printed as they are written.
    pub fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn objects_read_back_equal(members in prop::collection::btree_map(any::<String>(), any_value(), 0..6)) {
            let object: Map<String, Value> = members.into_iter().collect();
            let text = serde_json::to_string(&object).unwrap();
            let row = parse(text.as_bytes()).unwrap();
            prop_assert_eq!(row.values, object);
            prop_assert!(row.written.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), brace in any::<bool>()) {
            let bytes = if brace { [b"{\"a\": ", bytes.as_slice()].concat() } else { bytes };
            if let Err(fault) = parse(&bytes) {
                let (line, column) = fault.place.unwrap();
                prop_assert!(line >= 1 && column >= 1 && !fault.reason.is_empty());
            }
        }

        #[test]
        fn numbers_are_found_in_any_row(text in "[0-9eE+.\\-]{1,12}", more in "[ -~]{0,12}") {
            let row = format!("{{\"more\": {}, \"x\": {text}}}", Value::from(more));
            if let Ok(row) = parse(row.as_bytes()) {
                let kept = match &row.values["x"] {
                    Value::String(kept) => kept.clone(),
                    number => row.written.get("x").cloned().unwrap_or_else(|| number.to_string()),
                };
                prop_assert_eq!(kept, text);
            }
        }
    }
}
