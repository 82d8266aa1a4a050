//! Products in bf16 on the matrix unit (AMX), by inline assembly.
//!
//! A tile register has 16 rows of 64 bytes. Left operands are 16 rows of 32 activations, right operands 16 pairs of inputs of 16
//! columns, results 16 rows of 16 sums. 32 rows of activations take all eight registers: 2 x 2 results, 2 left, 2 right. Up to 16
//! rows are multiplied with four tiles of columns at once, so that each is loaded for one product only.
//!
//! Every function configures the tiles of its thread and releases them, so that no state is left to be saved at a task switch, and
//! nothing else in the process uses tiles meanwhile on this thread: between the assembly blocks is compiled code only, and
//! compilers use no tiles on their own.

use std::arch::asm;

use super::super::lanes::{Lanes, for_each_isa};
use super::numbers::{COLUMNS, Line, TILE_ROWS};
use super::operands::Operands;

/// Bytes from one row of a tile in memory to the next.
const LINE_BYTES: usize = size_of::<Line>();

/// Bytes of a tile of activations or weights.
const TILE_BYTES: usize = TILE_ROWS * LINE_BYTES;

/// Bytes of a row of sums with a panel.
const SUM_BYTES: usize = COLUMNS * size_of::<f32>();

/// Operand of `ldtilecfg`: palette in byte 0, the row to resume at in byte 1, bytes per row of tile i as u16 from byte 16 on, rows of
/// tile i in byte 48 + i; the rest zero. An unused tile has neither.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Configuration([u8; 64]);

impl Configuration {
    /// Eight tiles of 64 bytes a row and so many rows.
    fn new(rows: [usize; 8]) -> Configuration {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        for (tile, &rows) in rows.iter().enumerate().filter(|&(_, &rows)| rows > 0) {
            bytes[16 + 2 * tile] = LINE_BYTES as u8;
            bytes[48 + tile] = rows as u8;
        }
        Configuration(bytes)
    }

    /// Sums in tiles 0 to 3, left operands in 4 and 5, right ones in 6 and 7, for `rows` and `more` rows.
    fn two_by_two(rows: usize, more: usize) -> Configuration {
        Configuration::new([rows, rows, more, more, rows, more, TILE_ROWS, TILE_ROWS])
    }

    /// Sums in tiles 0 to 3, the left operand in 4, right ones in 5 to 7, for `rows` rows.
    fn one_by_four(rows: usize) -> Configuration {
        Configuration::new([rows, rows, rows, rows, rows, TILE_ROWS, TILE_ROWS, TILE_ROWS])
    }

    /// Sets up the thread's tiles, all zero.
    ///
    /// # Safety
    /// The system has AMX and this process its permission.
    unsafe fn load(&self) {
        // SAFETY: the instruction reads 64 bytes, which a configuration has.
        unsafe {
            asm!("ldtilecfg [{0}]", in(reg) self.0.as_ptr(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, readonly, preserves_flags));
        }
    }
}

/// Gives the thread's tiles back.
///
/// # Safety
/// The system has AMX.
unsafe fn release() {
    // SAFETY: the instruction touches tiles only, and no compiled code holds any.
    unsafe {
        asm!("tilerelease",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, nomem, preserves_flags));
    }
}

/// Sums of 32 rows with a panel.
#[repr(C, align(64))]
struct Sums([f32; 2 * TILE_ROWS * COLUMNS]);

