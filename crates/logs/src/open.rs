//! Opening of a log's files: regular ones only, because reading others may never end.
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::records::too_large;
use crate::LogError;
use earnest_digest::input;

/// Opens a regular file.
///
/// # Errors
/// Files that cannot be opened, and what is no regular file.
pub(super) fn open(path: &Path) -> Result<File, LogError> {
    input::open(path).map_err(|error| LogError::input(path.display(), error))
}

/// Reason for not reading a pipe, a device or a file of the kernel.
pub(super) const NOT_REGULAR: &str = "it is neither a folder nor a regular file";

/// Reads a whole file of at most so many bytes.
///
/// # Errors
/// Those of [`open`], and files that are longer.
pub(super) fn read_whole(path: &Path, longest: u64) -> Result<Vec<u8>, LogError> {
    let failed = |error| LogError::input(path.display(), error);
    let file = open(path)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > longest {
        return Err(LogError::unread(path, too_large(size, longest)));
    }
    let mut text = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // It may grow while it is read.
    file.take(longest).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_bounded_and_regular() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_whole(&path, 5).unwrap(), b"12345");
        let error = read_whole(&path, 4).unwrap_err().to_string();
        assert!(error.contains("5 bytes, more than the 4 bytes"), "{error}");
        assert!(open(folder.path()).unwrap_err().to_string().contains("it is a folder"));
        #[cfg(target_os = "linux")]
        for (other, kind) in [("/dev/zero", "a device"), ("/proc/kmsg", "/proc"), ("/proc/self/mem", "/proc")] {
            assert!(open(Path::new(other)).unwrap_err().to_string().contains(kind), "{other}");
        }
    }
}
