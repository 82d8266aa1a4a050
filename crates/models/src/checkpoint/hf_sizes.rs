//! Sizes of a model, as `config.json` has them.

/// Largest accepted number of layers or experts, so that a hostile count cannot exhaust memory.
pub(super) const MAX_LAYERS: usize = 4096;

/// Sizes that the rest of a configuration depends on.
pub(super) struct Sizes {
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) layers: usize,
    pub(super) max_positions: usize,
}
