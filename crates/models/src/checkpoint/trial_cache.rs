//! Tokenizers that have passed their trial, by digest, so that a large one is not tried at every start.
use std::path::PathBuf;
use std::time::Duration;

/// Shortest trial worth recording.
const MIN_TIME: Duration = Duration::from_millis(50);

/// Version of the trial: what an earlier one let through is tried again.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// The record of a file's trial: an empty file in the user's cache. Losing it costs time only.
#[derive(Debug)]
pub(crate) struct TrialCache(Option<PathBuf>);

impl TrialCache {
    /// Returns the record of a file of this content.
    pub(crate) fn of(content: &[u8]) -> TrialCache {
        let digest = earnest_digest::hex(&earnest_digest::sha256(content));
        let folder = earnest_digest::cache_folder();
        TrialCache(folder.map(|folder| folder.join("tokenizers").join(format!("{digest}-{VERSION}"))))
    }

    /// True if the file has passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.0.as_ref().is_some_and(|record| record.is_file())
    }

    /// Records that the file has passed, if the trial took long enough. If that fails, the file is tried again.
    pub(crate) fn record(&self, took: Duration) {
        let Some(record) = self.0.as_ref().filter(|_| took > MIN_TIME) else { return };
        if let Some(folder) = record.parent() {
            std::fs::create_dir_all(folder).ok();
        }
        std::fs::write(record, []).ok();
    }
}
