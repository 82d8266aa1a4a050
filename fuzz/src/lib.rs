//! Fuzz targets over everything that reads what others wrote. `scripts/fuzz.sh` runs them; `cargo test` at the root runs them over their
//! corpora with the mutations of `tests/it/fuzz_corpora.rs`.

mod targets;

use std::sync::OnceLock;

pub use targets::{Scratch, TARGETS, Target};

/// Runs one input of a target.
///
/// # Panics
/// If there is no such target.
pub fn fuzz(name: &str, data: &[u8]) {
    static SCRATCH: OnceLock<Scratch> = OnceLock::new();
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(SCRATCH.get_or_init(Scratch::new), data);
}
