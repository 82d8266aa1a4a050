//! Input files, opened and read within bounds ([`input`]); TOML files with the places of their errors ([`toml_file`]); digests of files, settings and prompts, in lower-case hex.
//!
//! [`DigestCache`] keeps the digests of large files between runs. `examples/sha256.rs` hashes a file through it.

mod cache;
mod hash;
pub mod input;
pub mod toml_file;

pub use cache::{DigestCache, cache_folder};
pub use hash::{git_blob_sha1_file, hex, sha256, sha256_file};
