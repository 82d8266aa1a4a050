//! Sixteen 32-bit words beside sixteen f32, to take codes of weights apart.

use crate::cpu::kernels::lanes::{LANES, Lanes, Portable};

/// [`Lanes`] with integer words. As there, the methods are unsafe because of the instructions that they use.
pub(crate) trait Words: Lanes {
    /// Sixteen words.
    type W: Copy;

    unsafe fn words(p: *const u32) -> Self::W;
    unsafe fn store_words(w: Self::W, p: *mut u32);
    /// `(w >> shift) & mask`
    unsafe fn field(w: Self::W, shift: u32, mask: u32) -> Self::W;
    /// `high << shift | low`
    unsafe fn join(low: Self::W, high: Self::W, shift: u32) -> Self::W;
    /// Values below 2^24 as floats, which is exact.
    unsafe fn float(w: Self::W) -> Self;
    /// The four bits from `shift` as floats.
    unsafe fn nibble(w: Self::W, shift: u32) -> Self;
    /// The entry of a table for each byte below 16.
    unsafe fn lookup(w: Self::W, table: &[u8; 16]) -> Self::W;
    /// Words below 256 as E4M3, except its two codes of no number.
    unsafe fn e4m3(w: Self::W) -> Self;
    /// Sixteen unsigned bytes as floats.
    unsafe fn unsigned(p: *const u8) -> Self;
    /// Sixteen signed bytes as floats.
    unsafe fn signed(p: *const i8) -> Self;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Words;
    use crate::cpu::kernels::lanes::Pair;

    impl Words for __m512 {
        type W = __m512i;

        #[inline(always)]
        unsafe fn words(p: *const u32) -> __m512i {
            // SAFETY: the caller has sixteen words at the pointer, and the instructions.
            unsafe { _mm512_loadu_si512(p.cast()) }
        }
        #[inline(always)]
        unsafe fn store_words(w: __m512i, p: *mut u32) {
            // SAFETY: the caller has room for sixteen words, and the instructions.
            unsafe { _mm512_storeu_si512(p.cast(), w) }
        }
        #[inline(always)]
        unsafe fn field(w: __m512i, shift: u32, mask: u32) -> __m512i {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_and_si512(shifted(w, shift), _mm512_set1_epi32(mask.cast_signed())) }
        }
        #[inline(always)]
        unsafe fn join(low: __m512i, high: __m512i, shift: u32) -> __m512i {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_or_si512(low, _mm512_sllv_epi32(high, _mm512_set1_epi32(shift.cast_signed()))) }
        }
        #[inline(always)]
        unsafe fn float(w: __m512i) -> __m512 {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_cvtepi32_ps(w) }
        }
        #[inline(always)]
        unsafe fn nibble(w: __m512i, shift: u32) -> __m512 {
            // SAFETY: the caller has the instructions. The permutation reads the low four bits of each index.
            unsafe {
                let table = _mm512_setr_ps(
                    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
                );
                _mm512_permutexvar_ps(shifted(w, shift), table)
            }
        }
        #[inline(always)]
        unsafe fn lookup(w: __m512i, table: &[u8; 16]) -> __m512i {
            // SAFETY: the caller has the instructions; a table has sixteen bytes.
            unsafe {
                let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
                _mm512_shuffle_epi8(table, w)
            }
        }
        #[inline(always)]
        unsafe fn e4m3(w: __m512i) -> __m512 {
            // SAFETY: the caller has the instructions.
            unsafe {
                let size = _mm512_slli_epi32::<20>(_mm512_and_si512(w, _mm512_set1_epi32(0x7F)));
                let sign = _mm512_slli_epi32::<24>(_mm512_and_si512(w, _mm512_set1_epi32(0x80)));
                let size = _mm512_mul_ps(_mm512_castsi512_ps(size), _mm512_set1_ps(super::E4M3_BIAS));
                _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(size), sign))
            }
        }
        #[inline(always)]
        unsafe fn unsigned(p: *const u8) -> __m512 {
            // SAFETY: the caller has sixteen bytes at the pointer, and the instructions.
            unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast()))) }
        }
        #[inline(always)]
        unsafe fn signed(p: *const i8) -> __m512 {
            // SAFETY: the caller has sixteen bytes at the pointer, and the instructions.
            unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))) }
        }
    }

    #[inline(always)]
    unsafe fn shifted(w: __m512i, shift: u32) -> __m512i {
        if shift == 0 {
            return w;
        }
        // SAFETY: the caller has the instructions.
        unsafe { _mm512_srlv_epi32(w, _mm512_set1_epi32(shift.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn e4m3_of_eight(w: __m256i) -> __m256 {
        // SAFETY: the caller has the instructions.
        unsafe {
            let size = _mm256_slli_epi32::<20>(_mm256_and_si256(w, _mm256_set1_epi32(0x7F)));
            let sign = _mm256_slli_epi32::<24>(_mm256_and_si256(w, _mm256_set1_epi32(0x80)));
            let size = _mm256_mul_ps(_mm256_castsi256_ps(size), _mm256_set1_ps(super::E4M3_BIAS));
            _mm256_castsi256_ps(_mm256_or_si256(_mm256_castps_si256(size), sign))
        }
    }

    impl Words for Pair {
        type W = (__m256i, __m256i);

        #[inline(always)]
        unsafe fn words(p: *const u32) -> Self::W {
            // SAFETY: the caller has sixteen words at the pointer, and the instructions.
            unsafe { (_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(8).cast())) }
        }
        #[inline(always)]
        unsafe fn store_words(w: Self::W, p: *mut u32) {
            // SAFETY: the caller has room for sixteen words, and the instructions.
            unsafe {
                _mm256_storeu_si256(p.cast(), w.0);
                _mm256_storeu_si256(p.add(8).cast(), w.1);
            }
        }
        #[inline(always)]
        unsafe fn field(w: Self::W, shift: u32, mask: u32) -> Self::W {
            // SAFETY: the caller has the instructions.
            unsafe {
                let (shift, mask) = (_mm256_set1_epi32(shift.cast_signed()), _mm256_set1_epi32(mask.cast_signed()));
                (
                    _mm256_and_si256(_mm256_srlv_epi32(w.0, shift), mask),
                    _mm256_and_si256(_mm256_srlv_epi32(w.1, shift), mask),
                )
            }
        }
        #[inline(always)]
        unsafe fn join(low: Self::W, high: Self::W, shift: u32) -> Self::W {
            // SAFETY: the caller has the instructions.
            unsafe {
                let shift = _mm256_set1_epi32(shift.cast_signed());
                (
                    _mm256_or_si256(low.0, _mm256_sllv_epi32(high.0, shift)),
                    _mm256_or_si256(low.1, _mm256_sllv_epi32(high.1, shift)),
                )
            }
        }
        #[inline(always)]
        unsafe fn float(w: Self::W) -> Pair {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_cvtepi32_ps(w.0), _mm256_cvtepi32_ps(w.1)) }
        }
        #[inline(always)]
        unsafe fn nibble(w: Self::W, shift: u32) -> Pair {
            // SAFETY: the caller has the instructions.
            unsafe { Self::float(Self::field(w, shift, 15)) }
        }
        #[inline(always)]
        unsafe fn lookup(w: Self::W, table: &[u8; 16]) -> Self::W {
            // SAFETY: the caller has the instructions; a table has sixteen bytes.
            unsafe {
                let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
                (_mm256_shuffle_epi8(table, w.0), _mm256_shuffle_epi8(table, w.1))
            }
        }
        #[inline(always)]
        unsafe fn e4m3(w: Self::W) -> Pair {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(e4m3_of_eight(w.0), e4m3_of_eight(w.1)) }
        }
        #[inline(always)]
        unsafe fn unsigned(p: *const u8) -> Pair {
            // SAFETY: the caller has sixteen bytes at the pointer, and the instructions.
            unsafe {
                Pair(
                    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast()))),
                    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(p.add(8).cast()))),
                )
            }
        }
        #[inline(always)]
        unsafe fn signed(p: *const i8) -> Pair {
            // SAFETY: the caller has sixteen bytes at the pointer, and the instructions.
            unsafe {
                Pair(
                    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p.cast()))),
                    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p.add(8).cast()))),
                )
            }
        }
    }
}

