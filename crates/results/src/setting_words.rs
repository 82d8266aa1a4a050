//! Settings in which runs differ, in the words of screens and pages.
use serde_json::{Map, Value};

use super::{SettingChange, shown};

/// Characters of a list of names.
const LONGEST: usize = 60;

/// Names of settings whose own ones say too little, without the parts before the last dot that [`plain`] takes away.
const NAMES: [(&str, &str); 28] = [
    ("weights.quant", "weights"),
    ("weights.dtype", "weights"),
    ("weights.compute", "weights"),
    ("weights.kv", "keys and values"),
    ("engine.weights_dtype", "weights in memory"),
    ("prompt_mode", "prompts"),
    ("enable_thinking", "thinking"),
    ("thinking_text", "thinking in scoring"),
    ("thinking", "thinking"),
    ("limit", "limit of items"),
    ("samples", "samples per item"),
    ("system", "system message"),
    ("earnest", "version of earnest"),
    ("max_tokens", "token limit"),
    ("stop_ids", "tokens that end an answer"),
    ("top_k", "top-k"),
    ("top_p", "top-p"),
    ("min_p", "min-p"),
    ("profile", "scorer"),
    ("adapter", "questions as"),
    ("per_length", "questions per length"),
    ("per_template", "questions per template"),
    ("few_shot", "examples"),
    ("shots", "examples"),
    ("order", "version of the order"),
    ("endpoint.base_url", "endpoint"),
    ("endpoint.api", "interface of the endpoint"),
    ("endpoint.model", "model of the endpoint"),
];

impl SettingChange {
    /// Name of the setting: `temperature`, `weights`.
    pub fn what(&self) -> String {
        let name = plain(&self.name);
        let known = NAMES.iter().find(|(own, _)| *own == name).map(|(_, words)| (*words).to_owned());
        known.unwrap_or_else(|| name.replace(['_', '.'], " "))
    }

    /// A value of the setting: `quantised to int8`, `1.5`.
    pub fn value(&self, value: &Value) -> String {
        match (plain(&self.name), value) {
            ("weights", Value::Object(parts)) => weights(parts),
            ("weights", Value::Null) => "as stored".to_owned(),
            ("weights.quant", Value::Null) => "not quantised".to_owned(),
            ("weights.dtype", Value::Null) => "in the type of the file".to_owned(),
            ("weights.compute", Value::Null) => "computed in f32".to_owned(),
            (name, value) if name.starts_with("weights.") => {
                let part = name.trim_start_matches("weights.").to_owned();
                weights(&Map::from_iter([(part, value.clone())]))
            }
            ("limit", Value::Null) => "none".to_owned(),
            ("profile", Value::Null) => "the usual one".to_owned(),
            (_, Value::Bool(on)) => if *on { "on" } else { "off" }.to_owned(),
            (_, value) => listed(value),
        }
    }

    /// The setting with a value: `temperature 1.5`, `weights quantised to int8`, `first 160 items`.
    pub fn with(&self, value: &Value) -> String {
        if self.name == "limit" {
            return value.as_u64().map_or_else(|| "all items".to_owned(), |count| format!("first {count} items"));
        }
        format!("{} {}", self.what(), self.value(value))
    }

    /// The setting with both values: `temperature (0 in A, 1.5 in B)`.
    pub fn in_both(&self) -> String {
        format!("{} ({} in A, {} in B)", self.what(), self.value(&self.one), self.value(&self.other))
    }
}

/// The name without the parts of the manifest in which it stands.
fn plain(name: &str) -> &str {
    let parts = ["suite_options.", "generation.sampling.", "generation.", "task_file.", "log."];
    parts.into_iter().fold(name, |name, part| name.strip_prefix(part).unwrap_or(name))
}

/// Conversions of weights at load.
fn weights(parts: &Map<String, Value>) -> String {
    // A version behind the name of an arithmetic: `int8.2`.
    let word = |name: &str| Some(parts.get(name)?.as_str()?.split('.').next()?.to_owned());
    let compute = word("compute").map(|compute| match compute.as_str() {
        "int8" => "quantised to int8".to_owned(),
        "a8" => "computed with activations in int8".to_owned(),
        other => format!("computed in {other}"),
    });
    let words: Vec<String> = [
        word("quant").map(|quant| format!("quantised to {quant}")),
        word("dtype").map(|dtype| format!("rounded to {dtype}")),
        compute,
        word("kv").map(|kv| format!("keys and values in {kv}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if words.is_empty() { "as stored".to_owned() } else { words.join(", ") }
}

/// A value without the marks of JSON.
fn listed(value: &Value) -> String {
    let text = match value {
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(listed).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.is_empty() => "none".to_owned(),
        Value::Object(fields) => {
            let words = fields.iter().filter(|(_, value)| !value.is_null());
            words
                .map(|(name, value)| format!("{} {}", name.replace('_', " "), listed(value)))
                .collect::<Vec<_>>()
                .join(", ")
        }
        Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        plain => return shown(plain),
    };
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST - 1).chain(['\u{2026}']).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(name: &str, one: Value, other: Value) -> SettingChange {
        SettingChange { name: name.to_owned(), one, other }
    }

    #[test]
    fn settings_are_said_in_words() {
        for (name, one, other, words) in [
            (
                "weights",
                Value::Null,
                json!({"compute": "int8.2", "dtype": null, "quant": null}),
                "weights (as stored in A, quantised to int8 in B)",
            ),
            (
                "weights",
                json!({"quant": "nf4", "dtype": "bf16", "kv": "bf16"}),
                json!({"quant": null, "dtype": null}),
                "weights (quantised to nf4, rounded to bf16, keys and values in bf16 in A, as stored in B)",
            ),
            (
                "weights.compute",
                json!("a8"),
                Value::Null,
                "weights (computed with activations in int8 in A, computed in f32 in B)",
            ),
            (
                "generation.sampling.temperature",
                json!(0.0),
                json!(0.699999988079071),
                "temperature (0.0 in A, 0.7 in B)",
            ),
            ("suite_options.per_length", json!(20), json!(5), "questions per length (20 in A, 5 in B)"),
            ("suite_options.profile", Value::Null, json!("final"), "scorer (the usual one in A, final in B)"),
            ("enable_thinking", json!(true), json!(false), "thinking (on in A, off in B)"),
            ("suite_options.tasks", json!(["add", "mul"]), json!([]), "tasks (add, mul in A, none in B)"),
            ("limit", Value::Null, json!(7), "limit of items (none in A, 7 in B)"),
            ("prompt_mode", json!("raw"), json!("chat"), "prompts (raw in A, chat in B)"),
            (
                "generation",
                json!({"until": ["\n"], "top_p": 1}),
                Value::Null,
                "generation (top p 1, until \n in A, not set in B)",
            ),
        ] {
            let said = change(name, one, other).in_both();
            assert_eq!(said, words);
            assert!(!said.contains(['{', '"', '[']), "{said}");
        }
        let long = change("suite_options.tasks", json!(vec!["add_Integer"; 50]), Value::Null).in_both();
        assert!(long.chars().count() < 110 && long.contains('\u{2026}'), "{long}");
        let temperature = change("generation.sampling.temperature", json!(0.0), json!(1.5));
        assert_eq!(temperature.with(&temperature.other), "temperature 1.5");
    }
}
