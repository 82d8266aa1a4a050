//! Layout of keys and values in a block.

use crate::core::BLOCK_SIZE;

/// Lanes that the attention kernel reads at once.
const LANES: usize = 16;

/// Size of sixteen int8 keys in 32 of their dimensions, in floats: a step and a least value each, and the codes.
pub(crate) const KEY_GROUP: usize = 2 * LANES + LANES * KEY_DIMENSIONS / size_of::<f32>();

/// Dimensions of a key that are rounded together.
const KEY_DIMENSIONS: usize = 32;

/// Size of sixteen dimensions of a block's int8 values, in floats.
pub(crate) const VALUE_PANEL: usize = BLOCK_SIZE * LANES / size_of::<f32>();

/// Positions whose bytes lie beside each other.
const QUAD: usize = 4;

/// Element type of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheType {
    /// f32.
    F32,
    /// Rounded to bfloat16.
    Bf16,
    /// 8 bits and scales, a third of the memory.
    Int8,
}

/// Place and shape of one layer in a block: for each key/value head the keys of 32 positions, transposed in two panels
/// `[2][head_dim][16 positions]`, then their values in panels `[ceil(head_dim / 16)][32 positions][16]`, in bf16 two to a float; in int8 the keys in
/// panels `[2][ceil(head_dim / 32)]` of [`KEY_GROUP`], the values in panels `[ceil(head_dim / 16)][8][16][4 positions]` and
/// their scales `[32]`. The attention kernel reads them as packed matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockLayout {
    pub(crate) cache: CacheType,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    /// First float of the layer in the block.
    pub(crate) start: usize,
}

/// Layers of a block, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheLayout {
    layers: Vec<BlockLayout>,
    floats: usize,
}

impl CacheLayout {
    /// Lays out layers given as (key/value heads, width of a head).
    pub(crate) fn new(cache: CacheType, layers: impl Iterator<Item = (usize, usize)>) -> CacheLayout {
        let mut floats = 0;
        let layers = layers
            .map(|(kv_heads, head_dim)| {
                let layer = BlockLayout { cache, kv_heads, head_dim, start: floats };
                floats += layer.floats();
                layer
            })
            .collect();
        CacheLayout { layers, floats }
    }

    /// A layer that has a place in the block.
    pub(crate) fn layer(&self, layer: usize) -> BlockLayout {
        self.layers[layer]
    }

    /// Floats in a block.
    pub(crate) fn floats(&self) -> usize {
        self.floats
    }

    /// Bytes of a block.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.floats as u64 * size_of::<f32>() as u64
    }

    /// Copies the first `count` positions of all layers and heads from one block to another.
    pub(crate) fn copy_positions(&self, from: &[f32], to: &mut [f32], count: usize) {
        assert!(
            from.len() == self.floats && to.len() == from.len() && count <= BLOCK_SIZE,
            "blocks of different shapes"
        );
        self.layers.iter().for_each(|layer| layer.copy_positions(from, to, count));
    }
}

impl BlockLayout {
    /// Floats of one head's keys.
    fn per_keys(&self) -> usize {
        match self.cache {
            CacheType::F32 => BLOCK_SIZE * self.head_dim,
            CacheType::Bf16 => BLOCK_SIZE * self.head_dim / 2,
            CacheType::Int8 => BLOCK_SIZE / LANES * self.head_dim.div_ceil(KEY_DIMENSIONS) * KEY_GROUP,
        }
    }

    /// Floats of one head's keys and values.
    fn per_head(&self) -> usize {
        let panels = self.head_dim.div_ceil(LANES);
        self.per_keys()
            + match self.cache {
                CacheType::F32 => panels * BLOCK_SIZE * LANES,
                CacheType::Bf16 => panels * BLOCK_SIZE * LANES / 2,
                CacheType::Int8 => panels * VALUE_PANEL + BLOCK_SIZE,
            }
    }

    /// Floats of the layer.
    pub(crate) fn floats(&self) -> usize {
        self.kv_heads * self.per_head()
    }

    /// Offset of the keys of a head.
    pub(crate) fn keys(&self, head: usize) -> usize {
        self.start + head * self.per_head()
    }

    /// Offset of the values of a head.
    pub(crate) fn values(&self, head: usize) -> usize {
        self.keys(head) + self.per_keys()
    }

    /// Writes one position's key and value as the elements that `element` makes of them.
    ///
    /// # Safety
    /// `block` points to the elements of a block with this layer that no other thread reads; two threads may write different
    /// positions or heads at once.
    pub(crate) unsafe fn write<T>(
        &self,
        block: *mut T,
        head: usize,
        slot: usize,
        key: &[f32],
        value: &[f32],
        element: impl Fn(f32) -> T,
    ) {
        let per_float = size_of::<f32>() / size_of::<T>();
        assert!(
            per_float == if self.cache == CacheType::Bf16 { 2 } else { 1 } && self.cache != CacheType::Int8,
            "a block of other elements"
        );
        assert!(
            slot < BLOCK_SIZE && key.len() == self.head_dim && value.len() == self.head_dim,
            "a key of the wrong size"
        );
        // SAFETY: the slot and the sizes were just checked, and the caller has a block of this layout.
        unsafe {
            let k = block.add(self.keys(head) * per_float + slot / LANES * self.head_dim * LANES + slot % LANES);
            for (i, &x) in key.iter().enumerate() {
                *k.add(i * LANES) = element(x);
            }
            let v = block.add(self.values(head) * per_float + slot * LANES);
            for (i, &x) in value.iter().enumerate() {
                *v.add(i / LANES * BLOCK_SIZE * LANES + i % LANES) = element(x);
            }
        }
    }

