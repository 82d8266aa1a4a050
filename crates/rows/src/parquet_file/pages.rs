//! Pages as the library gets them: decompressed to no more than they say, and looked over for counts that lie.
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::MultiGzDecoder;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use super::header::{DATA, DATA_2, DICTIONARY, Header, INDEX};
use super::levels::{Window, differences};
use super::reason::Damage;
use super::survey::Source;
use super::thrift::Fault;

/// Most values of lists that are held at a time, of all columns: some 200 bytes each.
const MOST_LISTED: u64 = 2_000_000;

/// Largest text, in bytes: four times the largest row that is used.
const MOST_TEXT: u64 = 64 << 20;

/// Bytes of the texts of a list, each taken for as long as the longest of its page.
const MOST_TEXTS: u64 = 256 << 20;

/// What the library holds of all columns of a row group.
pub(super) struct Held {
    /// Bytes of pages.
    pub most: u64,
    counted: Mutex<Counted>,
}

/// Values of lists and bytes of pages.
#[derive(Default)]
struct Counted {
    of: HashMap<usize, (u64, u64)>,
    /// Their sums.
    all: (u64, u64),
}

impl Held {
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Held { most, counted: Mutex::default() })
    }

    fn check(&self, column: usize, window: &Window, repeated: bool) -> std::result::Result<(), Damage> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (if repeated { window.most_values } else { 0 }, window.most_bytes);
        let before = counted.of.insert(column, now).unwrap_or_default();
        let (values, bytes) = (counted.all.0 - before.0 + now.0, counted.all.1 - before.1 + now.1);
        counted.all = (values, bytes);
        if values > MOST_LISTED {
            return Err(Damage(format!(
                "the lists of a few rows have {values} values; {MOST_LISTED} are read at a time"
            )));
        }
        match bytes <= self.most {
            true => Ok(()),
            false => {
                Err(Damage(format!("a few rows have {} MiB; {} MiB are read at a time", bytes >> 20, self.most >> 20)))
            }
        }
    }
}

/// Pages of a column of a row group.
pub(super) struct Pages {
    pub source: PageSource,
    pub column: ColumnDescPtr,
    /// The column's index in the row group.
    pub index: usize,
    pub window: Window,
    pub held: Arc<Held>,
    /// Longest text of the dictionary.
    pub dictionary: u64,
}

/// Where pages come from.
pub(super) enum PageSource {
    /// The library, which makes no more of a page than its header says.
    Library(Box<dyn PageReader>),
    /// Pages that are compressed with gzip, which the library decompresses to whatever size.
    Gzip(GzipPages),
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = match &mut self.source {
            PageSource::Library(pages) => pages.get_next_page()?,
            PageSource::Gzip(pages) => pages.next_page()?,
        };
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        match &mut self.source {
            PageSource::Library(pages) => pages.peek_next_page(),
            PageSource::Gzip(pages) => pages.peek().map_err(ParquetError::from),
        }
    }

    fn skip_next_page(&mut self) -> Result<()> {
        Err(ParquetError::NYI("pages are read in their order".to_owned()))
    }
}

