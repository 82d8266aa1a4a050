//! The column of a file that cannot be read, which the library does not name.
use std::collections::BTreeSet;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::Type;

use super::survey::Totals;
use super::{Failure, Reader, guarded, in_words, name_of};

/// The reason for a failure with the column whose pages or values cannot be read.
pub(super) fn with_column(reader: &Reader, reason: String) -> String {
    for (number, group) in reader.metadata().row_groups().iter().enumerate() {
        for (place, chunk) in group.columns().iter().enumerate() {
            let pages = || {
                let only = |other: &ColumnChunkMetaData| std::ptr::eq(other, chunk);
                let group = reader.group(number, &only, &mut Totals::default()).map_err(|failure| {
                    // Beyond a limit, which the rows before it did not reach.
                    ParquetError::General(failure.into_reason())
                })?;
                let mut pages = group.pages(place)?;
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
        let only = Type::group_type_builder(schema.name()).with_fields(vec![Arc::clone(field)]).build();
        let values = only.map_err(in_words).and_then(|only| {
            let mut rows = reader.rows(Some(only));
            while rows.read().map_err(Failure::into_reason)?.is_some() {}
            Ok(())
        });
        if let Err(reason) = values {
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
pub(super) fn described(chunks: &[&ColumnChunkMetaData]) -> String {
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
