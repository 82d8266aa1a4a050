//! Stored runs for the commands that read them.
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::results;
use earnest_eval::report::page::QuestionTexts;
use earnest_eval::report::{Document, ReportError, Row, Rows, StoredRows};
use earnest_eval::run::store::{RunRecord, Store};
use earnest_eval::run::{Manifest, Sample};
use earnest_tasks::suite::Item;

/// A run and where its rows are.
pub struct StoredRun {
    pub manifest: Manifest,
    /// The run for people: its name in the results folder.
    pub place: String,
    results: PathBuf,
    record: RunRecord,
}

impl StoredRun {
    /// The run with this name (or a beginning of it that only one run has) in the results folder.
    pub fn open(results: &Path, name: &str) -> Result<Self, CliError> {
        let record = Store::open(results)?.run(name)?;
        Ok(Self::record(results, record))
    }

    /// Every run of the results folder.
    pub fn all(results: &Path) -> Result<Vec<Self>, CliError> {
        let runs = Store::open(results)?.runs()?;
        Ok(runs.into_iter().map(|record| Self::record(results, record)).collect())
    }

    fn record(results: &Path, record: RunRecord) -> Self {
        let place = format!("{} in {}", record.manifest.run, results.display());
        StoredRun { manifest: record.manifest.clone(), place, results: results.to_owned(), record }
    }

    /// Results, as [`results::document`] makes them.
    pub fn document(&self) -> Result<Document, CliError> {
        let document = results::document(&Store::open(&self.results)?, &self.record)?;
        Ok(Document { folder: self.place.clone(), ..document })
    }

    /// Shows every question, as [`results::each_question`] does.
    pub fn each_question(&self, each: impl FnMut(Item)) -> Result<(), CliError> {
        results::each_question(&Store::open(&self.results)?, &self.record, each)
    }

    /// Questions by item, without the chat template.
    pub fn questions(&self) -> Result<QuestionTexts, CliError> {
        let mut questions = QuestionTexts::default();
        self.each_question(|item| questions.add(item))?;
        Ok(questions)
    }

    /// True if the question of every row is stored.
    pub fn has_questions(&self) -> Result<bool, CliError> {
        Ok(Store::open(&self.results)?.has_questions(&self.record)?)
    }

    /// All rows in memory.
    pub fn samples(&self) -> Result<Vec<Sample>, ReportError> {
        let mut samples = Vec::new();
        self.walk(&mut |sample| {
            samples.push(sample.clone());
            Ok(())
        })?;
        Ok(samples)
    }
}

impl Rows for StoredRun {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        let store = Store::open(&self.results)?;
        StoredRows { store: &store, run: &self.record }.walk(row)
    }

    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), ReportError>) -> Result<(), ReportError> {
        let store = Store::open(&self.results)?;
        StoredRows { store: &store, run: &self.record }.walk_asked(row)
    }
}

/// Writes a file in one step: beside its place, then renamed, so that an old one stays until the new one is whole. A link
/// stays a link, and what is no file (a device, a pipe) is written to as it is. `-` is standard output.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn std::io::Write + Send)) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    use std::io::Write;
    let failed = |source: std::io::Error| ReportError::Write { path: path.to_owned(), source };
    if path == Path::new("-") {
        let mut out = std::io::BufWriter::new(StandardOutput { reader_left: false });
        write(&mut out)?;
        return out.flush().map_err(failed);
    }
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

/// Standard output, whose reader may leave early (`| head`): that is no error, and nothing more is written.
struct StandardOutput {
    reader_left: bool,
}

impl std::io::Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.reader_left {
            return Ok(bytes.len());
        }
        match std::io::stdout().write(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.reader_left = true;
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.reader_left {
            return Ok(());
        }
        match std::io::stdout().flush() {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.reader_left = true;
                Ok(())
            }
            flushed => flushed,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn hello(out: &mut (dyn std::io::Write + Send)) -> Result<(), ReportError> {
        out.write_all(b"hello")
            .and_then(|()| out.flush())
            .map_err(|source| ReportError::Write { path: PathBuf::from("out"), source })
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        use std::os::unix::fs::FileTypeExt;
        // Links of our own: a mistake here must not replace the system's device.
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
