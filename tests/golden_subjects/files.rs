//! Golden files, plain or compressed: `NAME` is read from `NAME.gz` where it is not there itself.
#![allow(dead_code, reason = "every program of tests and benches uses a part of it")]
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// True if the file is there in either form. A dangling link is there: it is a damaged file, not an absent one.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok() || compressed(path).symlink_metadata().is_ok()
}

/// The file's text; the plain file's if both forms are there.
pub fn read(path: &Path) -> io::Result<String> {
    let packed = compressed(path);
    if path.symlink_metadata().is_ok() || packed.symlink_metadata().is_err() {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    MultiGzDecoder::new(fs::File::open(packed)?).read_to_string(&mut text)?;
    Ok(text)
}

/// Names with this ending in a folder, in order and each once, as those of plain files.
pub fn names(folder: &Path, ending: &str) -> Vec<String> {
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        (name.ends_with(ending) && !entry.path().is_dir()).then(|| name.to_owned())
    };
    let names: BTreeSet<String> = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(name).collect();
    names.into_iter().collect()
}

fn compressed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    name.into()
}
