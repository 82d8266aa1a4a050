//! Texts of the kernels: those inside the program, or those of a folder that `EARNEST_KERNELS` names, for trying a change without a new build.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::device::DeviceError;
use super::kernels::FILES;

/// Folder with all files of the kernels, under the names that they have in the source tree.
pub(crate) const FOLDER: &str = "EARNEST_KERNELS";

/// Texts of the kernels' files.
pub(crate) struct Sources {
    texts: Vec<Cow<'static, str>>,
    digest: Option<String>,
}

impl Sources {
    /// The texts inside the program.
    pub(crate) fn embedded() -> Sources {
        Sources { texts: FILES.iter().map(|file| file.1.into()).collect(), digest: None }
    }

    /// The texts of the folder of [`FOLDER`], or those inside the program.
    ///
    /// # Errors
    /// [`DeviceError::KernelFile`] naming the file that can not be read.
    pub(crate) fn from_environment() -> Result<Sources, DeviceError> {
        match std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
            Some(folder) => Sources::read(&PathBuf::from(folder)),
            None => Ok(Sources::embedded()),
        }
    }

    fn read(folder: &Path) -> Result<Sources, DeviceError> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|error| DeviceError::KernelFile { path, why: error.to_string() })
        };
        let texts = FILES.iter().map(|file| read(file.0)).collect::<Result<Vec<String>, DeviceError>>()?;
        let mut digest = Sha256::new();
        for (file, text) in FILES.iter().zip(&texts) {
            digest.update(format!("{} {}\n", file.0, text.len()));
            digest.update(text);
        }
        let digest: String = digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let is_modified = FILES.iter().zip(&texts).any(|(file, text)| file.1 != text);
        // A unit is one text of several files: the compiler's errors are to name the edited file and its line. The others stay as they are, and so do
        // binaries of units without an edited file.
        let named = |(file, text): (&(&str, &str), String)| match file.1 == text {
            true => Cow::Owned(text),
            false => Cow::Owned(format!("#line 1 \"{}\"\n{text}", file.0)),
        };
        let texts = FILES.iter().zip(texts).map(named).collect();
        Ok(Sources { texts, digest: is_modified.then_some(digest) })
    }

    /// Digest of all texts in twelve hexadecimal digits; none if they are those inside the program.
    pub(crate) fn modified(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The text in place of one of [`FILES`].
    pub(crate) fn text<'a>(&'a self, own: &'a str) -> &'a str {
        let index = FILES.iter().position(|file| file.1 == own);
        index.map_or(own, |index| &self.texts[index])
    }
}

/// Returns the digest of modified kernels that `EARNEST_KERNELS` names; none if it names none, or those inside the program.
///
/// # Errors
/// [`DeviceError::KernelFile`] naming a file that can not be read.
pub fn modified_kernels() -> Result<Option<String>, DeviceError> {
    Ok(Sources::from_environment()?.modified().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::device::Element;
    use crate::cuda::kernels::Unit;

    fn copied() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in FILES {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_stands_for_the_texts_inside_the_program() {
        let folder = copied();
        let same = Sources::read(folder.path()).unwrap();
        let unit = Unit::attention(Element::Bf16, 64);
        assert_eq!(same.modified(), None);
        assert_eq!(unit.source(&same), unit.source(&Sources::embedded()));
        let changed = folder.path().join("attention.cu");
        let attention = FILES.iter().find(|file| file.0 == "attention.cu").unwrap().1;
        std::fs::write(&changed, format!("{attention}// changed\n")).unwrap();
        let modified = Sources::read(folder.path()).unwrap();
        assert_eq!(modified.modified().unwrap().len(), 12);
        let source = unit.source(&modified);
        assert!(source.ends_with("// changed\n") && source.contains("#line 1 \"attention.cu\"\n"));
        assert_eq!(Unit::layers(Element::F32).source(&modified), Unit::layers(Element::F32).source(&same));
        std::fs::remove_file(&changed).unwrap();
        let error = Sources::read(folder.path()).err().unwrap().to_string();
        assert!(error.contains("attention.cu") && error.contains(FOLDER), "{error}");
    }

    #[test]
    fn every_text_of_a_unit_is_a_file() {
        for unit in Unit::all() {
            assert!(unit.texts().iter().all(|text| FILES.iter().any(|file| file.1 == *text)), "{}", unit.name);
        }
    }
}
