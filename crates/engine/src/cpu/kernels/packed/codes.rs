//! Layout of codes: 32 inputs of sixteen columns, in lines of sixteen words, one a column.
//!
//! Inputs are taken by fours: in a quad, input `4 q + b` is in byte `b` of each column's word. That is what instructions that
//! multiply bytes read, and shifts by whole bytes give the floats. Four bits of two quads lie in one word, in its low and high
//! nibbles; further bits follow in words of their own.

use std::marker::PhantomData;

use super::words::Words;
use crate::cpu::kernels::lanes::LANES;
use earnest_models::checkpoint::Levels;

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

/// Four bits that are indices of a table of codes.
pub(super) struct Looked<T>(PhantomData<T>);

/// A table of codes.
pub(super) trait Table {
    const CODES: [u8; 16];

    /// Bits of the greatest code.
    const BITS: usize;
}

impl<T: Table> Width for Looked<T> {
    const BITS: usize = T::BITS;
    const LINES: usize = 4;

    #[inline(always)]
    unsafe fn quad<L: Words>(group: *const u32, q: usize) -> L::W {
        // SAFETY: as this function's.
        unsafe { L::lookup(nibbles::<L>(group, q), &T::CODES) }
    }

    fn set(quads: &[u32; QUADS], mut line: impl FnMut(usize, u32)) {
        set_nibbles(quads, &mut line);
    }
}

/// Twice the values of E2M1, which MXFP4 consists of, and twelve.
pub(super) struct TwiceE2m1;

impl Table for TwiceE2m1 {
    const CODES: [u8; 16] = [12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0];
    const BITS: usize = 5;
}

/// Code of zero of [`TwiceE2m1`].
pub(super) const E2M1_ZERO: u8 = 12;

macro_rules! levels {
    ($($name:ident: $levels:expr, $bits:literal;)*) => {
        $(
            pub(super) struct $name;

            impl Table for $name {
                const CODES: [u8; 16] = $levels.codes();
                const BITS: usize = $bits;
            }
        )*
    };
}
levels! {
    Iq4: Levels::Iq4, 8;
    Iq3Xxs: Levels::Iq3Xxs, 7;
    Iq3S: Levels::Iq3S, 5;
    Iq2: Levels::Iq2, 7;
}

/// Floats of eight bits.
pub(super) struct E4m3;

impl Width for E4m3 {
    const BITS: usize = 8;
    const LINES: usize = 8;

    #[inline(always)]
    unsafe fn quad<L: Words>(group: *const u32, q: usize) -> L::W {
        // SAFETY: as this function's.
        unsafe { Bits8::quad::<L>(group, q) }
    }

    #[inline(always)]
    unsafe fn floats<L: Words>(group: *const u32, q: usize) -> [L; 4] {
        // SAFETY: as this function's: the group's lines are at the pointer, and the caller has the instructions.
        unsafe {
            let quad = Self::quad::<L>(group, q);
            [
                L::e4m3(L::field(quad, 0, 0xFF)),
                L::e4m3(L::field(quad, 8, 0xFF)),
                L::e4m3(L::field(quad, 16, 0xFF)),
                L::e4m3(L::field(quad, 24, 0xFF)),
            ]
        }
    }

    fn set(quads: &[u32; QUADS], line: impl FnMut(usize, u32)) {
        Bits8::set(quads, line);
    }
}

/// Codes of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codes {
    Four,
    Five,
    Six,
    Eight,
    TwiceE2m1,
    Levels(Levels),
    E4m3,
}

/// Runs `$body` with the type `$B` of codes.
macro_rules! with_codes {
    ($codes:expr, $B:ident => $body:expr) => {
        match $codes {
            $crate::cpu::kernels::packed::codes::Codes::Four => {
                type $B = $crate::cpu::kernels::packed::codes::Bits4;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::Five => {
                type $B = $crate::cpu::kernels::packed::codes::Bits5;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::Six => {
                type $B = $crate::cpu::kernels::packed::codes::Bits6;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::Eight => {
                type $B = $crate::cpu::kernels::packed::codes::Bits8;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::TwiceE2m1 => {
                type $B = $crate::cpu::kernels::packed::codes::Looked<$crate::cpu::kernels::packed::codes::TwiceE2m1>;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::Levels(earnest_models::checkpoint::Levels::Iq4) => {
                type $B = $crate::cpu::kernels::packed::codes::Looked<$crate::cpu::kernels::packed::codes::Iq4>;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::Levels(earnest_models::checkpoint::Levels::Iq3Xxs) => {
                type $B = $crate::cpu::kernels::packed::codes::Looked<$crate::cpu::kernels::packed::codes::Iq3Xxs>;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::Levels(earnest_models::checkpoint::Levels::Iq3S) => {
                type $B = $crate::cpu::kernels::packed::codes::Looked<$crate::cpu::kernels::packed::codes::Iq3S>;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::Levels(earnest_models::checkpoint::Levels::Iq2) => {
                type $B = $crate::cpu::kernels::packed::codes::Looked<$crate::cpu::kernels::packed::codes::Iq2>;
                $body
            }
            $crate::cpu::kernels::packed::codes::Codes::E4m3 => {
                type $B = $crate::cpu::kernels::packed::codes::E4m3;
                $body
            }
        }
    };
}
pub(super) use with_codes;

/// Runs `$body` with the type `$B` of codes in bytes that are no greater than those of `$codes`.
macro_rules! with_width {
    ($codes:expr, $B:ident => $body:expr) => {{
        use $crate::cpu::kernels::packed::codes::{Bits4, Bits5, Bits6, Bits8, with_codes};
        match with_codes!($codes, C => <C as $crate::cpu::kernels::packed::codes::Width>::BITS) {
            4 => {
                type $B = Bits4;
                $body
            }
            5 => {
                type $B = Bits5;
                $body
            }
            6 => {
                type $B = Bits6;
                $body
            }
            _ => {
                type $B = Bits8;
                $body
            }
        }
    }};
}
pub(super) use with_width;
