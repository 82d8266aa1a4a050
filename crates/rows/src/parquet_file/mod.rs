//! Parquet files as they are opened everywhere: what they may ask for, the codecs that are read, and the column that is damaged.
//!
//! A file is not trusted. Its footer is looked over before the library reads it ([`footer`]), the headers of a row group's pages
//! before their pages ([`survey`]), and each page before its values ([`pages`]): depth, counts and sizes decide what the library
//! takes of stack and memory. What is left to it can be damaged only, which is an error or a panic that is caught.
mod damage;
mod footer;
mod header;
mod levels;
mod pages;
mod reason;
mod survey;
mod thrift;
mod values;

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

use earnest_isolation::caught;
use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::record::Row;
use parquet::record::reader::{ReaderIter, RowIter, TreeBuilder};
use parquet::schema::types::{ColumnPath, SchemaDescPtr, SchemaDescriptor, Type};

pub(crate) use footer::MOST_COLUMNS;
use levels::Window;
use pages::{GzipPages, Held, PageSource, Pages};
pub(crate) use reason::Damage;
use reason::in_words;
use survey::{Source, Totals, most_memory, survey};
pub(crate) use values::text;

/// Bytes of pages of rows that are held, beyond those of the pages themselves.
const MEMORY_OF_ROWS: u64 = 256 << 20;

/// A file that was opened.
pub(crate) struct Reader {
    library: SerializedFileReader<File>,
    file: Arc<File>,
    size: u64,
}

/// Reason for a file not being read, and what to do.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is damaged, beyond a limit, or no Parquet.
    Broken(Damage),
    /// A codec that is not read.
    Codec { message: String, help: &'static str },
}

/// Codecs that are read, for people.
const READ: &str = "snappy, gzip, zstd, lz4 and plain ones are read";

/// Opens a file.
///
/// # Errors
/// Files that are damaged, beyond a limit, or compressed in a way that is not read.
pub(crate) fn open(file: File) -> Result<Reader, Unread> {
    let broken = |error: std::io::Error| Unread::Broken(Damage(error.to_string()));
    let size = file.metadata().map_err(broken)?.len();
    footer::check(&file, size).map_err(Unread::Broken)?;
    let copy = file.try_clone().map_err(broken)?;
    let library = guarded(|| SerializedFileReader::new(copy)).map_err(Unread::Broken)?;
    use Compression::{GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    let mut chunks = library.metadata().row_groups().iter().flat_map(|group| group.columns());
    let unread = |codec| !matches!(codec, UNCOMPRESSED | SNAPPY | GZIP(_) | ZSTD(_) | LZ4 | LZ4_RAW);
    if let Some(chunk) = chunks.find(|chunk| unread(chunk.compression())) {
        let (column, name) = (chunk.column_path().string(), name_of(chunk.compression()));
        return Err(Unread::Codec {
            message: format!("its column `{column}` is compressed with {name}; {READ}"),
            help: "convert it by pandas: `python3 -c \"import pandas; pandas.read_parquet('FILE').to_parquet('NEW')\"`",
        });
    }
    Ok(Reader { library, file: Arc::new(file), size })
}

fn name_of(codec: Compression) -> String {
    let name = codec.to_string();
    name.split('(').next().unwrap_or_default().to_owned()
}

/// Reason for rows that cannot be read.
enum Failure {
    /// It names the column, where there is one.
    Explained(Damage),
    /// The library's words, which do not.
    Unexplained(Damage),
}

impl Failure {
    fn into_reason(self) -> Damage {
        match self {
            Failure::Explained(reason) | Failure::Unexplained(reason) => reason,
        }
    }
}

impl Reader {
    pub fn metadata(&self) -> &ParquetMetaData {
        self.library.metadata()
    }

    /// Number of rows: those of its row groups, which are read.
    pub fn len(&self) -> usize {
        let rows = self.metadata().row_groups().iter().map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        rows.fold(0, usize::saturating_add)
    }

    /// The rows, with the columns of a schema that is a part of the file's, or with all of them.
    pub fn rows(&self, projection: Option<Type>) -> Rows<'_> {
        let schema = match projection {
            Some(schema) => Arc::new(SchemaDescriptor::new(Arc::new(schema))),
            None => self.metadata().file_metadata().schema_descr_ptr(),
        };
        let wanted = schema.columns().iter().map(|column| column.path().clone()).collect();
        let end = self.metadata().num_row_groups();
        Rows { reader: self, schema, wanted, next: 0, end, current: None, totals: Totals::default() }
    }

    fn source(&self) -> Source<'_> {
        Source { file: &self.file, size: self.size }
    }

    /// A row group of which these columns are to be read.
    fn group(
        &self,
        number: usize,
        wanted: &dyn Fn(&ColumnChunkMetaData) -> bool,
        totals: &mut Totals,
    ) -> Result<Group<'_>, Failure> {
        let metadata = self.metadata().row_group(number);
        let chunks = metadata.columns().iter().filter(|chunk| wanted(chunk));
        let batch = survey(self.source(), metadata.num_rows(), chunks, totals).map_err(Failure::Explained)?;
        let library = guarded(|| self.library.get_row_group(number)).map_err(Failure::Unexplained)?;
        Ok(Group { reader: self, library, batch, held: self.held() })
    }

    /// A count of what is held of a row group.
    fn held(&self) -> Arc<Held> {
        Held::new(most_memory(self.size) + MEMORY_OF_ROWS)
    }
}

