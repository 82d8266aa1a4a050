//! The column of a file that cannot be read, which the library does not name.
use std::collections::BTreeSet;

use parquet::basic::Compression;
use parquet::column::page::PageReader;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::FileReader;
use parquet::schema::types::{Type, TypePtr};

use super::reason::{Damage, in_words};
use super::survey::{Totals, survey};
use super::{Failure, Group, Reader, guarded, name_of};

/// The reason for a failure in a row group, with the column whose pages or values cannot be read.
pub(super) fn with_column(reader: &Reader, number: usize, reason: Damage) -> Damage {
    let Some(metadata) = reader.metadata().row_groups().get(number) else { return reason };
    if let Some((chunk, reason)) = pages(reader, number) {
        return Damage(format!("the pages of its {} cannot be read: {reason}", described(&[chunk])));
    }
    // Pages that are not compressed are handed on whatever they hold.
    let Some((field, reason)) = values(reader, number, &reason) else { return reason };
    let is_of = |chunk: &&ColumnChunkMetaData| chunk.column_path().parts().first().is_some_and(|name| name == field);
    let chunks: Vec<&ColumnChunkMetaData> = metadata.columns().iter().filter(is_of).collect();
    Damage(format!("the values of its {} cannot be read: {reason}", described(&chunks)))
}

/// The first column of a row group whose pages cannot be read, and why.
fn pages(reader: &Reader, number: usize) -> Option<(&ColumnChunkMetaData, Damage)> {
    let library = guarded(|| reader.library.get_row_group(number)).ok()?;
    let mut group = Group { reader, library, batch: 1, held: reader.held() };
    let metadata = reader.metadata().row_group(number);
    for (index, chunk) in metadata.columns().iter().enumerate() {
        // Each alone: beyond a limit is what the rows before it did not reach.
        let alone = survey(reader.source(), metadata.num_rows(), std::iter::once(chunk), &mut Totals::default());
        let read = alone.and_then(|batch| {
            (group.batch, group.held) = (batch, reader.held());
            guarded(|| {
                let mut pages = group.pages(index)?;
                while pages.get_next_page()?.is_some() {}
                Ok(())
            })
        });
        if let Err(reason) = read {
            return Some((chunk, reason));
        }
    }
    None
}

/// The field of the schema whose values cannot be read, and why; none if each alone can be read. Half of those that are left are
/// read at a time, because each reading goes over all columns of the row group.
fn values<'r>(reader: &'r Reader, number: usize, reason: &Damage) -> Option<(&'r str, Damage)> {
    let schema = reader.metadata().file_metadata().schema();
    let read = |fields: &[TypePtr]| {
        let some = Type::group_type_builder(schema.name()).with_fields(fields.to_vec()).build().map_err(in_words)?;
        let mut rows = reader.rows(Some(some));
        (rows.next, rows.end) = (number, number + 1);
        while rows.read().map_err(Failure::into_reason)?.is_some() {}
        Ok(())
    };
    let mut left = schema.get_fields();
    let mut found = (left.len() == 1).then(|| reason.to_owned());
    while left.len() > 1 {
        let (first, second) = left.split_at(left.len() / 2);
        left = match read(first) {
            Ok(()) => second,
            Err(reason) => {
                found = Some(reason);
                first
            }
        };
    }
    let reason = found.or_else(|| read(left).err())?;
    Some((left.first()?.name(), reason))
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
