//! SHA-256 of bytes and files, and git's SHA-1 of a blob.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Returns bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Returns the SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns the SHA-256 of a file, read in pieces of 1 MiB; `progress` is called with the bytes of each.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_file(path: &Path, progress: impl FnMut(u64)) -> io::Result<String> {
    let mut hasher = Sha256::new();
    for_each_piece(crate::input::open(path)?, progress, |piece| hasher.update(piece))?;
    Ok(hex(&hasher.finalize()))
}

/// Returns the SHA-1 of a file as a git blob: of `blob <bytes>`, a zero byte and the content. The hub names small files by it;
/// weights have a SHA-256, because collisions of SHA-1 can be constructed.
///
/// # Errors
/// The file cannot be read.
pub fn git_blob_sha1_file(path: &Path, progress: impl FnMut(u64)) -> io::Result<String> {
    let file = crate::input::open(path)?;
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", file.metadata()?.len()));
    for_each_piece(file, progress, |piece| hasher.update(piece))?;
    Ok(hex(&hasher.finalize()))
}

fn for_each_piece(mut file: File, mut progress: impl FnMut(u64), mut update: impl FnMut(&[u8])) -> io::Result<()> {
    let mut piece = vec![0; 1 << 20];
    loop {
        let read = match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        update(&piece[..read]);
        progress(read as u64);
    }
}
