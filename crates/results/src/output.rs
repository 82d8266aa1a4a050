//! Output files: what may be written, and files that appear complete or not at all.
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use earnest_digest::input;

use crate::RowsError;
use crate::store::{APPLICATION_ID, FILE_NAME};

/// Bytes in which a results file tells that it is one: SQLite's header up to the application's number.
const HEADER: usize = 72;

/// Endings of the files that SQLite keeps beside a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Files beside a model's weights: its configuration, tokenizer and template. Other texts and documents there are a user's own.
const OF_CHECKPOINTS: [&str; 17] = [
    "adapter_config.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "params.json",
    "preprocessor_config.json",
    "processor_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "training.json",
    "vocab.json",
    "vocab.txt",
    "quantize_config.json",
];

/// Endings of a model's weights and tokenizers.
const ENDINGS_OF_CHECKPOINTS: [&str; 7] = [".index.json", ".bin", ".model", ".pt", ".pth", ".tiktoken", ".jinja"];

/// Checks that a file may be written: not one with results, a lock, a file of a checkpoint or one that this process has read.
///
/// # Errors
/// Kind of the file, as the end of a sentence about it.
pub fn check(path: &Path) -> io::Result<()> {
    let place = real(path);
    // Names that are not UTF-8 have the same rules: what is replaced in them is in none of the names below.
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let name = name.as_ref();
    let refused = |what: &str| Err(io::Error::new(ErrorKind::InvalidInput, what));
    let database = COMPANIONS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    if database == FILE_NAME || is_results(&place) || is_results(&place.with_file_name(database)) {
        return refused("it holds results of earnest, and nothing may replace it");
    }
    let there = std::fs::metadata(&place).is_ok_and(|found| found.is_file());
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let folder = place.parent().unwrap_or(Path::new(""));
    if there && ending == "lock" || folder.ends_with("locks") && folder.with_file_name(FILE_NAME).exists() {
        return refused("it is a lock that processes hold, and nothing may replace it");
    }
    if is_of_checkpoint(&place, name, ending, there) {
        return refused("it is a file of a model, and nothing may replace it");
    }
    if input::was_read(&place) {
        return refused("this command reads it, and writing would overwrite it");
    }
    Ok(())
}

/// True for a file of a checkpoint, and for any place in the cache of models.
fn is_of_checkpoint(place: &Path, name: &str, ending: &str, there: bool) -> bool {
    let parts: Vec<&str> = place.components().filter_map(|part| part.as_os_str().to_str()).collect();
    let in_cache = parts.windows(2).any(|pair| {
        ["models--", "datasets--"].iter().any(|kind| pair[0].starts_with(kind))
            && ["blobs", "snapshots", "refs"].contains(&pair[1])
    });
    if in_cache || !there {
        return in_cache;
    }
    ending.eq_ignore_ascii_case("safetensors")
        || begins_with(place, b"GGUF")
        || (OF_CHECKPOINTS.contains(&name) || ENDINGS_OF_CHECKPOINTS.iter().any(|ending| name.ends_with(ending)))
            && place.parent().is_some_and(has_weights)
}

/// True for a folder with weights or with the index of their shards. A GGUF file is a model by itself, whatever is beside it.
fn has_weights(folder: &Path) -> bool {
    let is_of_weights = |name: &str| {
        let begins =
            ["model", "pytorch_model", "adapter_model", "consolidated"].iter().any(|begin| name.starts_with(begin));
        begins && [".safetensors", ".bin", ".index.json", ".pth"].iter().any(|end| name.ends_with(end))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_of_weights))
}

/// True for a database that earnest made.
fn is_results(path: &Path) -> bool {
    let head = head(path, HEADER);
    head.starts_with(b"SQLite format 3\0") && head.get(68..HEADER) == Some(&APPLICATION_ID.to_be_bytes())
}

fn begins_with(path: &Path, begin: &[u8]) -> bool {
    head(path, begin.len()) == begin
}

/// The first bytes of a file; nothing of what is no file or cannot be read.
fn head(path: &Path, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if std::fs::metadata(path).is_ok_and(|found| found.is_file())
        && let Ok(file) = std::fs::File::open(path)
        // What cannot be read has no beginning that tells.
        && file.take(most as u64).read_to_end(&mut bytes).is_err()
    {
        bytes.clear();
    }
    bytes
}

