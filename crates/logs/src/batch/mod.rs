//! OpenAI's batch files: requests, responses and errors, joined by `custom_id`. vLLM writes responses and errors into one file.

mod files;
mod record;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::json::{id_text, parse};
use super::log::{Each, FindOptions, Log, Samples};
use super::records::{Place, Records};
use super::secrets::without_secrets;
use crate::LogError;
use earnest_results::{LogCard, LogStatus, Tool};
pub(super) use files::{batches, shared_name};
use record::{Request, Response};

/// Files of one batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Batch {
    pub requests: Option<PathBuf>,
    /// Responses first, then errors.
    pub responses: Vec<PathBuf>,
}

/// Models of a batch that are named in the error of several.
const FEW_MODELS: usize = 100;

/// Settings in which requests differ that are collected for a note.
const MOST_DIFFERENT: usize = 1_000;

/// The task of a batch, whose files name none.
const TASK: &str = "batch";

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[derive(serde::Deserialize)]
struct Id {
    #[serde(default)]
    custom_id: Value,
}

/// Places of a file's records by their ids.
fn places(
    path: &Path,
    longest: u64,
    bad: &mut dyn FnMut(LogError) -> Result<(), LogError>,
) -> Result<HashMap<u64, Place>, LogError> {
    let mut records = Records::open(path, longest)?;
    let mut places = HashMap::new();
    while let Some((place, read)) = records.next()? {
        let id = read.and_then(|()| {
            let id: Id = parse(&records.bytes).map_err(|reason| records.error(place, reason))?;
            id_text(&id.custom_id).ok_or_else(|| records.error(place, "it has no custom_id"))
        });
        match id {
            Ok(id) => match places.get(&hash(&id)) {
                Some(Place { number, .. }) => {
                    bad(records.error(place, format!("the custom_id {id} stands in line {number} already")))?;
                }
                None => drop(places.insert(hash(&id), place)),
            },
            Err(error) => bad(error)?,
        }
    }
    Ok(places)
}

#[derive(Debug)]
struct Source {
    batch: Batch,
    longest: u64,
}

pub(super) fn log(batch: &Batch, options: &FindOptions) -> Result<Log, LogError> {
    let Some(first) = batch.responses.first() else {
        let path = batch.requests.clone().unwrap_or_default();
        return Err(LogError::unread(path, "the requests of a batch have no responses beside them")
            .hint("put the output file beside it"));
    };
    let source = Source { batch: batch.clone(), longest: options.longest };
    let mut card = LogCard::new(Tool::OpenaiBatch, String::new(), String::new(), LogStatus::Unknown);
    card.files = batch.responses.iter().chain(&batch.requests).cloned().collect();
    let unread = source.settings(&mut card)?;
    if card.model.is_empty() {
        let Some(model) = &options.model else {
            let unnamed = || {
                LogError::unread(first, "its records do not name the model")
                    .hint("name it: the setting `model_name = NAME`")
            };
            return Err(unread.unwrap_or_else(unnamed));
        };
        card.model.clone_from(model);
    }
    card.task = options.task.clone().unwrap_or_else(|| TASK.to_owned());
    if batch.requests.is_none() {
        card.notes.push("the file of requests is missing: prompts and settings are unknown".to_owned());
    }
    Ok(Log { card, source: Box::new(source), keep_going: options.keep_going })
}

impl Source {
    /// Fills in the model, the number of requests and the settings that all of them share; returns the error of the first record that
    /// cannot be read.
    fn settings(&self, card: &mut LogCard) -> Result<Option<LogError>, LogError> {
        let mut settings: Option<Map<String, Value>> = None;
        let mut different: BTreeSet<String> = BTreeSet::new();
        let mut models: Vec<String> = Vec::new();
        let mut count = 0;
        let requests = self.batch.requests.as_deref();
        let first = self.batch.responses.first().map(PathBuf::as_path);
        let Some(path) = requests.or(first) else { return Ok(None) };
        let mut records = Records::open(path, self.longest)?;
        let mut unread = None;
        while let Some((place, read)) = records.next()? {
            let read =
                read.and_then(|()| parse::<Value>(&records.bytes).map_err(|reason| records.error(place, reason)));
            let value = match read {
                Ok(value) => value,
                // Walking says what is wrong with it, where the others name the model.
                Err(error) => {
                    unread.get_or_insert(error);
                    continue;
                }
            };
            count += 1;
            let body = match requests {
                Some(_) => value.get("body"),
                None => value.get("response").and_then(|response| response.get("body")),
            };
            let Some(body) = body.and_then(Value::as_object) else { continue };
            if let Some(model) = body.get("model").and_then(Value::as_str)
                && models.len() < FEW_MODELS
                && !models.iter().any(|known| known == model)
            {
                models.push(model.to_owned());
            }
            if requests.is_none() {
                continue;
            }
            if let Some(url) = value.get("url") {
                card.task_details.entry("url").or_insert_with(|| url.clone());
            }
            let question = |name: &str| matches!(name, "model" | "messages" | "prompt" | "input" | "instructions");
            let own = without_secrets(body).into_iter().filter(|(name, _)| !question(name)).collect::<Map<_, _>>();
            match &mut settings {
                None => settings = Some(own),
                Some(shared) => {
                    if different.len() < MOST_DIFFERENT {
                        different.extend(own.keys().filter(|name| !shared.contains_key(*name)).cloned());
                    }
                    let changed = |name: &String, value: &Value| own.get(name) != Some(value);
                    let names: Vec<String> = shared
                        .iter()
                        .filter(|(name, value)| changed(name, value))
                        .map(|(name, _)| name.clone())
                        .collect();
                    for name in names {
                        shared.remove(&name);
                        different.insert(name);
                    }
                }
            }
        }
        card.generation = settings.unwrap_or_default();
        if !different.is_empty() {
            let names = different.into_iter().collect::<Vec<_>>().join(", ");
            card.notes.push(format!("requests differ in {names}: no value is given for the whole log"));
        }
        if models.len() > 1 {
            return Err(LogError::unread(
                path,
                format!("it has requests of {} models: {}", models.len(), models.join(", ")),
            )
            .hint("split the batch by model: a log is of one"));
        }
        card.model = models.pop().unwrap_or_default();
        card.planned = requests.map(|_| count);
        Ok(unread)
    }
}

