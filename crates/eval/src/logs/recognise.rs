//! Recognition of a log's format by its content, and of the files that belong to one log.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::card::Tool;
use super::find::{FindOptions, Found, Log};
use super::lm_eval::{self, ResultsFile, stamp};
use super::parquet::ParquetFile;
use super::scan::Scanner;
use super::zip::Zip;
use super::{batch, exports, inspect, lighteval, table};
use crate::EvalError;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    LmEvalSamples,
    LmEvalResults,
    InspectDocument,
    InspectArchive,
    LightevalDetails,
    LightevalResults,
    BatchRequests,
    BatchResponses,
    Export(Format),
    /// A table, or rows of JSON that nothing else is.
    Table(Format),
    Other,
}

/// Format of a flat file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Format {
    Json,
    Csv,
    Tsv,
    Parquet,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Json => "jsonl",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Parquet => "parquet",
        }
    }
}

/// Files by what they are.
type Files = BTreeMap<Kind, BTreeSet<PathBuf>>;

/// Finds logs; see [`super::find()`].
pub(super) fn find(paths: &[PathBuf], options: &FindOptions) -> Result<Found, EvalError> {
    let mut search = Search { options, files: Files::new(), found: Found::default(), named: BTreeSet::new() };
    for path in paths {
        search.add(path)?;
    }
    search.logs()?;
    let mut found = search.found;
    found.logs.sort_by(|a, b| a.card.files.cmp(&b.card.files));
    found.notes.extend(mixed_versions(&found.logs));
    if found.logs.is_empty() && found.refused.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let mut message = format!("there is no log in {}", names.join(", "));
        for note in &found.notes {
            message.push_str("; ");
            message.push_str(note);
        }
        return Err(EvalError::setting(message).hint(
            "logs are those of lm-evaluation-harness, Inspect, lighteval and OpenAI's batches, exports of earnest, and tables whose \
             columns are named (--columns)",
        ));
    }
    Ok(found)
}

/// Sentences about tools of which logs are by several versions.
fn mixed_versions(logs: &[Log]) -> Vec<String> {
    let mut versions: BTreeMap<Tool, BTreeSet<&str>> = BTreeMap::new();
    for card in logs.iter().map(|log| &log.card) {
        versions.entry(card.tool).or_default().extend(card.tool_version.as_deref());
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    let sentence = |(tool, versions): (&Tool, &BTreeSet<&str>)| {
        let versions: Vec<&str> = versions.iter().copied().collect();
        format!("logs of {} are by several of its versions: {}", tool.name(), versions.join(", "))
    };
    several.map(sentence).collect()
}

struct Search<'a> {
    options: &'a FindOptions,
    files: Files,
    found: Found,
    /// Files that were named themselves.
    named: BTreeSet<PathBuf>,
}

