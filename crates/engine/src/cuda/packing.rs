//! A step's numbers as they lie in the device's memory.

use super::device::Address;
use crate::Sampling;
use crate::core::SamplingMetadata;
use crate::core::sampler::uniform;

/// Number of lists in [`StepAddresses`]; each is aligned to 16 bytes.
pub(crate) const LISTS: usize = 13;

/// Bytes of a row's sampling metadata (kernels/choice.cu).
pub(crate) const METADATA_BYTES: usize = 32;

/// Addresses of a step's lists: offsets at first, then addresses in the device's memory.
#[derive(Clone, Copy)]
pub(crate) struct StepAddresses {
    pub(crate) token_ids: u64,
    pub(crate) positions: u64,
    pub(crate) long_factors: u64,
    pub(crate) growth: u64,
    pub(crate) slot_mapping: u64,
    pub(crate) block_tables: u64,
    pub(crate) tall: u64,
    pub(crate) wide: u64,
    pub(crate) merges: u64,
    pub(crate) slots: u64,
    pub(crate) logits_indices: u64,
    pub(crate) sampling: u64,
    pub(crate) copies: u64,
}

impl StepAddresses {
    /// Adds the address at which the lists begin.
    pub(crate) fn from(self, base: Address) -> StepAddresses {
        StepAddresses {
            token_ids: base + self.token_ids,
            positions: base + self.positions,
            long_factors: base + self.long_factors,
            growth: base + self.growth,
            slot_mapping: base + self.slot_mapping,
            block_tables: base + self.block_tables,
            tall: base + self.tall,
            wide: base + self.wide,
            merges: base + self.merges,
            slots: base + self.slots,
            logits_indices: base + self.logits_indices,
            sampling: base + self.sampling,
            copies: base + self.copies,
        }
    }
}

/// Lays lists out one after the other, each aligned for the kernels.
#[derive(Default)]
pub(crate) struct Packer {
    pub(crate) bytes: Vec<u8>,
}

impl Packer {
    fn align(&mut self) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.bytes.len() as u64
    }

    /// Appends integers and returns their offset.
    pub(crate) fn ints(&mut self, list: &[i32]) -> u64 {
        let at = self.align();
        self.bytes.extend(list.iter().flat_map(|n| n.to_ne_bytes()));
        at
    }

    /// Appends floats and returns their offset.
    pub(crate) fn floats(&mut self, list: &[f32]) -> u64 {
        let at = self.align();
        self.bytes.extend(list.iter().flat_map(|x| x.to_ne_bytes()));
        at
    }

    /// Appends sampling metadata and returns its offset. The kernel samples every row; where the host samples, and where the best token
    /// is taken anyway, a temperature of 0 makes it the best one.
    pub(crate) fn sampling(&mut self, rows: &[SamplingMetadata]) -> u64 {
        let at = self.align();
        for row in rows {
            let s = &row.sampling;
            let draws = row.sampled && !row.return_logits && !is_best(s);
            let (number, temperature) = if draws { (uniform(row.key, row.index), s.temperature) } else { (0.0, 0.0) };
            self.bytes.extend(number.to_ne_bytes());
            self.bytes.extend(temperature.to_ne_bytes());
            self.bytes.extend(row.target.map_or(-1, |t| t as i32).to_ne_bytes());
            self.bytes.extend((s.top_k.min(i32::MAX as usize) as i32).to_ne_bytes());
            self.bytes.extend(s.top_p.to_ne_bytes());
            self.bytes.extend(s.min_p.to_ne_bytes());
            self.bytes.extend([0; 4]);
        }
        at
    }
}

/// True if the most probable token is taken, whatever the random number.
fn is_best(s: &Sampling) -> bool {
    s.is_greedy() || s.top_k == 1
}
