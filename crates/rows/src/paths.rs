//! Files that paths and patterns name.
use std::path::{Path, PathBuf};

use earnest_tasks::suite::registry::OptionError;

/// Files in the order of the paths, those of a pattern sorted by name. A pattern has `*` or `?` in its last part.
pub(super) fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, OptionError> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut known: Vec<PathBuf> = Vec::new();
    for path in paths {
        for file in one(path)? {
            let absolute = std::fs::canonicalize(&file)
                .map_err(|error| OptionError::usage(format!("{}: {error}", file.display())))?;
            if known.contains(&absolute) {
                let message = format!("{} is named twice", file.display());
                return Err(OptionError::usage(message).help("name each file of questions once"));
            }
            known.push(absolute);
            files.push(file);
        }
    }
    match files.is_empty() {
        true => Err(OptionError::usage("no file of questions is named")),
        false => Ok(files),
    }
}

fn one(path: &Path) -> Result<Vec<PathBuf>, OptionError> {
    let shown = path.display();
    if path.is_dir() {
        let ending = entries(path).iter().find_map(|(name, _)| {
            let (_, ending) = name.split_once('.').filter(|(stem, _)| !stem.is_empty())?;
            super::Format::of(name).map(|_| ending.to_owned())
        });
        let pattern = path.join(format!("*.{}", ending.as_deref().unwrap_or("jsonl")));
        let message = format!("{shown} is a folder, not a file of questions");
        return Err(OptionError::usage(message).help(format!("name its files, e.g. '{}'", pattern.display())));
    }
    if path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_pattern = |text: &str| text.contains(['*', '?']);
    if folder.is_some_and(|folder| is_pattern(&folder.to_string_lossy()) && !folder.exists()) {
        let message = format!("{shown} has * or ? in the name of a folder");
        return Err(OptionError::usage(message).help("patterns are for names of files; name several paths instead"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let found = entries(folder.unwrap_or(Path::new(".")));
    if is_pattern(&name) {
        let matching = found.iter().filter(|(entry, is_file)| *is_file && matches(&name, entry));
        // A name keeps the form in which its folder was given.
        let files: Vec<PathBuf> = matching
            .map(|(entry, _)| folder.map_or_else(|| PathBuf::from(entry), |folder| folder.join(entry)))
            .collect();
        if files.is_empty() {
            let message = format!("no file matches {shown}");
            return Err(OptionError::usage(message).help(there(folder, &found)));
        }
        return Ok(files);
    }
    let error = OptionError::usage(format!("there is no file {shown}"));
    Err(match near_file(path) {
        Some(near) => error.help(format!("did you mean {}?", near.display())),
        None => error.help(there(folder, &found)),
    })
}

/// True for a name of a file of questions or a task file.
fn is_of_questions(name: &str) -> bool {
    super::Format::of(name).is_some() || name.ends_with(".toml")
}

/// Names in a folder that are not hidden, sorted, and true for those that are no folders.
fn entries(folder: &Path) -> Vec<(String, bool)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<(String, bool)> = entries
        .filter_map(Result::ok)
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), !entry.path().is_dir()))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// Returns the file of questions, or the task file, that a word without a folder or an ending names here or in the folder `tasks`.
pub fn file_named(word: &str) -> Option<PathBuf> {
    if word.is_empty() || word.contains(['/', std::path::MAIN_SEPARATOR]) {
        return None;
    }
    let named = |folder: &str| {
        let found = entries(Path::new(folder));
        let mut files = found.into_iter().filter(|(entry, is_file)| *is_file && is_of_questions(entry));
        files.find(|(entry, _)| entry.strip_prefix(word).is_some_and(|rest| rest.starts_with('.')))
    };
    let here = named(".").map(|(entry, _)| PathBuf::from(entry));
    here.or_else(|| named(TASKS).map(|(entry, _)| Path::new(TASKS).join(entry)))
}

/// Folder in which task files usually are.
const TASKS: &str = "tasks";

