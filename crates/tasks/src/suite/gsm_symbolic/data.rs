//! Questions of GSM-Symbolic from the user's files.
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{DataFile, Row, Set, base, checked, parse};
use crate::suite::registry::{DATA_VARIABLE, Host, HostError, OptionError};

/// The dataset of the questions.
const DATASET: &str = "apple/GSM-Symbolic";

/// Instructions for getting the questions.
const FETCH: &str = "`earnest data fetch gsm-symbolic` brings them into the Hugging Face cache (CC BY-NC-ND 4.0), where they \
     are found; the setting `data` names another folder or file; `earnest run gsm-mini` needs no download";

/// Location of the questions: `--data`, the commit `--revision` of the cached dataset, [`DATA_VARIABLE`], or the one commit in the cache.
///
/// # Errors
/// If there is nothing, or if the cache has several commits and none is named.
pub(super) fn locate(data: Option<&Path>, revision: Option<&str>, host: &dyn Host) -> Result<Location, OptionError> {
    if let Some(data) = data {
        return Ok(Location::at(data));
    }
    if revision.is_none()
        && let Some(moved) = host.moved()
    {
        return Ok(Location::at(&moved));
    }
    let found = host.cached_dataset(DATASET);
    let Some(revision) = revision else {
        return match found.as_slice() {
            [(commit, folder)] => Ok(Location::commit(commit, folder)),
            [] => Err(OptionError::usage(
                "gsm-symbolic asks Apple's questions (apple/GSM-Symbolic), which cannot be shipped with it",
            )
            .help(FETCH)),
            several => {
                let commits: Vec<&str> = several.iter().map(|(commit, _)| commit.as_str()).collect();
                Err(OptionError::usage(format!("the cache has {} commits of {DATASET}", several.len()))
                    .help(format!("the setting `revision` names one of {}", commits.join(", "))))
            }
        };
    };
    let wanted = host.commit(revision).map_err(|error| {
        OptionError::usage(format!("the setting `revision = {revision}` does not pin the questions: {error}"))
            .help("a commit has 40 hexadecimal digits; the history of the dataset's page shows them")
    })?;
    let fetch = format!("earnest data fetch gsm-symbolic --revision {wanted}");
    match found.iter().find(|(commit, _)| *commit == wanted) {
        Some((commit, folder)) => Ok(Location::commit(commit, folder)),
        None => Err(OptionError::usage(format!("the Hugging Face cache has no commit {wanted} of {DATASET}"))
            .help(format!("`{fetch}` brings it (CC BY-NC-ND 4.0)"))),
    }
}

/// A folder or file with questions.
pub(super) struct Location {
    path: PathBuf,
    /// `apple/GSM-Symbolic@<commit>` for a folder of the cache.
    pinned: Option<String>,
}

impl Location {
    fn at(path: &Path) -> Self {
        Location { path: path.to_owned(), pinned: None }
    }

    fn commit(commit: &str, folder: &Path) -> Self {
        Location { path: folder.to_owned(), pinned: Some(format!("{DATASET}@{commit}")) }
    }

    /// Name of one of its files in a manifest.
    fn place(&self, file: &Path, host: &dyn Host) -> String {
        match (&self.pinned, file.strip_prefix(&self.path)) {
            (Some(pinned), Ok(inside)) => format!("{pinned}/{}", inside.display()),
            _ => host.absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string(),
        }
    }
}

/// The file of a manifest's place, whether it is there or not.
fn file_of(place: &str, host: &dyn Host) -> PathBuf {
    let cached = || {
        let (commit, file) = place.strip_prefix(DATASET)?.strip_prefix('@')?.split_once('/')?;
        let folder = host.cached_dataset(DATASET).into_iter().find(|(known, _)| known == commit)?.1;
        Some(folder.join(file))
    };
    cached().unwrap_or_else(|| PathBuf::from(place))
}

/// Questions that were read, and their files.
pub(super) struct Questions {
    pub files: Vec<DataFile>,
    pub rows: BTreeMap<Set, Vec<Row>>,
}

/// Names of a set's file within a folder: Apple's repository, a snapshot of the dataset, and other usual ones.
fn names(set: Set) -> Vec<String> {
    let word = match set {
        Set::Base => return vec!["GSM_base.jsonl".into(), "gsm_base.jsonl".into(), "base.jsonl".into()],
        Set::Main => "main",
        Set::P1 => "p1",
        Set::P2 => "p2",
    };
    let apple = if set == Set::Main { "symbolic" } else { word };
    let mut names = vec![
        format!("GSM_{apple}.jsonl"),
        format!("generated_data/GSM_{apple}.jsonl"),
        format!("{word}/test.jsonl"),
        format!("{word}/test-00000-of-00001.parquet"),
        format!("GSM_{word}.jsonl"),
        format!("{word}.jsonl"),
    ];
    names.dedup();
    names
}

