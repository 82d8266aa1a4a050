//! Free blocks of the KV cache, and the reference counts of the others.

/// Positions in a block of the KV cache.
pub const BLOCK_SIZE: usize = 32;

/// Reference counts of the blocks `0..total`.
#[derive(Debug)]
pub(crate) struct BlockPool {
    references: Vec<u32>,
    free: Vec<usize>,
}

impl BlockPool {
    /// Creates a pool with all blocks free; low numbers are handed out first.
    pub(crate) fn new(total: usize) -> BlockPool {
        BlockPool { references: vec![0; total], free: (0..total).rev().collect() }
    }

    /// Total number of blocks.
    pub(crate) fn total(&self) -> usize {
        self.references.len()
    }

    /// Number of free blocks.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Reference count of a block.
    pub(crate) fn references(&self, block: usize) -> u32 {
        self.references[block]
    }

    /// Takes a free block; its reference count becomes 1.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let block = self.free.pop()?;
        debug_assert_eq!(self.references[block], 0, "block {block} is free and in use");
        self.references[block] = 1;
        Some(block)
    }

    /// Adds a reference to a block in use.
    pub(crate) fn share(&mut self, block: usize) {
        assert!(self.references[block] > 0, "block {block} is shared but free");
        self.references[block] += 1;
    }

    /// Drops a reference; a block without one is free.
    pub(crate) fn release(&mut self, block: usize) {
        assert!(self.references[block] > 0, "block {block} is released twice");
        self.references[block] -= 1;
        if self.references[block] == 0 {
            self.free.push(block);
        }
    }
}
