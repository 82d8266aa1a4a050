//! Sixteen f32 at a time, on whatever the CPU has.
//!
//! Every kernel is written once over [`Lanes`] and compiled for each instruction set; [`for_each_isa`] picks one at run
//! time. The operations are elementwise and correctly rounded (fused multiply-add included), and horizontal sums go
//! through one fixed tree, so a kernel gives the same bits on every instruction set.

/// Number of f32 in a [`Lanes`].
pub(crate) const LANES: usize = 16;

/// Sixteen f32. The methods are unsafe because the implementations use instructions that the caller has to have checked
/// for; they are only called below a `#[target_feature]` function.
pub(crate) trait Lanes: Copy {
    /// Rows and panels of the largest register tile of the matrix kernels.
    const TILE_ROWS: usize;
    const TILE_PANELS: usize;

    unsafe fn splat(v: f32) -> Self;
    unsafe fn load(p: *const f32) -> Self;
    unsafe fn load_bf16(p: *const u16) -> Self;
    unsafe fn load_f16(p: *const u16) -> Self;
    unsafe fn store(self, p: *mut f32);
    /// `self * a + b`, rounded once.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn sub(self, o: Self) -> Self;
    unsafe fn mul(self, o: Self) -> Self;
    unsafe fn div(self, o: Self) -> Self;
    /// `if self > o { self } else { o }`: a NaN in `o` stays.
    unsafe fn max(self, o: Self) -> Self;
    /// `if self < o { self } else { o }`: a NaN in `o` stays.
    unsafe fn min(self, o: Self) -> Self;
    /// Nearest integer, ties to even.
    unsafe fn round(self) -> Self;
    /// 2^self for integral values in -126..=127.
    unsafe fn exp2_integral(self) -> Self;
    /// `if self < bound { yes } else { no }`.
    unsafe fn select_less(self, bound: Self, yes: Self, no: Self) -> Self;

