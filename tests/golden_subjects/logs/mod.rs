//! Logs of other tools: samples, the tools' aggregates, and paired differences.
//!
//! `logs/<tool>/expected.json` has `runs` (a log each, with its samples and what the tool reported) and `paired` (two of them). A row is
//! a sample, a run's aggregates, or a pair.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use earnest_logs::{FindOptions, Log, LogSample, find};
use serde_json::{Map, Value};

use super::files;
use super::report::FileReport;

mod batch;
mod inspect;
mod lighteval;
mod lm_eval;
mod paired;

pub type Row = Map<String, Value>;
pub type Checked = Result<(), String>;

/// Folders of the tools; a folder of another name is of the tool that its file names.
const FOLDERS: [&str; 4] = ["inspect", "lighteval", "lm-eval", "openai-batch"];

/// Checks every tool's file.
pub fn check(root: &Path) -> Vec<FileReport> {
    let mut folders: Vec<String> = FOLDERS.map(str::to_owned).to_vec();
    for entry in fs::read_dir(root.join("logs")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !folders.contains(&name) && files::is_there(&entry.path().join("expected.json")) {
            folders.push(name);
        }
    }
    folders.sort();
    folders.iter().map(|folder| tool(root, folder)).collect()
}

/// The report on a tool's folder below `logs`.
pub fn tool(root: &Path, folder: &str) -> FileReport {
    let file = format!("logs/{folder}/expected.json");
    let path = root.join(&file);
    if !files::is_there(&path) {
        return FileReport::absent(file);
    }
    let expected = files::read(&path).map_err(|error| error.to_string());
    let expected = expected.and_then(|text| {
        // Python writes NaN.
        let plain = text.replace(": NaN", ": \"NaN\"").replace(":NaN", ":\"NaN\"");
        serde_json::from_str::<Value>(&plain).map_err(|error| error.to_string())
    });
    match expected {
        Err(error) => FileReport::unreadable(file, error),
        Ok(expected) => FileReport::checked(file, rows(&root.join("logs").join(folder), &expected)),
    }
}

fn rows(folder: &Path, expected: &Value) -> Vec<Checked> {
    let tool = expected.get("tool").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let (Some(Value::Array(runs)), paired) = (expected.get("runs"), expected.get("paired")) else {
        return vec![Err("field `runs` is missing or no list".to_owned())];
    };
    let Some(paired) = paired.unwrap_or(&Value::Array(Vec::new())).as_array().cloned() else {
        return vec![Err("field `paired` is no list".to_owned())];
    };
    let kind: Kind = match tool.as_str() {
        tool if tool.contains("inspect") => inspect::KIND,
        tool if tool.contains("lighteval") => lighteval::KIND,
        tool if tool.contains("openai") => batch::KIND,
        tool if tool.contains("lm") => lm_eval::KIND,
        tool => return vec![Err(format!("the tool {tool:?} is unknown"))],
    };
    let mut logs = Logs { folder: folder.to_owned(), read: BTreeMap::new() };
    let mut rows = Vec::new();
    for run in runs {
        let Some(run) = run.as_object() else {
            rows.push(Err("a run is no object".to_owned()));
            continue;
        };
        let name = |error: String| format!("{}: {error}", kind.name(run));
        // Every sample is a row, also where the log cannot be read.
        let samples = run.get("samples").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match (kind.paths)(run).and_then(|paths| logs.read(&paths)) {
            Err(error) => rows.extend((0..=samples.len()).map(|_| Err(name(error.clone())))),
            Ok(log) => {
                for sample in samples {
                    let checked = sample.as_object().ok_or("a sample is no object".to_owned());
                    rows.push(checked.and_then(|row| (kind.sample)(run, row, log)).map_err(name));
                }
                rows.push(count(run, samples.len(), log).and_then(|()| (kind.aggregate)(run, log)).map_err(name));
            }
        }
    }
    for pair in &paired {
        let checked = pair.as_object().ok_or("a pair is no object".to_owned());
        rows.push(
            checked
                .and_then(|pair| paired::check(pair, &kind, runs, &mut logs))
                .map_err(|error| format!("pair: {error}")),
        );
    }
    rows
}

/// Fails unless a run has samples, and the log has exactly those.
fn count(run: &Row, samples: usize, log: &Read) -> Checked {
    if samples == 0 || samples != log.samples.len() {
        return Err(format!("samples: the log has {}, golden {samples}", log.samples.len()));
    }
    for field in ["n_samples", "n_sample_records", "n_requests"] {
        if let Some(number) = run.get(field) {
            same(field, &Value::from(log.samples.len()), number)?;
        }
    }
    Ok(())
}