    /// Copies the first `count` positions of all heads from one block to another.
    fn copy_positions(&self, from: &[f32], to: &mut [f32], count: usize) {
        let size = match self.cache {
            CacheType::F32 => 4,
            CacheType::Bf16 => 2,
            CacheType::Int8 => return self.copy_int8(from, to, count),
        };
        let (from, to) = (bytes_of(from), bytes_of_mut(to));
        // From element `start` behind a float of the block.
        let mut copy = |float: usize, start: usize, length: usize| {
            let bytes = float * size_of::<f32>() + start * size..float * size_of::<f32>() + (start + length) * size;
            to[bytes.clone()].copy_from_slice(&from[bytes]);
        };
        for head in 0..self.kv_heads {
            for line in 0..BLOCK_SIZE / LANES * self.head_dim {
                let lanes = count.saturating_sub(line / self.head_dim * LANES).min(LANES);
                copy(self.keys(head), line * LANES, lanes);
            }
            for panel in 0..self.head_dim.div_ceil(LANES) {
                copy(self.values(head), panel * BLOCK_SIZE * LANES, count * LANES);
            }
        }
    }

    /// [`copy_positions`](Self::copy_positions) of an int8 block.
    fn copy_int8(&self, from: &[f32], to: &mut [f32], count: usize) {
        let (from, to) = (bytes_of(from), bytes_of_mut(to));
        let mut copy =
            |start: usize, length: usize| to[start..start + length].copy_from_slice(&from[start..start + length]);
        const FLOAT: usize = size_of::<f32>();
        let groups = self.head_dim.div_ceil(KEY_DIMENSIONS);
        let panels = self.head_dim.div_ceil(LANES);
        for head in 0..self.kv_heads {
            let (keys, values) = (self.keys(head) * FLOAT, self.values(head) * FLOAT);
            copy(values + panels * VALUE_PANEL * FLOAT, count * FLOAT);
            for slot in 0..count {
                for group in slot / LANES * groups..(slot / LANES + 1) * groups {
                    // A key's step, least value and codes are in lines of sixteen times four bytes.
                    for line in 0..KEY_GROUP / LANES {
                        copy(keys + (group * KEY_GROUP + line * LANES + slot % LANES) * FLOAT, FLOAT);
                    }
                }
                for dimension in 0..panels * LANES {
                    let quad = dimension / LANES * VALUE_PANEL + slot / QUAD * LANES + dimension % LANES;
                    copy(values + quad * FLOAT + slot % QUAD, 1);
                }
            }
        }
    }
}

/// Bytes of a block.
fn bytes_of(block: &[f32]) -> &[u8] {
    // SAFETY: floats are four bytes each, without gaps, and every byte of them is initialised.
    unsafe { std::slice::from_raw_parts(block.as_ptr().cast(), size_of_val(block)) }
}

fn bytes_of_mut(block: &mut [f32]) -> &mut [u8] {
    // SAFETY: as above, and any four bytes are a float.
    unsafe { std::slice::from_raw_parts_mut(block.as_mut_ptr().cast(), size_of_val(block)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_positions_are_those_written_and_no_others() {
        // Layers of different shapes, as in Gemma 4.
        let shapes = [(2, 24), (1, 40)];
        let layout = CacheLayout::new(CacheType::F32, shapes.into_iter());
        let fill = |count: usize| {
            let mut block = vec![0f32; layout.floats()];
            for slot in 0..count {
                for (layer, (heads, width)) in shapes.into_iter().enumerate() {
                    for head in 0..heads {
                        let key: Vec<f32> =
                            (0..width).map(|i| (slot * 1000 + layer * 100 + head * 50 + i) as f32 + 1.0).collect();
                        let value: Vec<f32> = key.iter().map(|x| -x).collect();
                        // SAFETY: the block has the size of the layout.
                        unsafe { layout.layer(layer).write(block.as_mut_ptr(), head, slot, &key, &value, |x| x) };
                    }
                }
            }
            block
        };
        let full = fill(BLOCK_SIZE);
        assert_eq!(full.iter().filter(|x| **x != 0.0).count(), (2 * 24 + 40) * 2 * BLOCK_SIZE);
        for count in [0, 1, 15, 16, 17, 31, 32] {
            let mut copy = vec![0f32; layout.floats()];
            layout.copy_positions(&full, &mut copy, count);
            assert_eq!(copy, fill(count), "{count}");
        }
    }
}
