//! The register tile that all matrix products share: a few rows times sixteen (or thirty-two) columns.
//!
//! Each output is one chain of fused multiply-adds in ascending k. So its bits depend only on its own row and column:
//! not on the other rows of the batch, the tile size, the number of threads or the instruction set. Batch invariance
//! rests on this.

use super::lanes::{LANES, Lanes};

/// An element of a packed panel.
pub(crate) trait PanelElement: Copy + Send + Sync {
    /// Sixteen of them, widened to f32 (exact).
    unsafe fn lanes<L: Lanes>(p: *const Self) -> L;
}

impl PanelElement for f32 {
    #[inline(always)]
    unsafe fn lanes<L: Lanes>(p: *const f32) -> L {
        // SAFETY: the caller has a vector at `p`, and the instructions.
        unsafe { L::load(p) }
    }
}

/// A bfloat16 bit pattern.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bf16(pub(crate) u16);

impl PanelElement for Bf16 {
    #[inline(always)]
    unsafe fn lanes<L: Lanes>(p: *const Bf16) -> L {
        // SAFETY: the caller has a vector at `p`, and the instructions.
        unsafe { L::load_bf16(p.cast()) }
    }
}

/// An IEEE half-precision bit pattern.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(pub(crate) u16);

impl PanelElement for F16 {
    #[inline(always)]
    unsafe fn lanes<L: Lanes>(p: *const F16) -> L {
        // SAFETY: the caller has a vector at `p`, and the instructions.
        unsafe { L::load_f16(p.cast()) }
    }
}

/// Left operand of a tile in memory: element (r, i) is at `first + r * row + i * column`. The strides are constants
/// at every call, so that addresses fold into the instructions.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) first: *const f32,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// `acc[r][p] += sum over i < k of a[r][i] * panels[p][i]`, each panel `[k][16]`.
#[inline(always)]
pub(crate) unsafe fn tile<L: Lanes, E: PanelElement, const R: usize, const P: usize>(
    k: usize,
    a: Rows,
    panels: [*const E; P],
    acc: &mut [[L; P]; R],
) {
    for i in 0..k {
        // SAFETY: the caller has `k` vectors behind every panel, `k` values of R rows, and the instructions.
        unsafe {
            let mut b = [L::zero(); P];
            for p in 0..P {
                b[p] = E::lanes(panels[p].add(i * LANES));
            }
            for (r, sums) in acc.iter_mut().enumerate() {
                let x = L::splat(*a.first.add(r * a.row + i * a.column));
                for p in 0..P {
                    sums[p] = x.fma(b[p], sums[p]);
                }
            }
        }
    }
}

/// Reads the sums of `R` rows and `P` panels, rows `stride` values apart.
///
/// By index and panel by panel, so that sums stay in registers: iterators over arrays of vectors copy them over the stack, and row by
/// row the compiler sees one copy of bytes from memory to memory.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "see above: by index")]
pub(crate) unsafe fn load_tile<L: Lanes, const R: usize, const P: usize>(
    acc: &mut [[L; P]; R],
    sums: *const f32,
    stride: usize,
) {
    // SAFETY: the caller has the rows, and the instructions.
    unsafe {
        for p in 0..P {
            for r in 0..R {
                acc[r][p] = L::load(sums.add(r * stride + p * LANES));
            }
        }
    }
}

/// Stores what [`load_tile`] reads.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "as for loads: by index")]
pub(crate) unsafe fn store_tile<L: Lanes, const R: usize, const P: usize>(
    acc: &[[L; P]; R],
    sums: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller has room for the rows, and the instructions.
    unsafe {
        for p in 0..P {
            for r in 0..R {
                acc[r][p].store(sums.add(r * stride + p * LANES));
            }
        }
    }
}

/// Runs `$body` with the constant `$R` equal to `$rows` (at most [`Lanes::TILE_ROWS`] of the instruction set).
macro_rules! with_rows {
    ($rows:expr, $L:ty, $R:ident => $body:expr) => {{
        macro_rules! arm {
            ($n:literal) => {{
                const $R: usize = $n;
                $body
            }};
        }
        // Larger tiles are only instantiated where the registers hold them.
        if <$L as $crate::cpu::kernels::lanes::Lanes>::TILE_ROWS >= 12 {
            match $rows {
                1 => arm!(1),
                2 => arm!(2),
                3 => arm!(3),
                4 => arm!(4),
                5 => arm!(5),
                6 => arm!(6),
                7 => arm!(7),
                8 => arm!(8),
                9 => arm!(9),
                10 => arm!(10),
                11 => arm!(11),
                12 => arm!(12),
                rows => unreachable!("a tile of {rows} rows"),
            }
        } else {
            $crate::cpu::kernels::tile::with_few_rows!($rows, $R => $body)
        }
    }};
}
pub(crate) use with_rows;

/// Runs `$body` with the constant `$R` equal to `$rows`, at most six.
macro_rules! with_few_rows {
    ($rows:expr, $R:ident => $body:expr) => {{
        macro_rules! few {
            ($n:literal) => {{
                const $R: usize = $n;
                $body
            }};
        }
        match $rows {
            1 => few!(1),
            2 => few!(2),
            3 => few!(3),
            4 => few!(4),
            5 => few!(5),
            6 => few!(6),
            rows => unreachable!("a tile of {rows} rows"),
        }
    }};
}
pub(crate) use with_few_rows;

/// Splits `rows` into the fewest tiles of at most `most` rows, as equal as possible: (first row, rows) of each.
pub(crate) fn tiles(rows: usize, most: usize) -> impl ExactSizeIterator<Item = (usize, usize)> + Clone {
    let count = rows.div_ceil(most);
    (0..count).map(move |t| {
        let start = t * rows / count;
        (start, (t + 1) * rows / count - start)
    })
}