/// Distance of the biases of f32 and of E4M3: E4M3's exponent and mantissa, where those of f32 lie, times this are its value, also of
/// numbers below the normal ones.
const E4M3_BIAS: f32 = f32::from_bits((120 + 127) << 23);

impl Words for Portable {
    type W = [u32; LANES];

    #[inline(always)]
    unsafe fn words(p: *const u32) -> Self::W {
        // SAFETY: the caller has sixteen words at the pointer.
        unsafe { p.cast::<Self::W>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_words(w: Self::W, p: *mut u32) {
        // SAFETY: the caller has room for sixteen words.
        unsafe { p.cast::<Self::W>().write_unaligned(w) }
    }
    #[inline(always)]
    unsafe fn field(w: Self::W, shift: u32, mask: u32) -> Self::W {
        w.map(|w| (w >> shift) & mask)
    }
    #[inline(always)]
    unsafe fn join(low: Self::W, high: Self::W, shift: u32) -> Self::W {
        std::array::from_fn(|i| low[i] | high[i] << shift)
    }
    #[inline(always)]
    unsafe fn float(w: Self::W) -> Portable {
        let floats = w.map(|w| w as f32);
        // SAFETY: there are sixteen floats.
        unsafe { Portable::load(floats.as_ptr()) }
    }
    #[inline(always)]
    unsafe fn nibble(w: Self::W, shift: u32) -> Portable {
        // SAFETY: nothing is read through pointers.
        unsafe { Self::float(Self::field(w, shift, 15)) }
    }
    #[inline(always)]
    unsafe fn lookup(w: Self::W, table: &[u8; 16]) -> Self::W {
        w.map(|w| u32::from_le_bytes(w.to_le_bytes().map(|byte| table[usize::from(byte & 15)])))
    }
    #[inline(always)]
    unsafe fn e4m3(w: Self::W) -> Portable {
        let one = |w: u32| {
            let size = f32::from_bits((w & 0x7F) << 20) * E4M3_BIAS;
            f32::from_bits(size.to_bits() | (w & 0x80) << 24)
        };
        let floats = w.map(one);
        // SAFETY: there are sixteen floats.
        unsafe { Portable::load(floats.as_ptr()) }
    }
    #[inline(always)]
    unsafe fn unsigned(p: *const u8) -> Portable {
        // SAFETY: the caller has sixteen bytes at the pointer; there are sixteen floats.
        unsafe {
            let floats = p.cast::<[u8; LANES]>().read_unaligned().map(f32::from);
            Portable::load(floats.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn signed(p: *const i8) -> Portable {
        // SAFETY: the caller has sixteen bytes at the pointer; there are sixteen floats.
        unsafe {
            let floats = p.cast::<[i8; LANES]>().read_unaligned().map(f32::from);
            Portable::load(floats.as_ptr())
        }
    }
}
