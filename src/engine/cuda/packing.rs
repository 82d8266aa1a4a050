//! A step's numbers as they lie in the device's memory.

use super::device::Address;
use super::executor::Wish;

/// Lists of [`Places`]; each is aligned to 16 bytes.
pub(crate) const LISTS: usize = 12;

/// Bytes of a token's wish (kernels/choice.cu).
pub(crate) const WISH: usize = 32;

/// Where a step's numbers are: offsets, then addresses.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) ids: u64,
    pub(crate) positions: u64,
    pub(crate) longs: u64,
    pub(crate) places: u64,
    pub(crate) tables: u64,
    pub(crate) tall: u64,
    pub(crate) wide: u64,
    pub(crate) merges: u64,
    pub(crate) slots: u64,
    pub(crate) outputs: u64,
    pub(crate) wishes: u64,
    pub(crate) copies: u64,
}

impl Places {
    pub(crate) fn from(self, base: Address) -> Places {
        Places {
            ids: base + self.ids,
            positions: base + self.positions,
            longs: base + self.longs,
            places: base + self.places,
            tables: base + self.tables,
            tall: base + self.tall,
            wide: base + self.wide,
            merges: base + self.merges,
            slots: base + self.slots,
            outputs: base + self.outputs,
            wishes: base + self.wishes,
            copies: base + self.copies,
        }
    }
}

/// Lays lists out after each other, each aligned for the kernels.
#[derive(Default)]
pub(crate) struct Packer {
    pub(crate) bytes: Vec<u8>,
}

impl Packer {
    fn align(&mut self) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.bytes.len() as u64
    }

    pub(crate) fn ints(&mut self, list: &[i32]) -> u64 {
        let at = self.align();
        self.bytes.extend(list.iter().flat_map(|n| n.to_ne_bytes()));
        at
    }

    pub(crate) fn wishes(&mut self, list: &[Wish]) -> u64 {
        let at = self.align();
        for wish in list {
            self.bytes.extend(wish.uniform.to_ne_bytes());
            self.bytes.extend(wish.temperature.to_ne_bytes());
            self.bytes.extend(wish.target.map_or(-1, |t| t as i32).to_ne_bytes());
            self.bytes.extend((wish.top_k.min(i32::MAX as usize) as i32).to_ne_bytes());
            self.bytes.extend(wish.top_p.to_ne_bytes());
            self.bytes.extend(wish.min_p.to_ne_bytes());
            self.bytes.extend([0; 4]);
        }
        at
    }
}
