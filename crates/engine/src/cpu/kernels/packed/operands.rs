//! Operands of products with packed weights.

/// Inputs that are widened at a time: two panels of them and the rows' part fit a first-level cache.
pub(super) const STRETCH: usize = 128;

/// Activations as products with packed weights read them.
pub(crate) struct Rows<'a> {
    pub(crate) m: usize,
    /// In f32: in tiles of [`crate::cpu::kernels::matmul::tile_rows`] rows, each tile `[k][rows]`.
    pub(crate) floats: &'a [f32],
    /// In 8 bits: of [`crate::cpu::kernels::int8::quantise`].
    pub(crate) words: &'a [i32],
    /// Sums of half groups, of [`super::half_sums`]; empty if no part has halves.
    pub(crate) halves: &'a [f32],
}
