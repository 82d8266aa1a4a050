//! SHA-256 of files, settings and prompts, in lower-case hex.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

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
pub fn sha256_file(path: &Path, mut progress: impl FnMut(u64)) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        let read = match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&piece[..read]);
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
    }
}
