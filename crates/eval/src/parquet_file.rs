//! Parquet files as they are opened everywhere: the codecs that are read, and the column that is damaged.
use std::any::Any;
use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;

/// Reader of a file.
pub(crate) type Reader = SerializedFileReader<File>;

/// Reason for a file not being read, and what to do.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is damaged, or no Parquet.
    Broken(String),
    /// A codec that is not read.
    Codec { message: String, help: &'static str },
}

/// Codecs that are read, for people.
const READ: &str = "snappy, gzip, zstd, lz4 and plain ones are read";

/// Opens a file.
///
/// # Errors
/// Files that are damaged or compressed in a way that is not read.
pub(crate) fn open(file: File) -> Result<Reader, Unread> {
    let reader = guarded(|| SerializedFileReader::new(file)).map_err(Unread::Broken)?;
    use Compression::{GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    let mut chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    let unread = |codec| !matches!(codec, UNCOMPRESSED | SNAPPY | GZIP(_) | ZSTD(_) | LZ4 | LZ4_RAW);
    if let Some(chunk) = chunks.find(|chunk| unread(chunk.compression())) {
        let (column, name) = (chunk.column_path().string(), name_of(chunk.compression()));
        return Err(Unread::Codec {
            message: format!("its column `{column}` is compressed with {name}; {READ}"),
            help: "convert it by pandas: `python3 -c \"import pandas; pandas.read_parquet('FILE').to_parquet('NEW')\"`",
        });
    }
    Ok(reader)
}

fn name_of(codec: Compression) -> String {
    let name = codec.to_string();
    name.split('(').next().unwrap_or_default().to_owned()
}

/// Calls the library, which panics on some damaged files and rare types.
///
/// # Errors
/// The library's message, or that of its panic.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(in_words),
        Err(panic) => Err(said(&*panic)),
    }
}

/// The message of an error, without the library's name of its kind.
fn in_words(error: ParquetError) -> String {
    let message = match error {
        ParquetError::General(message) | ParquetError::NYI(message) => message,
        ParquetError::EOF(message) => format!("it ends too early: {message}"),
        ParquetError::IndexOutOfBound(place, count) => format!("it has no part {place}, of {count}"),
        ParquetError::External(cause) => cause.to_string(),
        ParquetError::NeedMoreData(_) | ParquetError::NeedMoreDataRange(_) => "it ends too early".to_owned(),
        other => other.to_string(),
    };
    // Errors of values that the library reads stand in others as texts.
    KINDS.iter().fold(message, |message, kind| message.replace(kind, ""))
}

/// Names of kinds, as the library writes them.
const KINDS: [&str; 4] = ["Parquet error: ", "External: ", "EOF: ", "NYI: "];

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it holds what no reader expects").to_owned()
}

/// The reason for a failure with the column whose pages or values cannot be read, which the library does not name.
pub(crate) fn with_column(reader: &Reader, reason: String) -> String {
    for (number, group) in reader.metadata().row_groups().iter().enumerate() {
        for (place, chunk) in group.columns().iter().enumerate() {
            let pages = || {
                let mut pages = reader.get_row_group(number)?.get_column_page_reader(place)?;
                while pages.get_next_page()?.is_some() {}
                Ok(())
            };
            if let Err(reason) = guarded(pages) {
                return format!("the pages of its {} cannot be read: {reason}", described(&[chunk]));
            }
        }
    }
    // Pages that are not compressed are handed on whatever they hold.
    let schema = reader.metadata().file_metadata().schema();
    for field in schema.get_fields() {
        let values = || {
            let only = Type::group_type_builder(schema.name()).with_fields(vec![Arc::clone(field)]).build()?;
            for row in reader.get_row_iter(Some(only))? {
                row?;
            }
            Ok(())
        };
        if let Err(reason) = guarded(values) {
            let groups = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
            let is_of = |chunk: &&ColumnChunkMetaData| {
                chunk.column_path().parts().first().is_some_and(|name| name == field.name())
            };
            let chunks: Vec<&ColumnChunkMetaData> = groups.filter(is_of).collect();
            return format!("the values of its {} cannot be read: {reason}", described(&chunks));
        }
    }
    reason
}

