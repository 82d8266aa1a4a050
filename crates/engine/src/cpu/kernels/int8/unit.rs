//! Instructions that multiply bytes. All give the same bits: a sum of products is an integer, whatever computes it.

use super::QUAD;
use crate::cpu::kernels::lanes::{Isa, LANES, Lanes, Portable};

/// Instructions that sum four products of bytes at a time.
pub(crate) trait Int8Unit {
    type L: Lanes;
    /// Sixteen columns' quads of weights.
    type Codes: Copy;
    /// Sixteen integers.
    type Sums: Copy;
    /// Panels of a register tile: two, if their sums of [`TILE_ROWS`](super::TILE_ROWS) rows fit the registers.
    const PANELS: usize;
    /// True if codes below 64 are summed faster by [`begin_small`](Self::begin_small) than by [`dot`](Self::dot).
    const SMALL: bool = false;
    unsafe fn zero() -> Self::Sums;
    unsafe fn codes(p: *const u8) -> Self::Codes;
    /// Adds each column's four products with the four bytes of `x`.
    unsafe fn dot(sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums;
    /// Begins sums of so few products of small codes that they fit 16 bits; `sums` are those so far.
    #[inline(always)]
    unsafe fn begin_small(sums: Self::Sums) -> Self::Sums {
        sums
    }
    /// As [`dot`](Self::dot), on what [`begin_small`](Self::begin_small) began.
    #[inline(always)]
    unsafe fn dot_small(small: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
        // SAFETY: as this function's.
        unsafe { Self::dot(small, codes, x) }
    }
    /// The sums so far and those of small codes.
    #[inline(always)]
    unsafe fn end_small(_: Self::Sums, small: Self::Sums) -> Self::Sums {
        small
    }
    /// Adds the four products of signed `values` with the four unsigned bytes of `x`.
    unsafe fn dot_signed(sums: Self::Sums, values: Self::Codes, x: i32) -> Self::Sums;
    unsafe fn floats(sums: Self::Sums) -> Self::L;
    /// Stores sixteen integral values of 0 to 255 as bytes.
    #[inline(always)]
    unsafe fn store_unsigned(v: Self::L, out: *mut u8) {
        let mut values = [0f32; LANES];
        // SAFETY: there is room for a vector of values, and the caller has the instructions and room for sixteen bytes.
        unsafe {
            v.store(values.as_mut_ptr());
            for (i, &v) in values.iter().enumerate() {
                *out.add(i) = v as u8;
            }
        }
    }
    /// Stores sixteen integral values of -127 to 127 as bytes.
    #[inline(always)]
    unsafe fn store_bytes(v: Self::L, out: *mut i8) {
        let mut values = [0f32; LANES];
        // SAFETY: there is room for a vector of values, and the caller has the instructions and room for sixteen bytes.
        unsafe {
            v.store(values.as_mut_ptr());
            for (i, &v) in values.iter().enumerate() {
                *out.add(i) = v as i8;
            }
        }
    }
}

pub(crate) struct PortableInt8;

impl Int8Unit for PortableInt8 {
    type L = Portable;
    type Codes = [u8; QUAD * LANES];
    type Sums = [i32; LANES];
    const PANELS: usize = 1;
    #[inline(always)]
    unsafe fn zero() -> Self::Sums {
        [0; LANES]
    }
    #[inline(always)]
    unsafe fn codes(p: *const u8) -> Self::Codes {
        // SAFETY: the caller has a vector at the pointer.
        unsafe { p.cast::<Self::Codes>().read_unaligned() }
    }
    // Not in line on x86-64, where only processors without AVX2 come here: the kernels stay small.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    unsafe fn dot(mut sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
        let x = x.to_ne_bytes().map(|b| i32::from(b as i8));
        for (lane, sum) in sums.iter_mut().enumerate() {
            for (i, x) in x.iter().enumerate() {
                *sum += i32::from(codes[lane * QUAD + i]) * x;
            }
        }
        sums
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    unsafe fn dot_signed(mut sums: Self::Sums, values: Self::Codes, x: i32) -> Self::Sums {
        let x = x.to_ne_bytes().map(i32::from);
        for (lane, sum) in sums.iter_mut().enumerate() {
            for (i, x) in x.iter().enumerate() {
                *sum += i32::from(values[lane * QUAD + i] as i8) * x;
            }
        }
        sums
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Portable {
        let floats = sums.map(|s| s as f32);
        // SAFETY: there are sixteen values.
        unsafe { Portable::load(floats.as_ptr()) }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use std::arch::x86_64::*;

    use super::Int8Unit;
    use crate::cpu::kernels::lanes::Pair;

    /// VNNI on 512 bits.
    pub(crate) struct Vnni512;

    impl Int8Unit for Vnni512 {
        type L = __m512;
        type Codes = __m512i;
        type Sums = __m512i;
        const PANELS: usize = 2;
        #[inline(always)]
        unsafe fn zero() -> __m512i {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_setzero_si512() }
        }
        #[inline(always)]
        unsafe fn codes(p: *const u8) -> __m512i {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { _mm512_loadu_si512(p.cast()) }
        }
        #[inline(always)]
        unsafe fn dot(sums: __m512i, codes: __m512i, x: i32) -> __m512i {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_dpbusd_epi32(sums, codes, _mm512_set1_epi32(x)) }
        }
        #[inline(always)]
        unsafe fn dot_signed(sums: __m512i, values: __m512i, x: i32) -> __m512i {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_dpbusd_epi32(sums, _mm512_set1_epi32(x), values) }
        }
        #[inline(always)]
        unsafe fn store_unsigned(v: __m512, out: *mut u8) {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { _mm_storeu_si128(out.cast(), _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(v))) }
        }
        #[inline(always)]
        unsafe fn floats(sums: __m512i) -> __m512 {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_cvtepi32_ps(sums) }
        }
        #[inline(always)]
        unsafe fn store_bytes(v: __m512, out: *mut i8) {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { _mm_storeu_si128(out.cast(), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v))) }
        }
    }

    #[inline(always)]
    unsafe fn pair_of_floats(sums: (__m256i, __m256i)) -> Pair {
        // SAFETY: the caller has the instructions.
        unsafe { Pair(_mm256_cvtepi32_ps(sums.0), _mm256_cvtepi32_ps(sums.1)) }
    }

    /// VNNI on 256 bits.
    pub(crate) struct Vnni256;

    impl Int8Unit for Vnni256 {
        type L = Pair;
        type Codes = (__m256i, __m256i);
        type Sums = (__m256i, __m256i);
        const PANELS: usize = 1;
        #[inline(always)]
        unsafe fn zero() -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe { (_mm256_setzero_si256(), _mm256_setzero_si256()) }
        }
        #[inline(always)]
        unsafe fn codes(p: *const u8) -> Self::Codes {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { (_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())) }
        }
        #[inline(always)]
        unsafe fn dot(sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe {
                let x = _mm256_set1_epi32(x);
                (_mm256_dpbusd_avx_epi32(sums.0, codes.0, x), _mm256_dpbusd_avx_epi32(sums.1, codes.1, x))
            }
        }
        #[inline(always)]
        unsafe fn dot_signed(sums: Self::Sums, values: Self::Codes, x: i32) -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe {
                let x = _mm256_set1_epi32(x);
                (_mm256_dpbusd_avx_epi32(sums.0, x, values.0), _mm256_dpbusd_avx_epi32(sums.1, x, values.1))
            }
        }
        #[inline(always)]
        unsafe fn floats(sums: Self::Sums) -> Pair {
            // SAFETY: the caller has the instructions.
            unsafe { pair_of_floats(sums) }
        }
    }

    /// AVX2, whose products of bytes saturate at 16 bits: the codes' highest bit goes separately, so that no sum of two does.
    pub(crate) struct Avx2;

    #[inline(always)]
    unsafe fn dot_of_eight(sum: __m256i, codes: __m256i, x: __m256i) -> __m256i {
        // SAFETY: the caller has the instructions.
        unsafe {
            let high = _mm256_set1_epi8(-128);
            let ones = _mm256_set1_epi16(1);
            let low = _mm256_maddubs_epi16(_mm256_andnot_si256(high, codes), x);
            let high = _mm256_maddubs_epi16(_mm256_and_si256(high, codes), x);
            let both = _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
            _mm256_add_epi32(sum, both)
        }
    }

    impl Int8Unit for Avx2 {
        type L = Pair;
        type Codes = (__m256i, __m256i);
        type Sums = (__m256i, __m256i);
        const PANELS: usize = 1;
        const SMALL: bool = true;
        #[inline(always)]
        unsafe fn zero() -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe { (_mm256_setzero_si256(), _mm256_setzero_si256()) }
        }
        #[inline(always)]
        unsafe fn codes(p: *const u8) -> Self::Codes {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { (_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())) }
        }
        #[inline(always)]
        unsafe fn dot(sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe {
                let x = _mm256_set1_epi32(x);
                (dot_of_eight(sums.0, codes.0, x), dot_of_eight(sums.1, codes.1, x))
            }
        }
        #[inline(always)]
        unsafe fn begin_small(_: Self::Sums) -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe { Self::zero() }
        }
        #[inline(always)]
        unsafe fn dot_small(small: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe {
                let x = _mm256_set1_epi32(x);
                (
                    _mm256_add_epi16(small.0, _mm256_maddubs_epi16(codes.0, x)),
                    _mm256_add_epi16(small.1, _mm256_maddubs_epi16(codes.1, x)),
                )
            }
        }
        #[inline(always)]
        unsafe fn end_small(sums: Self::Sums, small: Self::Sums) -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe {
                let ones = _mm256_set1_epi16(1);
                (
                    _mm256_add_epi32(sums.0, _mm256_madd_epi16(small.0, ones)),
                    _mm256_add_epi32(sums.1, _mm256_madd_epi16(small.1, ones)),
                )
            }
        }
        #[inline(always)]
        unsafe fn dot_signed(sums: Self::Sums, values: Self::Codes, x: i32) -> Self::Sums {
            // SAFETY: the caller has the instructions.
            unsafe {
                let x = _mm256_set1_epi32(x);
                (dot_of_eight(sums.0, x, values.0), dot_of_eight(sums.1, x, values.1))
            }
        }
        #[inline(always)]
        unsafe fn floats(sums: Self::Sums) -> Pair {
            // SAFETY: the caller has the instructions.
            unsafe { pair_of_floats(sums) }
        }
    }
}