impl Pages {
    fn check(&mut self, page: &Page) -> std::result::Result<(), Damage> {
        let text = self.column.physical_type() == Physical::BYTE_ARRAY;
        let (bytes, values) = (page.buffer(), u64::from(page.num_values()));
        if let Page::DictionaryPage { .. } = page {
            self.dictionary = match self.column.physical_type() {
                Physical::BYTE_ARRAY => longest(bytes, values)?,
                Physical::FIXED_LEN_BYTE_ARRAY => u64::try_from(self.column.type_length()).unwrap_or(0),
                _ => 0,
            };
            return Ok(());
        }
        let repeated = self.column.max_rep_level() > 0;
        let size = bytes.len() as u64;
        self.window.page(size, repeated);
        let data = self.levels(page, repeated, values, size).map_err(|fault| damaged("the levels of a page", fault))?;
        self.held.check(self.index, &self.window, repeated)?;
        let longest = match page.encoding() {
            Encoding::PLAIN if text => longest(data, values)?,
            Encoding::DELTA_BINARY_PACKED => {
                lengths(data, values)?;
                0
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                lengths(data, values)?;
                size
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let end = lengths(data, values)?;
                lengths(data.get(end..).unwrap_or_default(), values)?;
                size
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => self.dictionary,
            _ => 0,
        };
        if longest > MOST_TEXT {
            return Err(Damage(format!("it has texts of up to {longest} bytes; {} MiB are read", MOST_TEXT >> 20)));
        }
        let row = self.window.longest_row;
        match !repeated || row.saturating_mul(longest) <= MOST_TEXTS || page.encoding() == Encoding::PLAIN {
            true => Ok(()),
            false => Err(Damage(format!(
                "a list has {row} texts of up to {longest} bytes; {} MiB of them are read",
                MOST_TEXTS >> 20
            ))),
        }
    }

    /// Measures the rows of a page; returns its bytes after the levels.
    fn levels<'p>(
        &mut self,
        page: &'p Page,
        repeated: bool,
        values: u64,
        size: u64,
    ) -> std::result::Result<&'p [u8], Fault> {
        let bytes = page.buffer();
        let width = |level: i16| 16 - level.leading_zeros();
        let repetition = width(self.column.max_rep_level());
        let (levels, data) = match page {
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                let (repetitions, rest) = bytes.split_at_checked(*rep_levels_byte_len as usize).ok_or(Fault::Short)?;
                (Some(repetitions), rest.get(*def_levels_byte_len as usize..).ok_or(Fault::Short)?)
            }
            Page::DataPage { def_level_encoding, rep_level_encoding, .. } => {
                let (repetitions, rest) =
                    first_levels(bytes, *rep_level_encoding, self.column.max_rep_level(), values)?;
                let rest = first_levels(rest, *def_level_encoding, self.column.max_def_level(), values)?.1;
                (repetitions, rest)
            }
            Page::DictionaryPage { .. } => (None, &bytes[..]),
        };
        match levels {
            _ if !repeated => self.window.rows(values, size),
            Some(levels) => self.window.levels(levels, repetition, values, size)?,
            // Packed ones of long ago: as if they were one row.
            None => self.window.values(values),
        }
        Ok(data)
    }
}

