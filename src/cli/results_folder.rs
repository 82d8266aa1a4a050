//! The results folder that commands find without being told, and the option that names another.
use std::path::{Path, PathBuf};

use earnest_results::results_option;

/// Default of `--results`.
pub(super) const DEFAULT_RESULTS: &str = "earnest-results";

/// The results folder without `--results`: EARNEST_RESULTS, or the default.
pub fn default_results() -> PathBuf {
    let folder = std::env::var_os("EARNEST_RESULTS").filter(|value| !value.is_empty());
    folder.map_or_else(|| DEFAULT_RESULTS.into(), PathBuf::from)
}

/// The option that names a results folder in a suggested command; nothing for the one that commands find without being told.
pub fn option(folder: &Path) -> String {
    if folder == default_results() { String::new() } else { results_option(folder) }
}