/// The path that a name leads to, whether the file is there or not.
pub fn real(path: &Path) -> PathBuf {
    if let Ok(place) = std::fs::canonicalize(path) {
        return place;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// True if two paths lead to one file, by whatever names or links, or to one place where none is yet.
pub fn are_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
        if matches!((number(one), number(other)), (Ok(one), Ok(other)) if one == other) {
            return true;
        }
    }
    real(one) == real(other)
}

/// Writes a file in one step: beside its place, then renamed, so that an old file stays until the new one is complete. A symbolic
/// link stays one, and a device or pipe is written to directly.
///
/// # Errors
/// Files that [`check`] refuses, and errors of writing.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), RowsError>,
) -> Result<(), RowsError> {
    let failed = |source: io::Error| RowsError::Write { path: path.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let device = std::fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
        let mut out = io::BufWriter::with_capacity(1 << 18, device);
        write(&mut out)?;
        return out.flush().map_err(failed);
    }
    let linked = std::fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink());
    let place = if linked { std::fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
    check(&place).map_err(failed)?;
    let (beside, file) = beside(&place).map_err(failed)?;
    let attempt = || -> Result<(), RowsError> {
        let mut out = io::BufWriter::with_capacity(1 << 18, file);
        write(&mut out)?;
        out.flush().map_err(failed)?;
        std::fs::rename(&beside, &place).map_err(failed)
    };
    attempt().inspect_err(|_| {
        std::fs::remove_file(&beside).ok();
    })
}

/// A new file beside another one. Its name is short and never that of a file which is there.
fn beside(place: &Path) -> io::Result<(PathBuf, std::fs::File)> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.with_file_name(format!(".earnest-{}-{number}.part", std::process::id()));
        match std::fs::File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn hello(out: &mut (dyn Write + Send)) -> Result<(), RowsError> {
        out.write_all(b"hello")
            .and_then(|()| out.flush())
            .map_err(|source| RowsError::Write { path: PathBuf::from("out"), source })
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        use std::os::unix::fs::FileTypeExt;
        // A link of the test: a mistake here must not replace the system's device.
        let folder = tempfile::tempdir().unwrap();
        let full = folder.path().join("full");
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        assert!(write_file(&full, hello).is_err(), "a full disk is an error");
        assert!(std::fs::metadata(&full).unwrap().file_type().is_char_device());
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_file(&link, hello).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "hello");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside");
    }

    #[test]
    fn what_must_stay_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let results = at("r");
        crate::store::Store::create(&results).unwrap();
        std::fs::copy(results.join(FILE_NAME), at("copy.db")).unwrap();
        // A name that is not UTF-8 is no way around a rule.
        let odd = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"copy\xff.db");
        std::fs::copy(results.join(FILE_NAME), folder.path().join(odd)).unwrap();
        assert!(check(&folder.path().join(odd)).is_err());
        std::fs::create_dir_all(results.join("locks")).unwrap();
        for name in [
            "m/model.safetensors",
            "m/config.json",
            "m/merges.txt",
            "m/chat_template.jinja",
            "m/lock.lock",
            "n/config.json",
            "t.csv",
            "read.csv",
        ] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "{}").unwrap();
        }
        std::fs::write(at("model.bin"), "GGUF\x03\0\0\0").unwrap();
        std::os::unix::fs::symlink(results.join(FILE_NAME), at("link.csv")).unwrap();
        input::read(&at("read.csv"), 10).unwrap();
        for (name, what) in [
            ("r/earnest.sqlite", "results"),
            ("r/earnest.sqlite-wal", "results"),
            ("new/earnest.sqlite", "results"),
            ("copy.db", "results"),
            ("copy.db-shm", "results"),
            ("link.csv", "results"),
            ("r/locks/x", "lock"),
            ("m/lock.lock", "lock"),
            ("m/model.safetensors", "model"),
            ("m/config.json", "model"),
            ("m/merges.txt", "model"),
            ("m/chat_template.jinja", "model"),
            ("model.bin", "model"),
            ("h/models--a--b/snapshots/c/new.json", "model"),
            ("read.csv", "reads it"),
            ("m/../read.csv", "reads it"),
        ] {
            let error = check(&at(name)).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
            let kept = std::fs::read(at(name)).ok();
            assert!(write_file(&at(name), hello).is_err(), "{name}");
            assert_eq!(std::fs::read(at(name)).ok(), kept, "{name}");
        }
        for name in ["t.csv", "new.lock", "n/config.json", "m/notes.json", "r/page.html", "locks"] {
            check(&at(name)).unwrap();
        }
    }
}
