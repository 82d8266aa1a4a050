//! Layout of codes: 32 inputs of sixteen columns, in lines of sixteen words, one a column.
//!
//! Inputs are taken by fours: in a quad, input `4 q + b` is in byte `b` of each column's word. That is what instructions that
//! multiply bytes read, and shifts by whole bytes give the floats. Four bits of two quads lie in one word, in its low and high
//! nibbles; further bits follow in words of their own.

use super::words::Words;
use crate::cpu::kernels::lanes::LANES;

/// Inputs of a group.
pub(crate) const GROUP: usize = 32;

/// Quads of a group.
pub(super) const QUADS: usize = GROUP / 4;

const NIBBLES: u32 = 0x0F0F_0F0F;

/// Number of bits of a code.
pub(super) trait Width {
    /// Bits of a code.
    const BITS: usize;

    /// Lines of a group.
    const LINES: usize;

    /// Quads whose products with codes of -127 to 127 a sum of 16 bits holds, where it takes two of each quad; 0 if it is none.
    const SMALL_QUADS: usize = 32767 / (2 * 127 * ((1 << Self::BITS) - 1));

    /// Codes of four inputs, one in each byte.
    unsafe fn quad<L: Words>(group: *const u32, q: usize) -> L::W;

    /// Codes of four inputs as floats.
    #[inline(always)]
    unsafe fn floats<L: Words>(group: *const u32, q: usize) -> [L; 4] {
        // SAFETY: as this function's: the group's lines are at the pointer, and the caller has the instructions.
        unsafe {
            let quad = Self::quad::<L>(group, q);
            // No closures: they would not have the caller's instructions.
            [
                L::float(L::field(quad, 0, 0xFF)),
                L::float(L::field(quad, 8, 0xFF)),
                L::float(L::field(quad, 16, 0xFF)),
                L::float(L::field(quad, 24, 0xFF)),
            ]
        }
    }

    /// Writes the codes of a column; `line` has the column's word of each line.
    fn set(quads: &[u32; QUADS], line: impl FnMut(usize, u32));
}

/// Writes the low four bits of a column's codes.
fn set_nibbles(quads: &[u32; QUADS], line: &mut impl FnMut(usize, u32)) {
    for (i, [low, high]) in quads.as_chunks().0.iter().enumerate() {
        line(i, (low & NIBBLES) | (high & NIBBLES) << 4);
    }
}

/// Low four bits of a quad.
#[inline(always)]
unsafe fn nibbles<L: Words>(group: *const u32, q: usize) -> L::W {
    // SAFETY: the caller has four lines at the pointer, and the instructions.
    unsafe { L::field(L::words(group.add(q / 2 * LANES)), q as u32 % 2 * 4, NIBBLES) }
}

/// Four bits.
pub(super) struct Bits4;

impl Width for Bits4 {
    const BITS: usize = 4;
    const LINES: usize = 4;

    #[inline(always)]
    unsafe fn quad<L: Words>(group: *const u32, q: usize) -> L::W {
        // SAFETY: as this function's.
        unsafe { nibbles::<L>(group, q) }
    }

    #[inline(always)]
    unsafe fn floats<L: Words>(group: *const u32, q: usize) -> [L; 4] {
        // SAFETY: as this function's: the group's lines are at the pointer, and the caller has the instructions.
        unsafe {
            let (words, shift) = (L::words(group.add(q / 2 * LANES)), q as u32 % 2 * 4);
            [
                L::nibble(words, shift),
                L::nibble(words, shift + 8),
                L::nibble(words, shift + 16),
                L::nibble(words, shift + 24),
            ]
        }
    }

    fn set(quads: &[u32; QUADS], mut line: impl FnMut(usize, u32)) {
        set_nibbles(quads, &mut line);
    }
}

/// Five bits: the fifth ones of the quads follow each other in the bytes of a further line.
pub(super) struct Bits5;

impl Width for Bits5 {
    const BITS: usize = 5;
    const LINES: usize = 5;

    #[inline(always)]
    unsafe fn quad<L: Words>(group: *const u32, q: usize) -> L::W {
        // SAFETY: as this function's: the group's lines are at the pointer, and the caller has the instructions.
        unsafe {
            let high = L::field(L::words(group.add(4 * LANES)), q as u32, 0x0101_0101);
            L::join(nibbles::<L>(group, q), high, 4)
        }
    }

    fn set(quads: &[u32; QUADS], mut line: impl FnMut(usize, u32)) {
        set_nibbles(quads, &mut line);
        line(4, quads.iter().enumerate().map(|(q, quad)| (quad >> 4 & 0x0101_0101) << q).sum());
    }
}

/// Six bits: the upper two of four quads follow each other in the bytes of a further line, those of the others in another one.
pub(super) struct Bits6;

impl Width for Bits6 {
    const BITS: usize = 6;
    const LINES: usize = 6;

    #[inline(always)]
    unsafe fn quad<L: Words>(group: *const u32, q: usize) -> L::W {
        // SAFETY: as this function's: the group's lines are at the pointer, and the caller has the instructions.
        unsafe {
            let high = L::field(L::words(group.add((4 + q / 4) * LANES)), q as u32 % 4 * 2, 0x0303_0303);
            L::join(nibbles::<L>(group, q), high, 4)
        }
    }

    fn set(quads: &[u32; QUADS], mut line: impl FnMut(usize, u32)) {
        set_nibbles(quads, &mut line);
        for (i, four) in quads.chunks_exact(4).enumerate() {
            line(4 + i, four.iter().enumerate().map(|(q, quad)| (quad >> 4 & 0x0303_0303) << (2 * q)).sum());
        }
    }
}

/// Eight bits.
pub(super) struct Bits8;

impl Width for Bits8 {
    const BITS: usize = 8;
    const LINES: usize = 8;

    #[inline(always)]
    unsafe fn quad<L: Words>(group: *const u32, q: usize) -> L::W {
        // SAFETY: as this function's: the group's lines are at the pointer, and the caller has the instructions.
        unsafe { L::words(group.add(q * LANES)) }
    }

    fn set(quads: &[u32; QUADS], mut line: impl FnMut(usize, u32)) {
        quads.iter().enumerate().for_each(|(q, quad)| line(q, *quad));
    }
}

/// Runs `$body` with the type `$B` of the number of bits of a code.
macro_rules! with_width {
    ($bits:expr, $B:ident => $body:expr) => {
        match $bits {
            4 => {
                type $B = $crate::cpu::kernels::packed::codes::Bits4;
                $body
            }
            5 => {
                type $B = $crate::cpu::kernels::packed::codes::Bits5;
                $body
            }
            6 => {
                type $B = $crate::cpu::kernels::packed::codes::Bits6;
                $body
            }
            8 => {
                type $B = $crate::cpu::kernels::packed::codes::Bits8;
                $body
            }
            bits => unreachable!("codes of {bits} bits"),
        }
    };
}
pub(super) use with_width;
