//! Reading of a checkpoint's small files, up to a size that none of a usable checkpoint has.
use super::CheckpointError;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest `tokenizer.json`, in bytes. Those of vocabularies of 260,000 tokens have 35 MB.
pub(super) const MAX_TOKENIZER: u64 = 256 << 20;

/// Largest of the other JSON files, in bytes. The largest published index of shards has 12 MB.
pub(super) const MAX_JSON: u64 = 64 << 20;

/// Reads a file of at most `max` bytes; a missing file gets `advice`.
pub(super) fn read(path: &Path, max: u64, advice: &str) -> Result<Vec<u8>, CheckpointError> {
    let io = |e| CheckpointError::io(path, advice, e);
    // Asked before it is opened: opening a pipe waits for its writer.
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        let what = "it is not a regular file".to_owned();
        return Err(CheckpointError::Malformed { path: path.to_path_buf(), what });
    }
    let file = File::open(path).map_err(io)?;
    let size = metadata.len();
    let too_large = |size: u64| {
        let what = format!("it has {size} bytes, more than the {} MiB that such a file may have", max >> 20);
        Err(CheckpointError::Malformed { path: path.to_path_buf(), what })
    };
    if size > max {
        return too_large(size);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // A file that grows may have more than its metadata says.
    file.take(max + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > max { too_large(bytes.len() as u64) } else { Ok(bytes) }
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
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path, MAX_JSON, "").unwrap_err().to_string();
        assert!(error.contains("1099511627776 bytes") && error.contains("64 MiB"), "{error}");
        let endless = read(Path::new("/dev/zero"), 1 << 10, "").unwrap_err().to_string();
        assert!(endless.contains("/dev/zero") && endless.contains("not a regular file"), "{endless}");
        assert!(read(&folder.path().join("x"), 3, "fetch it").unwrap_err().to_string().contains("fetch it"));
    }
}
