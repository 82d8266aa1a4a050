//! Digests of files and their cache.
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use earnest_digest::{DigestCache, git_blob_sha1_file, hex, sha256, sha256_file};

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
