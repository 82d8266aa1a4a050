//! Weights that stay in their 4 to 8 bits in memory and are widened inside the product.
//!
//! In f32, products have the bits of products with dequantised weights: a widened weight is that weight ([`part`]), and each
//! output is the same chain of multiply-adds. One row is multiplied as weights are widened, in registers; for more rows a stretch of a panel is
//! widened once, to a cache, and every tile of rows goes on with its chains there. Rows whose groups are no blocks of neighbours have an index of
//! each input's group ([`grouped`]).
//!
//! For `--compute a8` activations are rounded to 8 bits as in [`int8`](super::int8), and codes are multiplied with them in
//! integers; weights are those of the file ([`bytes`]).

mod bytes;
mod codes;
mod column;
mod exact;
mod grouped;
mod operands;
mod part;
mod words;

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::int8::{self, Int8Isa};
use super::lanes::Isa;
use super::target::Output;
use crate::cpu::team::Team;
pub(crate) use operands::Rows;
pub(crate) use part::Part;

/// Parts on top of each other.
pub(crate) struct Packed {
    parts: Vec<Part>,
    n: usize,
    /// Activations are rounded to 8 bits.
    rounds: bool,
}

impl Packed {
    /// Puts parts of equal width on top of each other.
    ///
    /// Panics if the widths differ.
    pub(crate) fn new(parts: Vec<Part>, rounds: bool) -> Packed {
        assert!(parts.iter().all(|part| part.k() == parts[0].k()), "stacked matrices of different widths");
        Packed { n: parts.iter().map(Part::n).sum(), parts, rounds }
    }

    /// Output columns.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Input columns.
    pub(crate) fn k(&self) -> usize {
        self.parts[0].k()
    }

    /// Panels of all parts: each part begins a new one.
    pub(crate) fn panels(&self) -> usize {
        self.parts.iter().map(Part::panels).sum()
    }

    /// Bytes of memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.parts.iter().map(Part::size_bytes).sum()
    }

    /// True if products are computed with rounded activations.
    pub(crate) fn rounds(&self) -> bool {
        self.rounds
    }

    /// True if products with rounded activations need the sums of half groups.
    pub(crate) fn needs_halves(&self) -> bool {
        self.rounds && self.parts.iter().any(Part::has_halves)
    }

    /// Writes row `row` (an embedding) times `scale` to `out` (`[k]`).
    pub(crate) fn row(&self, mut row: usize, scale: f32, out: &mut [f32]) {
        for part in &self.parts {
            if row < part.n() {
                return exact::row(part, row, scale, out);
            }
            row -= part.n();
        }
        unreachable!("a row beyond the matrix");
    }

    /// Computes the columns of panels `panels`, counted through all parts.
    ///
    /// # Safety
    /// The CPU has the instructions; rows and output have the matrix's sizes; nobody else touches these columns of the output.
    pub(crate) unsafe fn product(
        &self,
        isa: Isa,
        unit: Int8Isa,
        rows: &Rows<'_>,
        panels: Range<usize>,
        out: Output<'_>,
    ) {
        let (mut panel, mut column) = (0, 0);
        for part in &self.parts {
            let own = panels.start.max(panel)..panels.end.min(panel + part.panels());
            if !own.is_empty() {
                let own = own.start - panel..own.end - panel;
                // SAFETY: the part's columns begin at `column` of the output's rows; the rest is this function's.
                unsafe {
                    let y = out.y.add(column);
                    let bias = out.bias.map(|bias| &bias[column..column + part.n()]);
                    let out = Output { n: part.n(), bias, y, ..out };
                    if self.rounds {
                        bytes::product(unit, part, rows, own, out);
                    } else {
                        exact::product(isa, part, rows, own, out);
                    }
                }
            }
            panel += part.panels();
            column += part.n();
        }
    }
}

/// Sums of the halves of every group of rounded rows, times the group's scale: in tiles as [`int8::quantise`] has them, each tile
/// `[k / 32][2][rows]`.
pub(crate) fn half_sums(team: &Team, words: &[i32], m: usize, k: usize, out: &mut Vec<f32>) {
    out.resize(m * k / int8::GROUP * 2, 0.0);
    let split = super::tile::tiles(m, int8::TILE_ROWS);
    let target = super::shared::SharedMut::new(out);
    let one = |t: usize| {
        let (start, rows) = split.clone().nth(t).expect("t counts the tiles");
        let groups = words[int8::words(start, k)..int8::words(start + rows, k)].chunks_exact(int8::ROW_WORDS * rows);
        // SAFETY: tiles cover disjoint parts of the buffer, which has two sums for every group.
        let sums = unsafe { target.slice(start * k / int8::GROUP * 2, rows * k / int8::GROUP * 2) };
        for (group, sums) in groups.zip(sums.chunks_exact_mut(2 * rows)) {
            for (i, sum) in sums.iter_mut().enumerate() {
                let (half, row) = (i / rows, i % rows);
                let quads = half * int8::QUADS / 2..(half + 1) * int8::QUADS / 2;
                let codes = quads.flat_map(|q| group[q * rows + row].to_ne_bytes()).map(|code| i32::from(code as i8));
                *sum = f32::from_bits(group[int8::QUADS * rows + row].cast_unsigned()) * codes.sum::<i32>() as f32;
            }
        }
    };
    if m * k < 20_000 { (0..split.len()).for_each(one) } else { team.run(split.len(), &one) }
}
