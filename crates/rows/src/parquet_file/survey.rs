//! The pages of a row group by their headers, before one of them is read: what reading it costs.
use std::fs::File;

use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

use super::header::{DATA_2, DICTIONARY, Header, INDEX};
use super::reason::{Damage, in_words};

/// Memory for pages that any file may need, in bytes.
const MEMORY: u64 = 384 << 20;

/// Further bytes of memory for each byte of the file: large pages are honest in large files.
const MEMORY_FACTOR: u64 = 4;

/// Bytes that the pages of any file may have without compression, in all.
const DECODED: u64 = 1 << 30;

/// Further ones for each byte of the file. Texts are packed to a thirtieth at best.
const DECODED_FACTOR: u64 = 200;

/// Values that any file may have. Equal ones take no bytes.
const VALUES: u64 = 100_000_000;

/// Further ones for each byte of the file.
const VALUES_FACTOR: u64 = 1_000;

/// Pages that any file may have, empty ones included, beyond [`OWN_PAGES`] of each column of a row group.
const PAGES: u64 = 100_000;

/// A dictionary, and a page of values.
const OWN_PAGES: u64 = 2;

/// Values of which each may have a further page. Writers put thousands into one.
const VALUES_OF_PAGE: u64 = 8;

/// Bytes of a file that are read at a time for headers.
const AHEAD: u64 = 16 << 10;

/// Rows that are read at a time, as the library does.
const BATCH: u64 = 1024;

/// Values of a batch, of all columns.
const BATCH_VALUES: u64 = 1 << 20;

/// Values of lists of a batch, of all columns, on average.
const BATCH_LISTED: u64 = 1 << 17;

/// Bytes of a batch, of all columns, on average.
const BATCH_BYTES: u64 = 64 << 20;

/// Bytes of pages from which rows are read one by one, so that no page is held for the rows before it.
const LARGE: u64 = 128 << 20;

/// Largest page of LZ4's own frames, in bytes. Writers of years ago made them; their size without compression is not known before.
const MOST_LZ4_FRAME: u64 = 512 << 10;

/// Bytes of pages that a file of this size may have in memory.
pub(super) fn most_memory(size: u64) -> u64 {
    MEMORY.saturating_add(size.saturating_mul(MEMORY_FACTOR))
}

/// What was read of a file so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    decoded: u64,
    values: u64,
    /// Pages beyond [`OWN_PAGES`] of each column of a row group.
    further_pages: u64,
}

/// Costs of a column of a row group.
#[derive(Debug, Default)]
struct Cost {
    largest: u64,
    dictionary: u64,
    decoded: u64,
    values: u64,
    pages: u64,
    /// Bytes of a value, in the page where they are largest.
    per_value: u64,
    /// Largest page whose texts are made of those before them.
    shared: u64,
}

/// A file with its size.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub file: &'a File,
    pub size: u64,
}

impl Source<'_> {
    /// Bytes of the file.
    pub fn bytes(self, start: u64, length: u64) -> Result<Vec<u8>, Damage> {
        self.file.get_bytes(start, length as usize).map(|bytes| bytes.to_vec()).map_err(in_words)
    }

    /// First and last offset of a column of a row group.
    pub fn range(self, chunk: &ColumnChunkMetaData) -> Result<(u64, u64), Damage> {
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let fits = |start: u64, length: u64| start.checked_add(length).filter(|end| *end <= self.size);
        let (first, length) = (u64::try_from(start).ok(), u64::try_from(chunk.compressed_size()).ok());
        let end = first.zip(length).and_then(|(start, length)| fits(start, length));
        first.zip(end).ok_or_else(|| {
            let length = chunk.compressed_size();
            Damage(format!("it is said to have {length} bytes from {start} on, and the file has {}", self.size))
        })
    }
}

/// Bytes of a file that were read together, for headers that are close to each other.
struct Ahead<'a> {
    source: Source<'a>,
    /// Offset beyond which nothing is read.
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Ahead<'_> {
    fn bytes(&mut self, start: u64, length: u64) -> Result<Vec<u8>, Damage> {
        let end = start + length;
        if start < self.start || end > self.start + self.bytes.len() as u64 {
            self.bytes = self.source.bytes(start, length.max(AHEAD).min(self.end - start))?;
            self.start = start;
        }
        let from = (start - self.start) as usize;
        Ok(self.bytes[from..from + length as usize].to_vec())
    }
}

