//! Operands of products with packed weights, and where they go.
use crate::cpu::kernels::lanes::LANES;
use crate::cpu::kernels::target::Target;

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

/// Destination of a product: what is added to it, and its rows of `stride` columns.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) into: Target,
    pub(crate) y: *mut f32,
    pub(crate) stride: usize,
}

/// Room for the sums that a pair of panels goes on with, `[m][32]`.
pub(super) fn sums(m: usize, buffer: &mut Vec<f32>) -> *mut f32 {
    buffer.resize(buffer.len().max(m * 2 * LANES), 0.0);
    buffer.as_mut_ptr()
}