/// Instruction set for 8-bit products. All give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Int8Isa {
    /// AVX-512 with VNNI.
    Vnni512,
    /// AVX2 with VNNI.
    Vnni256,
    /// AVX2.
    Avx2,
    /// Whatever the compiler makes of arrays.
    Portable,
}

impl Int8Isa {
    /// The best one that this CPU has and that is no wider than `isa`.
    pub(crate) fn best(isa: Isa) -> Int8Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if isa == Isa::Avx512 && is_x86_feature_detected!("avx512vnni") {
                return Int8Isa::Vnni512;
            }
            if isa != Isa::Portable {
                return if is_x86_feature_detected!("avxvnni") { Int8Isa::Vnni256 } else { Int8Isa::Avx2 };
            }
        }
        let _ = isa;
        Int8Isa::Portable
    }

    /// Its name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Int8Isa::Vnni512 => "AVX-512 VNNI",
            Int8Isa::Vnni256 => "AVX-VNNI",
            Int8Isa::Avx2 => "AVX2",
            Int8Isa::Portable => "portable",
        }
    }

    /// Every one that this CPU can run, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Int8Isa> {
        let mut all = vec![Int8Isa::best(Isa::detect()), Int8Isa::best(Isa::Portable)];
        if Isa::detect() != Isa::Portable {
            all.extend([Int8Isa::best(Isa::Avx2), Int8Isa::Avx2]);
        }
        all.dedup();
        all
    }
}

