//! The embedded model: the default, so that the first command works without a download.
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::EvalError;

/// Name of the built-in model on the command line, in manifests and reports.
pub const BUILT_IN: &str = "earnest-abacus-1.4m";

/// Word for the built-in model where models are listed: in study files and for `--with`.
pub const BUILT_IN_WORD: &str = "built-in";

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
    let hint = "set EARNEST_CACHE to a writable folder, or choose another --model";
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
    fn it_is_small() {
        let size: usize = FILES.iter().map(|(_, content)| content.len()).sum();
        assert!(size <= 4 << 20, "{size} bytes");
    }
}