/// Returns the file of questions whose name is most like that of a file that is not there, or has only an ending more.
pub fn near_file(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let found = entries(folder.unwrap_or(Path::new(".")));
    let begins = |entry: &str| entry.strip_prefix(&name).is_some_and(|rest| rest.starts_with('.'));
    let whole = || {
        let mut files = found.iter().filter(|(entry, is_file)| *is_file && is_of_questions(entry) && begins(entry));
        files.next().map(|(entry, _)| entry.as_str())
    };
    let near = nearest(&name, &found).or_else(whole)?;
    Some(folder.map_or_else(|| PathBuf::from(near), |folder| folder.join(near)))
}

fn nearest<'a>(name: &str, found: &'a [(String, bool)]) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let files = found.iter().filter(|(name, is_file)| *is_file && is_of_questions(name));
    let (away, near) = files.map(|(entry, _)| (strsim::levenshtein(&wanted, &entry.to_lowercase()), entry)).min()?;
    (away <= 1 + wanted.chars().count() / 5).then_some(near)
}

fn there(folder: Option<&Path>, found: &[(String, bool)]) -> String {
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return format!("there is no folder {}", folder.display());
    }
    let shown = if folder == Path::new(".") { "this folder".to_owned() } else { folder.display().to_string() };
    let files = found.iter().filter(|(name, is_file)| *is_file && is_of_questions(name));
    let files: Vec<&str> = files.map(|(name, _)| name.as_str()).collect();
    match files.as_slice() {
        [] => format!("{shown} has no file of questions (JSONL, CSV, Parquet, a task file)"),
        names @ ([_] | [_, _] | [_, _, _] | [_, _, _, _] | [_, _, _, _, _]) => {
            format!("{shown} has {}", names.join(", "))
        }
        names => format!("{shown} has {} and {} more files", names[..5].join(", "), names.len() - 5),
    }
}

/// True if a name matches a pattern, in which `*` stands for any characters and `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The last star, and the first character of the name that it does not stand for yet.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == name[n] => (p, n) = (p + 1, n + 1),
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, n) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_one(path: PathBuf) -> Result<Vec<String>, (String, String)> {
        let name = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
        expand(&[path])
            .map(|files| files.iter().map(name).collect())
            .map_err(|error| (error.message, error.help.unwrap_or_default()))
    }

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, name, expected) in [
            ("*.jsonl", "a.jsonl", true),
            ("*.jsonl", "a.jsonl.gz", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("**", "anything", true),
            ("?", "ä", true),
            ("*", "", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_list_files_by_name_and_wrong_names_are_answered() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.jsonl", "a.jsonl", ".hidden.jsonl", "c.csv"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("d.jsonl")).unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(expand_one(at("*.jsonl")).unwrap(), ["a.jsonl", "b.jsonl"]);
        assert_eq!(expand_one(at("?.csv")).unwrap(), ["c.csv"]);
        let (message, help) = expand_one(at("*.parquet")).unwrap_err();
        assert!(message.starts_with("no file matches ") && message.ends_with("*.parquet"), "{message}");
        assert!(help.ends_with("has a.jsonl, b.jsonl, c.csv"), "{help}");
        let (message, help) = expand_one(at("A.json")).unwrap_err();
        assert!(message.starts_with("there is no file ") && help.ends_with("a.jsonl?"), "{message} {help}");
        assert_eq!(near_file(&at("c.cvs")), Some(at("c.csv")));
        assert_eq!(near_file(&at("c")), Some(at("c.csv")));
        assert_eq!(near_file(&at("nupa")), None);
        let (_, help) = expand_one(at("something-else.txt")).unwrap_err();
        assert!(help.contains("has a.jsonl"), "{help}");
        let (_, help) = expand_one(at("missing/x.jsonl")).unwrap_err();
        assert!(help.starts_with("there is no folder "), "{help}");
        let (message, help) = expand_one(folder.path().to_owned()).unwrap_err();
        assert!(message.contains("is a folder") && help.contains("*.jsonl"), "{message} {help}");
        let (message, _) = expand_one(at("*/x.jsonl")).unwrap_err();
        assert!(message.contains("name of a folder"), "{message}");
        let error = expand(&[at("a.jsonl"), at("*.jsonl")]).unwrap_err();
        assert!(error.message.contains("named twice"), "{error}");
        assert!(expand(&[]).is_err());
    }
}
