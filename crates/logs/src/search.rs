//! Search of paths, and the files that belong to one log.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::folder::SHOWN;
use super::lm_eval::{ResultsFile, stamp};
use super::log::{FindOptions, Log};
use super::open::NOT_REGULAR;
use super::recognise::{Kind, kind};
use super::{batch, exports, folder, inspect, lighteval, limits, table};
use crate::{LogError, lm_eval};
use earnest_digest::input::is_regular;
use earnest_results::{FilesNotice, LogNotice, Notice, Tool};

/// Files by what they are.
type Files = BTreeMap<Kind, BTreeSet<PathBuf>>;

/// Logs found, and what could not be read.
#[derive(Debug, Default)]
pub struct Found {
    /// Logs in the order of their paths; one for each model and task.
    pub logs: Vec<Log>,
    /// Errors of logs that were left out; empty unless [`FindOptions::keep_going`].
    pub refused: Vec<LogError>,
    /// Notices of files that are no logs or have no samples.
    pub notes: Vec<Notice>,
}

/// Finds the logs in files and folders, folders with all that is in them.
///
/// # Errors
/// Paths that do not exist, files that are named and no log, and the first log that cannot be read; with
/// [`FindOptions::keep_going`] the last are in [`Found::refused`].
pub fn find(paths: &[PathBuf], options: &FindOptions) -> Result<Found, LogError> {
    let mut search = Search {
        options,
        files: Files::new(),
        found: Found::default(),
        named: BTreeSet::new(),
        details: limits::MOST_DETAILS_OF_ALL,
    };
    for path in paths {
        search.add(path)?;
    }
    search.siblings()?;
    search.logs()?;
    let mut found = search.found;
    found.logs.sort_by(|a, b| a.card.files.cmp(&b.card.files));
    found.notes.extend(mixed_versions(&found.logs));
    if found.logs.is_empty() && found.refused.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let mut message = format!("there is no log in {}", names.join(", "));
        for note in &found.notes {
            message.push_str("; ");
            message.push_str(&note.to_string());
        }
        return Err(LogError::setting(message).hint(
            "logs are those of lm-evaluation-harness, Inspect, lighteval and OpenAI's batches, exports of earnest, and tables whose \
             columns are named (the setting `columns`)",
        ));
    }
    Ok(found)
}

/// Notices of tools of which logs are by several versions.
fn mixed_versions(logs: &[Log]) -> Vec<Notice> {
    let mut versions: BTreeMap<Tool, BTreeSet<&str>> = BTreeMap::new();
    for card in logs.iter().map(|log| &log.card) {
        versions.entry(card.tool).or_default().extend(card.tool_version.as_deref());
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    let notice = |(tool, versions): (&Tool, &BTreeSet<&str>)| {
        let versions = versions.iter().map(|version| (*version).to_owned()).collect();
        Notice::from(LogNotice::SeveralVersions { tool: *tool, versions })
    };
    several.map(notice).collect()
}

struct Search<'a> {
    options: &'a FindOptions,
    files: Files,
    found: Found,
    /// Files that were named themselves.
    named: BTreeSet<PathBuf>,
    /// Bytes of details that may still be kept.
    details: usize,
}

