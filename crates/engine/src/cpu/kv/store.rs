//! Storage of KV blocks.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use super::layout::CacheLayout;

/// Storage of blocks, taken from the system when a block is first used and kept for the next user.
pub(crate) struct KvStore {
    layout: CacheLayout,
    blocks: Vec<Option<Storage>>,
}

/// One block's memory. A raw pointer, because a step's threads write disjoint parts of it at once.
struct Storage {
    start: *mut f32,
    floats: usize,
}

// SAFETY: the pointer is the only owner of its memory.
unsafe impl Send for Storage {}

impl Storage {
    /// Blocks begin on cache lines, as int8 groups have to.
    fn memory(floats: usize) -> Layout {
        Layout::from_size_align(floats * size_of::<f32>(), 64).expect("a block fits the address space")
    }

    fn zeroed(floats: usize) -> Storage {
        let layout = Storage::memory(floats);
        assert!(layout.size() > 0, "a block holds something");
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Storage { start: start.cast(), floats }
    }

    fn slice(&self) -> &[f32] {
        // SAFETY: allocated with this length in `zeroed`; borrowed from the store, whose threads are not at work.
        unsafe { std::slice::from_raw_parts(self.start, self.floats) }
    }

    fn slice_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `slice`.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.floats) }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `zeroed`.
        unsafe { dealloc(self.start.cast(), Storage::memory(self.floats)) };
    }
}

impl KvStore {
    /// A store for blocks `0..total`; nothing is allocated yet.
    pub(crate) fn new(layout: CacheLayout, total: usize) -> KvStore {
        KvStore { layout, blocks: std::iter::repeat_with(|| None).take(total).collect() }
    }

    /// The shape of its blocks.
    pub(crate) fn layout(&self) -> &CacheLayout {
        &self.layout
    }

    /// Makes a block all zeros. Attention multiplies masked positions by a probability of zero, so what an earlier
    /// user left must at least be finite.
    pub(crate) fn clear(&mut self, block: usize) {
        match &mut self.blocks[block] {
            Some(storage) => storage.slice_mut().fill(0.0),
            empty => *empty = Some(Storage::zeroed(self.layout.floats())),
        }
    }

    /// Copies the first `count` positions of a block into another one, which was cleared before.
    pub(crate) fn copy(&mut self, from: usize, to: usize, count: usize) {
        let Some(mut target) = self.blocks[to].take() else {
            unreachable!("block {to} is a copy's target before it was cleared")
        };
        if let Some(source) = &self.blocks[from] {
            self.layout.copy_positions(source.slice(), target.slice_mut(), count);
        }
        self.blocks[to] = Some(target);
    }

    /// First element of a block that was cleared before.
    pub(crate) fn pointer(&self, block: usize) -> *const f32 {
        match &self.blocks[block] {
            Some(storage) => storage.start,
            None => unreachable!("block {block} is read before it was cleared"),
        }
    }
}