/// Products of two tiles of rows, at `a` and `more`, with a panel: `[32][32]` sums.
///
/// # Safety
/// The thread's tiles are configured by [`Configuration::two_by_two`]; there are `blocks` blocks, at least one, of the rows and of the panel;
/// `sums` has room for the rows of both.
unsafe fn two_by_two(blocks: usize, a: *const Line, more: *const Line, panel: *const u16, sums: *mut f32) {
    // SAFETY: a load reads 64 bytes of each configured row, a store writes as many; the caller has them. The left operand of
    // `tdpbf16ps` is its second, the right one its third.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {line}*1]",
            "tileloadd tmm6, [{w} + {line}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{w} + {line}*1 + {tile}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{more} + {line}*1]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, {tile}",
            "add {more}, {tile}",
            "add {w}, 2*{tile}",
            "dec {blocks}",
            "jnz 2b",
            "tilestored [{sums} + {row}*1], tmm0",
            "tilestored [{sums} + {row}*1 + {line_bytes}], tmm1",
            "tilestored [{sums} + {row}*1 + {below}], tmm2",
            "tilestored [{sums} + {row}*1 + {below} + {line_bytes}], tmm3",
            a = inout(reg) a => _,
            more = inout(reg) more => _,
            w = inout(reg) panel => _,
            blocks = inout(reg) blocks => _,
            sums = in(reg) sums,
            line = in(reg) LINE_BYTES,
            row = in(reg) SUM_BYTES,
            tile = const TILE_BYTES,
            line_bytes = const LINE_BYTES,
            below = const TILE_ROWS * SUM_BYTES,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// Products of one tile of rows with two panels: `[16][32]` sums with `left` at `sums`, those with `right` behind them.
///
/// # Safety
/// As for [`two_by_two`], with [`Configuration::one_by_four`].
unsafe fn one_by_four(blocks: usize, a: *const Line, [left, right]: [*const u16; 2], sums: *mut f32) {
    // SAFETY: as in `two_by_two`.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {line}*1]",
            "tileloadd tmm5, [{left} + {line}*1]",
            "tdpbf16ps tmm0, tmm4, tmm5",
            "tileloadd tmm6, [{left} + {line}*1 + {tile}]",
            "tdpbf16ps tmm1, tmm4, tmm6",
            "tileloadd tmm7, [{right} + {line}*1]",
            "tdpbf16ps tmm2, tmm4, tmm7",
            "tileloadd tmm5, [{right} + {line}*1 + {tile}]",
            "tdpbf16ps tmm3, tmm4, tmm5",
            "add {a}, {tile}",
            "add {left}, 2*{tile}",
            "add {right}, 2*{tile}",
            "dec {blocks}",
            "jnz 2b",
            "tilestored [{sums} + {row}*1], tmm0",
            "tilestored [{sums} + {row}*1 + {line_bytes}], tmm1",
            "tilestored [{sums} + {row}*1 + {below}], tmm2",
            "tilestored [{sums} + {row}*1 + {below} + {line_bytes}], tmm3",
            a = inout(reg) a => _,
            left = inout(reg) left => _,
            right = inout(reg) right => _,
            blocks = inout(reg) blocks => _,
            sums = in(reg) sums,
            line = in(reg) LINE_BYTES,
            row = in(reg) SUM_BYTES,
            tile = const TILE_BYTES,
            line_bytes = const LINE_BYTES,
            below = const TILE_ROWS * SUM_BYTES,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// Products of one tile of rows with one panel: `[16][32]` sums.
///
/// # Safety
/// As for [`one_by_four`].
unsafe fn one_by_two(blocks: usize, a: *const Line, panel: *const u16, sums: *mut f32) {
    // SAFETY: as in `two_by_two`.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "2:",
            "tileloadd tmm4, [{a} + {line}*1]",
            "tileloadd tmm6, [{w} + {line}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{w} + {line}*1 + {tile}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "add {a}, {tile}",
            "add {w}, 2*{tile}",
            "dec {blocks}",
            "jnz 2b",
            "tilestored [{sums} + {row}*1], tmm0",
            "tilestored [{sums} + {row}*1 + {line_bytes}], tmm1",
            a = inout(reg) a => _,
            w = inout(reg) panel => _,
            blocks = inout(reg) blocks => _,
            sums = in(reg) sums,
            line = in(reg) LINE_BYTES,
            row = in(reg) SUM_BYTES,
            tile = const TILE_BYTES,
            line_bytes = const LINE_BYTES,
            out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

for_each_isa! {
    /// Products of rows that `round_lines` rounded with panels of a matrix.
    ///
    /// # Safety
    /// The CPU has the instruction set, and the system AMX; the sizes fit; nobody else touches the panels' columns of y.
    pub(super) fn product(o: Operands<'_>) => product_body
}

#[inline(always)]
unsafe fn product_body<L: Lanes>(o: Operands<'_>) {
    let blocks = o.matrix.blocks();
    let mut sums = Sums([0.0; _]);
    let sums = sums.0.as_mut_ptr();
    let whole = Configuration::two_by_two(TILE_ROWS, TILE_ROWS);
    let rest = match o.m % (2 * TILE_ROWS) {
        rows @ ..=TILE_ROWS => Configuration::one_by_four(rows),
        rows => Configuration::two_by_two(TILE_ROWS, rows - TILE_ROWS),
    };
    let mut loaded = None;
    let mut panel = o.panels.start;
    while panel < o.panels.end {
        // Few rows are multiplied with two panels at once.
        let pair = o.m <= TILE_ROWS && panel + 1 < o.panels.end;
        for first in (0..o.m).step_by(2 * TILE_ROWS) {
            let rows = (o.m - first).min(2 * TILE_ROWS);
            let wanted = if rows == 2 * TILE_ROWS { &whole } else { &rest };
            // SAFETY: the caller has AMX; the rows were rounded in whole tiles of `blocks` blocks, a panel has as many, and
            // `sums` has room for two tiles of rows with one panel, or one with two.
            unsafe {
                if loaded != Some(wanted) {
                    wanted.load();
                    loaded = Some(wanted);
                }
                let a = o.scratch.lines.as_ptr().add(first * blocks);
                let w = o.matrix.panel(panel);
                if rows > TILE_ROWS {
                    two_by_two(blocks, a, a.add(blocks * TILE_ROWS), w, sums);
                } else if pair {
                    one_by_four(blocks, a, [w, o.matrix.panel(panel + 1)], sums);
                    o.out.finish::<L>(sums.add(TILE_ROWS * COLUMNS), (first, rows), 2 * panel + 2, 2);
                } else {
                    one_by_two(blocks, a, w, sums);
                }
                o.out.finish::<L>(sums, (first, rows), 2 * panel, 2);
            }
        }
        panel += if pair { 2 } else { 1 };
    }
    // SAFETY: the caller has AMX.
    unsafe { release() };
}

/// `rounds` times four products that read no memory, to measure what a core can do.
///
/// # Safety
/// The system has AMX and this process its permission.
pub(super) unsafe fn products(rounds: usize) {
    // SAFETY: the tiles are configured, and zero.
    unsafe {
        Configuration::two_by_two(TILE_ROWS, TILE_ROWS).load();
        asm!(
            "2:",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "dec {rounds}",
            "jnz 2b",
            rounds = inout(reg) rounds.max(1) => _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, nomem),
        );
        release();
    }
}

/// Two tiles of rows times a panel, in two blocks, to try whether tiles work. Calls nothing but instructions.
pub(super) struct Trial {
    pub(super) rows: [Line; 2 * 2 * TILE_ROWS],
    pub(super) panel: [Line; 2 * 2 * TILE_ROWS],
    pub(super) expected: [f32; 2 * TILE_ROWS * COLUMNS],
}

impl Trial {
    /// True if the tiles give the expected bits.
    ///
    /// # Safety
    /// The thread survives an illegal instruction, or its end does not matter.
    pub(super) unsafe fn passes(&self) -> bool {
        let mut sums = Sums([0.0; _]);
        let (rows, panel) = (self.rows.as_ptr(), self.panel.as_ptr());
        // SAFETY: two blocks of each, as the arrays have, and room for all sums.
        unsafe {
            Configuration::two_by_two(TILE_ROWS, TILE_ROWS).load();
            two_by_two(2, rows, rows.add(2 * TILE_ROWS), panel.cast(), sums.0.as_mut_ptr());
            release();
        }
        sums.0.iter().zip(&self.expected).all(|(a, b)| a.to_bits() == b.to_bits())
    }
}
