//! Prints the SHA-256 of a file twice, the second time from the cache: `cargo run --release -p earnest-digest --example sha256 -- [FILE]`.

use std::path::Path;

use earnest_digest::DigestCache;

fn main() -> std::io::Result<()> {
    let file = std::env::args().nth(1).unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into());
    let cache = DigestCache::in_folder(std::env::temp_dir().join("earnest-digest-example"));
    for _ in 0..2 {
        let cached = cache.get(Path::new(&file)).is_some();
        let digest = cache.sha256_file(Path::new(&file), |_| ())?;
        println!("{digest}  {file}{}", if cached { "  (cached)" } else { "" });
    }
    Ok(())
}