/// Rows of a file, one after the other.
pub(crate) struct Rows<'a> {
    reader: &'a Reader,
    schema: SchemaDescPtr,
    wanted: HashSet<ColumnPath>,
    /// Number of the next row group.
    next: usize,
    /// Number of row groups up to the last that is read.
    end: usize,
    current: Option<ReaderIter>,
    totals: Totals,
}

impl Rows<'_> {
    /// The next row; none after the last.
    ///
    /// # Errors
    /// What is damaged or beyond a limit, with the column.
    pub fn next(&mut self) -> Result<Option<Row>, Damage> {
        self.read().map_err(|failure| match failure {
            Failure::Explained(reason) => reason,
            // The row group before the next one.
            Failure::Unexplained(reason) => damage::with_column(self.reader, self.next.saturating_sub(1), reason),
        })
    }

    fn read(&mut self) -> Result<Option<Row>, Failure> {
        loop {
            if let Some(rows) = &mut self.current {
                if let Some(row) = guarded(|| rows.next().transpose()).map_err(Failure::Unexplained)? {
                    return Ok(Some(row));
                }
                self.current = None;
            }
            if self.next == self.end {
                return Ok(None);
            }
            let wanted = |chunk: &ColumnChunkMetaData| self.wanted.contains(chunk.column_path());
            self.next += 1;
            let group = self.reader.group(self.next - 1, &wanted, &mut self.totals)?;
            let rows = TreeBuilder::new().with_batch_size(group.batch);
            let rows = guarded(|| rows.as_iter(Arc::clone(&self.schema), &group));
            self.current = Some(rows.map_err(Failure::Unexplained)?);
        }
    }
}

/// A row group whose pages are looked over.
struct Group<'a> {
    reader: &'a Reader,
    library: Box<dyn RowGroupReader + 'a>,
    /// Rows that are read at a time.
    batch: usize,
    held: Arc<Held>,
}

impl Group<'_> {
    fn pages(&self, index: usize) -> Result<Pages, ParquetError> {
        let chunk = self.metadata().column(index);
        let source = match chunk.compression() {
            Compression::GZIP(_) => {
                let (at, end) = self.reader.source().range(chunk)?;
                let file = Arc::clone(&self.reader.file);
                PageSource::Gzip(GzipPages { file, size: self.reader.size, at, end, next: None })
            }
            _ => PageSource::Library(self.library.get_column_page_reader(index)?),
        };
        let (column, held) = (chunk.column_descr_ptr(), Arc::clone(&self.held));
        Ok(Pages { source, column, index, window: Window::new(self.batch), held, dictionary: 0 })
    }
}

impl RowGroupReader for Group<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.library.metadata()
    }

    fn num_columns(&self) -> usize {
        self.library.num_columns()
    }

    fn get_column_page_reader(&self, index: usize) -> Result<Box<dyn PageReader>, ParquetError> {
        Ok(Box::new(self.pages(index)?))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>, ParquetError> {
        RowIter::from_row_group(projection, self)
    }
}

/// Calls the library, which panics on some damaged files and rare types.
///
/// # Errors
/// The library's message, or that of its panic.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Damage> {
    match caught(call) {
        Ok(result) => result.map_err(in_words),
        Err(message) => Err(Damage(message)),
    }
}

#[cfg(test)]
mod tests;