impl Search<'_> {
    /// Adds a file, or all files of a folder.
    fn add(&mut self, path: &Path) -> Result<(), LogError> {
        let metadata = std::fs::metadata(path).map_err(|error| LogError::input(path.display(), error))?;
        if metadata.is_dir() {
            let files = folder::files(path)?;
            self.found.notes.extend(files.notes());
            return self.add_folder(files.found);
        }
        if !is_regular(&metadata) {
            return Err(LogError::unread(path, NOT_REGULAR));
        }
        let kind = self.kind(path)?;
        if let Kind::Unread(layout, _) = kind {
            return self.refuse(layout.error(path));
        }
        if kind == Kind::Other || (matches!(kind, Kind::Table(_)) && self.options.columns.is_none()) {
            let error = LogError::unread(path, "it is no log that earnest knows");
            return self.refuse(error.hint(
                "docs/logs.md has the layouts that are read; for a table, name its columns: the \
                 setting `columns = id=...,completion=...,score=...`",
            ));
        }
        self.named.insert(path.to_owned());
        self.insert(kind, path.to_owned());
        Ok(())
    }

    /// Adds the logs among the files of a folder.
    fn add_folder(&mut self, files: Vec<PathBuf>) -> Result<(), LogError> {
        let mut others = Vec::new();
        for path in files {
            match self.kind(&path) {
                Ok(Kind::Unread(layout, _)) => self.refuse(layout.error(&path))?,
                Ok(Kind::Other) => others.push(path),
                Ok(Kind::Table(_)) if self.options.columns.is_none() => others.push(path),
                Ok(kind) => self.insert(kind, path),
                Err(error) => self.refuse(error)?,
            }
        }
        others.sort();
        if !others.is_empty() {
            let first = others.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
            self.found.notes.push(FilesNotice::NoLogs { count: others.len(), first }.into());
        }
        Ok(())
    }

    /// Kind of a file; any flat file is a table where the user names its columns.
    fn kind(&self, path: &Path) -> Result<Kind, LogError> {
        Ok(match kind(path)? {
            Kind::Unread(_, format) if self.options.columns.is_some() => Kind::Table(format),
            kind => kind,
        })
    }

    fn insert(&mut self, kind: Kind, path: PathBuf) {
        self.files.entry(kind).or_default().insert(path);
    }

    fn of(&self, kind: Kind) -> Vec<PathBuf> {
        self.files.get(&kind).map(|files| files.iter().cloned().collect()).unwrap_or_default()
    }

    /// Adds the files that belong to those which were named: the results of samples, the samples of results of which none are named,
    /// the requests of responses.
    fn siblings(&mut self) -> Result<(), LogError> {
        for path in self.named.clone() {
            let is = |kind: Kind| self.files.get(&kind).is_some_and(|files| files.contains(&path));
            let samples = |kind: Kind| self.of(kind).iter().any(|other| stamp(other) == stamp(&path));
            let found = if is(Kind::LmEvalSamples) {
                beside(&path, &|other| stamp(other) == stamp(&path), Kind::LmEvalResults)
            } else if is(Kind::LmEvalResults) && !samples(Kind::LmEvalSamples) {
                beside(&path, &|other| stamp(other) == stamp(&path), Kind::LmEvalSamples)
            } else if is(Kind::LightevalDetails) {
                let results = lighteval::results_of(&path).filter(|results| results.is_file());
                results.map(|results| (Kind::LightevalResults, results)).into_iter().collect()
            } else if is(Kind::LightevalResults) && !samples(Kind::LightevalDetails) {
                let folder = lighteval::details_of(&path).filter(|folder| folder.is_dir());
                folder.map(|folder| beside(&folder.join("x"), &|_| true, Kind::LightevalDetails)).unwrap_or_default()
            } else if is(Kind::BatchResponses) {
                beside(&path, &|other| batch::shared_name(other) == batch::shared_name(&path), Kind::BatchRequests)
            } else if is(Kind::BatchRequests) {
                beside(&path, &|other| batch::shared_name(other) == batch::shared_name(&path), Kind::BatchResponses)
            } else {
                Vec::new()
            };
            for (kind, path) in found {
                self.insert(kind, path);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, error: LogError) -> Result<(), LogError> {
        if self.options.keep_going {
            self.found.refused.push(error);
            return Ok(());
        }
        Err(error)
    }

    fn push(&mut self, log: Result<Log, LogError>) -> Result<(), LogError> {
        let checked = log.and_then(|mut log| limits::check_log(&mut log.card, &mut self.details).map(|()| log));
        match checked {
            Ok(log) => self.found.logs.push(log),
            Err(error) => self.refuse(error)?,
        }
        Ok(())
    }

    fn logs(&mut self) -> Result<(), LogError> {
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
                Ok(logs) => logs.into_iter().try_for_each(|log| self.push(Ok(log)))?,
                Err(error) => self.refuse(error)?,
            }
        }
        Ok(())
    }

    /// Details with the results of the same time and model. One results document is held at a time.
    fn lighteval(&mut self) -> Result<(), LogError> {
        let mut details = self.of(Kind::LightevalDetails);
        for path in self.of(Kind::LightevalResults) {
            let own = take_where(&mut details, |other| lighteval::is_of(&path, other));
            let file = match lighteval::ResultsFile::read(&path, self.options.longest) {
                Ok(file) => file,
                Err(error) => {
                    self.refuse(error)?;
                    // They are read without their results, as where these are missing.
                    details.extend(own);
                    continue;
                }
            };
            if own.is_empty() {
                let error =
                    LogError::unread(&path, "it has no details").hint("lighteval writes them with --save-details");
                self.without_samples(&path, error)?;
            }
            for path in own {
                self.push(lighteval::log(&path, Some(&file), self.options))?;
            }
        }
        details.sort();
        details.into_iter().try_for_each(|path| self.push(lighteval::log(&path, None, self.options)))
    }

    fn batches(&mut self) -> Result<(), LogError> {
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
    fn without_samples(&mut self, path: &Path, error: LogError) -> Result<(), LogError> {
        if self.named.contains(path) {
            return self.refuse(error);
        }
        self.found.notes.push(LogNotice::WithoutSamples { problem: error.to_string() }.into());
        Ok(())
    }

    /// Samples with the results of the same time in their folder. One results document is held at a time.
    fn lm_eval(&mut self) -> Result<(), LogError> {
        let mut samples: BTreeMap<_, Vec<PathBuf>> = BTreeMap::new();
        let key = |path: &Path| (path.parent().map(Path::to_owned), stamp(path));
        for path in self.of(Kind::LmEvalSamples) {
            samples.entry(key(&path)).or_default().push(path);
        }
        for path in self.of(Kind::LmEvalResults) {
            let file = match ResultsFile::read(&path, self.options.longest) {
                Ok(file) => file,
                Err(error) => {
                    self.refuse(error)?;
                    continue;
                }
            };
            let own = samples.remove(&key(&path)).unwrap_or_default();
            if own.is_empty() {
                let error = match file.results.is_before_samples() {
                    true => LogError::unread(
                        &path,
                        "it has results of lm-evaluation-harness 0.3 or earlier, which has no samples; its write-out files are not read",
                    )
                    .hint("evaluate again with lm_eval 0.4.6 or later and --log_samples"),
                    false => LogError::unread(&path, "it has no samples beside it")
                        .hint("lm_eval writes them with --log_samples"),
                };
                self.without_samples(&path, error)?;
            }
            for path in own {
                self.push(lm_eval::log(&path, Some(&file), self.options))?;
            }
        }
        samples.into_values().flatten().try_for_each(|path| self.push(lm_eval::log(&path, None, self.options)))
    }
}

/// Takes the paths for which something is true out of a list.
fn take_where(paths: &mut Vec<PathBuf>, mut is: impl FnMut(&Path) -> bool) -> Vec<PathBuf> {
    paths.extract_if(.., |path| is(path)).collect()
}

/// Files of a kind in the folder of a file, of which the name fits.
fn beside(path: &Path, fits: &dyn Fn(&Path) -> bool, wanted: Kind) -> Vec<(Kind, PathBuf)> {
    let Some(folder) = path.parent() else { return Vec::new() };
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(listed).into_iter().flatten().flatten();
    // As the file itself is written: without a dot in front where it has none.
    let others = entries.map(|entry| folder.join(entry.file_name()));
    let is_file = |other: &Path| std::fs::metadata(other).is_ok_and(|metadata| is_regular(&metadata));
    let fitting = others.filter(|other| fits(other) && is_file(other) && kind(other).is_ok_and(|kind| kind == wanted));
    fitting.map(|other| (wanted, other)).collect()
}
