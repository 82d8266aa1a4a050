//! Files and folders of the cache that are written: never through a link, which may lead out of the cache.
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use super::HubError;

/// Largest of the small files that are read whole: lists of models, listings, indices of shards, tokens.
const MAX_TEXT: u64 = 64 << 20;

/// Opens a file whose content is written, and makes it if it is missing.
///
/// # Errors
/// [`HubError::NotOurs`] as [`open`], also if the file has another name elsewhere (a hard link).
pub(super) fn open_alone(path: &Path) -> Result<File, HubError> {
    let file = open(path)?;
    let found = file.metadata().map_err(|source| HubError::io("read", path, source))?;
    match names(&found) {
        0 | 1 => Ok(file),
        _ => Err(HubError::NotOurs { path: path.to_owned(), what: "a file that has another name too" }),
    }
}

/// Opens a file for reading and writing, and makes it if it is missing.
///
/// # Errors
/// [`HubError::NotOurs`] if it is a link or no regular file.
pub(super) fn open(path: &Path) -> Result<File, HubError> {
    let failed = |source| HubError::io("write", path, source);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Not blocking: opening a pipe waits for its other end.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) => {
            return Err(match std::fs::symlink_metadata(path) {
                Ok(found) if !found.is_file() => HubError::NotOurs { path: path.to_owned(), what: word(&found) },
                _ => failed(error),
            });
        }
    };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(HubError::NotOurs { path: path.to_owned(), what: word(&found) });
    }
    Ok(file)
}

/// Makes the folders `below` a folder, one after another.
///
/// # Errors
/// [`HubError::NotOurs`] if one of them is a link or no folder.
pub(super) fn folders(folder: &Path, below: &Path) -> Result<(), HubError> {
    let mut path = folder.to_owned();
    std::fs::create_dir_all(&path).map_err(|source| HubError::io("create", &path, source))?;
    for part in below.components() {
        path.push(part);
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = std::fs::symlink_metadata(&path).map_err(|source| HubError::io("read", &path, source))?;
                if !found.is_dir() {
                    return Err(HubError::NotOurs { path, what: word(&found) });
                }
            }
            Err(source) => return Err(HubError::io("create", &path, source)),
        }
    }
    Ok(())
}

/// Reads a small text; an error of [`MAX_TEXT`] bytes and more, whatever the size is said to be.
///
/// # Errors
/// Those of the system, and a file that is too large.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    read_at_most(path, MAX_TEXT)
}

/// Reads a text of at most `max` bytes.
///
/// # Errors
/// Those of the system, and a file that is larger.
pub(super) fn read_at_most(path: &Path, max: u64) -> io::Result<String> {
    let mut text = String::new();
    earnest_digest::input::open(path)?.take(max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max {
        return Err(io::Error::other(format!("it has more than {max} bytes, the most that such a file may have")));
    }
    Ok(text)
}

/// True for an error of a path where nothing is, a file among its folders included (`HOME=/dev/null`).
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn word(found: &std::fs::Metadata) -> &'static str {
    match found {
        found if found.is_symlink() => "a link",
        found if found.is_dir() => "a folder",
        found if found.is_file() => "a file",
        _ => "a device or a pipe",
    }
}

/// Number of names of a file.
fn names(found: &std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::nlink(found)
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        1
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_written_through_a_link() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path();
        let (cache, victim, elsewhere) = (at.join("cache"), at.join("victim"), at.join("elsewhere"));
        std::fs::create_dir_all(&cache).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(&victim, "mine").unwrap();
        symlink(&victim, cache.join("link")).unwrap();
        symlink(at.join("absent"), cache.join("dangling")).unwrap();
        std::fs::hard_link(&victim, cache.join("hard")).unwrap();
        std::fs::create_dir(cache.join("folder")).unwrap();
        for (name, what) in
            [("link", "a link"), ("dangling", "a link"), ("hard", "another name"), ("folder", "a folder")]
        {
            let error = open_alone(&cache.join(name)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(what), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert!(!at.join("absent").exists());
        assert!(open_alone(&cache.join("new")).is_ok() && open_alone(&cache.join("new")).is_ok());
        assert!(open(&cache.join("hard")).is_ok() && open(&cache.join("link")).is_err());

        symlink(&elsewhere, cache.join("main")).unwrap();
        std::fs::write(cache.join("file"), "").unwrap();
        for (below, what) in [("main", "a link"), ("main/deep", "a link"), ("file", "a file")] {
            let made = folders(&cache, Path::new(below));
            assert!(made.is_err_and(|error| error.to_string().contains(what)), "{below}");
        }
        folders(&cache, Path::new("one/two")).unwrap();
        folders(&cache, Path::new("one/two")).unwrap();
        assert!(cache.join("one/two").is_dir() && std::fs::read_dir(&elsewhere).unwrap().next().is_none());
        // The cache itself may be behind a link: that is the user's.
        symlink(&cache, at.join("moved")).unwrap();
        folders(&at.join("moved"), Path::new("three")).unwrap();
    }

    #[test]
    fn texts_are_read_up_to_a_size() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("token");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read_at_most(&path, 3).unwrap(), "abc");
        assert!(read_at_most(&path, 2).unwrap_err().to_string().contains("more than 2 bytes"));
        assert!(read_at_most(Path::new("/dev/zero"), 1 << 10).is_err());
        assert!(is_absent(&std::fs::read(path.join("below")).unwrap_err()));
    }
}
