//! Digests of files, settings and prompts, in lower-case hex.

mod cache;
mod hash;

pub use cache::DigestCache;
pub use hash::{git_blob_sha1_file, hex, sha256, sha256_file};