/// Reads the wanted sets from a folder or from one file.
pub(super) fn read(location: &Location, sets: &[Set], host: &dyn Host) -> Result<Questions, OptionError> {
    let data = location.path.as_path();
    if !host.is_file(data) && !host.is_folder(data) {
        return Err(OptionError::usage(format!("there is no file or folder {}", data.display())).help(FETCH));
    }
    let mut questions = Questions { files: Vec::new(), rows: BTreeMap::new() };
    let variants: Vec<Set> = sets.iter().copied().filter(|&set| set != Set::Base).collect();
    if host.is_file(data) {
        let set = match variants.as_slice() {
            [] => Set::Main,
            [only] => *only,
            [first, second, ..] => {
                let message = format!("{} is one file, but {first} and {second} are two sets", data.display());
                return Err(OptionError::usage(message)
                    .help("give the setting `data` a folder with a file for each, or the setting `sets` one of them"));
            }
        };
        questions.add(set, data, location.place(data, host), host)?;
    } else {
        for &set in &variants {
            let path = find(data, set, host)?;
            questions.add(set, &path, location.place(&path, host), host)?;
        }
        if sets.contains(&Set::Base) && !questions.rows.contains_key(&Set::Main) {
            match find(data, Set::Main, host) {
                Ok(main) => questions.add(Set::Main, &main, location.place(&main, host), host)?,
                Err(missing) => {
                    let base = find(data, Set::Base, host).map_err(|_| missing)?;
                    questions.add(Set::Base, &base, location.place(&base, host), host)?;
                }
            }
        }
    }
    questions.complete(sets, data)?;
    Ok(questions)
}

/// Reads the files of a stored run: where they were, or where [`DATA_VARIABLE`] says they are now. Their content must be the same.
///
/// # Errors
/// If they are not found with that content.
pub(super) fn read_again(
    files: &[DataFile],
    sets: &[Set],
    host: &dyn Host,
) -> Result<BTreeMap<Set, Vec<Row>>, OptionError> {
    let unreadable = |error: OptionError| OptionError::unreadable(error.message);
    let mut questions = Questions { files: Vec::new(), rows: BTreeMap::new() };
    for file in files {
        let moved =
            host.moved().and_then(|now| if host.is_folder(&now) { find(&now, file.set, host).ok() } else { Some(now) });
        let places: Vec<PathBuf> = [Some(file_of(&file.place, host)), moved].into_iter().flatten().collect();
        let is_same = |path: &&PathBuf| host.read(path).is_ok_and(|bytes| sha256(&bytes) == file.sha256);
        let Some(path) = places.iter().find(is_same) else {
            let states: Vec<String> = places
                .iter()
                .map(|path| {
                    format!(
                        "{} {}",
                        path.display(),
                        if host.is_file(path) { "has another content" } else { "is not there" }
                    )
                })
                .collect();
            return Err(OptionError::unreadable(format!(
                "its questions (set {}, SHA-256 {}...) are not found: {}; set {DATA_VARIABLE} to the file or folder that has them now",
                file.set,
                file.sha256.get(..12).unwrap_or(&file.sha256),
                states.join(", "),
            )));
        };
        questions.add(file.set, path, file.place.clone(), host).map_err(unreadable)?;
    }
    questions.complete(sets, Path::new("the stored files")).map_err(unreadable)?;
    Ok(questions.rows)
}

fn find(folder: &Path, set: Set, host: &dyn Host) -> Result<PathBuf, OptionError> {
    let names = names(set);
    names.iter().map(|name| folder.join(name)).find(|path| host.is_file(path)).ok_or_else(|| {
        let message =
            format!("{} has no questions of the set {set}: looked for {}", folder.display(), names.join(", "));
        OptionError::usage(message).help(FETCH)
    })
}

impl Questions {
    fn add(&mut self, set: Set, path: &Path, place: String, host: &dyn Host) -> Result<(), OptionError> {
        let wrong = |reason: &dyn Display| OptionError::usage(format!("cannot use {}: {reason}", path.display()));
        let bytes = host.read(path).map_err(|error| wrong(&error))?;
        let sha256 = sha256(&bytes);
        let rows = if path.extension().is_some_and(|extension| extension == "parquet") {
            checked(parquet_rows(path, host).map_err(|error| wrong(&error))?)
        } else {
            let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8 text"))?;
            parse(&text)
        };
        let rows = rows.map_err(|error| wrong(&error))?;
        // A file of originals alone is GSM-Base, whatever it is called.
        let set = if rows.iter().all(|row| row.instance == -1) { Set::Base } else { set };
        self.files.push(DataFile { set, place, sha256 });
        self.rows.insert(set, rows);
        Ok(())
    }

    /// Makes the originals from the variants that carry them, and drops what is not wanted.
    fn complete(&mut self, sets: &[Set], data: &Path) -> Result<(), OptionError> {
        if !self.rows.contains_key(&Set::Base)
            && let Some(variants) = [Set::Main, Set::P1, Set::P2].iter().find_map(|set| self.rows.get(set))
        {
            match base(variants) {
                Ok(rows) => drop(self.rows.insert(Set::Base, rows)),
                Err(error) if sets.contains(&Set::Base) => {
                    return Err(OptionError::usage(format!("{} has no originals: {error}", data.display())));
                }
                Err(_) => {}
            }
        }
        for &set in sets {
            if !self.rows.contains_key(&set) {
                let message = format!("{} has no questions of the set {set}", data.display());
                return Err(OptionError::usage(message).help(FETCH));
            }
        }
        Ok(())
    }
}

fn parquet_rows(path: &Path, host: &dyn Host) -> Result<Vec<Row>, HostError> {
    let rows = host.parquet_rows(path)?.into_iter().enumerate();
    let row = |(index, fields)| {
        serde_json::from_value(Value::Object(fields))
            .map_err(|error| HostError::failed(format!("row {}: {error}", index + 1)))
    };
    rows.map(row).collect()
}

fn sha256(bytes: &[u8]) -> String {
    earnest_digest::hex(&earnest_digest::sha256(bytes))
}
