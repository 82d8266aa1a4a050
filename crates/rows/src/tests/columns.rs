//! Files of Parquet.
use std::fs::File;

use parquet::basic::{Compression as Codec, GzipLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use super::*;

type Group<'a> = SerializedRowGroupWriter<'a, File>;

/// Writes a file of one group of rows, whose columns the function writes in the order of the schema.
fn parquet(folder: &Folder, name: &str, schema: &str, columns: impl FnOnce(&mut Group<'_>)) -> RowSource {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let codec = if name.starts_with("gzip") { Codec::GZIP(GzipLevel::default()) } else { Codec::SNAPPY };
    let properties = WriterProperties::builder().set_compression(codec).build();
    let file = File::create(folder.path(name)).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    columns(&mut group);
    group.close().unwrap();
    writer.close().unwrap();
    source(&[&folder.path(name)])
}

fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T], levels: Option<&[i16]>, repeated: Option<&[i16]>) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, levels, repeated).unwrap();
    column.close().unwrap();
}

#[test]
fn columns_become_json() {
    let folder = Folder::new();
    let schema = "message row {
        optional binary question (UTF8);
        required int64 answer;
        required int32 small (INTEGER(8, false));
        required int64 huge (INTEGER(64, false));
        required boolean easy;
        required double price;
        required float ratio;
        required int32 cost (DECIMAL(5, 2));
        required int32 whole (DECIMAL(5, 0));
        required int32 day (DATE);
        required int64 nanos (TIMESTAMP(NANOS, false));
        required int64 micros (TIMESTAMP(MICROS, true));
        required int64 clock (TIME(NANOS, true));
        required binary raw;
        required group choices (LIST) { repeated group list { optional binary element (UTF8); } }
        required group times (LIST) { repeated group list { required int64 element (TIMESTAMP(NANOS, true)); } }
        required group inner { optional int32 a; required binary b (UTF8); }
    }";
    let text = |text: &str| ByteArray::from(text);
    let source = parquet(&folder, "q.parquet", schema, |group| {
        column::<ByteArrayType>(group, &[text("a \"b\"\n")], Some(&[1, 0]), None);
        column::<Int64Type>(group, &[i64::MAX, -1], None, None);
        column::<Int32Type>(group, &[200, 0], None, None);
        column::<Int64Type>(group, &[-1, 0], None, None);
        column::<BoolType>(group, &[true, false], None, None);
        column::<DoubleType>(group, &[0.1, f64::NAN], None, None);
        column::<FloatType>(group, &[0.1, 1e20], None, None);
        column::<Int32Type>(group, &[150, -7], None, None);
        column::<Int32Type>(group, &[150, -7], None, None);
        column::<Int32Type>(group, &[19_782, -1], None, None);
        column::<Int64Type>(group, &[1_709_210_096_000_000_001, 0], None, None);
        column::<Int64Type>(group, &[1_709_210_096_500_000, -1], None, None);
        column::<Int64Type>(group, &[3_600_000_000_000, 1], None, None);
        column::<ByteArrayType>(group, &[text("é"), text("")], None, None);
        column::<ByteArrayType>(group, &[text("A"), text("B")], Some(&[2, 1, 2, 0]), Some(&[0, 1, 1, 0]));
        column::<Int64Type>(group, &[0], Some(&[1, 0]), Some(&[0, 0]));
        column::<Int32Type>(group, &[5], Some(&[1, 0]), None);
        column::<ByteArrayType>(group, &[text("x"), text("y")], None, None);
    });
    let expected = [
        json!({
            "question": "a \"b\"\n", "answer": i64::MAX, "small": 200, "huge": u64::MAX, "easy": true, "price": 0.1, "ratio": 0.1,
            "cost": 1.5, "whole": 150, "day": "2024-02-29", "nanos": "2024-02-29T12:34:56.000000001",
            "micros": "2024-02-29T12:34:56.5Z", "clock": "01:00:00", "raw": "é", "choices": ["A", null, "B"],
            "times": ["1970-01-01T00:00:00Z"], "inner": {"a": 5, "b": "x"},
        }),
        json!({
            "question": null, "answer": -1, "small": 0, "huge": 0, "easy": false, "price": null, "ratio": 1e20, "cost": -0.07,
            "whole": -7, "day": "1969-12-31", "nanos": "1970-01-01T00:00:00", "micros": "1969-12-31T23:59:59.999999Z",
            "clock": "00:00:00.000000001", "raw": "", "choices": [], "times": [], "inner": {"a": null, "b": "y"},
        }),
    ];
    assert_eq!(values(&source), expected);
    let rows = read(&source);
    assert_eq!(numbers(&*rows), ["row 1", "row 2"]);
    assert_eq!(rows.row(0).unwrap().text("cost").as_deref(), Some("1.50"));
    let bytes = std::fs::read(folder.path("q.parquet")).unwrap();
    assert_eq!(rows.files()[0].sha256, earnest_digest::hex(&earnest_digest::sha256(&bytes)));
    assert_eq!(values(&folder.file("packed.parquet.gz", gzip(&bytes))), expected);
}

