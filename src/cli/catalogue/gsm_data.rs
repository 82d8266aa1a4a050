//! The questions of GSM-Symbolic from where the user has them.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::data::{MOVED, moved};
use crate::cli::error::CliError;
use crate::hub::{Cache, Commit, Environment, RepoId};
use crate::suite::gsm_symbolic::{DataFile, Row, Set, base, checked, parse};

/// The dataset of the questions.
const DATASET: &str = "apple/GSM-Symbolic";

/// How to get the questions.
pub const FETCH: &str = "`hf download apple/GSM-Symbolic --repo-type dataset` brings them into the Hugging Face cache (CC BY-NC-ND 4.0), where they \
     are found; --data names another folder or file; `earnest run gsm-mini` needs no download";

/// Where the questions are: what `--data` names, the commit `--revision` of the cached dataset, what [`MOVED`] names, or the
/// one commit that the cache has.
///
/// # Errors
/// If there is nothing, or if the cache has several commits and none is named.
pub fn locate(data: Option<&Path>, revision: Option<&str>) -> Result<Location, CliError> {
    if let Some(data) = data {
        return Ok(Location::at(data));
    }
    if revision.is_none()
        && let Some(moved) = moved()
    {
        return Ok(Location::at(&moved));
    }
    let found = snapshots();
    let Some(revision) = revision else {
        return match found.as_slice() {
            [(commit, folder)] => Ok(Location::commit(commit, folder)),
            [] => {
                Err(CliError::usage("gsm-symbolic asks Apple's questions, which cannot be shipped with it").help(FETCH))
            }
            several => {
                let commits: Vec<&str> = several.iter().map(|(commit, _)| commit.as_str()).collect();
                Err(CliError::usage(format!("the cache has {} commits of {DATASET}", several.len()))
                    .help(format!("--revision names one of {}", commits.join(", "))))
            }
        };
    };
    let wanted = Commit::parse(revision).map_err(|why| {
        CliError::usage(format!("--revision {revision} does not pin the questions: {why}"))
            .help("a commit has 40 hexadecimal digits; the history of the dataset's page shows them")
    })?;
    let fetch = format!("hf download {DATASET} --repo-type dataset --revision {wanted}");
    match found.iter().find(|(commit, _)| *commit == wanted) {
        Some((commit, folder)) => Ok(Location::commit(commit, folder)),
        None => Err(CliError::usage(format!("the Hugging Face cache has no commit {wanted} of {DATASET}"))
            .help(format!("`{fetch}` brings it (CC BY-NC-ND 4.0)"))),
    }
}

/// The cached commits of the dataset.
fn snapshots() -> Vec<(Commit, PathBuf)> {
    let cache = Cache::of(&Environment::read(true));
    match (cache, RepoId::parse(DATASET)) {
        (Ok(cache), Ok(repo)) => cache.dataset_snapshots(&repo),
        _ => Vec::new(),
    }
}

/// A folder or file with questions.
pub struct Location {
    path: PathBuf,
    /// `apple/GSM-Symbolic@<commit>` for a folder of the cache.
    pinned: Option<String>,
}

impl Location {
    fn at(path: &Path) -> Self {
        Location { path: path.to_owned(), pinned: None }
    }

    fn commit(commit: &Commit, folder: &Path) -> Self {
        Location { path: folder.to_owned(), pinned: Some(format!("{DATASET}@{commit}")) }
    }

    /// What a manifest calls a file of it.
    fn place(&self, file: &Path) -> String {
        match (&self.pinned, file.strip_prefix(&self.path)) {
            (Some(pinned), Ok(inside)) => format!("{pinned}/{}", inside.display()),
            _ => file.canonicalize().unwrap_or_else(|_| file.to_owned()).display().to_string(),
        }
    }
}

/// The file of a manifest's place, whether it is there or not.
fn file_of(place: &str) -> PathBuf {
    let cached = || {
        let (commit, file) = place.strip_prefix(DATASET)?.strip_prefix('@')?.split_once('/')?;
        let folder = snapshots().into_iter().find(|(known, _)| known.as_str() == commit)?.1;
        Some(folder.join(file))
    };
    cached().unwrap_or_else(|| PathBuf::from(place))
}

