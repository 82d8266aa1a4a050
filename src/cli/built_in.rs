//! The model inside the program: it is asked where no other is named, so that the first command works without a download.
use std::path::{Path, PathBuf};

use super::Exit;
use super::error::CliError;

/// Its name on the command line, in manifests and reports.
pub const NAME: &str = "earnest-abacus-1m";

/// What a run says that asks it because no other model was named.
pub const NOTICE: &str = "no --model is named: asking earnest-abacus-1m, the one inside this program. It adds, subtracts, \
                          compares, measures and copies whole numbers of up to 6 digits and knows nothing else: word problems \
                          and other representations are at the floor";

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../embedded/earnest-abacus-1m/", $name)).as_slice())
    };
}

/// Its folder.
const FILES: [(&str, &[u8]); 5] = [
    file!("config.json"),
    file!("generation_config.json"),
    file!("model.safetensors"),
    file!("tokenizer.json"),
    file!("tokenizer_config.json"),
];

/// SHA-256 over names and contents.
fn digest() -> String {
    let mut all = Vec::new();
    for (name, content) in FILES {
        all.extend_from_slice(format!("{name} {}\n", content.len()).as_bytes());
        all.extend_from_slice(content);
    }
    crate::digest::hex(&crate::digest::sha256(&all))
}

/// The user's cache: `EARNEST_CACHE`, `XDG_CACHE_HOME/earnest` or `~/.cache/earnest`.
fn cache() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("EARNEST_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("earnest")))
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache/earnest")))
}

/// The folder with its files, which are written into the user's cache where they are not there as they should be.
pub fn folder() -> Result<PathBuf, CliError> {
    let help = "set EARNEST_CACHE to a folder that can be written, or name another --model";
    let Some(cache) = cache() else {
        let message = format!("there is no place to unpack {NAME}: no cache folder is known");
        return Err(CliError::new(Exit::Model, message).help(help));
    };
    // A later release's model lies beside this one's.
    let folder = cache.join("built-in").join(&digest()[..12]).join(NAME);
    unpack(&folder).map_err(|error| {
        CliError::new(Exit::Model, format!("cannot unpack {NAME} into {}: {error}", folder.display())).help(help)
    })?;
    Ok(folder)
}

fn unpack(folder: &Path) -> std::io::Result<()> {
    for (name, content) in FILES {
        let path = folder.join(name);
        if std::fs::read(&path).is_ok_and(|found| found == content) {
            continue;
        }
        std::fs::create_dir_all(folder)?;
        // Several processes may unpack at once: each writes a file of its own, and what appears is whole.
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
        let folder = place.path().join("deep").join(NAME);
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