#[test]
fn values_without_a_json_form_are_bad_rows() {
    let folder = Folder::new();
    let schema = "message row { required double x; required group image { required binary bytes; } }";
    let source = parquet(&folder, "gzip.parquet", schema, |group| {
        column::<DoubleType>(group, &[1.0, f64::INFINITY, 3.0], None, None);
        let bytes = [b"ok".to_vec(), b"ok".to_vec(), vec![0xff, 0xd8]].map(ByteArray::from);
        column::<ByteArrayType>(group, &bytes, None, None);
    });
    let (message, help) = folder.said(&super::super::read(&source).map(|rows| rows.len()).unwrap_err());
    let expected = "2 rows cannot be read: gzip.parquet, row 2: the column `x` holds inf, which JSON cannot; \
        gzip.parquet, row 3: the column `image.bytes` holds bytes that are not UTF-8; leave it out of the file";
    assert_eq!(message, expected);
    assert!(help.contains("setting `skip_bad_rows`"));
    assert_eq!(values(&skipping(source)), [json!({"x": 1.0, "image": {"bytes": "ok"}})]);
}

#[test]
fn rows_that_take_too_much_are_bad_ones_with_their_reason() {
    let folder = Folder::new();
    let schema = "message row {
        required fixed_len_byte_array(65) cost (DECIMAL(150, 2));
        required group list (LIST) { repeated group list { optional int32 element; } }
        required group map (MAP) { repeated group key_value { required int32 key; required int32 value; } }
    }";
    let source = parquet(&folder, "q.parquet", schema, |group| {
        column::<FixedLenByteArrayType>(group, &[ByteArray::from(vec![1; 65]).into()], None, None);
        column::<Int32Type>(group, &[], Some(&[0]), Some(&[0]));
        column::<Int32Type>(group, &[1], Some(&[1]), Some(&[0]));
        column::<Int32Type>(group, &[1], Some(&[1]), Some(&[0]));
    });
    let refused = |source: &RowSource| folder.said(&super::super::read(source).map(|rows| rows.len()).unwrap_err()).0;
    let expected = "q.parquet, row 1: the column `cost` holds a decimal of 65 bytes; up to 64 are read";
    assert_eq!(refused(&source), expected);

    let schema = "message row { required group list (LIST) { repeated group list { optional int32 element; } } }";
    let count = 1_200_000;
    let source = parquet(&folder, "q.parquet", schema, |group| {
        let repeated: Vec<i16> = (0..count).map(|index| i16::from(index > 0)).collect();
        column::<Int32Type>(group, &[], Some(&vec![1; count]), Some(&repeated));
    });
    assert_eq!(refused(&source), "q.parquet, row 1: its lists and objects take more than 64 MiB of memory");

    let schema = "message row {
        required group map (MAP) { repeated group key_value { required int32 key; required int32 value; } }
    }";
    let source = parquet(&folder, "q.parquet", schema, |group| {
        column::<Int32Type>(group, &[7, 7], Some(&[1, 1]), Some(&[0, 1]));
        column::<Int32Type>(group, &[1, 2], Some(&[1, 1]), Some(&[0, 1]));
    });
    assert_eq!(refused(&source), "q.parquet, row 1: the column `map` holds a map that has a key twice");

    let schema = "message row { required group part { required int32 a; required int32 a; } }";
    let source = parquet(&folder, "q.parquet", schema, |group| {
        column::<Int32Type>(group, &[1], None, None);
        column::<Int32Type>(group, &[2], None, None);
    });
    assert_eq!(refused(&source), "q.parquet: it has two columns, or parts of one, that are called `a`");
}

#[test]
fn damaged_files_and_other_forms_are_refused() {
    let folder = Folder::new();
    let refused = |source: &RowSource| folder.said(&super::super::read(source).map(|rows| rows.len()).unwrap_err());
    let schema = "message row { required int32 x; }";
    let whole = parquet(&folder, "q.parquet", schema, |group| column::<Int32Type>(group, &[1, 2, 3], None, None));
    assert_eq!(values(&whole).len(), 3);
    let bytes = std::fs::read(folder.path("q.parquet")).unwrap();
    for content in [&bytes[..bytes.len() / 2], b"{}", b"", b"PAR1", &bytes[4..]] {
        let (message, help) = refused(&folder.file("cut.parquet", content));
        assert!(message.starts_with("cut.parquet: it cannot be read as Parquet: ") && !help.is_empty(), "{message}");
    }
    // Every single byte that is wrong is an error or another value, and never ends the program.
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x5a;
        if let Ok(rows) = super::super::read(&folder.file("changed.parquet", changed)) {
            assert!(rows.len() <= 3);
        }
    }
    let empty = parquet(&folder, "empty.parquet", schema, |group| column::<Int32Type>(group, &[], None, None));
    assert_eq!(refused(&empty).0, "empty.parquet: the file has no rows");
    let schema = "message row { required fixed_len_byte_array(12) pause (INTERVAL); }";
    let source = parquet(&folder, "interval.parquet", schema, |group| {
        column::<FixedLenByteArrayType>(group, &[ByteArray::from(vec![0; 12]).into()], None, None);
    });
    let (message, help) = refused(&source);
    assert!(message.contains("the column `pause` holds intervals") && help.contains("leave it out"), "{message}");
}