/// Divides a page of the first version into levels and the rest; none for levels in an encoding of long ago.
fn first_levels(
    bytes: &[u8],
    encoding: Encoding,
    most: i16,
    values: u64,
) -> std::result::Result<(Option<&[u8]>, &[u8]), Fault> {
    if most == 0 {
        return Ok((None, bytes));
    }
    if encoding != Encoding::RLE {
        let width = u64::from(16 - most.leading_zeros());
        let used = usize::try_from((values * width).div_ceil(8)).map_err(|_| Fault::Malformed)?;
        return Ok((None, bytes.get(used..).ok_or(Fault::Short)?));
    }
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(Fault::Short)?;
    let (levels, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(Fault::Short)?;
    Ok((Some(levels), rest))
}

fn damaged(what: &str, fault: Fault) -> Damage {
    Damage(match fault {
        Fault::Short => format!("{what} end too early"),
        Fault::Malformed | Fault::Deep | Fault::Many => format!("{what} are damaged"),
    })
}

/// Length of the longest text of a sequence of lengths and texts.
fn longest(mut bytes: &[u8], values: u64) -> std::result::Result<u64, Damage> {
    let mut longest = 0;
    for _ in 0..values {
        // A page may have fewer: the rest are nulls.
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else { break };
        let length = u32::from_le_bytes(*length);
        let Some(rest) = rest.get(length as usize..) else {
            return Err(Damage(format!("a text says that it has {length} bytes, and {} are there", rest.len())));
        };
        longest = longest.max(u64::from(length));
        bytes = rest;
    }
    Ok(longest)
}

/// Compares the number of differences with that of values; returns their end.
fn lengths(bytes: &[u8], values: u64) -> std::result::Result<usize, Damage> {
    // Pages of nulls only may have none at all.
    if bytes.is_empty() {
        return Ok(0);
    }
    let (count, end) = differences(bytes, values).map_err(|fault| damaged("the numbers of a page", fault))?;
    match count <= values {
        true => Ok(end),
        false => Err(Damage(format!("a page has {count} numbers and {values} values"))),
    }
}

/// Pages of a column that are compressed with gzip.
pub(super) struct GzipPages {
    pub file: Arc<File>,
    pub size: u64,
    pub at: u64,
    pub end: u64,
    /// The header of the next page, where it was read.
    pub next: Option<Header>,
}

impl GzipPages {
    fn source(&self) -> Source<'_> {
        Source { file: &self.file, size: self.size }
    }

    /// The header of the next page that is not an index.
    fn header(&mut self) -> std::result::Result<Option<Header>, Damage> {
        if self.next.is_some() {
            return Ok(self.next.clone());
        }
        while self.at < self.end {
            let header = Header::read(self.at, self.end, |start, length| self.source().bytes(start, length))?;
            if header.kind != INDEX {
                self.next = Some(header.clone());
                return Ok(Some(header));
            }
            self.at += header.length + header.packed;
        }
        Ok(None)
    }

    fn peek(&mut self) -> std::result::Result<Option<PageMetadata>, Damage> {
        let metadata = |header: Header| PageMetadata {
            num_rows: (header.kind == DATA_2).then_some(header.second.rows as usize),
            num_levels: (header.kind != DICTIONARY).then_some(header.values as usize),
            is_dict: header.kind == DICTIONARY,
        };
        Ok(self.header()?.map(metadata))
    }

    fn next_page(&mut self) -> std::result::Result<Option<Page>, Damage> {
        let Some(header) = self.header()? else { return Ok(None) };
        self.next = None;
        let packed = self.source().bytes(self.at + header.length, header.packed)?;
        self.at += header.length + header.packed;
        let levels = match header.kind {
            DATA_2 => header.second.levels.iter().sum::<u32>() as usize,
            _ => 0,
        };
        let (before, packed) =
            packed.split_at_checked(levels).ok_or_else(|| Damage("a page ends in its levels".to_owned()))?;
        let mut buffer = Vec::with_capacity(header.size as usize);
        buffer.extend_from_slice(before);
        if header.kind == DATA_2 && header.second.plain {
            buffer.extend_from_slice(packed);
        } else if header.size > levels as u64 {
            MultiGzDecoder::new(packed)
                .take(header.size - levels as u64 + 1)
                .read_to_end(&mut buffer)
                .map_err(|error| Damage(error.to_string()))?;
            if buffer.len() as u64 > header.size {
                return Err(Damage(format!("they hold more than {} bytes", header.size)));
            }
        }
        if buffer.len() as u64 != header.size && !header.second.plain {
            return Err(Damage(format!("a page has {} bytes, and says that it has {}", buffer.len(), header.size)));
        }
        page(&header, buffer).map(Some)
    }
}

/// The page of a header, with its bytes.
fn page(header: &Header, buffer: Vec<u8>) -> std::result::Result<Page, Damage> {
    let encoding = encoding(header.encoding)?;
    let (buf, num_values) = (buffer.into(), header.values);
    Ok(match header.kind {
        DICTIONARY => Page::DictionaryPage { buf, num_values, encoding, is_sorted: header.sorted },
        DATA => Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding: self::encoding(header.levels[0])?,
            rep_level_encoding: self::encoding(header.levels[1])?,
            statistics: None,
        },
        DATA_2 => Page::DataPageV2 {
            buf,
            num_values,
            encoding,
            num_nulls: header.second.nulls,
            num_rows: header.second.rows,
            def_levels_byte_len: header.second.levels[0],
            rep_levels_byte_len: header.second.levels[1],
            is_compressed: !header.second.plain,
            statistics: None,
        },
        other => return Err(Damage(format!("pages of the kind {other} are not known"))),
    })
}

fn encoding(number: i64) -> std::result::Result<Encoding, Damage> {
    #[expect(deprecated, reason = "levels of old files")]
    const KNOWN: [Encoding; 9] = [
        Encoding::PLAIN,
        Encoding::PLAIN_DICTIONARY,
        Encoding::RLE,
        Encoding::BIT_PACKED,
        Encoding::DELTA_BINARY_PACKED,
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
        Encoding::RLE_DICTIONARY,
        Encoding::BYTE_STREAM_SPLIT,
    ];
    let found = KNOWN.into_iter().find(|encoding| *encoding as i64 == number);
    found.ok_or_else(|| Damage(format!("values in the encoding {number} are not read")))
}