    /// Asks for a cache line, which need not exist; does nothing where there is no instruction for it.
    #[inline(always)]
    unsafe fn prefetch(_: *const u32) {}

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the instructions.
        unsafe { Self::splat(0.0) }
    }

    /// Sum of the lanes: a fixed tree, halves added pairwise.
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let mut v = [0f32; LANES];
        // SAFETY: there is room for a vector, and the caller has the instructions.
        unsafe { self.store(v.as_mut_ptr()) };
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                v[i] += v[i + width];
            }
            width /= 2;
        }
        v[0]
    }

    /// Largest lane.
    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        let mut v = [0f32; LANES];
        // SAFETY: there is room for a vector, and the caller has the instructions.
        unsafe { self.store(v.as_mut_ptr()) };
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                v[i] = if v[i] > v[i + width] { v[i] } else { v[i + width] };
            }
            width /= 2;
        }
        v[0]
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Lanes;

    impl Lanes for __m512 {
        // 12 x 2 accumulators, 2 panel registers and a broadcast fit the 32 registers.
        const TILE_ROWS: usize = 12;
        const TILE_PANELS: usize = 2;

        #[inline(always)]
        unsafe fn splat(v: f32) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_set1_ps(v) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { _mm512_loadu_ps(p) }
        }
        #[inline(always)]
        unsafe fn load_bf16(p: *const u16) -> Self {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe {
                let half = _mm256_loadu_si256(p.cast());
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)))
            }
        }
        #[inline(always)]
        unsafe fn load_f16(p: *const u16) -> Self {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { _mm512_storeu_ps(p, self) }
        }
        #[inline(always)]
        unsafe fn prefetch(p: *const u32) {
            // SAFETY: nothing is read, wherever the pointer points.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_fmadd_ps(self, a, b) }
        }
        #[inline(always)]
        unsafe fn add(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_add_ps(self, o) }
        }
        #[inline(always)]
        unsafe fn sub(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_sub_ps(self, o) }
        }
        #[inline(always)]
        unsafe fn mul(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_mul_ps(self, o) }
        }
        #[inline(always)]
        unsafe fn div(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_div_ps(self, o) }
        }
        #[inline(always)]
        unsafe fn max(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_max_ps(self, o) }
        }
        #[inline(always)]
        unsafe fn min(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_min_ps(self, o) }
        }
        #[inline(always)]
        unsafe fn round(self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self) }
        }
        #[inline(always)]
        unsafe fn exp2_integral(self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe {
                let n = _mm512_add_epi32(_mm512_cvtps_epi32(self), _mm512_set1_epi32(127));
                _mm512_castsi512_ps(_mm512_slli_epi32::<23>(n))
            }
        }
        #[inline(always)]
        unsafe fn select_less(self, bound: Self, yes: Self, no: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self, bound), no, yes) }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: the caller has the instructions.
            unsafe {
                let high = _mm512_castps512_ps256(_mm512_shuffle_f32x4::<0b11_10_11_10>(self, self));
                sum_of_eight(_mm256_add_ps(_mm512_castps512_ps256(self), high))
            }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            // SAFETY: the caller has the instructions.
            unsafe {
                let high = _mm512_castps512_ps256(_mm512_shuffle_f32x4::<0b11_10_11_10>(self, self));
                largest_of_eight(_mm256_max_ps(_mm512_castps512_ps256(self), high))
            }
        }
    }

    /// The lower levels of the tree of [`Lanes::sum`].
    #[inline(always)]
    unsafe fn sum_of_eight(v: __m256) -> f32 {
        // SAFETY: the caller has the instructions.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    /// The lower levels of the tree of [`Lanes::largest`]; the instruction takes its second operand on a NaN, as the tree does.
    #[inline(always)]
    unsafe fn largest_of_eight(v: __m256) -> f32 {
        // SAFETY: the caller has the instructions.
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn widen_bf16(p: *const u16) -> __m256 {
        // SAFETY: the caller has a vector at the pointer, and the instructions.
        unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())))) }
    }

    #[inline(always)]
    unsafe fn power_of_two(x: __m256) -> __m256 {
        // SAFETY: the caller has the instructions.
        unsafe {
            let n = _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n))
        }
    }

    /// Two 256-bit halves.
    #[derive(Clone, Copy)]
    pub(crate) struct Pair(pub(crate) __m256, pub(crate) __m256);

    impl Lanes for Pair {
        // 6 x 2 accumulators, 2 panel registers and a broadcast fit the 16 registers.
        const TILE_ROWS: usize = 6;
        const TILE_PANELS: usize = 1;

        #[inline(always)]
        unsafe fn splat(v: f32) -> Self {
            // SAFETY: the caller has the instructions.
            let x = unsafe { _mm256_set1_ps(v) };
            Pair(x, x)
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { Pair(_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))) }
        }
        #[inline(always)]
        unsafe fn load_bf16(p: *const u16) -> Self {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe { Pair(widen_bf16(p), widen_bf16(p.add(8))) }
        }
        #[inline(always)]
        unsafe fn load_f16(p: *const u16) -> Self {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe {
                Pair(_mm256_cvtph_ps(_mm_loadu_si128(p.cast())), _mm256_cvtph_ps(_mm_loadu_si128(p.add(8).cast())))
            }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: the caller has a vector at the pointer, and the instructions.
            unsafe {
                _mm256_storeu_ps(p, self.0);
                _mm256_storeu_ps(p.add(8), self.1);
            }
        }
        #[inline(always)]
        unsafe fn prefetch(p: *const u32) {
            // SAFETY: nothing is read, wherever the pointer points.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_fmadd_ps(self.0, a.0, b.0), _mm256_fmadd_ps(self.1, a.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn add(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_add_ps(self.0, o.0), _mm256_add_ps(self.1, o.1)) }
        }
        #[inline(always)]
        unsafe fn sub(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_sub_ps(self.0, o.0), _mm256_sub_ps(self.1, o.1)) }
        }
        #[inline(always)]
        unsafe fn mul(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_mul_ps(self.0, o.0), _mm256_mul_ps(self.1, o.1)) }
        }
        #[inline(always)]
        unsafe fn div(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_div_ps(self.0, o.0), _mm256_div_ps(self.1, o.1)) }
        }
        #[inline(always)]
        unsafe fn max(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_max_ps(self.0, o.0), _mm256_max_ps(self.1, o.1)) }
        }
        #[inline(always)]
        unsafe fn min(self, o: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_min_ps(self.0, o.0), _mm256_min_ps(self.1, o.1)) }
        }
        #[inline(always)]
        unsafe fn round(self) -> Self {
            const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            // SAFETY: the caller has the instructions.
            unsafe { Pair(_mm256_round_ps::<NEAREST>(self.0), _mm256_round_ps::<NEAREST>(self.1)) }
        }
        #[inline(always)]
        unsafe fn exp2_integral(self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe { Pair(power_of_two(self.0), power_of_two(self.1)) }
        }
        #[inline(always)]
        unsafe fn select_less(self, bound: Self, yes: Self, no: Self) -> Self {
            // SAFETY: the caller has the instructions.
            unsafe {
                Pair(
                    _mm256_blendv_ps(no.0, yes.0, _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, bound.0)),
                    _mm256_blendv_ps(no.1, yes.1, _mm256_cmp_ps::<_CMP_LT_OQ>(self.1, bound.1)),
                )
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: the caller has the instructions.
            unsafe { sum_of_eight(_mm256_add_ps(self.0, self.1)) }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            // SAFETY: the caller has the instructions.
            unsafe { largest_of_eight(_mm256_max_ps(self.0, self.1)) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::Pair;

/// An array that the compiler vectorises with what the target has (NEON on aarch64); exact everywhere, slow where the
/// target has no fused multiply-add.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; LANES]);

impl Portable {
    #[inline(always)]
    fn zip(self, o: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Portable(std::array::from_fn(|i| f(self.0[i], o.0[i])))
    }
}

impl Lanes for Portable {
    const TILE_ROWS: usize = 4;
    const TILE_PANELS: usize = 1;

    #[inline(always)]
    unsafe fn splat(v: f32) -> Self {
        Portable([v; LANES])
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller has a vector at the pointer.
        Portable(unsafe { p.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> Self {
        // SAFETY: the caller has a vector at the pointer.
        let raw = unsafe { p.cast::<[u16; LANES]>().read_unaligned() };
        Portable(raw.map(|x| f32::from_bits(u32::from(x) << 16)))
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    unsafe fn load_f16(p: *const u16) -> Self {
        // SAFETY: the caller has a vector at the pointer.
        let raw = unsafe { p.cast::<[u16; LANES]>().read_unaligned() };
        Portable(raw.map(|x| half::f16::from_bits(x).to_f32()))
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller has a vector at the pointer.
        unsafe { p.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    // On x86-64 only processors without AVX2, FMA or F16C compute products here, where each lane is a call: in line they would be most of the
    // kernels' code. Rows of an embedding are read by `load_f16` on all of them.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        Portable(std::array::from_fn(|i| self.0[i].mul_add(a.0[i], b.0[i])))
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        self.zip(o, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        self.zip(o, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        self.zip(o, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        self.zip(o, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        self.zip(o, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        self.zip(o, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        Portable(self.0.map(f32::round_ties_even))
    }
    #[inline(always)]
    unsafe fn exp2_integral(self) -> Self {
        Portable(self.0.map(|x| f32::from_bits(((x as i32 + 127) as u32) << 23)))
    }
    #[inline(always)]
    unsafe fn select_less(self, bound: Self, yes: Self, no: Self) -> Self {
        Portable(std::array::from_fn(|i| if self.0[i] < bound.0[i] { yes.0[i] } else { no.0[i] }))
    }
}

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// x86-64 with AVX-512 F and BW.
    Avx512,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// Whatever the compiler makes of arrays.
    Portable,
}

impl Isa {
    /// The best one of this CPU.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
                return Isa::Avx2;
            }
        }
        Isa::Portable
    }

    /// Every one that this CPU can run, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Isa> {
        match Isa::detect() {
            Isa::Avx512 => vec![Isa::Avx512, Isa::Avx2, Isa::Portable],
            Isa::Avx2 => vec![Isa::Avx2, Isa::Portable],
            Isa::Portable => vec![Isa::Portable],
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "AVX-512",
            Isa::Avx2 => "AVX2",
            Isa::Portable => "portable",
        }
    }
}

/// Defines `fn $name(isa, args)` that runs `$body::<L, $extra>(args)` compiled for the instruction set `isa`.
///
/// # Safety of the functions it defines
/// The CPU has the instruction set, and the operands satisfy `$body`.
macro_rules! for_each_isa {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $body:ident $(, $extra:ty)?) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "a kernel's operands; some kernels have few")]
        #[inline]
        $vis unsafe fn $name(isa: $crate::cpu::kernels::lanes::Isa, $($arg: $ty),*) {
            use $crate::cpu::kernels::lanes::{Isa, Portable};
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments, reason = "a kernel's operands; some kernels have few")]
                unsafe fn avx512($($arg: $ty),*) {
                    // SAFETY: the caller has the instructions.
                    unsafe { $body::<std::arch::x86_64::__m512 $(, $extra)?>($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments, reason = "a kernel's operands; some kernels have few")]
                unsafe fn avx2($($arg: $ty),*) {
                    // SAFETY: the caller has the instructions.
                    unsafe { $body::<$crate::cpu::kernels::lanes::Pair $(, $extra)?>($($arg),*) }
                }
                match isa {
                    // SAFETY: the caller has the instructions.
                    Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: the caller has the instructions.
                    Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    Isa::Portable => {}
                }
            }
            let _ = isa;
            // SAFETY: the caller has the instructions.
            unsafe { $body::<Portable $(, $extra)?>($($arg),*) }
        }
    };
}
pub(crate) use for_each_isa;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::kernels::testing::noise;

    #[inline(always)]
    unsafe fn reduced<L: Lanes>(x: &[f32], out: &mut [f32; 2]) {
        // SAFETY: the caller has the instructions.
        let v = unsafe { L::load(x.as_ptr()) };
        // SAFETY: the caller has the instructions.
        *out = unsafe { [v.sum(), v.largest()] };
    }
    for_each_isa! { fn reduce(x: &[f32], out: &mut [f32; 2]) => reduced }

    #[test]
    fn reductions_are_the_same_tree_on_every_instruction_set() {
        let mut rows: Vec<Vec<f32>> = (0..200).map(|seed| noise(LANES, seed)).collect();
        rows.push(vec![f32::NEG_INFINITY; LANES]);
        for lane in 0..LANES {
            let mut row = noise(LANES, 7);
            row[lane] = f32::NAN;
            rows.push(row.clone());
            row[lane] = f32::INFINITY;
            rows.push(row);
        }
        for row in rows {
            let mut tree = row.clone();
            let mut top = row.clone();
            for width in [8, 4, 2, 1] {
                for i in 0..width {
                    tree[i] += tree[i + width];
                    top[i] = if top[i] > top[i + width] { top[i] } else { top[i + width] };
                }
            }
            for isa in Isa::all() {
                let mut got = [0f32; 2];
                // SAFETY: the CPU has the instruction set; the row has sixteen elements.
                unsafe { reduce(isa, &row, &mut got) };
                let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                assert!(same(got[0], tree[0]) && same(got[1], top[0]), "{row:?} {}: {got:?}", isa.name());
            }
        }
    }
}
