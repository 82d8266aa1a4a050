//! Files of a task: the task file, its questions, and the same questions again for a stored run.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::definition::{Definition, Questions};
use super::keys;
use super::registration::folder_of;
use crate::suite::registry::{DATA_VARIABLE, Host, OptionError, RowSource, Rows, find};

/// A task file and its questions.
pub(super) struct Opened {
    pub definition: Definition,
    pub rows: Arc<dyn Rows>,
    /// Folder to which paths are relative.
    pub folder: PathBuf,
    /// Text and path of the task file; none for questions alone.
    pub file: Option<(String, PathBuf)>,
}

/// Opens a task file (`.toml`) or a file of questions.
///
/// # Errors
/// If it is not there, cannot be read, or has other data than the task file says.
pub(super) fn open(path: &Path, skip_bad_rows: bool, host: &dyn Host) -> Result<Opened, OptionError> {
    let folder = folder_of(path);
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("toml")) {
        let source = RowSource { paths: vec![path.to_owned()], skip_bad_rows, ..RowSource::default() };
        return Ok(Opened { definition: Definition::default(), rows: host.rows(&source)?, folder, file: None });
    }
    let failed =
        |reason: &dyn std::fmt::Display| OptionError::usage(format!("cannot read {}: {reason}", path.display()));
    let bytes = host.read(path).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        failed(&format!("it is not UTF-8 text{}", keys::place(&before, valid)))
    })?;
    let definition = Definition::parse(&text, path)?;
    let wrong = |value: &str, reason: String| {
        OptionError::usage(format!("{}{}: {reason}", path.display(), keys::place_of(&text, value)))
    };
    if let Some(name) = &definition.name {
        if !super::is_name(name) {
            return Err(wrong(name, format!("the name {name:?} is not made of letters, digits, -, _ and .")));
        }
        if find(name).is_some() {
            return Err(
                wrong(name, format!("{name} is the name of a suite of this program")).help("choose another name")
            );
        }
    }
    if let Some((value, reason)) = impossible(&definition) {
        return Err(wrong(&value, reason));
    }
    if definition.questions.path.is_empty() {
        return Err(OptionError::usage(format!("{}: there is no path under [questions]", path.display()))
            .help("path = \"questions.jsonl\" names the file, relative to the task file"));
    }
    let paths = definition.questions.path.all().iter().map(|path| folder.join(path)).collect();
    let rows = host.rows(&definition.questions.rows(paths, skip_bad_rows))?;
    check_digests(definition.questions.sha256.all(), rows.as_ref(), path, "[questions]")?;
    Ok(Opened { definition, rows, folder, file: Some((text, path.to_owned())) })
}

/// A value that no run could use, and the reason.
fn impossible(definition: &Definition) -> Option<(String, String)> {
    let refused = |value: &str, reason: &str| Some((value.to_owned(), reason.to_owned()));
    if definition.name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
        return refused("name", &format!("the name has more than {LONGEST_NAME} characters"));
    }
    if definition.version.as_deref().is_some_and(|version| version.trim().is_empty()) {
        return refused("version", "the version is empty; the first one may be \"1\"");
    }
    let generation = &definition.generation;
    for (name, tokens) in [("max_tokens", generation.max_tokens), ("thinking_tokens", generation.thinking_tokens)] {
        if tokens.is_some_and(|tokens| !(1..=MOST_TOKENS).contains(&tokens)) {
            return refused(name, &format!("{name} is a number of tokens from 1 to {MOST_TOKENS}"));
        }
    }
    if generation.stop.iter().flatten().any(String::is_empty) {
        return refused("stop", "a stop string is empty, and every completion would end before its first token");
    }
    let taken = |name: &str| name.trim().is_empty() || name.contains(',') || RESERVED.contains(&name);
    let prompt = definition.prompts.keys().find(|name| taken(name))?;
    refused(
        prompt,
        &format!(
            "a prompt cannot have the name {prompt:?}: the setting `prompt` takes names separated by commas, and {}",
            RESERVED.join(", ")
        ),
    )
}

/// Names that `--prompt` has already.
const RESERVED: [&str; 4] = ["auto", "chat", "raw", "all"];
/// Longest name of a task: it is part of the names of files.
const LONGEST_NAME: usize = 100;
/// Largest budget of a completion.
const MOST_TOKENS: usize = 1_000_000;

/// Refuses files whose SHA-256 is not the one that the task file gives in this section.
pub(super) fn check_digests(wanted: &[String], rows: &dyn Rows, path: &Path, section: &str) -> Result<(), OptionError> {
    if wanted.is_empty() {
        return Ok(());
    }
    if wanted.len() != rows.files().len() {
        let message = format!(
            "{} has {} digests under sha256 in {section}, and there are {} files",
            path.display(),
            wanted.len(),
            rows.files().len()
        );
        return Err(
            OptionError::usage(message).help("give one digest a file, in the order of path, or leave sha256 out")
        );
    }
    let changed = rows.files().iter().zip(wanted).find(|(file, wanted)| !file.sha256.eq_ignore_ascii_case(wanted));
    match changed {
        None => Ok(()),
        Some((file, wanted)) => Err(OptionError::usage(format!(
            "{} is not the file that {} describes: its SHA-256 is {}, not {wanted}",
            file.path.display(),
            path.display(),
            file.sha256
        ))
        .help(format!("get the right version of the data, or change sha256 under {section}"))),
    }
}

/// Name of a task whose file has none: that of the file, in letters that a run's name may have.
pub(super) fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let stem: String = stem.chars().map(plain).take(60).collect();
    let stem = stem.trim_matches('-');
    match stem {
        "" => "questions".to_owned(),
        taken if find(taken).is_some() => format!("{taken}-questions"),
        free => free.to_owned(),
    }
}

/// A file of a stored run.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct StoredFile {
    place: PathBuf,
    sha256: String,
}

/// The questions of a stored run: where they were, or by their names where [`DATA_VARIABLE`] says they are now.
///
/// # Errors
/// If a file is not there or has another content.
pub(super) fn again(
    files: &[StoredFile],
    questions: &Questions,
    skip_bad_rows: bool,
    host: &dyn Host,
) -> Result<Arc<dyn Rows>, OptionError> {
    let mut paths = Vec::new();
    for file in files {
        let moved = host.moved().map(|now| match (host.is_folder(&now), file.place.file_name()) {
            (true, Some(name)) => now.join(name),
            _ => now,
        });
        let found = [moved, Some(file.place.clone())].into_iter().flatten().find(|path| host.is_file(path));
        paths.push(found.ok_or_else(|| {
            OptionError::data(format!("the questions {} are not there any more", file.place.display()))
                .help(format!("set {DATA_VARIABLE} to the file or folder that has them now"))
        })?);
    }
    let rows = host.rows(&questions.rows(paths, skip_bad_rows)).map_err(|error| OptionError::data(error.message))?;
    match rows.files().iter().zip(files).find(|(now, then)| now.sha256 != then.sha256) {
        None => Ok(rows),
        Some((now, then)) => Err(OptionError::data(format!(
            "the questions {} were changed after the run: their SHA-256 was {}... and is {}...",
            now.path.display(),
            then.sha256.get(..12).unwrap_or(&then.sha256),
            now.sha256.get(..12).unwrap_or(&now.sha256),
        ))
        .help(format!("restore the file, or set {DATA_VARIABLE} to the folder that has the former one"))),
    }
}