impl Samples for Source {
    fn walk(&self, _: &LogCard, each: Each<'_>) -> Result<(), LogError> {
        let mut answers = Vec::new();
        for path in &self.batch.responses {
            let found = places(path, self.longest, &mut |error| each(Err(error)))?;
            answers.push((found, Records::open(path, self.longest)?));
        }
        let mut done = 0;
        if let Some(path) = &self.batch.requests {
            let mut records = Records::open(path, self.longest)?;
            while let Some((place, read)) = records.next()? {
                let request = read.and_then(|()| {
                    parse::<Request>(&records.bytes)
                        .and_then(|request| request.id().map(|id| (id, request)))
                        .map_err(|reason| records.error(place, reason))
                });
                let (id, request) = match request {
                    Ok(request) => request,
                    Err(error) => {
                        each(Err(error))?;
                        continue;
                    }
                };
                let mut sample = request.sample(id);
                let mut answered = Ok(false);
                for (places, records) in &mut answers {
                    let Some(place) = places.remove(&hash(&sample.id)) else { continue };
                    done += 1;
                    answered = records.read(place).and_then(|()| {
                        let response: Response =
                            parse(&records.bytes).map_err(|reason| records.error(place, reason))?;
                        response.fill(&mut sample).map_err(|reason| records.error(place, reason))?;
                        Ok(true)
                    });
                }
                match answered {
                    Ok(true) => {}
                    Ok(false) => sample.error = Some("the batch has no response to the request".to_owned()),
                    Err(error) => {
                        each(Err(error))?;
                        continue;
                    }
                }
                each(Ok(sample))?;
            }
        }
        // Responses without requests, in the order of their files.
        let mut rest = Vec::new();
        for (file, (places, _)) in answers.iter().enumerate() {
            rest.extend(places.values().map(|place| (file, *place)));
        }
        rest.sort_by_key(|(file, place)| (*file, place.offset));
        for (file, place) in rest {
            let records = &mut answers[file].1;
            let sample = records.read(place).and_then(|()| {
                parse::<Response>(&records.bytes)
                    .and_then(Response::alone)
                    .map_err(|reason| records.error(place, reason))
            });
            match sample {
                Ok(sample) if self.batch.requests.is_some() && done > 0 => {
                    let message = format!("the file of requests has no custom_id {}", sample.id);
                    each(Err(answers[file].1.error(place, message)))?;
                }
                sample => each(sample)?,
            }
        }
        Ok(())
    }

    fn sha256(&self) -> Result<String, LogError> {
        let mut sums = String::new();
        for path in self.batch.responses.iter().chain(&self.batch.requests) {
            let sum =
                earnest_digest::sha256_file(path, |_| ()).map_err(|error| LogError::input(path.display(), error))?;
            sums.push_str(&sum);
        }
        Ok(earnest_digest::hex(&earnest_digest::sha256(sums.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_other_names_are_joined_by_their_ids() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, lines: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, lines).unwrap();
            path
        };
        let request = |id: &str, model: &str| {
            format!(
                r#"{{"custom_id": "{id}", "url": "/v1/completions", "body": {{"model": "{model}", "prompt": "p {id}", "temperature": 0}}}}"#
            )
        };
        let response = |id: &str, model: &str| {
            format!(
                r#"{{"custom_id": "{id}", "response": {{"status_code": 200, "body": {{"model": "{model}", "choices": [{{"text": "t {id}"}}]}}}}, "error": null}}"#
            )
        };
        let one = write("one.jsonl", &format!("{}\n{}\n{}\n", request("a", "m"), request("b", "m"), request("c", "m")));
        let two = write("two.jsonl", &format!("{}\n{}\n", request("a", "n"), request("b", "n")));
        let out = write("file-1.jsonl", &format!("{}\n{}\n", response("b", "m-2024"), response("a", "m-2024")));
        let options = FindOptions::default();
        let batches = batches(&[one.clone(), two.clone()], std::slice::from_ref(&out), &options).unwrap();
        assert_eq!(batches[0], Batch { requests: Some(one), responses: vec![out] });
        assert_eq!(batches[1], Batch { requests: Some(two), responses: Vec::new() });
        let log = log(&batches[0], &options).unwrap();
        assert_eq!((log.card.model.as_str(), log.card.planned), ("m", Some(3)));
        assert_eq!(log.card.generation["temperature"], 0);
        let mut samples = Vec::new();
        log.samples(&mut |sample| {
            samples.push((sample.id, sample.completions.concat(), sample.error.is_some()));
            Ok(())
        })
        .unwrap();
        let sample = |id: &str, text: &str, failed| (id.to_owned(), text.to_owned(), failed);
        assert_eq!(samples, [sample("a", "t a", false), sample("b", "t b", false), sample("c", "", true)]);
    }
}