impl Search<'_> {
    /// Adds a file, or all files of a folder.
    fn add(&mut self, path: &Path) -> Result<(), EvalError> {
        let metadata = std::fs::metadata(path).map_err(|error| EvalError::input(path.display(), error))?;
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(EvalError::log(path, "it is neither a file nor a folder"));
        }
        if metadata.is_file() {
            let kind = kind(path)?;
            if kind == Kind::Other || (matches!(kind, Kind::Table(_)) && self.options.columns.is_none()) {
                let error = EvalError::log(path, "it is no log that earnest knows");
                return self
                    .refuse(error.hint("for a table, name its columns: --columns id=...,completion=...,score=..."));
            }
            self.named.insert(path.to_owned());
            self.insert(kind, path.to_owned());
            return self.siblings(kind, path);
        }
        let mut others = Vec::new();
        let mut folders = vec![path.to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            let failed = |error| EvalError::input(folder.display(), error);
            // A link to a folder above would never end.
            if !seen.insert(std::fs::canonicalize(&folder).map_err(failed)?) {
                continue;
            }
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                if path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with('.')) {
                    continue;
                }
                let Ok(metadata) = std::fs::metadata(&path) else { continue };
                if metadata.is_dir() {
                    folders.push(path);
                } else if metadata.is_file() {
                    match kind(&path) {
                        Ok(Kind::Other) => others.push(path),
                        Ok(Kind::Table(_)) if self.options.columns.is_none() => others.push(path),
                        Ok(kind) => self.insert(kind, path),
                        Err(error) => self.refuse(error)?,
                    }
                }
            }
        }
        others.sort();
        let shown: Vec<String> = others.iter().take(3).map(|path| path.display().to_string()).collect();
        match others.len() {
            0 => {}
            1 => self.found.notes.push(format!("{} is no log", shown[0])),
            count @ 2..=3 => self.found.notes.push(format!("{count} files are no logs: {}", shown.join(", "))),
            count => self.found.notes.push(format!("{count} files are no logs: {} and others", shown.join(", "))),
        }
        Ok(())
    }

    fn insert(&mut self, kind: Kind, path: PathBuf) {
        self.files.entry(kind).or_default().insert(path);
    }

    fn of(&self, kind: Kind) -> Vec<PathBuf> {
        self.files.get(&kind).map(|files| files.iter().cloned().collect()).unwrap_or_default()
    }

    /// Adds the files beside one that was named which belong to it.
    fn siblings(&mut self, kind: Kind, path: &Path) -> Result<(), EvalError> {
        let wanted = match kind {
            Kind::LmEvalSamples => Kind::LmEvalResults,
            Kind::LmEvalResults => Kind::LmEvalSamples,
            Kind::LightevalDetails => {
                if let Some(results) = lighteval::results_of(path).filter(|results| results.is_file()) {
                    self.insert(Kind::LightevalResults, results);
                }
                return Ok(());
            }
            Kind::LightevalResults => {
                let Some(folder) = lighteval::details_of(path).filter(|folder| folder.is_dir()) else { return Ok(()) };
                let entries = std::fs::read_dir(&folder).map_err(|error| EvalError::input(folder.display(), error))?;
                for other in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
                    if self::kind(&other)? == Kind::LightevalDetails {
                        self.insert(Kind::LightevalDetails, other);
                    }
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some(folder) = path.parent() else { return Ok(()) };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        for other in entries.flatten().map(|entry| entry.path()) {
            let json = other.extension().is_some_and(|end| end == "json" || end == "jsonl");
            if json && other.is_file() && stamp(&other) == stamp(path) && self::kind(&other)? == wanted {
                self.insert(wanted, other);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, error: EvalError) -> Result<(), EvalError> {
        if self.options.keep_going {
            self.found.refused.push(error);
            return Ok(());
        }
        Err(error)
    }

    fn push(&mut self, log: Result<Log, EvalError>) -> Result<(), EvalError> {
        match log {
            Ok(log) => self.found.logs.push(log),
            Err(error) => self.refuse(error)?,
        }
        Ok(())
    }

    fn logs(&mut self) -> Result<(), EvalError> {
        self.lm_eval()?;
        for path in self.of(Kind::InspectDocument) {
            self.push(inspect::document(&path, self.options))?;
        }
        for path in self.of(Kind::InspectArchive) {
            self.push(inspect::archive(&path, self.options))?;
        }
        self.lighteval()?;
        self.batches()?;
        let files: Vec<(Kind, PathBuf)> =
            self.files.iter().flat_map(|(kind, paths)| paths.iter().map(|path| (*kind, path.clone()))).collect();
        for (kind, path) in files {
            let logs = match kind {
                Kind::Export(format) => exports::logs(&path, format.name(), self.options),
                Kind::Table(format) => table::logs(&path, format.name(), self.options),
                _ => continue,
            };
            match logs {
                Ok(logs) => self.found.logs.extend(logs),
                Err(error) => self.refuse(error)?,
            }
        }
        Ok(())
    }

    /// Details with the results of the same time and model.
    fn lighteval(&mut self) -> Result<(), EvalError> {
        let mut results = Vec::new();
        for path in self.of(Kind::LightevalResults) {
            match lighteval::ResultsFile::read(&path) {
                Ok(file) => results.push((file, false)),
                Err(error) => self.refuse(error)?,
            }
        }
        for path in self.of(Kind::LightevalDetails) {
            let own = results.iter().position(|(file, _)| file.is_of(&path));
            let log = lighteval::log(&path, own.map(|at| &results[at].0), self.options);
            if let Some(at) = own {
                results[at].1 = true;
            }
            self.push(log)?;
        }
        for (file, _) in results.into_iter().filter(|(_, used)| !used) {
            let error =
                EvalError::log(&file.path, "it has no details").hint("lighteval writes them with --save-details");
            self.without_samples(&file.path, error)?;
        }
        Ok(())
    }

    fn batches(&mut self) -> Result<(), EvalError> {
        let (requests, responses) = (self.of(Kind::BatchRequests), self.of(Kind::BatchResponses));
        let batches = match batch::batches(&requests, &responses, self.options) {
            Ok(batches) => batches,
            Err(error) => return self.refuse(error),
        };
        for batch in batches {
            match (batch::log(&batch, self.options), &batch.requests) {
                (Err(error), Some(path)) if batch.responses.is_empty() => self.without_samples(path, error)?,
                (log, _) => self.push(log)?,
            }
        }
        Ok(())
    }

    /// A file of a log whose samples are missing: an error if it was named, else a note.
    fn without_samples(&mut self, path: &Path, error: EvalError) -> Result<(), EvalError> {
        if self.named.contains(path) {
            return self.refuse(error);
        }
        self.found.notes.push(error.to_string());
        Ok(())
    }

    /// Samples with the results of the same time in their folder.
    fn lm_eval(&mut self) -> Result<(), EvalError> {
        let mut results = Vec::new();
        for path in self.of(Kind::LmEvalResults) {
            match ResultsFile::read(&path, self.options.longest) {
                Ok(file) => results.push((file, false)),
                Err(error) => self.refuse(error)?,
            }
        }
        for path in self.of(Kind::LmEvalSamples) {
            let beside = |file: &ResultsFile| file.path.parent() == path.parent();
            let same_time = results.iter().position(|(file, _)| beside(file) && stamp(&file.path) == stamp(&path));
            let log = lm_eval::log(&path, same_time.map(|at| &results[at].0), self.options);
            if let Some(at) = same_time {
                results[at].1 = true;
            }
            self.push(log)?;
        }
        for (file, _) in results.into_iter().filter(|(_, used)| !used) {
            let error = EvalError::log(&file.path, "it has no samples beside it");
            self.without_samples(&file.path, error.hint("lm_eval writes them with --log_samples"))?;
        }
        Ok(())
    }
}

/// What a file is, by its content.
fn kind(path: &Path) -> Result<Kind, EvalError> {
    let head = Scanner::head(path, 4)?;
    if head.starts_with(b"PK\x03\x04") {
        let is_log = match Zip::open(path) {
            Ok(zip) => inspect::is_log(&zip),
            // Its directory is missing; the name must do.
            Err(_) => path.extension().is_some_and(|end| end == "eval"),
        };
        return Ok(if is_log { Kind::InspectArchive } else { Kind::Other });
    }
    if head.is_empty() && path.extension().is_some_and(|end| end == "eval") {
        return Ok(Kind::InspectArchive);
    }
    if head == b"PAR1" {
        return Ok(match ParquetFile::open(path) {
            Ok(file) if lighteval::are_details(&file.columns()) => Kind::LightevalDetails,
            Ok(file) if exports::are_columns(&file.columns()) => Kind::Export(Format::Parquet),
            Ok(_) => Kind::Table(Format::Parquet),
            // It was cut off; its name must do.
            Err(_) if name_of(path).starts_with("details_") => Kind::LightevalDetails,
            Err(_) => Kind::Table(Format::Parquet),
        });
    }
    let mut scanner = Scanner::open(path)?;
    if scanner.peek()? == Some(b'[') {
        scanner.step(b'[')?;
    }
    if scanner.peek()? != Some(b'{') {
        return table_kind(path);
    }
    scanner.step(b'{')?;
    let mut keys = BTreeSet::new();
    let mut whole = true;
    // A file that was cut off is known by the members that it has.
    while let Ok(Some(key)) = scanner.key() {
        keys.insert(key);
        if let Some(kind) = kind_of(&keys) {
            return Ok(kind);
        }
        if scanner.skip().is_err() || keys.len() > 1000 {
            whole = false;
            break;
        }
    }
    let only = |key: &str| keys.iter().eq([key]);
    Ok(if only("results") && name_of(path).starts_with("results") {
        // The first member that the harness writes.
        Kind::LmEvalResults
    } else if only("config_general") {
        Kind::LightevalResults
    } else if whole && path.extension().is_some_and(|end| end == "jsonl" || end == "ndjson" || end == "json") {
        Kind::Table(Format::Json)
    } else {
        Kind::Other
    })
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// A table of text, by the names of its columns.
fn table_kind(path: &Path) -> Result<Kind, EvalError> {
    let format = match path.extension().and_then(OsStr::to_str) {
        Some("csv") => Format::Csv,
        Some("tsv") => Format::Tsv,
        _ => return Ok(Kind::Other),
    };
    let mut line = Vec::new();
    Scanner::open(path)?.line(&mut line, 1 << 20)?;
    let line = String::from_utf8_lossy(&line);
    let columns: Vec<&str> = line.split([',', '\t']).map(|name| name.trim().trim_matches('"')).collect();
    Ok(if exports::are_columns(&columns) { Kind::Export(format) } else { Kind::Table(format) })
}

/// What an object with these members is of.
fn kind_of(keys: &BTreeSet<String>) -> Option<Kind> {
    let has = |key: &str| keys.contains(key);
    let any = |names: &[&str]| names.iter().any(|name| keys.contains(*name));
    if has("doc_id") && any(&["doc", "arguments", "resps", "filtered_resps"]) {
        return Some(Kind::LmEvalSamples);
    }
    if has("eval") && any(&["status", "plan", "samples"]) {
        return Some(Kind::InspectDocument);
    }
    if has("custom_id") && any(&["response", "error"]) {
        return Some(Kind::BatchResponses);
    }
    if has("custom_id") && any(&["body", "url"]) {
        return Some(Kind::BatchRequests);
    }
    if exports::COLUMNS.iter().all(|column| has(column)) {
        return Some(Kind::Export(Format::Json));
    }
    if has("results") && has("config_general") {
        return Some(Kind::LightevalResults);
    }
    if has("results") && any(&["configs", "versions", "config", "n-shot", "lm_eval_version"]) {
        return Some(Kind::LmEvalResults);
    }
    None
}
