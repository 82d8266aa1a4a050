//! CPU kernels, the arithmetic of a step: matrix products, attention, norms, activations, rotary embedding.
//!
//! Every output is computed by one fixed chain of operations that depends on its own row only, so a row's bits are the
//! same in any batch, on any number of threads and on every instruction set.

mod attention;
mod bf16;
mod int8;
mod elementwise;
mod largest;
mod lanes;
mod math;
mod matmul;
mod norm;
mod packed;
mod peak;
mod rotary;
mod shared;
mod target;
mod tile;

#[cfg(test)]
mod testing;

pub(crate) use attention::{Attention, BlockPointer, MAX_GROUP, MAX_HEAD_DIM, QueryToken, attend, write_kv};
pub use bf16::TileUnit;
pub(crate) use elementwise::{activate, add_scaled, cut_gates, exponentials, gate, scale_and_cap, scale_by, sigmoid};
pub(crate) use int8::Int8Isa;
pub use lanes::Isa;
pub(crate) use largest::largest;
pub use matmul::{MatmulScratch, PackedMatrix, matmul};
pub(crate) use norm::{layer_norm, rms_norm, rms_norm_row, rms_norm_row_plain};
pub(crate) use packed::Part;
pub use peak::Peaks;
pub(crate) use rotary::{Angles, rotate};
pub(crate) use shared::SharedMut;
pub use target::Target;
