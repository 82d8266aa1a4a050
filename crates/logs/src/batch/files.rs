//! Files of one batch among many.
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::json::parse;
use super::super::log::FindOptions;
use super::super::records::{Place, Records};
use super::{Batch, places};
use crate::LogError;

/// Words of file names that say which file of a batch it is.
const ROLES: [&str; 12] = [
    "input",
    "inputs",
    "output",
    "outputs",
    "error",
    "errors",
    "request",
    "requests",
    "response",
    "responses",
    "result",
    "results",
];

/// Words of a file's name that are not its role: files of one batch share them.
pub(in super::super) fn shared_name(path: &Path) -> Vec<String> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".jsonl").unwrap_or(&name);
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && !ROLES.contains(word));
    words.map(str::to_owned).collect()
}

/// Facts of one file of a batch.
struct Seen {
    path: PathBuf,
    ids: HashMap<u64, Place>,
    /// Model of the first record that has one.
    model: Option<String>,
}

fn seen(path: &Path, options: &FindOptions) -> Result<Seen, LogError> {
    let ids = places(path, options.longest, &mut |_| Ok(()))?;
    let mut records = Records::open(path, options.longest)?;
    let mut model = None;
    while let (None, Some((_, read))) = (&model, records.next()?) {
        let Some(value) = read.ok().and_then(|()| parse::<Value>(&records.bytes).ok()) else { continue };
        let body = value.get("body").or_else(|| value.get("response").and_then(|response| response.get("body")));
        model = body.and_then(|body| body.get("model")).and_then(Value::as_str).map(str::to_owned);
    }
    Ok(Seen { path: path.to_owned(), ids, model })
}

/// Requests with the responses to them: those whose names differ in the role alone, else those of the same model whose ids are among
/// the requests'.
pub(in super::super) fn batches(
    requests: &[PathBuf],
    responses: &[PathBuf],
    options: &FindOptions,
) -> Result<Vec<Batch>, LogError> {
    let mut batches: BTreeMap<(Option<PathBuf>, Vec<String>), Batch> = BTreeMap::new();
    let key = |path: &Path| (path.parent().map(Path::to_owned), shared_name(path));
    let mut unclear = Vec::new();
    for path in requests {
        let batch = batches.entry(key(path)).or_default();
        match batch.requests {
            None => batch.requests = Some(path.clone()),
            Some(_) => unclear.push(path.clone()),
        }
    }
    for path in responses {
        batches.entry(key(path)).or_default().responses.push(path.clone());
    }
    let mut alone: Vec<PathBuf> = unclear;
    let mut whole = Vec::new();
    let mut answers: Vec<Batch> = Vec::new();
    for batch in batches.into_values() {
        match (&batch.requests, batch.responses.as_slice()) {
            (Some(requests), []) => alone.push(requests.clone()),
            (None, _) => answers.push(batch),
            (Some(_), _) => whole.push(batch),
        }
    }
    let candidates = match answers.is_empty() {
        true => Vec::new(),
        false => alone.iter().map(|path| seen(path, options)).collect::<Result<Vec<_>, _>>()?,
    };
    for mut batch in answers {
        // Names differ, such as those that the server gives: by content.
        let mut fitting: Option<Vec<&Seen>> = None;
        for path in &batch.responses {
            let one = seen(path, options)?;
            let model = |request: &Seen| match (&request.model, &one.model) {
                // A server may answer with the version that it chose: gpt-4o-2024-08-06 for gpt-4o.
                (Some(asked), Some(answered)) => answered.starts_with(asked.as_str()),
                _ => true,
            };
            let fits = |request: &&Seen| model(request) && one.ids.keys().all(|id| request.ids.contains_key(id));
            fitting = Some(match fitting {
                None => candidates.iter().filter(fits).collect(),
                Some(known) => known.into_iter().filter(fits).collect(),
            });
        }
        match fitting.unwrap_or_default().as_slice() {
            [] => {}
            [one] => batch.requests = Some(one.path.clone()),
            several => {
                let names: Vec<String> = several.iter().map(|one| one.path.display().to_string()).collect();
                return Err(LogError::unread(
                    &batch.responses[0],
                    format!("its requests may be in {}", names.join(" or in ")),
                )
                .hint("name the files of one batch alone"));
            }
        }
        // Responses and errors of one batch whose names differ.
        match whole.iter_mut().find(|other: &&mut Batch| batch.requests.is_some() && other.requests == batch.requests) {
            Some(other) => other.responses.append(&mut batch.responses),
            None => whole.push(batch),
        }
    }
    for path in alone {
        if !whole.iter().any(|batch| batch.requests.as_ref() == Some(&path)) {
            whole.push(Batch { requests: Some(path), responses: Vec::new() });
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_in_the_role_alone() {
        let name = |name: &str| shared_name(Path::new(name));
        assert_eq!(name("a/m-1.vllm_input.jsonl"), name("m-1.vllm_output.jsonl"));
        assert_eq!(name("requests.jsonl"), name("results.jsonl"));
        assert_ne!(name("m-1.vllm_input.jsonl"), name("m-1.openai_output.jsonl"));
    }
}
