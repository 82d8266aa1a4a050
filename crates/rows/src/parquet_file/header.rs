//! Headers of pages, read before the library reads the pages.
use super::reason::Damage;
use super::thrift::{Cursor, Fault, MOST_ELEMENTS};

/// Largest header in bytes: some writers put the smallest and the largest text of a page into it, whole.
const MOST_HEADER: u64 = 16 << 20;

/// Kinds of pages.
pub(super) const DATA: i64 = 0;
pub(super) const INDEX: i64 = 1;
pub(super) const DICTIONARY: i64 = 2;
pub(super) const DATA_2: i64 = 3;

/// Header of a page.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// Its own length in bytes.
    pub length: u64,
    pub kind: i64,
    /// Bytes of the page in the file.
    pub packed: u64,
    /// Bytes of the page without compression.
    pub size: u64,
    pub values: u32,
    pub encoding: i64,
    /// Encodings of the levels, in pages of the first version.
    pub levels: [i64; 2],
    pub sorted: bool,
    pub second: Second,
}

/// What only pages of the second version have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Second {
    pub nulls: u32,
    pub rows: u32,
    /// Bytes of the levels of definition and of repetition.
    pub levels: [u32; 2],
    pub plain: bool,
}

impl Header {
    /// Reads the header at an offset, of a part of the file that ends at `end`. `bytes` reads from the file.
    ///
    /// # Errors
    /// Headers that are damaged, or say more bytes than there are.
    pub fn read(
        start: u64,
        end: u64,
        mut bytes: impl FnMut(u64, u64) -> Result<Vec<u8>, Damage>,
    ) -> Result<Header, Damage> {
        let left = end - start;
        // Most have some 30 bytes.
        let mut most = 512;
        let header = loop {
            let length = left.min(most);
            let head = bytes(start, length)?;
            match Header::parse(&head) {
                Err(Fault::Short) if length < left && most < MOST_HEADER => most *= 8,
                Err(Fault::Short) if length < left => {
                    return Err(Damage(format!(
                        "the header of a page has more than {} MiB, which is the limit",
                        MOST_HEADER >> 20
                    )));
                }
                Err(Fault::Many) => {
                    return Err(Damage(format!(
                        "the lists in the header of a page have more than {MOST_ELEMENTS} values"
                    )));
                }
                Err(_) => return Err(Damage("the header of a page is damaged".to_owned())),
                Ok(header) => break header,
            }
        };
        if header.packed > left - header.length {
            let has = left - header.length;
            return Err(Damage(format!("a page says that it has {} bytes, and {has} are there", header.packed)));
        }
        Ok(header)
    }

    fn parse(bytes: &[u8]) -> Result<Header, Fault> {
        let mut cursor = Cursor::new(bytes);
        let mut found = Header { kind: -1, ..Header::default() };
        // The kinds of pages that it describes.
        let mut of = Vec::new();
        cursor.structure(&mut |cursor, field| {
            of.extend([(5, DATA), (6, INDEX), (7, DICTIONARY), (8, DATA_2)].iter().filter(|(id, _)| *id == field.id));
            match field.id {
                1 => found.kind = cursor.number()?,
                2 => found.size = count(cursor)?.into(),
                3 => found.packed = count(cursor)?.into(),
                5 => cursor.structure(&mut |cursor, field| {
                    match field.id {
                        1 => found.values = count(cursor)?,
                        2 => found.encoding = cursor.number()?,
                        3 => found.levels[0] = cursor.number()?,
                        4 => found.levels[1] = cursor.number()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                7 => cursor.structure(&mut |cursor, field| {
                    match field.id {
                        1 => found.values = count(cursor)?,
                        2 => found.encoding = cursor.number()?,
                        3 => {
                            found.sorted = field.truth();
                            return Ok(false);
                        }
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                8 => cursor.structure(&mut |cursor, field| {
                    match field.id {
                        1 => found.values = count(cursor)?,
                        2 => found.second.nulls = count(cursor)?,
                        3 => found.second.rows = count(cursor)?,
                        4 => found.encoding = cursor.number()?,
                        5 => found.second.levels[0] = count(cursor)?,
                        6 => found.second.levels[1] = count(cursor)?,
                        7 => {
                            found.second.plain = !field.truth();
                            return Ok(false);
                        }
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        found.length = cursor.at as u64;
        let levels = found.second.levels.iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
        let levels_fit = found.kind != DATA_2 || levels <= found.size.min(found.packed);
        // The library reads the description of the page's kind, and ours would be another one.
        match of.as_slice() {
            [(_, kind)] if *kind == found.kind && levels_fit => Ok(found),
            [] if found.kind == INDEX => Ok(found),
            _ => Err(Fault::Malformed),
        }
    }
}

/// A number of things: 31 bits.
fn count(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    i32::try_from(cursor.number()?).ok().and_then(|number| u32::try_from(number).ok()).ok_or(Fault::Malformed)
}
