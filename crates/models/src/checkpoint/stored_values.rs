//! Values of a file, read a chunk at a time.
use super::CheckpointError;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes converted at a time, so that a tensor is not held in memory twice.
const CHUNK: usize = 1 << 20;
/// Reads `count` values from `offset` of a file, a chunk at a time.
pub(super) fn read_values<T, const N: usize>(
    path: &Path,
    offset: u64,
    count: usize,
    convert: fn([u8; N]) -> T,
) -> Result<Vec<T>, CheckpointError> {
    let io = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => CheckpointError::Truncated {
            path: path.to_path_buf(),
            what: format!("the {count} values from byte {offset} are no longer complete"),
        },
        _ => CheckpointError::io(path, "it existed when the checkpoint was opened", e),
    };
    let mut file = earnest_digest::input::open(path).map_err(io)?;
    file.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut values = Vec::with_capacity(count);
    let chunk = CHUNK / N * N;
    let mut buffer = vec![0u8; chunk.min(count * N)];
    let mut left = count * N;
    while left > 0 {
        let take = left.min(chunk);
        let Some(bytes) = buffer.get_mut(..take) else { break };
        file.read_exact(bytes).map_err(io)?;
        let (whole, _) = bytes.as_chunks::<N>();
        values.extend(whole.iter().map(|b| convert(*b)));
        left -= take;
    }
    Ok(values)
}