/// Defines `fn $name(unit, args)` that runs `$body::<unit>(args)` compiled for the unit's instructions.
macro_rules! for_each_unit {
    (fn $name:ident($($arg:ident: $ty:ty),*) => $body:ident) => {
        unsafe fn $name(unit: $crate::cpu::kernels::int8::Int8Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
                unsafe fn vnni512($($arg: $ty),*) {
                    // SAFETY: the caller has the instructions.
                    unsafe { $body::<$crate::cpu::kernels::int8::x86::Vnni512>($($arg),*) }
                }
                #[target_feature(enable = "avxvnni,avx2,fma,f16c")]
                unsafe fn vnni256($($arg: $ty),*) {
                    // SAFETY: the caller has the instructions.
                    unsafe { $body::<$crate::cpu::kernels::int8::x86::Vnni256>($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2($($arg: $ty),*) {
                    // SAFETY: the caller has the instructions.
                    unsafe { $body::<$crate::cpu::kernels::int8::x86::Avx2>($($arg),*) }
                }
                match unit {
                    // SAFETY: the caller has the instructions.
                    $crate::cpu::kernels::int8::Int8Isa::Vnni512 => return unsafe { vnni512($($arg),*) },
                    // SAFETY: the caller has the instructions.
                    $crate::cpu::kernels::int8::Int8Isa::Vnni256 => return unsafe { vnni256($($arg),*) },
                    // SAFETY: the caller has the instructions.
                    $crate::cpu::kernels::int8::Int8Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::cpu::kernels::int8::Int8Isa::Portable => {}
                }
            }
            let _ = unit;
            // SAFETY: the caller has the instructions.
            unsafe { $body::<$crate::cpu::kernels::int8::PortableInt8>($($arg),*) }
        }
    };
}
pub(crate) use for_each_unit;
