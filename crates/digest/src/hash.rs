//! SHA-256 of anything, and the SHA-1 by which git names a file's content.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
    }
    text
}

/// SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of a file, read in pieces of 1 MiB. `progress` hears how many bytes each piece had.
pub fn sha256_file(path: &Path, progress: impl FnMut(u64)) -> io::Result<String> {
    let mut hasher = Sha256::new();
    pieces(File::open(path)?, progress, |piece| hasher.update(piece))?;
    Ok(hex(&hasher.finalize()))
}

/// SHA-1 of a file as git's blob: of `blob <bytes>`, a zero byte and the content. It names small files on the hub; whoever can
/// make two files with one SHA-1 can exchange them, so weights have a SHA-256.
pub fn git_blob_sha1_file(path: &Path, progress: impl FnMut(u64)) -> io::Result<String> {
    let file = File::open(path)?;
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", file.metadata()?.len()));
    pieces(file, progress, |piece| hasher.update(piece))?;
    Ok(hex(&hasher.finalize()))
}

fn pieces(mut file: File, mut progress: impl FnMut(u64), mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut piece = vec![0; 1 << 20];
    loop {
        let read = match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        take(&piece[..read]);
        progress(read as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("big");
        std::fs::write(&path, vec![7u8; (1 << 20) + 3]).unwrap();
        let mut total = 0;
        let of_file = sha256_file(&path, |bytes| total += bytes).unwrap();
        assert_eq!(of_file, hex(&sha256(&vec![7u8; (1 << 20) + 3])));
        assert_eq!(total, (1 << 20) + 3);
        assert!(sha256_file(&folder.path().join("missing"), |_| ()).is_err());
        // `printf 'hello\n' | git hash-object --stdin`, and an empty file.
        std::fs::write(&path, "hello\n").unwrap();
        assert_eq!(git_blob_sha1_file(&path, |_| ()).unwrap(), "ce013625030ba8dba906f756967f9e9ca394464a");
        std::fs::write(&path, "").unwrap();
        assert_eq!(git_blob_sha1_file(&path, |_| ()).unwrap(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    }
}
