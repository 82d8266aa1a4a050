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

/// Columns of a row of sums in memory: those of two panels.
pub(crate) const SUM_COLUMNS: usize = 2 * LANES;

/// Room for the sums of `m` rows that a pair of panels goes on with, `[m][32]`.
pub(crate) fn room_for_sums(m: usize, buffer: &mut Vec<f32>) -> *mut f32 {
    buffer.resize(buffer.len().max(m * SUM_COLUMNS), 0.0);
    buffer.as_mut_ptr()
}

/// Outputs of a product: `n` columns of rows that are `stride` values apart from `y` on, and what is added to them.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) n: usize,
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) into: Target,
    pub(crate) y: *mut f32,
    pub(crate) stride: usize,
}

impl Output<'_> {
    /// Adds bias and previous values to `rows` rows of sums, `[rows][32]` from `sums` on, and stores those of `panels` panels from
    /// `panel` on whose columns exist.
    ///
    /// # Safety
    /// The CPU has the instructions; `sums` has the rows, 32 values apart, each with 16 values for every panel; a bias has `n` values;
    /// `row` and those after it are rows of y, whose columns nobody else touches.
    #[inline(always)]
    pub(crate) unsafe fn finish<L: Lanes>(
        &self,
        sums: *const f32,
        (row, rows): (usize, usize),
        panel: usize,
        panels: usize,
    ) {
        for p in 0..panels {
            let column = (panel + p) * LANES;
            if column >= self.n {
                break;
            }
            for r in 0..rows {
                // SAFETY: the caller's rows; columns beyond `n` are neither read nor written.
                unsafe {
                    let sums = sums.add(r * SUM_COLUMNS + p * LANES);
                    let y = self.y.add((row + r) * self.stride + column);
                    if column + LANES <= self.n {
                        let mut v = L::load(sums);
                        if let Some(bias) = self.bias {
                            v = v.add(L::load(bias.as_ptr().add(column)));
                        }
                        if self.into == Target::Add {
                            v = v.add(L::load(y));
                        }
                        v.store(y);
                    } else {
                        for i in 0..self.n - column {
                            let mut v = *sums.add(i);
                            if let Some(bias) = self.bias {
                                v += bias[column + i];
                            }
                            if self.into == Target::Add {
                                v += *y.add(i);
                            }
                            *y.add(i) = v;
                        }
                    }
                }
            }
        }
    }
}
