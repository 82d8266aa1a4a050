//! Files of every format, good and bad, through [`super::read`].

mod arbitrary;
mod columns;
mod formats;
mod large;
mod refused;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use earnest_tasks::suite::registry::{OptionError, Row, RowSource, Rows};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

/// A temporary folder of files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and returns what names it.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> RowSource {
        std::fs::write(self.path(name), content).unwrap();
        source(&[&self.path(name)])
    }

    /// Message and help without the folder's name.
    fn said(&self, error: &OptionError) -> (String, String) {
        let folder = format!("{}{}", self.0.path().display(), std::path::MAIN_SEPARATOR);
        let plain = |text: &str| text.replace(&folder, "");
        (plain(&error.message), plain(error.help.as_deref().unwrap_or_default()))
    }
}

fn source(paths: &[&Path]) -> RowSource {
    RowSource { paths: paths.iter().map(|path| path.to_path_buf()).collect(), ..RowSource::default() }
}

fn skipping(source: RowSource) -> RowSource {
    RowSource { skip_bad_rows: true, ..source }
}

fn read(source: &RowSource) -> Arc<dyn Rows> {
    super::read(source).unwrap_or_else(|error| panic!("{error}"))
}

fn all(rows: &dyn Rows) -> Vec<Row> {
    (0..rows.len()).map(|number| rows.row(number).unwrap()).collect()
}

/// Values of all rows of a file.
fn values(source: &RowSource) -> Vec<Value> {
    all(&*read(source)).into_iter().map(|row| Value::Object(row.values)).collect()
}

/// Ends of the rows' places.
fn numbers(rows: &dyn Rows) -> Vec<String> {
    all(rows).iter().map(|row| row.place.rsplit(", ").next().unwrap().to_owned()).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
