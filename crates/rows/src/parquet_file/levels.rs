//! Lengths of rows, by the levels of a page: how much of a column the library holds at a time.
use super::thrift::{Fault, varint};

/// What the library holds of a column: the values of a number of rows, and the pages that they are from.
#[derive(Debug)]
pub(super) struct Window {
    /// Rows that are held at a time.
    of: u64,
    rows: u64,
    values: u64,
    bytes: u64,
    /// Values of the last row.
    row: u64,
    pub most_values: u64,
    pub most_bytes: u64,
    pub longest_row: u64,
}

impl Window {
    pub fn new(of: usize) -> Self {
        let of = of as u64;
        Window { of, rows: 0, values: 0, bytes: 0, row: 0, most_values: 0, most_bytes: 0, longest_row: 0 }
    }

    /// Adds a page before its values.
    pub fn page(&mut self, bytes: u64, repeated: bool) {
        if self.rows >= self.of && !repeated {
            (self.rows, self.values, self.bytes) = (0, 0, 0);
        }
        self.bytes += bytes;
        self.most_bytes = self.most_bytes.max(self.bytes);
    }

    /// Adds rows of one value each, or the first values of rows. `page` is the number of bytes of their page.
    pub fn rows(&mut self, count: u64, page: u64) {
        if count == 0 {
            return;
        }
        let rows = self.rows.saturating_add(count);
        if rows > self.of {
            // Full first, with what was held and the first of these rows.
            let full = self.values + (self.of - self.rows.min(self.of));
            self.most_values = self.most_values.max(full);
            self.rows = (rows - 1) % self.of + 1;
            (self.values, self.bytes) = (self.rows, page);
        } else {
            self.rows = rows;
            self.values += count;
        }
        self.row = 1;
        self.most_values = self.most_values.max(self.values);
        self.longest_row = self.longest_row.max(1);
    }

    /// Adds values of the row that is open.
    pub fn values(&mut self, count: u64) {
        self.values += count;
        self.row += count;
        self.most_values = self.most_values.max(self.values);
        self.longest_row = self.longest_row.max(self.row);
    }

    /// Adds the values whose levels of repetition are in bytes: runs and packed groups of numbers of `width` bits.
    pub fn levels(&mut self, bytes: &[u8], width: u32, count: u64, page: u64) -> Result<(), Fault> {
        let (mut at, mut left) = (0, count);
        let repeated = |window: &mut Self, level: u64, count: u64| match level {
            0 => window.rows(count, page),
            _ => window.values(count),
        };
        while left > 0 {
            let head = varint(bytes, &mut at)?;
            if head & 1 == 0 {
                let used = width.div_ceil(8) as usize;
                let value = bytes.get(at..at + used).ok_or(Fault::Short)?;
                let level = value.iter().rev().fold(0, |level, byte| level << 8 | u64::from(*byte));
                at += used;
                let count = (head >> 1).min(left);
                if count == 0 {
                    continue;
                }
                repeated(self, level, count);
                left -= count;
                continue;
            }
            let groups = usize::try_from(head >> 1).map_err(|_| Fault::Malformed)?;
            let packed = groups.saturating_mul(width as usize);
            let packed = &bytes[at..bytes.len().min(at.saturating_add(packed))];
            at += packed.len();
            let held = (packed.len() as u64 * 8 / u64::from(width)).min(left);
            for index in 0..held {
                repeated(self, bits(packed, index * u64::from(width), width), 1);
            }
            left -= held;
            if held == 0 {
                return Err(Fault::Short);
            }
        }
        Ok(())
    }
}

/// The number of `width` bits that begins at a bit.
fn bits(bytes: &[u8], first: u64, width: u32) -> u64 {
    (0..u64::from(width)).fold(0, |number, bit| {
        let place = first + bit;
        number | u64::from(bytes[(place / 8) as usize] >> (place % 8) & 1) << bit
    })
}

/// Passes over a sequence of differences, the encoding of whole numbers and lengths; returns how many there are, and its end.
pub(super) fn differences(bytes: &[u8], most: u64) -> Result<(u64, usize), Fault> {
    let mut at = 0;
    let block = varint(bytes, &mut at)?;
    let parts = varint(bytes, &mut at)?;
    let count = varint(bytes, &mut at)?;
    varint(bytes, &mut at)?;
    if parts == 0 || parts > block || block > 1 << 20 {
        return Err(Fault::Malformed);
    }
    if count > most {
        return Ok((count, at));
    }
    let (in_part, mut left) = (block / parts, count.saturating_sub(1));
    while left > 0 {
        varint(bytes, &mut at)?;
        let widths = bytes.get(at..at + parts as usize).ok_or(Fault::Short)?;
        at += widths.len();
        for width in widths {
            if left == 0 {
                break;
            }
            at += usize::from(*width) * (in_part / 8) as usize;
            left -= left.min(in_part);
        }
    }
    Ok((count, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest numbers of values held and in a row.
    fn largest(of: usize, bytes: &[u8], width: u32, count: u64) -> (u64, u64) {
        let mut window = Window::new(of);
        window.page(10, true);
        window.levels(bytes, width, count, 10).unwrap();
        (window.most_values, window.longest_row)
    }

    #[test]
    fn runs_and_packed_levels_are_measured() {
        // A row, then a run of 5 more values: one row of 6.
        assert_eq!(largest(2, &[2, 0, 10, 1], 1, 6), (6, 6));
        // 8 levels in one byte: 0 1 1 0 0 1 0 0, rows of 3, 1, 2, 1 and 1.
        assert_eq!(largest(2, &[3, 0b0010_0110], 1, 8), (4, 3));
        assert_eq!(largest(1, &[3, 0b0010_0110], 1, 8), (3, 3));
        // Two bits each: 0 2 1 3.
        assert_eq!(largest(4, &[3, 0b1101_1000, 0], 2, 4), (4, 4));
        // A run of 2^31 rows of one value.
        let run = [0xfe, 0xff, 0xff, 0xff, 0x0f, 0];
        assert_eq!(largest(1024, &run, 1, i32::MAX as u64), (1024, 1));
        let mut window = Window::new(4);
        assert_eq!(window.levels(&[2, 0], 1, 5, 1), Err(Fault::Short));
    }

    #[test]
    fn pages_count_while_rows_of_them_are_held() {
        let mut window = Window::new(4);
        for _ in 0..3 {
            window.page(100, false);
            window.rows(2, 100);
        }
        assert_eq!(window.most_bytes, 200);
    }

    #[test]
    fn differences_are_passed_over() {
        // Five equal lengths: a block of 128 in 4 parts, of which the first has no bits.
        let bytes = [0x80, 1, 4, 5, 6, 0, 0, 0, 0, 0, b'x'];
        assert_eq!(differences(&bytes, 5), Ok((5, 10)));
        assert_eq!(differences(&bytes, 4).unwrap().0, 5);
        assert_eq!(differences(&[0x80, 1, 0, 5, 6], 5), Err(Fault::Malformed));
        assert_eq!(differences(&bytes[..7], 5), Err(Fault::Short));
    }
}
