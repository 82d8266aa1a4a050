//! Sizes of a model, as `config.json` has them.

/// Largest accepted number of layers or experts, so that a hostile count cannot exhaust memory.
pub(in crate::checkpoint) const MAX_LAYERS: usize = 4096;

/// Sizes that the rest of a configuration depends on.
pub(in crate::checkpoint) struct Sizes {
    pub(in crate::checkpoint) hidden: usize,
    pub(in crate::checkpoint) heads: usize,
    pub(in crate::checkpoint) kv_heads: usize,
    pub(in crate::checkpoint) head_dim: usize,
    pub(in crate::checkpoint) layers: usize,
    pub(in crate::checkpoint) max_positions: usize,
}
