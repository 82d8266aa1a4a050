//! Access to JSON objects that rejects unknown keys.
use super::{CheckpointError, bounded_file};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Largest accepted size in a configuration, so that products of two fit into 64 bits.
const MAX_SIZE: u64 = 1 << 31;

/// Reads a JSON file whose top level is an object.
pub(super) fn read_object(path: &Path, advice: &str) -> Result<Map<String, Value>, CheckpointError> {
    parse_object(path, &bounded_file::read(path, bounded_file::MAX_JSON, advice)?)
}

/// Reads an optional JSON file; none if it does not exist.
pub(super) fn read_optional_object(path: &Path) -> Result<Option<Map<String, Value>>, CheckpointError> {
    match bounded_file::read(path, bounded_file::MAX_JSON, "") {
        Ok(bytes) => parse_object(path, &bytes).map(Some),
        Err(CheckpointError::FileMissing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse_object(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>, CheckpointError> {
    serde_json::from_slice(bytes).map_err(|e| CheckpointError::Json {
        path: path.to_path_buf(),
        line: e.line(),
        column: e.column(),
        message: e.to_string(),
    })
}

/// Keys of a configuration that are not part of the decoder, with their prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassedKeys {
    /// Keys that transformers does not read either for this family, although their names suggest otherwise.
    pub ignored: BTreeSet<String>,
    /// Unknown keys that the user allowed.
    pub allowed: BTreeSet<String>,
}

/// A view of an object that records which keys were read, so that the others can be rejected by name.
pub(super) struct Fields<'a> {
    path: PathBuf,
    prefix: String,
    map: &'a Map<String, Value>,
    known: RefCell<BTreeSet<String>>,
    /// Unknown keys that are let through.
    allow: &'a [String],
    passed: Rc<RefCell<PassedKeys>>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(path: &Path, prefix: &str, map: &'a Map<String, Value>) -> Fields<'a> {
        Fields::allowing(path, prefix, map, &[])
    }

    /// Returns a view that lets the unknown keys of `allow` through.
    pub(super) fn allowing(path: &Path, prefix: &str, map: &'a Map<String, Value>, allow: &'a [String]) -> Fields<'a> {
        Fields {
            path: path.to_path_buf(),
            prefix: prefix.to_string(),
            map,
            known: RefCell::default(),
            allow,
            passed: Rc::default(),
        }
    }

    /// The keys that were passed over so far, in this object and those within.
    pub(super) fn passed(&self) -> PassedKeys {
        self.passed.borrow().clone()
    }

    /// Marks keys as known that transformers does not read; those that are set are recorded.
    pub(super) fn ignore_aloud(&self, keys: &[&str]) {
        self.ignore(keys);
        let set = keys.iter().filter(|key| self.map.get(**key).is_some_and(is_set));
        self.passed.borrow_mut().ignored.extend(set.map(|key| format!("{}{key}", self.prefix)));
    }

    /// Returns an error about a field, with its value in the file.
    pub(super) fn error(&self, key: &str, reason: impl Into<String>) -> CheckpointError {
        let value = self.map.get(key).map_or("absent".to_string(), shorten);
        CheckpointError::Field {
            path: self.path.clone(),
            field: format!("{}{key}", self.prefix),
            value,
            reason: reason.into(),
        }
    }

    /// Returns an error about a field that asks for what is not supported.
    pub(super) fn unsupported(&self, key: &str, reason: impl Into<String>) -> CheckpointError {
        let listed = self.map.get("architectures").and_then(|list| list.get(0));
        let architecture = listed.or(self.map.get("model_type")).and_then(Value::as_str).unwrap_or_default().to_owned();
        match self.error(key, reason) {
            CheckpointError::Field { path, field, value, reason } => {
                CheckpointError::Feature { path, what: format!("field `{field}` is {value}: {reason}"), architecture }
            }
            other => other,
        }
    }

    /// Returns all keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.map.keys()
    }

    /// Marks keys as known without reading them.
    pub(super) fn ignore(&self, keys: &[&str]) {
        self.known.borrow_mut().extend(keys.iter().map(|k| k.to_string()));
    }

    /// Returns the raw value; null counts as absent.
    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.known.borrow_mut().insert(key.to_string());
        self.map.get(key).filter(|v| !v.is_null())
    }

    /// True if the key exists, even with null.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(super) fn size(&self, key: &str) -> Result<Option<usize>, CheckpointError> {
        let Some(v) = self.value(key) else { return Ok(None) };
        // Some writers store whole numbers as floats (`1024.0`).
        let n = v.as_u64().or_else(|| v.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0).map(|f| f as u64));
        match n {
            Some(n) if n <= MAX_SIZE => Ok(Some(n as usize)),
            _ => Err(self.error(key, format!("must be an integer from 0 to {MAX_SIZE}"))),
        }
    }

    pub(super) fn positive(&self, key: &str, default: Option<usize>) -> Result<usize, CheckpointError> {
        match self.size(key)?.or(default) {
            Some(n) if n > 0 => Ok(n),
            _ => Err(self.error(key, "must be a positive integer")),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, CheckpointError> {
        let Some(v) = self.value(key) else { return Ok(None) };
        match v.as_f64() {
            Some(f) if f.is_finite() => Ok(Some(f)),
            _ => Err(self.error(key, "must be a number")),
        }
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, CheckpointError> {
        let Some(v) = self.value(key) else { return Ok(None) };
        let list: Option<Vec<f64>> = v.as_array().and_then(|a| a.iter().map(Value::as_f64).collect());
        list.map(Some).ok_or_else(|| self.error(key, "must be a list of numbers"))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, CheckpointError> {
        let Some(v) = self.value(key) else { return Ok(None) };
        v.as_bool().map(Some).ok_or_else(|| self.error(key, "must be true or false"))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, CheckpointError> {
        let Some(v) = self.value(key) else { return Ok(None) };
        v.as_str().map(Some).ok_or_else(|| self.error(key, "must be a string"))
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Fields<'a>>, CheckpointError> {
        let Some(v) = self.value(key) else { return Ok(None) };
        let map = v.as_object().ok_or_else(|| self.error(key, "must be an object"))?;
        let prefix = format!("{}{key}.", self.prefix);
        let inner = Fields::allowing(&self.path, &prefix, map, self.allow);
        Ok(Some(Fields { passed: Rc::clone(&self.passed), ..inner }))
    }

    /// Returns one token id or a list of them.
    pub(super) fn token_ids(&self, key: &str) -> Result<Vec<u32>, CheckpointError> {
        let Some(v) = self.value(key) else { return Ok(Vec::new()) };
        let one = |v: &Value| v.as_u64().and_then(|n| u32::try_from(n).ok());
        let ids = match v {
            Value::Array(list) => list.iter().map(one).collect(),
            v => one(v).map(|id| vec![id]),
        };
        ids.ok_or_else(|| self.error(key, "must be a token id or a list of token ids"))
    }

    /// Rejects every key that was neither read nor ignored and is not null or false.
    pub(super) fn finish(&self) -> Result<(), CheckpointError> {
        let known = self.known.borrow();
        for (key, value) in self.map {
            if known.contains(key) || !is_set(value) {
                continue;
            }
            let full = format!("{}{key}", self.prefix);
            if !self.allow.contains(key) && !self.allow.contains(&full) {
                let reason = format!(
                    "this field is not known and might change what the model computes; if it does not, allow it with \
                     the setting `allow_config = {full}`, which is recorded"
                );
                return Err(self.error(key, reason));
            }
            self.passed.borrow_mut().allowed.insert(full);
        }
        Ok(())
    }
}

/// True unless the value is null or false: in configurations, both mean that a feature is off.
fn is_set(value: &Value) -> bool {
    !value.is_null() && *value != Value::Bool(false)
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}