/// What was read.
pub struct Questions {
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
pub fn read(location: &Location, sets: &[Set]) -> Result<Questions, CliError> {
    let data = location.path.as_path();
    if !data.exists() {
        return Err(CliError::usage(format!("there is no file or folder {}", data.display())).help(FETCH));
    }
    let mut questions = Questions { files: Vec::new(), rows: BTreeMap::new() };
    let variants: Vec<Set> = sets.iter().copied().filter(|&set| set != Set::Base).collect();
    if data.is_file() {
        let set = match variants.as_slice() {
            [] => Set::Main,
            [only] => *only,
            [first, second, ..] => {
                let message = format!("{} is one file, but {first} and {second} are two sets", data.display());
                return Err(
                    CliError::usage(message).help("give --data a folder with a file for each, or --sets one of them")
                );
            }
        };
        questions.add(set, data, location.place(data))?;
    } else {
        for &set in &variants {
            let path = find(data, set)?;
            questions.add(set, &path, location.place(&path))?;
        }
        if sets.contains(&Set::Base) && !questions.rows.contains_key(&Set::Main) {
            match find(data, Set::Main) {
                Ok(main) => questions.add(Set::Main, &main, location.place(&main))?,
                Err(missing) => {
                    let base = find(data, Set::Base).map_err(|_| missing)?;
                    questions.add(Set::Base, &base, location.place(&base))?;
                }
            }
        }
    }
    questions.complete(sets, data)?;
    Ok(questions)
}

/// Reads the files of a stored run: where they were, or where [`MOVED`] says they are now. Their content must be the same.
pub fn read_again(files: &[DataFile], sets: &[Set]) -> Result<BTreeMap<Set, Vec<Row>>, String> {
    let mut questions = Questions { files: Vec::new(), rows: BTreeMap::new() };
    for file in files {
        let moved = moved().and_then(|now| if now.is_dir() { find(&now, file.set).ok() } else { Some(now) });
        let places: Vec<PathBuf> = [Some(file_of(&file.place)), moved].into_iter().flatten().collect();
        let is_same =
            |path: &&PathBuf| crate::digest::sha256_file(path, |_| ()).is_ok_and(|sha256| sha256 == file.sha256);
        let Some(path) = places.iter().find(is_same) else {
            let states: Vec<String> = places
                .iter()
                .map(|path| {
                    format!(
                        "{} {}",
                        path.display(),
                        if path.is_file() { "has another content" } else { "is not there" }
                    )
                })
                .collect();
            return Err(format!(
                "its questions (set {}, SHA-256 {}...) are not found: {}; set {MOVED} to the file or folder that has them now",
                file.set,
                file.sha256.get(..12).unwrap_or(&file.sha256),
                states.join(", "),
            ));
        };
        questions.add(file.set, path, file.place.clone()).map_err(|error| error.message)?;
    }
    questions.complete(sets, Path::new("the stored files")).map_err(|error| error.message)?;
    Ok(questions.rows)
}

fn find(folder: &Path, set: Set) -> Result<PathBuf, CliError> {
    let names = names(set);
    names.iter().map(|name| folder.join(name)).find(|path| path.is_file()).ok_or_else(|| {
        let message =
            format!("{} has no questions of the set {set}: looked for {}", folder.display(), names.join(", "));
        CliError::usage(message).help(FETCH)
    })
}

impl Questions {
    fn add(&mut self, set: Set, path: &Path, place: String) -> Result<(), CliError> {
        let wrong = |reason: String| CliError::usage(format!("cannot use {}: {reason}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let sha256 = crate::digest::hex(&crate::digest::sha256(&bytes));
        let rows = if path.extension().is_some_and(|extension| extension == "parquet") {
            checked(parquet_rows(path).map_err(wrong)?)
        } else {
            let text = String::from_utf8(bytes).map_err(|_| wrong("it is no UTF-8 text".to_owned()))?;
            parse(&text)
        };
        let rows = rows.map_err(|error| wrong(error.to_string()))?;
        // A file of originals alone is GSM-Base, whatever it is called.
        let set = if rows.iter().all(|row| row.instance == -1) { Set::Base } else { set };
        self.files.push(DataFile { set, place, sha256 });
        self.rows.insert(set, rows);
        Ok(())
    }

    /// Makes the originals from the variants that carry them, and drops what is not wanted.
    fn complete(&mut self, sets: &[Set], data: &Path) -> Result<(), CliError> {
        if !self.rows.contains_key(&Set::Base)
            && let Some(variants) = [Set::Main, Set::P1, Set::P2].iter().find_map(|set| self.rows.get(set))
        {
            match base(variants) {
                Ok(rows) => drop(self.rows.insert(Set::Base, rows)),
                Err(error) if sets.contains(&Set::Base) => {
                    return Err(CliError::usage(format!("{} has no originals: {error}", data.display())));
                }
                Err(_) => {}
            }
        }
        for &set in sets {
            if !self.rows.contains_key(&set) {
                let message = format!("{} has no questions of the set {set}", data.display());
                return Err(CliError::usage(message).help(FETCH));
            }
        }
        Ok(())
    }
}

/// The rows of a Parquet file with the columns of Apple's files.
fn parquet_rows(path: &Path) -> Result<Vec<Row>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    let rows = reader.get_row_iter(None).map_err(|error| error.to_string())?;
    rows.enumerate()
        .map(|(place, row)| {
            let row = row.map_err(|error| error.to_string())?;
            let fields: serde_json::Map<String, serde_json::Value> =
                row.into_columns().into_iter().filter_map(|(name, field)| Some((name, json(field)?))).collect();
            serde_json::from_value(fields.into()).map_err(|error| format!("row {}: {error}", place + 1))
        })
        .collect()
}

/// The fields that rows have; others are left out.
fn json(field: Field) -> Option<serde_json::Value> {
    Some(match field {
        Field::Str(text) => text.into(),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) => value.into(),
        Field::Long(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value.into(),
        _ => return None,
    })
}
