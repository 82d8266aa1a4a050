//! The models of `--models small`: of both kinds, and small enough for any machine.
use std::path::{Path, PathBuf};

use crate::cli::Exit;
use crate::cli::error::CliError;
use earnest_digest::DigestCache;

/// A file of `scripts/fetch-models.sh`, and what stands for it where the file is not here.
struct Small {
    file: &'static str,
    sha256: &'static str,
    /// Name in the list of models, for --fetch.
    listed: &'static str,
}

const SMALL: [Small; 2] = [
    Small {
        file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        listed: "SmolLM2-135M-Instruct",
    },
    Small {
        file: "gemma-3-270m-q4_k_m.gguf",
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        listed: "gemma-3-270m-it",
    },
];

/// Next step where the files are missing.
pub(super) const ADVICE: &str = "`scripts/fetch-models.sh all` of the repository gets both files of `small` into ./models, \
     where they are found (or in the folder that EARNEST_MODELS names)";

/// Returns names and paths: the files where they are here, in the folder of `EARNEST_MODELS` or in `models`, otherwise names of the
/// list.
///
/// # Errors
/// A file of one of these names with other content, or one that cannot be read.
pub(super) fn models() -> Result<Vec<(String, PathBuf)>, CliError> {
    let folder = std::env::var_os("EARNEST_MODELS").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folders: Vec<PathBuf> = folder.into_iter().chain([PathBuf::from("models")]).collect();
    SMALL.iter().map(|model| in_folders(model, &folders)).collect()
}

fn in_folders(model: &Small, folders: &[PathBuf]) -> Result<(String, PathBuf), CliError> {
    match folders.iter().map(|folder| folder.join(model.file)).find(|path| path.is_file()) {
        Some(path) => {
            check(&path, model.sha256)?;
            Ok((model.file.trim_end_matches(".gguf").to_owned(), path))
        }
        None => Ok((model.listed.to_owned(), PathBuf::from(model.listed))),
    }
}

/// Checks that a file is the one that the study was made with.
fn check(path: &Path, sha256: &str) -> Result<(), CliError> {
    let shown = path.display();
    let found = DigestCache::for_user()
        .sha256_file(path, |_| ())
        .map_err(|error| CliError::new(Exit::Model, format!("cannot read {shown}: {error}")))?;
    if found == sha256 {
        return Ok(());
    }
    Err(CliError::new(Exit::Model, format!("{shown} has SHA-256 {found}, and that of `small` {sha256}")).help(format!(
        "`scripts/fetch-models.sh --to {} all` replaces it; `--models {shown}` takes it as it is",
        path.parent().unwrap_or(Path::new(".")).display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_where_they_are_and_names_otherwise() {
        let (empty, full) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders = [empty.path().to_owned(), full.path().to_owned()];
        let content = earnest_digest::hex(&earnest_digest::sha256(b"weights"));
        let model = Small { file: "one.Q4_1.gguf", sha256: Box::leak(content.into_boxed_str()), listed: "one" };
        assert_eq!(in_folders(&model, &folders).unwrap(), ("one".to_owned(), PathBuf::from("one")));
        let path = full.path().join(model.file);
        std::fs::write(&path, "weights").unwrap();
        assert_eq!(in_folders(&model, &folders).unwrap(), ("one.Q4_1".to_owned(), path.clone()));
        std::fs::write(&path, "other weights").unwrap();
        let error = in_folders(&model, &folders).unwrap_err();
        assert!(error.message.contains("one.Q4_1.gguf") && error.message.contains(model.sha256), "{}", error.message);
        assert!(error.help.unwrap().contains("fetch-models.sh"));
    }

    #[test]
    fn the_files_are_those_of_the_script() {
        let script = include_str!("../../../scripts/fetch-models.sh");
        for model in &SMALL {
            assert!(script.contains(model.file) && script.contains(model.sha256), "{}", model.file);
        }
    }
}
