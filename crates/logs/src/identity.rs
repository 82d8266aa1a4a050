//! Names of models as people compare them.
use serde_json::{Map, Value};

/// Name of the model of a configuration of lm-evaluation-harness: the file of weights where one was named, else the model or
/// checkpoint, with its adapter and revision. `known` is the harness's own name, which for a folder is the folder.
pub(super) fn model_name(config: &Map<String, Value>, known: Option<&Value>) -> Option<String> {
    let arguments = arguments(config.get("model_args").unwrap_or(&Value::Null));
    let argument = |name: &str| {
        let value = arguments.get(name)?;
        value.as_str().map(str::trim).filter(|text| !text.is_empty() && *text != "None")
    };
    let file = ["gguf_file", "filename", "model_file"].into_iter().find_map(argument);
    let named = match (file, argument("model").or_else(|| argument("pretrained")).or_else(|| argument("path"))) {
        (Some(file), _) => stem(file),
        (None, Some(name)) => short(name),
        (None, None) => short(known?.as_str().filter(|name| !name.is_empty())?),
    };
    let adapter = argument("peft").or_else(|| argument("delta")).or_else(|| argument("lora_local_path"));
    let adapted = adapter.map_or_else(|| named.clone(), |adapter| format!("{named}+{}", short(adapter)));
    Some(match argument("revision") {
        Some(revision) if revision != "main" => format!("{adapted}@{revision}"),
        _ => adapted,
    })
}

/// Arguments as members: they are an object, or a text `name=value,name=value`.
pub(super) fn arguments(value: &Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members.clone(),
        Value::String(text) => {
            let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
            pairs.map(|(name, value)| (name.trim().to_owned(), value.into())).collect()
        }
        _ => Map::new(),
    }
}

/// File name without folders and `.gguf`.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".gguf").unwrap_or(name).to_owned()
}

/// A name of a repository as it is; of a path the last folder, with the one before it where the last is a number of training steps.
pub(super) fn short(name: &str) -> String {
    let path = name.starts_with(['/', '.', '~']) || name.contains('\\') || name.matches('/').count() > 1;
    let parts: Vec<&str> =
        name.split(['/', '\\']).filter(|part| !part.is_empty() && *part != "." && *part != "..").collect();
    match parts.as_slice() {
        [.., before, last] if path && (last.starts_with("checkpoint-") || last.starts_with("step")) => {
            format!("{before}/{last}")
        }
        [.., last] if path || last.ends_with(".gguf") => stem(last),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_is_the_model_and_not_the_folder() {
        let name = |arguments: Value, known: &str| {
            model_name(json!({ "model_args": arguments }).as_object().unwrap(), Some(&known.into())).unwrap()
        };
        assert_eq!(name(json!({"pretrained": "models", "gguf_file": "gemma-q4.gguf"}), "models"), "gemma-q4");
        assert_eq!(name("pretrained=models,gguf_file=a/b.gguf,dtype=float32".into(), "models"), "b");
        assert_eq!(name("model=gpt-4o,base_url=http://h/v1".into(), "x"), "gpt-4o");
        assert_eq!(
            name("pretrained=EleutherAI/pythia-160m,revision=step1000".into(), "x"),
            "EleutherAI/pythia-160m@step1000"
        );
        assert_eq!(name("pretrained=/data/hub/llama-3,revision=main".into(), "x"), "llama-3");
        assert_eq!(name("pretrained=/runs/a/checkpoint-100".into(), "x"), "a/checkpoint-100");
        assert_eq!(name("pretrained=org/base,peft=./out/lora-1".into(), "x"), "org/base+lora-1");
        assert_eq!(name(Value::Null, "org/model"), "org/model");
        assert_eq!(model_name(&Map::new(), None), None);
    }
}