/// The checks of a tool's rows.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Paths of a run's files below the folder, that of the samples first.
    pub paths: fn(&Row) -> Result<Vec<String>, String>,
    pub sample: fn(&Row, &Row, &Read) -> Checked,
    pub aggregate: fn(&Row, &Read) -> Checked,
    /// The number by which pairs are compared, none of a sample that has none.
    pub number: fn(&Row, &LogSample, &Read) -> Option<f64>,
}

impl Kind {
    fn name(&self, run: &Row) -> String {
        (self.paths)(run).ok().and_then(|paths| paths.first().cloned()).unwrap_or_default()
    }
}

/// A log with its samples.
pub struct Read {
    pub folder: PathBuf,
    pub log: Log,
    pub samples: Vec<LogSample>,
}

/// Logs that were read.
pub struct Logs {
    folder: PathBuf,
    read: BTreeMap<Vec<String>, Result<Read, String>>,
}

impl Logs {
    /// The log in files of the folder.
    pub fn read(&mut self, paths: &[String]) -> Result<&Read, String> {
        let folder = self.folder.clone();
        let read = self.read.entry(paths.to_vec()).or_insert_with(|| open(&folder, paths));
        read.as_ref().map_err(Clone::clone)
    }
}

fn open(folder: &Path, paths: &[String]) -> Result<Read, String> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
    let found = find(&paths, &FindOptions::default()).map_err(|error| error.to_string())?;
    let mut logs = found.logs.into_iter();
    let (Some(log), None) = (logs.next(), logs.next()) else { return Err("the files are not one log".to_owned()) };
    let mut samples = Vec::new();
    log.samples(&mut |sample| {
        samples.push(sample);
        Ok(())
    })
    .map_err(|error| error.to_string())?;
    Ok(Read { folder: folder.to_owned(), log, samples })
}

/// Fails unless two values are the same: numbers by their value, lists and objects by all that is in them.
pub fn same(what: &str, computed: &Value, golden: &Value) -> Checked {
    if equal(computed, golden) { Ok(()) } else { Err(format!("{what}: computed {computed}, golden {golden}")) }
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| equal(value, other)))
        }
        (one, other) => one == other,
    }
}

/// A field of a row; null where it is missing.
pub fn field<'r>(row: &'r Row, name: &str) -> &'r Value {
    row.get(name).unwrap_or(&Value::Null)
}

/// A text field.
pub fn text<'r>(row: &'r Row, name: &str) -> Result<&'r str, String> {
    row.get(name).and_then(Value::as_str).ok_or_else(|| format!("field `{name}` is missing or no text"))
}

/// Fails unless the document has the row's fields that name its cluster.
pub fn same_document(row: &Row, sample: &LogSample) -> Checked {
    for name in ["template", "variant"] {
        if let Some(value) = row.get(name).filter(|value| !value.is_null()) {
            same(name, sample.document.get(name).unwrap_or(&Value::Null), value)?;
        }
    }
    Ok(())
}

/// Fails unless the targets are the row's.
pub fn same_target(row: &Row, sample: &LogSample) -> Checked {
    match field(row, "target") {
        Value::Array(_) => same("target", &Value::from(sample.targets.clone()), field(row, "target")),
        Value::Null => Ok(()),
        golden => {
            // Of several the first is shown.
            let golden = golden.as_str().map_or_else(|| golden.to_string(), str::to_owned);
            same("target", &sample.targets.first().cloned().into(), &golden.into())
        }
    }
}

/// Fails unless the answer is the row's; one that is no text is compared as JSON.
pub fn same_answer(answer: Option<&str>, golden: &Value) -> Checked {
    let computed = match (answer, golden) {
        (None, _) => Value::Null,
        (Some(answer), Value::String(_) | Value::Null) => answer.into(),
        // A list of one answer is read as that answer.
        (Some(answer), Value::Array(list)) if matches!(list.as_slice(), [Value::String(_)]) => vec![answer].into(),
        (Some(answer), _) => serde_json::from_str(answer).unwrap_or_else(|_| answer.into()),
    };
    same("answer", &computed, golden)
}

/// Fails unless two numbers agree to twelve digits.
pub fn close(what: &str, computed: f64, golden: &Value) -> Checked {
    let golden = golden.as_f64().ok_or_else(|| format!("field `{what}` is missing or no number"))?;
    if (computed - golden).abs() <= 1e-12 * golden.abs().max(1e-3) {
        return Ok(());
    }
    Err(format!("{what}: computed {computed}, golden {golden}"))
}

/// The mean; none without numbers.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}
