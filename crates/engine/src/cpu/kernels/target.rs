//! Destination of a product: its outputs, overwritten or added to.
use super::lanes::{LANES, Lanes};

/// Destination of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `y = x W^T + bias`
    Overwrite,
    /// `y = y + (x W^T + bias)`
    Add,
}

/// Adds bias and previous value to sixteen outputs and stores those that exist.
#[inline(always)]
pub(super) unsafe fn finish<L: Lanes>(acc: L, n: usize, panel: usize, bias: Option<&[f32]>, into: Target, y: *mut f32) {
    let column = panel * LANES;
    // SAFETY: columns beyond `n` are neither read nor written; the caller has the row.
    unsafe {
        if column + LANES <= n {
            let mut v = acc;
            if let Some(bias) = bias {
                v = v.add(L::load(bias.as_ptr().add(column)));
            }
            if into == Target::Add {
                v = v.add(L::load(y.add(column)));
            }
            v.store(y.add(column));
        } else {
            let mut tail = [0f32; LANES];
            acc.store(tail.as_mut_ptr());
            for (i, v) in tail.into_iter().take(n - column).enumerate() {
                let mut v = v;
                if let Some(bias) = bias {
                    v += bias[column + i];
                }
                if into == Target::Add {
                    v += *y.add(column + i);
                }
                *y.add(column + i) = v;
            }
        }
    }
}
