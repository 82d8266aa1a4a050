//! The unit that computes products of bf16.

/// Unit that computes products of bf16: matrix tiles (AMX), or vectors where there are none. Both give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileUnit {
    /// Only true after the system was asked and a product tried.
    pub(super) amx: bool,
}

impl TileUnit {
    /// Vectors, which every CPU has.
    pub const VECTORS: TileUnit = TileUnit { amx: false };

    /// True if products are computed by AMX.
    pub fn has_amx(self) -> bool {
        self.amx
    }
}
