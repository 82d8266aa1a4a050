//! The embedded model: the default, so that the first command works without a download.
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::EvalError;
use earnest_models::hub::HubSettings;

/// Name of the built-in model on the command line, in manifests and reports.
pub const BUILT_IN: &str = "earnest-abacus-1.4m";

/// Short word for the built-in model, wherever a model is named.
pub const BUILT_IN_WORD: &str = "built-in";

/// Returns the name of the built-in model for its names, and any other reference as it is.
pub fn without_word(given: &Path) -> &Path {
    if given.as_os_str() == BUILT_IN_WORD { Path::new(BUILT_IN) } else { given }
}

/// Returns a path in the form in which a model is named by it: `./NAME` for the folder or file of a name that a model has.
pub fn as_model(path: &Path, hub: &HubSettings) -> String {
    let named = [BUILT_IN, BUILT_IN_WORD].iter().any(|name| path.as_os_str() == *name)
        || path.to_str().is_some_and(|name| hub.registry().is_ok_and(|list| list.find(name).is_some()));
    if named { format!("./{}", path.display()) } else { path.display().to_string() }
}

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../../embedded/earnest-abacus-1.4m/", $name)).as_slice())
    };
}

/// Files of the checkpoint folder.
const FILES: [(&str, &[u8]); 5] = [
    file!("config.json"),
    file!("generation_config.json"),
    file!("model.safetensors"),
    file!("tokenizer.json"),
    file!("tokenizer_config.json"),
];

/// SHA-256 over names and contents.
static DIGEST: LazyLock<String> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (name, content) in FILES {
        all.extend_from_slice(format!("{name} {}\n", content.len()).as_bytes());
        all.extend_from_slice(content);
    }
    earnest_digest::hex(&earnest_digest::sha256(&all))
});

/// Returns the built-in model's checkpoint folder in the user's cache; missing or damaged files are written.
pub fn built_in_folder() -> Result<PathBuf, EvalError> {
    let hint = "set EARNEST_CACHE to a writable folder, or name another model with the setting `model`";
    let Some(cache) = earnest_digest::cache_folder() else {
        return Err(EvalError::model(format!("cannot unpack {BUILT_IN}: no cache folder is known")).hint(hint));
    };
    // The digest keeps the models of different releases apart.
    let folder = cache.join("built-in").join(&DIGEST[..12]).join(BUILT_IN);
    unpack(&folder).map_err(|error| {
        EvalError::model(format!("cannot unpack {BUILT_IN} into {}: {error}", folder.display())).hint(hint)
    })?;
    Ok(folder)
}

fn unpack(folder: &Path) -> std::io::Result<()> {
    for (name, content) in FILES {
        let path = folder.join(name);
        if std::fs::read(&path).is_ok_and(|existing| existing == content) {
            continue;
        }
        std::fs::create_dir_all(folder)?;
        // Several processes may unpack at once, so each writes its own file and renames it.
        let part = folder.join(format!("{name}.{}.part", std::process::id()));
        std::fs::write(&part, content)?;
        std::fs::rename(&part, &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_written_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("deep").join(BUILT_IN);
        unpack(&folder).unwrap();
        std::fs::write(folder.join("config.json"), "{}").unwrap();
        std::fs::remove_file(folder.join("tokenizer.json")).unwrap();
        unpack(&folder).unwrap();
        for (name, content) in FILES {
            assert_eq!(std::fs::read(folder.join(name)).unwrap(), content, "{name}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), FILES.len());
    }

    #[test]
    fn one_word_names_it_and_paths_of_its_names_are_written_as_paths() {
        let hub = HubSettings::default();
        let located = crate::model::LocatedModel::find(Path::new(BUILT_IN_WORD), &hub, Default::default()).unwrap();
        let named = crate::model::LocatedModel::find(Path::new(BUILT_IN), &hub, Default::default()).unwrap();
        assert_eq!(located.path(), named.path());
        for (path, shown) in [
            (BUILT_IN, "./earnest-abacus-1.4m"),
            (BUILT_IN_WORD, "./built-in"),
            ("./built-in", "./built-in"),
            ("mine", "mine"),
            ("models/mine", "models/mine"),
        ] {
            assert_eq!(as_model(Path::new(path), &hub), shown);
        }
    }

    #[test]
    fn it_is_small() {
        let size: usize = FILES.iter().map(|(_, content)| content.len()).sum();
        assert!(size <= 4 << 20, "{size} bytes");
    }
}
