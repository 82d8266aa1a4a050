//! Files of every codec, and files whose metadata lie.
use std::io::Write;

use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::reason::KINDS;
use super::*;

fn written(codec: Compression, version: WriterVersion) -> Vec<u8> {
    let schema =
        Arc::new(parse_message_type("message m { required binary id (UTF8); optional binary text (UTF8); }").unwrap());
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
    let mut rows = reader.rows(None);
    let mut count = 0;
    while let Some(row) = rows.next().map_err(|damage| damage.to_string())? {
        assert_eq!(row.len(), 2);
        count += 1;
    }
    Ok(count)
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
        assert_eq!(in_words(error).to_string(), expected);
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
            // The values, or already their page, whose texts are longer than it is.
            let expected = format!(
                "of its column `{column}` (codec UNCOMPRESSED, but its sizes are those of compressed pages) cannot be read: "
            );
            assert!(reason.contains(&expected), "{version:?} {reason}");
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
    let mut pages = reader.library.get_row_group(0).unwrap().get_column_page_reader(0).unwrap();
    let size = pages.get_next_page().unwrap().unwrap().buffer().len() as u64;
    // Zigzag and varint of three bytes, after the field's mark.
    let field = |size: u64| {
        let size = size * 2;
        [0x15, (size & 0x7f | 0x80) as u8, (size >> 7 & 0x7f | 0x80) as u8, (size >> 14) as u8]
    };
    for (said, reason) in [(9_000, "they hold more than 9000 bytes"), (1_000_000, "Actual decompressed size")] {
        let lying = replaced(&bytes, &field(size), &field(said));
        let found = rows(&opened(&lying).unwrap()).unwrap_err();
        assert!(found.starts_with("the pages of its column `id` (codec ZSTD)") && found.contains(reason), "{found}");
    }
}

/// A file of one column of equal numbers, which take almost no bytes, in pages of so many rows.
fn equal(rows: usize, page: usize) -> Vec<u8> {
    let schema = Arc::new(parse_message_type("message m { required int64 x; }").unwrap());
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_data_page_row_count_limit(page)
        .set_write_batch_size(page)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&vec![1; rows], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn rows_and_pages_of_almost_no_bytes_are_bounded() {
    let bytes = equal(1_500_000, 100_000);
    let Err(Unread::Broken(reason)) = opened(&bytes) else { panic!("{} bytes", bytes.len()) };
    let limit = format!("a file may have 1000000 and 2 for each of its {} bytes", bytes.len());
    assert_eq!(reason.to_string(), format!("it has 1500000 rows or more; {limit}"));
    let reader = opened(&equal(120_000, 1)).unwrap();
    let reason = reader.rows(None).next().unwrap_err().to_string();
    // 100,000 and an eighth of the values so far.
    assert!(reason.starts_with("column `x` (codec UNCOMPRESSED): a file of 1142"), "{reason}");
    assert!(reason.ends_with("100000 are read, and one for every 8 values"), "{reason}");
    let reader = opened(&equal(20_000, 1)).unwrap();
    let mut rows = reader.rows(None);
    let mut count = 0;
    while rows.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 20_000);
}

#[test]
fn the_damaged_column_of_thousands_is_found_at_once() {
    let names: Vec<String> = (0..8_000).map(|index| format!("required binary c{index} (UTF8);")).collect();
    let schema = Arc::new(parse_message_type(&format!("message m {{ {} }}", names.concat())).unwrap());
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for index in 0..names.len() {
        let text = if index == 7_001 { ByteArray::from(vec![0xff]) } else { ByteArray::from("x") };
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&[text], None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    let reader = opened(&writer.into_inner().unwrap()).unwrap();
    let start = std::time::Instant::now();
    let reason = reader.rows(None).next().unwrap_err().to_string();
    assert!(reason.starts_with("the values of its column `c7001` (codec UNCOMPRESSED) cannot be read: "), "{reason}");
    // Each column on its own would take a minute.
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}
