//! Apache Parquet: one row per sample, compressed with gzip.
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::{Cell, Column, Columns, Kind};
use earnest_results::{MANIFEST, Manifest, Row, Rows, RowsError};

/// Rows per row group.
const GROUP: usize = 16_384;

/// Writes the rows and returns their number. All columns are nullable; token ids are lists of 32-bit integers; the file's metadata
/// has the manifest under `earnest.manifest`.
pub fn write_parquet(rows: &dyn Rows, manifest: &Manifest, out: impl Write + Send) -> Result<usize, RowsError> {
    let (columns, _) = Columns::survey(rows)?;
    write_notes(rows, &columns, manifest, Vec::new(), out)
}

/// Writes these columns of the rows, with further notes in the file's metadata, and returns the number of rows.
pub(crate) fn write_notes(
    rows: &dyn Rows,
    columns: &Columns,
    manifest: &Manifest,
    notes: Vec<(&str, String)>,
    out: impl Write + Send,
) -> Result<usize, RowsError> {
    let schema = schema(columns).map_err(failed)?;
    let level = GzipLevel::try_new(6).map_err(failed)?;
    let manifest = serde_json::to_string(manifest).map_err(|error| failed(error.to_string()))?;
    let notes = std::iter::once((MANIFEST, manifest)).chain(notes);
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(level))
        .set_created_by(format!("earnest {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(notes.map(|(name, note)| KeyValue::new(name.to_owned(), note)).collect()))
        .build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(failed)?;
    let mut group: Vec<Row> = Vec::new();
    let mut count = 0;
    rows.walk_asked(&mut |row| {
        group.push(row.clone());
        count += 1;
        if group.len() == GROUP {
            write_group(&mut writer, columns, &group).map_err(failed)?;
            group.clear();
        }
        Ok(())
    })?;
    if !group.is_empty() {
        write_group(&mut writer, columns, &group).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(count)
}

fn failed(error: impl std::fmt::Display) -> RowsError {
    RowsError::Format { format: "Parquet", reason: error.to_string() }
}

fn schema(columns: &Columns) -> Result<TypePtr, ParquetError> {
    let fields = columns.0.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("sample").with_fields(fields).build()?))
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let plain = |physical| Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    let built = match column.kind {
        Kind::Truth => plain(Physical::BOOLEAN).build()?,
        Kind::Integer => plain(Physical::INT64).build()?,
        Kind::Number => plain(Physical::DOUBLE).build()?,
        Kind::Text => plain(Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::String)).build()?,
        // The three levels that the format prescribes for lists.
        Kind::Ids => {
            let element = Type::primitive_type_builder("element", Physical::INT32)
                .with_repetition(Repetition::REQUIRED)
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            Type::group_type_builder(&column.name)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build()?
        }
    };
    Ok(Arc::new(built))
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    columns: &Columns,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in &columns.0 {
        let Some(mut out) = group.next_column()? else {
            return Err(ParquetError::General(format!("the schema has no column {}", column.name)));
        };
        write_column(&mut out, column, rows)?;
        out.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_column(out: &mut SerializedColumnWriter<'_>, column: &Column, rows: &[Row]) -> Result<(), ParquetError> {
    match column.kind {
        Kind::Truth => {
            let (values, levels) = present(column, rows, |cell| match cell {
                Cell::Truth(value) => Some(value),
                _ => None,
            });
            out.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
        }
        Kind::Integer => {
            let (values, levels) = present(column, rows, |cell| match cell {
                Cell::Integer(value) => Some(value),
                _ => None,
            });
            out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Kind::Number => {
            let (values, levels) = present(column, rows, |cell| match cell {
                Cell::Number(value) => Some(value),
                _ => None,
            });
            out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
        Kind::Text => {
            let (values, levels) = present(column, rows, |cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.into_owned().into_bytes())),
                _ => None,
            });
            out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        Kind::Ids => {
            let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
            for row in rows {
                // Definition: 0 no list, 1 an empty one, 2 an element. Repetition: 1 within a list.
                match column.cell(row) {
                    Cell::Ids([]) => (defined.push(1), repeated.push(0)),
                    Cell::Ids(ids) => {
                        // Ids are far below 2^31; the bits are kept in any case.
                        values.extend(ids.iter().map(|id| id.cast_signed()));
                        defined.extend(std::iter::repeat_n(2, ids.len()));
                        repeated.extend((0..ids.len()).map(|index| i16::from(index > 0)));
                        ((), ())
                    }
                    _ => (defined.push(0), repeated.push(0)),
                };
            }
            out.typed::<Int32Type>().write_batch(&values, Some(&defined), Some(&repeated))?;
        }
    }
    Ok(())
}

/// Returns the present values and a definition level per row: 1 for a value, 0 for null.
fn present<T>(column: &Column, rows: &[Row], take: impl Fn(Cell<'_>) -> Option<T>) -> (Vec<T>, Vec<i16>) {
    let mut values = Vec::with_capacity(rows.len());
    let mut levels = Vec::with_capacity(rows.len());
    for row in rows {
        let value = take(column.cell(row));
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    (values, levels)
}
