//! Where keys and values lie in a block.

/// Positions in a block of the KV cache.
pub(crate) const BLOCK: usize = 32;

/// Lanes that the attention kernel reads at once.
const LANES: usize = 16;

/// Shape of a block: for each layer and key/value head the keys of 32 positions, transposed in two panels
/// `[2][head_dim][16 positions]`, then their values in panels `[ceil(head_dim / 16)][32 positions][16]`. The attention
/// kernel reads both as packed matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockLayout {
    pub(crate) layers: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
}

impl BlockLayout {
    /// Floats of one head's keys and values.
    fn per_head(&self) -> usize {
        BLOCK * (self.head_dim + self.head_dim.next_multiple_of(LANES))
    }

    /// Floats in a block.
    pub(crate) fn floats(&self) -> usize {
        self.layers * self.kv_heads * self.per_head()
    }

    /// Bytes of a block.
    pub(crate) fn bytes(&self) -> u64 {
        self.floats() as u64 * size_of::<f32>() as u64
    }

    /// Offset of the keys of a head.
    pub(crate) fn keys(&self, layer: usize, head: usize) -> usize {
        (layer * self.kv_heads + head) * self.per_head()
    }

    /// Offset of the values of a head.
    pub(crate) fn values(&self, layer: usize, head: usize) -> usize {
        self.keys(layer, head) + BLOCK * self.head_dim
    }

    /// Writes one position's key and value.
    ///
    /// # Safety
    /// `block` points to [`floats`](Self::floats) elements that no other thread reads; two threads may write different
    /// positions or heads at once.
    pub(crate) unsafe fn write(
        &self,
        block: *mut f32,
        layer: usize,
        head: usize,
        slot: usize,
        key: &[f32],
        value: &[f32],
    ) {
        assert!(slot < BLOCK && key.len() == self.head_dim && value.len() == self.head_dim, "a key of the wrong size");
        unsafe {
            let k = block.add(self.keys(layer, head) + slot / LANES * self.head_dim * LANES + slot % LANES);
            for (i, &x) in key.iter().enumerate() {
                *k.add(i * LANES) = x;
            }
            let v = block.add(self.values(layer, head) + slot * LANES);
            for (i, &x) in value.iter().enumerate() {
                *v.add(i / LANES * BLOCK * LANES + i % LANES) = x;
            }
        }
    }

    /// Copies the first `count` positions of all layers and heads from one block to another.
    pub(crate) fn copy_positions(&self, from: &[f32], to: &mut [f32], count: usize) {
        assert!(from.len() == self.floats() && to.len() == from.len() && count <= BLOCK, "blocks of different shapes");
        let mut copy =
            |start: usize, length: usize| to[start..start + length].copy_from_slice(&from[start..start + length]);
        for layer in 0..self.layers {
            for head in 0..self.kv_heads {
                for line in 0..BLOCK / LANES * self.head_dim {
                    let lanes = count.saturating_sub(line / self.head_dim * LANES).min(LANES);
                    copy(self.keys(layer, head) + line * LANES, lanes);
                }
                for panel in 0..self.head_dim.div_ceil(LANES) {
                    copy(self.values(layer, head) + panel * BLOCK * LANES, count * LANES);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_positions_are_those_written_and_no_others() {
        let layout = BlockLayout { layers: 2, kv_heads: 2, head_dim: 24 };
        let fill = |count: usize| {
            let mut block = vec![0f32; layout.floats()];
            for slot in 0..count {
                for layer in 0..2 {
                    for head in 0..2 {
                        let key: Vec<f32> =
                            (0..24).map(|i| (slot * 1000 + layer * 100 + head * 50 + i) as f32 + 1.0).collect();
                        let value: Vec<f32> = key.iter().map(|x| -x).collect();
                        unsafe { layout.write(block.as_mut_ptr(), layer, head, slot, &key, &value) };
                    }
                }
            }
            block
        };
        let full = fill(BLOCK);
        assert_eq!(full.iter().filter(|x| **x != 0.0).count(), 2 * 2 * BLOCK * 48);
        for count in [0, 1, 15, 16, 17, 31, 32] {
            let mut copy = vec![0f32; layout.floats()];
            layout.copy_positions(&full, &mut copy, count);
            assert_eq!(copy, fill(count), "{count}");
        }
    }
}
