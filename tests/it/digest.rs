//! Digests of files and their cache.
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use earnest_digest::{DigestCache, git_blob_sha1_file, hex, input, sha256, sha256_file};

/// A file with a modification time an hour ago: old enough to be cached.
fn old_file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("weights");
    std::fs::write(&path, text).unwrap();
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
    path
}

fn digest_and_bytes(cache: &DigestCache, path: &Path) -> (String, u64) {
    let mut bytes = 0;
    let digest = cache.sha256_file(path, |n| bytes += n).unwrap();
    (digest, bytes)
}

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

#[test]
fn a_file_is_hashed_once_until_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DigestCache::in_folder(folder.path().join("digests"));
    let path = old_file(folder.path(), "one");
    assert_eq!(cache.get(&path), None);
    let first = digest_and_bytes(&cache, &path);
    assert_eq!(first, (hex(&sha256(b"one")), 3));
    assert_eq!(cache.get(&path), Some(first.0.clone()));
    assert_eq!(digest_and_bytes(&cache, &path), first);
    // The same size and, by set_modified, the same time: the change still shows.
    let path = old_file(folder.path(), "two");
    assert_eq!(cache.get(&path), None);
    assert_eq!(digest_and_bytes(&cache, &path).0, hex(&sha256(b"two")));
}

#[test]
fn a_file_that_was_just_written_is_not_cached() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DigestCache::in_folder(folder.path().join("digests"));
    let path = folder.path().join("fresh");
    std::fs::write(&path, "x").unwrap();
    digest_and_bytes(&cache, &path);
    assert_eq!(cache.get(&path), None);
}

#[test]
fn damaged_and_foreign_records_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DigestCache::in_folder(folder.path().join("digests"));
    let path = old_file(folder.path(), "one");
    digest_and_bytes(&cache, &path);
    let records: Vec<_> = std::fs::read_dir(folder.path().join("digests")).unwrap().collect();
    let [Ok(record)] = records.as_slice() else { panic!("{records:?}") };
    for text in ["", "{", r#"{"path":"/x","look":{"size":3,"modified":1,"changed":1,"inode":1},"sha256":"00"}"#] {
        std::fs::write(record.path(), text).unwrap();
        assert_eq!(cache.get(&path), None);
    }
    // A folder that cannot be written: hashed each time.
    std::fs::write(folder.path().join("file"), "").unwrap();
    let blocked = DigestCache::in_folder(folder.path().join("file/below"));
    assert_eq!(digest_and_bytes(&blocked, &path).0, hex(&sha256(b"one")));
}

#[test]
fn threads_share_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DigestCache::in_folder(folder.path().join("digests"));
    let path = old_file(folder.path(), "shared");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(digest_and_bytes(&cache, &path).0, hex(&sha256(b"shared")));
                }
            });
        }
    });
    let left: Vec<_> = std::fs::read_dir(folder.path().join("digests")).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn inputs_are_files_up_to_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, "abc").unwrap();
    assert_eq!(input::read(&path, 3).unwrap(), b"abc");
    assert_eq!(input::read_text(&path, 3).unwrap(), "abc");
    let refused = |path: &Path, most: u64| input::read(path, most).unwrap_err().to_string();
    assert_eq!(refused(&path, 2), "it has 3 bytes, and such a file may have up to 2 bytes");
    // Nothing of a sparse file is on the disk.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(refused(&path, 16 << 20), "it has 1099511627776 bytes, and such a file may have up to 16 MiB");
    assert_eq!(refused(folder.path(), 9), "it is a folder");
    assert_eq!(input::read_stream(&[0; 9][..], 9).unwrap().len(), 9);
    assert!(input::read_stream(std::io::repeat(0), 9).unwrap_err().to_string().contains("up to 9 bytes"));
    std::fs::write(&path, b"a\nb\xff").unwrap();
    assert_eq!(input::read_text(&path, 9).unwrap_err().to_string(), "line 2 is not UTF-8 text");
    assert_eq!(input::open(&folder.path().join("none")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_with_names_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| input::open(path).unwrap_err().to_string();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(refused(&pipe).contains("a pipe with a name"), "{}", refused(&pipe));
    let link = folder.path().join("link");
    for (target, expected) in [("/dev/zero", "a device"), ("/proc/self/status", "of /proc or /sys"), ("pipe", "a pipe")]
    {
        std::os::unix::fs::symlink(target, &link).unwrap();
        assert!(refused(&link).contains(expected), "{target}: {}", refused(&link));
        std::fs::remove_file(&link).unwrap();
    }
    std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    assert_eq!(refused(&folder.path().join("socket")), "it is a socket, not a file");
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_of_the_shell_are_read() {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"rows").unwrap();
    drop(writer);
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    assert_eq!(input::read(&path, 4).unwrap(), b"rows");
}