/// Looks over columns of a row group of so many rows, before they are read; returns how many rows to read at a time.
///
/// # Errors
/// What is damaged or beyond a limit, in words, with the column.
pub(super) fn survey<'c>(
    source: Source<'_>,
    rows: i64,
    chunks: impl Iterator<Item = &'c ColumnChunkMetaData>,
    totals: &mut Totals,
) -> Result<usize, Damage> {
    let rows = u64::try_from(rows).unwrap_or(0).max(1);
    let (mut memory, mut columns, mut per_row, mut listed, mut shared) = (0_u64, 0, 0_u64, 0_u64, 0);
    for chunk in chunks {
        let named = |Damage(reason)| Damage(format!("{}: {reason}", super::damage::described(&[chunk])));
        let cost = cost(source, chunk, rows, *totals).map_err(named)?;
        columns += 1;
        memory = memory.saturating_add(cost.largest).saturating_add(cost.dictionary);
        let of_row = cost.values.div_ceil(rows);
        per_row = per_row.saturating_add(cost.per_value.saturating_mul(of_row));
        if chunk.column_descr().max_rep_level() > 0 {
            listed = listed.saturating_add(of_row);
        }
        shared = shared.max(cost.shared);
        totals.decoded = totals.decoded.saturating_add(cost.decoded);
        totals.values = totals.values.saturating_add(cost.values);
        totals.further_pages += cost.pages.saturating_sub(OWN_PAGES);
        check(totals.decoded, "bytes without compression", (DECODED, DECODED_FACTOR), source.size)?;
        check(totals.values, "values", (VALUES, VALUES_FACTOR), source.size)?;
    }
    let most = most_memory(source.size);
    if memory > most {
        return Err(Damage(format!(
            "its pages need {} MiB of memory at a time; a file of this size may need {} MiB",
            memory >> 20,
            most >> 20
        )));
    }
    let batch = match memory > LARGE {
        true => 1,
        false => BATCH
            .min(BATCH_VALUES / u64::max(columns, 1))
            .min(BATCH_LISTED / listed.max(1))
            .min(BATCH_BYTES / per_row.max(1))
            .min(BATCH_BYTES / u64::max(shared, 1)),
    };
    Ok(batch.max(1) as usize)
}

fn check(found: u64, what: &str, (base, factor): (u64, u64), size: u64) -> Result<(), Damage> {
    match found <= base.saturating_add(size.saturating_mul(factor)) {
        true => Ok(()),
        false => {
            let limit = if base >= 1 << 30 { format!("{} GiB", base >> 30) } else { base.to_string() };
            Err(Damage(format!(
                "it has {found} {what}; a file may have {limit} and {factor} for each of its {size} bytes"
            )))
        }
    }
}

/// Goes over the headers of a column's pages.
fn cost(source: Source<'_>, chunk: &ColumnChunkMetaData, rows: u64, before: Totals) -> Result<Cost, Damage> {
    let (mut at, end) = source.range(chunk)?;
    let plain = chunk.compression() == Compression::UNCOMPRESSED;
    let flat = chunk.column_descr().max_rep_level() == 0;
    let (mut cost, mut first) = (Cost::default(), true);
    let mut ahead = Ahead { source, end, start: 0, bytes: Vec::new() };
    while at < end {
        let header = Header::read(at, end, |start, length| ahead.bytes(start, length))?;
        let body = at + header.length;
        at = body + header.packed;
        // A page that is not compressed is taken as it is, whatever it says.
        let size = if plain { header.packed } else { header.size };
        cost.decoded = cost.decoded.saturating_add(size);
        let values = u64::from(header.values);
        cost.pages += 1;
        let further = before.further_pages + cost.pages.saturating_sub(OWN_PAGES);
        let all = before.values + cost.values + values;
        if further > PAGES + all / VALUES_OF_PAGE {
            return Err(Damage(format!(
                "a file of {all} values so far has {further} pages beyond {OWN_PAGES} for each part of a column; \
                 {PAGES} are read, and one for every {VALUES_OF_PAGE} values"
            )));
        }
        if chunk.compression() == Compression::LZ4 && header.packed > MOST_LZ4_FRAME {
            let magic = source.bytes(body, 4)?;
            if [0x184d_2204_u32, 0x184c_2102].iter().any(|mark| mark.to_le_bytes() == magic.as_slice()) {
                return Err(Damage(format!(
                    "a page of LZ4 frames has {} bytes; {MOST_LZ4_FRAME} are read",
                    header.packed
                )));
            }
        }
        match header.kind {
            INDEX => continue,
            DICTIONARY if !first => return Err(Damage("it has a dictionary after other pages".to_owned())),
            DICTIONARY => {
                check_dictionary(chunk, values, size)?;
                // The library keeps a place of 32 bytes for each text.
                cost.dictionary = size + 32 * values;
            }
            kind => {
                cost.values += values;
                if flat && cost.values > rows {
                    return Err(Damage(format!("its pages have {} values for {rows} rows", cost.values)));
                }
                if kind == DATA_2 && header.second.nulls > header.values {
                    return Err(Damage(format!("a page has {} nulls among {values} values", header.second.nulls)));
                }
                cost.largest = cost.largest.max(size);
                cost.per_value = cost.per_value.max(size / values.max(1));
                if header.encoding == Encoding::DELTA_BYTE_ARRAY as i64 {
                    cost.shared = cost.shared.max(size);
                }
            }
        }
        first = false;
    }
    Ok(cost)
}

/// Compares the number of values of a dictionary with its bytes.
fn check_dictionary(chunk: &ColumnChunkMetaData, values: u64, size: u64) -> Result<(), Damage> {
    let most = match chunk.column_type() {
        Physical::BOOLEAN => size.saturating_mul(8),
        Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => size / 4,
        Physical::INT64 | Physical::DOUBLE => size / 8,
        Physical::INT96 => size / 12,
        Physical::FIXED_LEN_BYTE_ARRAY => size,
    };
    match values <= most {
        true => Ok(()),
        false => Err(Damage(format!("its dictionary says that it has {values} values, and has {size} bytes"))),
    }
}
