//! Reading of a checkpoint's small files, up to a size that none of a usable checkpoint has.
use super::CheckpointError;
use std::io::ErrorKind;
use std::path::Path;

use earnest_digest::input;

/// Largest `tokenizer.json`, in bytes. Those of vocabularies of 260,000 tokens have 35 MB.
pub(super) const MAX_TOKENIZER: u64 = 256 << 20;

/// Largest of the other JSON files, in bytes. The largest published index of shards has 12 MB.
pub(super) const MAX_JSON: u64 = 64 << 20;

/// Reads a file of at most `max` bytes; a missing file gets `advice`.
pub(super) fn read(path: &Path, max: u64, advice: &str) -> Result<Vec<u8>, CheckpointError> {
    input::read(path, max).map_err(|error| match error.kind() {
        // Its size, or what it is.
        ErrorKind::FileTooLarge | ErrorKind::InvalidInput | ErrorKind::IsADirectory => {
            CheckpointError::Malformed { path: path.to_path_buf(), what: error.to_string() }
        }
        _ => CheckpointError::io(path, advice, error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read(&path, 3, "").unwrap(), b"abc");
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path, MAX_JSON, "").unwrap_err().to_string();
        assert!(error.contains("1099511627776 bytes") && error.contains("64 MiB"), "{error}");
        let endless = read(Path::new("/dev/zero"), 1 << 10, "").unwrap_err().to_string();
        assert!(endless.contains("/dev/zero") && endless.contains("it is a device"), "{endless}");
        assert!(read(&folder.path().join("x"), 3, "fetch it").unwrap_err().to_string().contains("fetch it"));
    }
}