/// A column by its name and codec. A codec of none is doubted where the sizes are those of compressed pages.
fn described(chunks: &[&ColumnChunkMetaData]) -> String {
    let Some(first) = chunks.first() else { return "column".to_owned() };
    let parts = first.column_path().parts();
    // Several chunks of a group: the group itself.
    let paths: BTreeSet<String> = chunks.iter().map(|chunk| chunk.column_path().string()).collect();
    let column = if paths.len() == 1 { first.column_path().string() } else { parts[..1].concat() };
    let codecs: BTreeSet<String> = chunks.iter().map(|chunk| name_of(chunk.compression())).collect();
    let plain = |chunk: &&&ColumnChunkMetaData| chunk.compression() == Compression::UNCOMPRESSED;
    let lies = chunks.iter().filter(plain).any(|chunk| chunk.compressed_size() != chunk.uncompressed_size());
    let doubt = if lies { ", but its sizes are those of compressed pages" } else { "" };
    format!("column `{column}` (codec {}{doubt})", codecs.into_iter().collect::<Vec<_>>().join(" and "))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    fn written(codec: Compression, version: WriterVersion) -> Vec<u8> {
        let schema = Arc::new(
            parse_message_type("message m { required binary id (UTF8); optional binary text (UTF8); }").unwrap(),
        );
        let properties = WriterProperties::builder()
            .set_compression(codec)
            .set_writer_version(version)
            .set_dictionary_enabled(false)
            .build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let texts = |mark: &'static str| {
            (0..300).map(move |at| ByteArray::from(format!("{mark} {at} {}", "ab ".repeat(40)).as_str()))
        };
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts("id").collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let levels: Vec<i16> = (0..300).map(|at| i16::from(at % 3 > 0)).collect();
        let some: Vec<ByteArray> = texts("text").take(200).collect();
        column.typed::<ByteArrayType>().write_batch(&some, Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.into_inner().unwrap()
    }

    fn opened(bytes: &[u8]) -> Result<Reader, Unread> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        open(file)
    }

    fn rows(reader: &Reader) -> Result<usize, String> {
        let read = guarded(|| {
            let mut rows = 0;
            for row in reader.get_row_iter(None)? {
                assert_eq!(row?.len(), 2);
                rows += 1;
            }
            Ok(rows)
        });
        read.map_err(|reason| with_column(reader, reason))
    }

    fn codecs() -> [Compression; 6] {
        use Compression::{GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
        [UNCOMPRESSED, SNAPPY, GZIP(Default::default()), ZSTD(Default::default()), LZ4, LZ4_RAW]
    }

    #[test]
    fn every_codec_is_read_in_both_versions_of_pages() {
        for codec in codecs() {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                assert_eq!(rows(&opened(&written(codec, version)).unwrap()), Ok(300), "{codec} {version:?}");
            }
        }
    }

    #[test]
    fn a_damaged_page_is_named_by_its_column_and_codec() {
        for codec in codecs().into_iter().filter(|codec| *codec != Compression::UNCOMPRESSED) {
            let mut bytes = written(codec, WriterVersion::PARQUET_1_0);
            let second = opened(&bytes).unwrap().metadata().row_group(0).column(1).byte_range();
            let (start, end) = ((second.0 + second.1 / 2) as usize, (second.0 + second.1) as usize);
            bytes[start..end].fill(0xff);
            let reason = rows(&opened(&bytes).unwrap()).unwrap_err();
            let expected = format!("the pages of its column `text` (codec {}) cannot be read: ", name_of(codec));
            assert!(reason.starts_with(&expected), "{reason}");
            assert!(KINDS.iter().all(|kind| !reason.contains(kind)), "{reason}");
        }
    }

    #[test]
    fn errors_are_said_without_their_kinds() {
        let external = |error: &str| ParquetError::External(error.into());
        for (error, expected) in [
            (external("snappy: corrupt input"), "snappy: corrupt input"),
            (ParquetError::General("External: Parquet error: no footer".into()), "no footer"),
            (ParquetError::EOF("4 bytes are missing".into()), "it ends too early: 4 bytes are missing"),
        ] {
            assert_eq!(in_words(error), expected);
        }
        // Snappy's pages, said to be those of Zstandard.
        let field = |codec: u8| [b"id".as_slice(), &[0x15, codec, 0x16, 0xd8, 0x04]].concat();
        let other = replaced(&written(Compression::SNAPPY, WriterVersion::PARQUET_1_0), &field(0x02), &field(0x0c));
        let said = rows(&opened(&other).unwrap()).unwrap_err();
        assert!(
            said.ends_with("not the Zstandard frames that were expected: they do not begin as such frames do"),
            "{said}"
        );
    }

    /// The same bytes with a field of a header replaced.
    fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        [&bytes[..at], to, &bytes[at + from.len()..]].concat()
    }

    /// The same file, whose metadata name another codec for a column.
    fn labelled(bytes: &[u8], column: &str, to: u8) -> Vec<u8> {
        // The end of the path, then the fields of the codec and of the 300 values.
        let field = |codec: u8| [column.as_bytes(), &[0x15, codec, 0x16, 0xd8, 0x04]].concat();
        replaced(bytes, &field(0x0c), &field(to))
    }

    #[test]
    fn a_codec_that_lies_is_named_with_its_column() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let bytes = written(Compression::ZSTD(Default::default()), version);
            for column in ["id", "text"] {
                let plain = labelled(&bytes, column, 0x00);
                let reader = opened(&plain).unwrap();
                assert!(reader.metadata().row_group(0).columns().iter().any(|chunk| {
                    chunk.column_path().string() == column && chunk.compression() == Compression::UNCOMPRESSED
                }));
                let reason = rows(&reader).unwrap_err();
                let expected = format!(
                    "the values of its column `{column}` (codec UNCOMPRESSED, but its sizes are those of compressed pages) cannot be read: "
                );
                assert!(reason.starts_with(&expected), "{version:?} {reason}");
                // Another codec than that of the pages.
                let reason = rows(&opened(&labelled(&bytes, column, 0x02)).unwrap()).unwrap_err();
                let expected = format!("the pages of its column `{column}` (codec SNAPPY) cannot be read: ");
                assert!(reason.starts_with(&expected), "{version:?} {reason}");
            }
        }
    }

    #[test]
    fn sizes_that_lie_are_refused() {
        let bytes = written(Compression::ZSTD(Default::default()), WriterVersion::PARQUET_1_0);
        let reader = opened(&bytes).unwrap();
        let mut pages = reader.get_row_group(0).unwrap().get_column_page_reader(0).unwrap();
        let size = pages.get_next_page().unwrap().unwrap().buffer().len() as u64;
        // Zigzag and varint of three bytes, after the field's mark.
        let field = |size: u64| {
            let size = size * 2;
            [0x15, (size & 0x7f | 0x80) as u8, (size >> 7 & 0x7f | 0x80) as u8, (size >> 14) as u8]
        };
        for (said, reason) in [(9_000, "they hold more than 9000 bytes"), (1_000_000, "Actual decompressed size")] {
            let lying = replaced(&bytes, &field(size), &field(said));
            let found = rows(&opened(&lying).unwrap()).unwrap_err();
            assert!(
                found.starts_with("the pages of its column `id` (codec ZSTD)") && found.contains(reason),
                "{found}"
            );
        }
    }
}
