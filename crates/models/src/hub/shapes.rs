//! Shapes of the listed models: the `config.json` keys from which memory is estimated.
use serde_json::{Map, Value};

/// The embedded table; its key `_about` describes it.
const TABLE: &str = include_str!("shapes.json");

/// Returns the `config.json` keys of a shape that `models.toml` names.
pub fn shape(name: &str) -> Option<Map<String, Value>> {
    if name.starts_with('_') {
        return None;
    }
    let table: Map<String, Value> =
        serde_json::from_str(TABLE).expect("the table is part of the program and a test reads it");
    table.get(name).and_then(Value::as_object).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        assert_eq!(shape("phi-2").unwrap()["model_type"], "phi");
        assert!(shape("_about").is_none() && shape("").is_none() && shape("gpt-5").is_none());
    }
}
