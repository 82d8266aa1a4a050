//! Thrift's compact protocol, as far as it is needed to look over a file before the library reads it.

/// Reason for bytes that cannot be walked over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// They end too early.
    Short,
    /// They are no such protocol.
    Malformed,
    /// Structures in structures, deeper than [`DEEPEST`].
    Deep,
    /// Elements of lists, more than [`MOST_ELEMENTS`].
    Many,
}

/// Structures in structures that are walked into; those of Parquet need eight.
const DEEPEST: u32 = 32;

/// Elements of the lists that are passed over: the library makes some 50 bytes of each. Half a million parts of columns have a dozen each.
pub(super) const MOST_ELEMENTS: u64 = 8_000_000;

/// Kinds of values.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A place in bytes of the protocol.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub at: usize,
    /// Elements of lists that were passed over.
    elements: u64,
}

/// A field of a structure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub id: i16,
    kind: u8,
}

impl Field {
    /// The value of a field that is true or false.
    pub fn truth(self) -> bool {
        self.kind == TRUE
    }
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0, elements: 0 }
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, count: u64) -> Result<(), Fault> {
        let left = self.bytes.len() - self.at;
        match usize::try_from(count).ok().filter(|count| *count <= left) {
            Some(count) => self.at += count,
            None => return Err(Fault::Short),
        }
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        varint(self.bytes, &mut self.at)
    }

    /// A whole number.
    pub fn number(&mut self) -> Result<i64, Fault> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// Bytes of a text, which are passed over: their number.
    pub fn text(&mut self) -> Result<u64, Fault> {
        let length = self.varint()?;
        self.pass(length)?;
        Ok(length)
    }

    /// Calls `each` with the fields of the structure that begins here; it returns false for those that it has not read.
    pub fn structure(&mut self, each: &mut dyn FnMut(&mut Self, Field) -> Result<bool, Fault>) -> Result<(), Fault> {
        let mut id = 0_i16;
        while let Some(field) = self.field(&mut id)? {
            if !each(self, field)? {
                self.skip(field.kind, 0)?;
            }
        }
        Ok(())
    }

    fn field(&mut self, id: &mut i16) -> Result<Option<Field>, Fault> {
        let head = self.byte()?;
        let kind = head & 15;
        if kind == 0 {
            return Ok(None);
        }
        *id = match head >> 4 {
            0 => i16::try_from(self.number()?).map_err(|_| Fault::Malformed)?,
            step => id.checked_add(i16::from(step)).ok_or(Fault::Malformed)?,
        };
        Ok(Some(Field { id: *id, kind }))
    }

    /// Calls `each` for each structure of a list.
    pub fn structures(
        &mut self,
        field: Field,
        each: &mut dyn FnMut(&mut Self, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (kind, count) = self.list(field)?;
        if count > 0 && kind != STRUCT {
            return Err(Fault::Malformed);
        }
        (0..count).try_for_each(|index| each(self, count - index))
    }

    fn list(&mut self, field: Field) -> Result<(u8, u64), Fault> {
        match field.kind {
            LIST => self.list_head(),
            _ => Err(Fault::Malformed),
        }
    }

    fn list_head(&mut self) -> Result<(u8, u64), Fault> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        // An element has a byte at least.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Fault::Short);
        }
        Ok((head & 15, count))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(Fault::Deep);
        }
        match kind {
            TRUE | FALSE => Ok(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.pass(8),
            BINARY => self.text().map(|_| ()),
            LIST | 10 => {
                let (kind, count) = self.list_head()?;
                (0..count).try_for_each(|_| self.element(kind, depth + 1))
            }
            11 => {
                let count = self.varint()?;
                if count > (self.bytes.len() - self.at) as u64 {
                    return Err(Fault::Short);
                }
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth + 1)?;
                    self.element(kinds & 15, depth + 1)
                })
            }
            STRUCT => {
                let mut id = 0;
                while let Some(field) = self.field(&mut id)? {
                    self.skip(field.kind, depth + 1)?;
                }
                Ok(())
            }
            13 => self.pass(16),
            _ => Err(Fault::Malformed),
        }
    }

    /// An element of a list or a map, where truth values have a byte of their own.
    fn element(&mut self, kind: u8, depth: u32) -> Result<(), Fault> {
        self.elements += 1;
        if self.elements > MOST_ELEMENTS {
            return Err(Fault::Many);
        }
        if matches!(kind, TRUE | FALSE) { self.pass(1) } else { self.skip(kind, depth) }
    }
}

/// Reads a number of up to ten bytes with seven bits each, the lowest first.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, Fault> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*at).ok_or(Fault::Short)?;
        *at += 1;
        number |= u64::from(byte & 127).checked_shl(shift).unwrap_or(0);
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(Fault::Malformed)
}
