//! Output files that appear complete or not at all.
use std::io::Write;
use std::path::Path;

use super::ReportError;

/// Writes a file in one step: beside its place, then renamed, so that an old file stays until the new one is complete. A symbolic
/// link stays one, and a device or pipe is written to directly.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let failed = |source: std::io::Error| ReportError::Write { path: path.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let device = std::fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
        let mut out = std::io::BufWriter::with_capacity(1 << 18, device);
        write(&mut out)?;
        return out.flush().map_err(failed);
    }
    let linked = std::fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink());
    let place = if linked { std::fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let beside = place.with_file_name(name);
    let attempt = || -> Result<(), ReportError> {
        let file = std::fs::File::create(&beside).map_err(failed)?;
        let mut out = std::io::BufWriter::with_capacity(1 << 18, file);
        write(&mut out)?;
        out.flush().map_err(failed)?;
        std::fs::rename(&beside, &place).map_err(failed)
    };
    attempt().inspect_err(|_| {
        std::fs::remove_file(&beside).ok();
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn hello(out: &mut (dyn Write + Send)) -> Result<(), ReportError> {
        out.write_all(b"hello")
            .and_then(|()| out.flush())
            .map_err(|source| ReportError::Write { path: PathBuf::from("out"), source })
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        use std::os::unix::fs::FileTypeExt;
        // A link of the test: a mistake here must not replace the system's device.
        let folder = tempfile::tempdir().unwrap();
        let full = folder.path().join("full");
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        assert!(write_file(&full, hello).is_err(), "a full disk is an error");
        assert!(std::fs::metadata(&full).unwrap().file_type().is_char_device());
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_file(&link, hello).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "hello");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside");
    }
}
