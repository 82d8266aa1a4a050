//! Products in 8-bit integers, for `--compute int8`: both operands in groups of 32 along k, weights as `step * code + least`
//! with a code of 0 to 255, activations as `scale * code` with a code of -127 to 127.
//!
//! A group's sum of products is an integer below 2^24, so it is exact in i32 and in f32, whatever the instruction computes
//! it. Across groups each output is one chain of fused multiply-adds in ascending k. So the bits depend on the row and the
//! matrix only, as in the exact mode: not on the batch, the threads or the instruction set. What differs from the exact
//! mode is the rounding of the operands, once each, to 8 bits.

use super::lanes::{Isa, LANES, Lanes, Portable};
use super::matmul::{Target, finish};
use super::shared::SharedMut;
use super::tile::tiles;
use crate::engine::native::team::Team;

/// Inputs that share a scale.
pub(crate) const GROUP: usize = 32;

/// Codes in a word, and words in a group.
const QUAD: usize = 4;
const QUADS: usize = GROUP / QUAD;

/// Words of a row's group: its codes, its scale, and its scale times the sum of its codes.
const ROW_WORDS: usize = QUADS + 2;

/// Below this a group of activations counts as zeros: the inverse of its scale would overflow.
const SMALLEST: f32 = 1e-30;

/// Most rows of a register tile: 6 x 2 integer and 6 x 2 float accumulators fit 32 registers.
const TILE_ROWS: usize = 6;

/// A group of inputs of sixteen output columns.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct ByteGroup {
    step: [f32; LANES],
    least: [f32; LANES],
    /// `[8][16 columns][4 inputs]`
    codes: [[u8; QUAD * LANES]; QUADS],
}

impl ByteGroup {
    /// A group of zeros.
    pub(crate) const ZERO: ByteGroup =
        ByteGroup { step: [0.0; LANES], least: [0.0; LANES], codes: [[0; QUAD * LANES]; QUADS] };

    /// Rounds one column's 32 weights to 256 evenly spaced values between the least and the greatest of them. Groups of the
    /// 4-bit formats that store both (Q4_1) keep their values up to the rounding of f32.
    pub(crate) fn set(&mut self, lane: usize, weights: &[f32; GROUP]) {
        let (mut low, mut high) = ([f32::INFINITY; 8], [f32::NEG_INFINITY; 8]);
        for eight in weights.chunks_exact(8) {
            for i in 0..8 {
                low[i] = if eight[i] < low[i] { eight[i] } else { low[i] };
                high[i] = if eight[i] > high[i] { eight[i] } else { high[i] };
            }
        }
        let least = low.into_iter().fold(f32::INFINITY, f32::min);
        let most = high.into_iter().fold(f32::NEG_INFINITY, f32::max);
        // Divided first, because the difference itself may overflow.
        let step = (most / 255.0) - (least / 255.0);
        self.step[lane] = step;
        self.least[lane] = least;
        // A step of zero, or one whose inverse overflows, leaves the least value for all.
        let inverse = if 1.0 / step < f32::INFINITY { 1.0 / step } else { 0.0 };
        let mut codes = [0u8; GROUP];
        for (code, &w) in codes.iter_mut().zip(weights) {
            *code = ((w - least) * inverse).round_ties_even().clamp(0.0, 255.0) as u8;
        }
        for (words, quad) in self.codes.iter_mut().zip(codes.chunks_exact(QUAD)) {
            words[lane * QUAD..(lane + 1) * QUAD].copy_from_slice(quad);
        }
    }

    /// The value of one weight.
    pub(crate) fn weight(&self, lane: usize, i: usize) -> f32 {
        let code = self.codes[i / QUAD][lane * QUAD + i % QUAD];
        f32::from(code).mul_add(self.step[lane], self.least[lane])
    }
}

/// How four products of bytes are summed at a time.
trait ByteUnit {
    type L: Lanes;
    /// Sixteen columns' quads of weights.
    type Codes: Copy;
    /// Sixteen integers.
    type Sums: Copy;
    unsafe fn zero() -> Self::Sums;
    unsafe fn codes(p: *const u8) -> Self::Codes;
    /// Adds each column's four products with the four bytes of `x`.
    unsafe fn dot(sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums;
    unsafe fn floats(sums: Self::Sums) -> Self::L;
    /// Stores sixteen integral values of -127 to 127 as bytes.
    unsafe fn store_bytes(v: Self::L, out: *mut i8) {
        let mut values = [0f32; LANES];
        unsafe {
            v.store(values.as_mut_ptr());
            for (i, &v) in values.iter().enumerate() {
                *out.add(i) = v as i8;
            }
        }
    }
}

struct PortableBytes;

impl ByteUnit for PortableBytes {
    type L = Portable;
    type Codes = [u8; QUAD * LANES];
    type Sums = [i32; LANES];
    #[inline(always)]
    unsafe fn zero() -> Self::Sums {
        [0; LANES]
    }
    #[inline(always)]
    unsafe fn codes(p: *const u8) -> Self::Codes {
        unsafe { p.cast::<Self::Codes>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn dot(mut sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
        let x = x.to_ne_bytes().map(|b| i32::from(b as i8));
        for (lane, sum) in sums.iter_mut().enumerate() {
            for (i, x) in x.iter().enumerate() {
                *sum += i32::from(codes[lane * QUAD + i]) * x;
            }
        }
        sums
    }
    #[inline(always)]
    unsafe fn floats(sums: Self::Sums) -> Portable {
        let floats = sums.map(|s| s as f32);
        unsafe { Portable::load(floats.as_ptr()) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::lanes::Pair;
    use super::ByteUnit;

    /// VNNI on 512 bits.
    pub(super) struct Vnni512;

    impl ByteUnit for Vnni512 {
        type L = __m512;
        type Codes = __m512i;
        type Sums = __m512i;
        #[inline(always)]
        unsafe fn zero() -> __m512i {
            unsafe { _mm512_setzero_si512() }
        }
        #[inline(always)]
        unsafe fn codes(p: *const u8) -> __m512i {
            unsafe { _mm512_loadu_si512(p.cast()) }
        }
        #[inline(always)]
        unsafe fn dot(sums: __m512i, codes: __m512i, x: i32) -> __m512i {
            unsafe { _mm512_dpbusd_epi32(sums, codes, _mm512_set1_epi32(x)) }
        }
        #[inline(always)]
        unsafe fn floats(sums: __m512i) -> __m512 {
            unsafe { _mm512_cvtepi32_ps(sums) }
        }
        #[inline(always)]
        unsafe fn store_bytes(v: __m512, out: *mut i8) {
            unsafe { _mm_storeu_si128(out.cast(), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v))) }
        }
    }

    #[inline(always)]
    unsafe fn pair_of_floats(sums: (__m256i, __m256i)) -> Pair {
        unsafe { Pair(_mm256_cvtepi32_ps(sums.0), _mm256_cvtepi32_ps(sums.1)) }
    }

    /// VNNI on 256 bits.
    pub(super) struct Vnni256;

    impl ByteUnit for Vnni256 {
        type L = Pair;
        type Codes = (__m256i, __m256i);
        type Sums = (__m256i, __m256i);
        #[inline(always)]
        unsafe fn zero() -> Self::Sums {
            unsafe { (_mm256_setzero_si256(), _mm256_setzero_si256()) }
        }
        #[inline(always)]
        unsafe fn codes(p: *const u8) -> Self::Codes {
            unsafe { (_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())) }
        }
        #[inline(always)]
        unsafe fn dot(sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
            unsafe {
                let x = _mm256_set1_epi32(x);
                (_mm256_dpbusd_avx_epi32(sums.0, codes.0, x), _mm256_dpbusd_avx_epi32(sums.1, codes.1, x))
            }
        }
        #[inline(always)]
        unsafe fn floats(sums: Self::Sums) -> Pair {
            unsafe { pair_of_floats(sums) }
        }
    }

    /// AVX2, whose products of bytes saturate at 16 bits: the codes' highest bit goes separately, so that no sum of two does.
    pub(super) struct Avx2;

    #[inline(always)]
    unsafe fn dot_of_eight(sum: __m256i, codes: __m256i, x: __m256i) -> __m256i {
        unsafe {
            let high = _mm256_set1_epi8(-128);
            let ones = _mm256_set1_epi16(1);
            let low = _mm256_maddubs_epi16(_mm256_andnot_si256(high, codes), x);
            let high = _mm256_maddubs_epi16(_mm256_and_si256(high, codes), x);
            let both = _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
            _mm256_add_epi32(sum, both)
        }
    }

    impl ByteUnit for Avx2 {
        type L = Pair;
        type Codes = (__m256i, __m256i);
        type Sums = (__m256i, __m256i);
        #[inline(always)]
        unsafe fn zero() -> Self::Sums {
            unsafe { (_mm256_setzero_si256(), _mm256_setzero_si256()) }
        }
        #[inline(always)]
        unsafe fn codes(p: *const u8) -> Self::Codes {
            unsafe { (_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())) }
        }
        #[inline(always)]
        unsafe fn dot(sums: Self::Sums, codes: Self::Codes, x: i32) -> Self::Sums {
            unsafe {
                let x = _mm256_set1_epi32(x);
                (dot_of_eight(sums.0, codes.0, x), dot_of_eight(sums.1, codes.1, x))
            }
        }
        #[inline(always)]
        unsafe fn floats(sums: Self::Sums) -> Pair {
            unsafe { pair_of_floats(sums) }
        }
    }
}

/// What multiplies bytes. All give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteIsa {
    /// AVX-512 with VNNI.
    Vnni512,
    /// AVX2 with VNNI.
    Vnni256,
    /// AVX2.
    Avx2,
    /// Whatever the compiler makes of arrays.
    Portable,
}

impl ByteIsa {
    /// The best one that this CPU has and that is no wider than `isa`.
    pub(crate) fn best(isa: Isa) -> ByteIsa {
        #[cfg(target_arch = "x86_64")]
        {
            if isa == Isa::Avx512 && is_x86_feature_detected!("avx512vnni") {
                return ByteIsa::Vnni512;
            }
            if isa != Isa::Portable {
                return if is_x86_feature_detected!("avxvnni") { ByteIsa::Vnni256 } else { ByteIsa::Avx2 };
            }
        }
        let _ = isa;
        ByteIsa::Portable
    }

    /// Its name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ByteIsa::Vnni512 => "AVX-512 VNNI",
            ByteIsa::Vnni256 => "AVX-VNNI",
            ByteIsa::Avx2 => "AVX2",
            ByteIsa::Portable => "portable",
        }
    }

    /// Every one that this CPU can run, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<ByteIsa> {
        let mut all = vec![ByteIsa::best(Isa::detect()), ByteIsa::best(Isa::Portable)];
        if Isa::detect() != Isa::Portable {
            all.extend([ByteIsa::best(Isa::Avx2), ByteIsa::Avx2]);
        }
        all.dedup();
        all
    }
}

/// Words that the rows of `x[m, k]` take as bytes.
pub(crate) fn words(m: usize, k: usize) -> usize {
    m * k / GROUP * ROW_WORDS
}

/// Rounds the rows of `x[m, k]` to bytes, in tiles as the kernel reads them: each tile `[k / 32][10][rows]`.
pub(crate) fn quantise(team: &Team, unit: ByteIsa, x: &[f32], k: usize, out: &mut [i32]) {
    let m = x.len() / k;
    assert!(k.is_multiple_of(GROUP) && out.len() == words(m, k), "rows of bytes do not fit");
    let split = tiles(m, TILE_ROWS);
    let count = split.len();
    let out = SharedMut::new(out);
    let one = |t: usize| {
        let (start, rows) = split.clone().nth(t).expect("t counts the tiles");
        // SAFETY: tiles cover disjoint parts of the buffer, whose length was checked; the CPU has the unit.
        unsafe {
            let target = out.slice(words(start, k), words(rows, k));
            quantise_tile(unit, &x[start * k..(start + rows) * k], k, target.as_mut_ptr());
        }
    };
    if m * k < 20_000 { (0..count).for_each(one) } else { team.run(count, &one) }
}

/// `y[m, n] = x W^T (+ bias)` of panels `panels` (each `[k / 32]` groups), where `a` is what [`quantise`] made of x.
///
/// # Safety
/// The CPU has the unit; the sizes fit; nobody else touches the panels' columns of y.
#[expect(clippy::too_many_arguments, reason = "a kernel's operands")]
pub(crate) unsafe fn product(
    unit: ByteIsa,
    m: usize,
    n: usize,
    k: usize,
    a: &[i32],
    weights: *const ByteGroup,
    panels: std::ops::Range<usize>,
    bias: Option<&[f32]>,
    into: Target,
    y: *mut f32,
) {
    let o = Operands { m, n, k, a, weights, panels, bias, into, y };
    unsafe { product_on(unit, o) }
}

/// `rounds` times twelve sums of products that read no memory, to measure what a core can do.
///
/// # Safety
/// The CPU has the unit.
pub(super) unsafe fn dots(unit: ByteIsa, rounds: usize) {
    unsafe { dots_on(unit, rounds) }
}

struct Operands<'a> {
    m: usize,
    n: usize,
    k: usize,
    a: &'a [i32],
    weights: *const ByteGroup,
    panels: std::ops::Range<usize>,
    bias: Option<&'a [f32]>,
    into: Target,
    y: *mut f32,
}

/// Defines `fn $name(unit, args)` that runs `$body::<unit>(args)` compiled for the unit's instructions.
macro_rules! for_each_unit {
    (fn $name:ident($($arg:ident: $ty:ty),*) => $body:ident) => {
        unsafe fn $name(unit: ByteIsa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
                unsafe fn vnni512($($arg: $ty),*) {
                    unsafe { $body::<x86::Vnni512>($($arg),*) }
                }
                #[target_feature(enable = "avxvnni,avx2,fma,f16c")]
                unsafe fn vnni256($($arg: $ty),*) {
                    unsafe { $body::<x86::Vnni256>($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2($($arg: $ty),*) {
                    unsafe { $body::<x86::Avx2>($($arg),*) }
                }
                match unit {
                    ByteIsa::Vnni512 => return unsafe { vnni512($($arg),*) },
                    ByteIsa::Vnni256 => return unsafe { vnni256($($arg),*) },
                    ByteIsa::Avx2 => return unsafe { avx2($($arg),*) },
                    ByteIsa::Portable => {}
                }
            }
            let _ = unit;
            unsafe { $body::<PortableBytes>($($arg),*) }
        }
    };
}
for_each_unit! { fn product_on(o: Operands<'_>) => product_body }
for_each_unit! { fn dots_on(rounds: usize) => dots_body }
for_each_unit! { fn quantise_tile(x: &[f32], k: usize, out: *mut i32) => quantise_body }

#[inline(always)]
unsafe fn dots_body<U: ByteUnit>(rounds: usize) {
    unsafe {
        let bytes = std::hint::black_box([3u8; QUAD * LANES]);
        let (codes, x) = (U::codes(bytes.as_ptr()), std::hint::black_box(0x0101_0101));
        let mut sums = [U::zero(); 12];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = U::dot(*sum, codes, x);
            }
        }
        let mut all = U::L::zero();
        for sum in sums {
            all = all.add(U::floats(sum));
        }
        std::hint::black_box(all.sum());
    }
}

#[inline(always)]
unsafe fn quantise_body<U: ByteUnit>(x: &[f32], k: usize, out: *mut i32) {
    let rows = x.len() / k;
    for (r, row) in x.chunks_exact(k).enumerate() {
        for (g, group) in row.chunks_exact(GROUP).enumerate() {
            unsafe {
                let target = out.add(g * ROW_WORDS * rows + r);
                let v = [U::L::load(group.as_ptr()), U::L::load(group.as_ptr().add(LANES))];
                let size = |v: U::L| v.max(U::L::zero().sub(v));
                let top = size(v[0]).max(size(v[1])).largest();
                // Zero, or NaN if one of the values is not finite: the scale then is, and so is every output of the row.
                let finite = v[0].mul(U::L::zero()).add(v[1].mul(U::L::zero())).sum();
                let (scale, inverse) = if top > SMALLEST { (top / 127.0, 127.0 / top) } else { (0.0, 0.0) };
                let scale = scale + finite;
                let factor = U::L::splat(inverse);
                let codes = [v[0].mul(factor).round(), v[1].mul(factor).round()];
                let mut bytes = [0i8; GROUP];
                U::store_bytes(codes[0], bytes.as_mut_ptr());
                U::store_bytes(codes[1], bytes.as_mut_ptr().add(LANES));
                for (j, quad) in bytes.chunks_exact(QUAD).enumerate() {
                    *target.add(j * rows) =
                        i32::from_ne_bytes([quad[0] as u8, quad[1] as u8, quad[2] as u8, quad[3] as u8]);
                }
                // The sum of the codes is exact in f32, in any order.
                let sum = codes[0].add(codes[1]).sum();
                *target.add(QUADS * rows) = scale.to_bits() as i32;
                *target.add((QUADS + 1) * rows) = (scale * sum).to_bits() as i32;
            }
        }
    }
}

#[inline(always)]
unsafe fn product_body<U: ByteUnit>(o: Operands<'_>) {
    let groups = o.k / GROUP;
    let mut panel = o.panels.start;
    while panel < o.panels.end {
        let pair = panel + 1 < o.panels.end;
        for (start, rows) in tiles(o.m, TILE_ROWS) {
            unsafe {
                let a = o.a.as_ptr().add(words(start, o.k));
                let first = o.weights.add(panel * groups);
                macro_rules! arm {
                    ($R:literal) => {
                        if pair {
                            tile::<U, $R, 2>(&o, a, [first, first.add(groups)], panel, start)
                        } else {
                            tile::<U, $R, 1>(&o, a, [first], panel, start)
                        }
                    };
                }
                match rows {
                    1 => arm!(1),
                    2 => arm!(2),
                    3 => arm!(3),
                    4 => arm!(4),
                    5 => arm!(5),
                    6 => arm!(6),
                    rows => unreachable!("a tile of {rows} rows"),
                }
            }
        }
        panel += if pair { 2 } else { 1 };
    }
}

/// `R` rows times `P` panels of sixteen columns.
#[inline(always)]
unsafe fn tile<U: ByteUnit, const R: usize, const P: usize>(
    o: &Operands<'_>,
    a: *const i32,
    panels: [*const ByteGroup; P],
    panel: usize,
    start: usize,
) {
    unsafe {
        let mut acc = [[U::L::zero(); P]; R];
        for g in 0..o.k / GROUP {
            let a = a.add(g * ROW_WORDS * R);
            let mut sums = [[U::zero(); P]; R];
            for j in 0..QUADS {
                let mut codes = [U::codes((*panels[0].add(g)).codes[j].as_ptr()); P];
                for p in 1..P {
                    codes[p] = U::codes((*panels[p].add(g)).codes[j].as_ptr());
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = *a.add(j * R + r);
                    for p in 0..P {
                        sums[p] = U::dot(sums[p], codes[p], x);
                    }
                }
            }
            for p in 0..P {
                let group = &*panels[p].add(g);
                let (step, least) = (U::L::load(group.step.as_ptr()), U::L::load(group.least.as_ptr()));
                for (r, acc) in acc.iter_mut().enumerate() {
                    let scale = U::L::splat(f32::from_bits(*a.add(QUADS * R + r) as u32));
                    let sum = U::L::splat(f32::from_bits(*a.add((QUADS + 1) * R + r) as u32));
                    acc[p] = least.fma(sum, U::floats(sums[r][p]).fma(step.mul(scale), acc[p]));
                }
            }
        }
        for (r, acc) in acc.into_iter().enumerate() {
            for (p, acc) in acc.into_iter().enumerate() {
                finish(acc, o.n, panel + p, o.bias, o.into, o.y.add((start + r) * o.n));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Tensor, Values};
    use crate::engine::native::kernels::matmul::{MatmulScratch, PackedMatrix, matmul};
    use crate::engine::native::kernels::testing::noise;

    fn packed(w: &[f32], n: usize, k: usize) -> PackedMatrix {
        PackedMatrix::stack_bytes(vec![Tensor { shape: vec![n, k], values: Values::F32(w.to_vec()) }])
    }

    /// The definition, one output at a time, in plain arithmetic.
    fn reference(x: &[f32], w: &[f32]) -> f32 {
        let mut acc = 0f32;
        for (x, w) in x.chunks_exact(GROUP).zip(w.chunks_exact(GROUP)) {
            let mut group = ByteGroup::ZERO;
            group.set(3, w.try_into().unwrap());
            let top = x.iter().fold(0f32, |t, x| t.max(x.abs()));
            let (scale, inverse) = if top > SMALLEST { (top / 127.0, 127.0 / top) } else { (0.0, 0.0) };
            let codes: Vec<i32> = x.iter().map(|x| (x * inverse).round_ties_even() as i32).collect();
            let weight = |i: usize| i32::from(group.codes[i / QUAD][3 * QUAD + i % QUAD]);
            let dot: i32 = codes.iter().enumerate().map(|(i, c)| c * weight(i)).sum();
            acc = (dot as f32).mul_add(group.step[3] * scale, acc);
            acc = group.least[3].mul_add(scale * codes.iter().sum::<i32>() as f32, acc);
        }
        acc
    }

    #[test]
    fn products_have_the_bits_of_the_definition_on_every_unit_thread_count_and_batch() {
        for (n, k) in [(1, 32), (15, 64), (33, 96), (100, 576)] {
            // Rows of widely different sizes, some exact zeros.
            let w: Vec<f32> =
                noise(n * k, 1).into_iter().enumerate().map(|(i, v)| v * 10f32.powi((i / k % 7) as i32 - 3)).collect();
            let matrix = packed(&w, n, k);
            for m in [1, 2, 5, 6, 7, 13, 40] {
                let mut x = noise(m * k, 2 + m as u64);
                x[..GROUP].fill(0.0);
                x[GROUP..].iter_mut().step_by(5).for_each(|v| *v *= 300.0);
                let expected: Vec<f32> =
                    (0..m * n).map(|i| reference(&x[i / n * k..][..k], &w[i % n * k..][..k])).collect();
                for isa in Isa::all() {
                    for threads in [1, 2, 3] {
                        let mut y = vec![f32::NAN; m * n];
                        let team = Team::with_isa(threads, isa);
                        matmul(&team, &mut MatmulScratch::default(), &x, &matrix, None, Target::Overwrite, &mut y);
                        let same = y.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                        assert!(same, "{n}x{k} m={m} {} {threads} threads", isa.name());
                    }
                }
                for unit in ByteIsa::all() {
                    let team = Team::new(1);
                    let mut a = vec![0; words(m, k)];
                    quantise(&team, unit, &x, k, &mut a);
                    let mut y = vec![f32::NAN; m * n];
                    let groups: Vec<ByteGroup> = (0..n.div_ceil(LANES) * (k / GROUP))
                        .map(|i| {
                            let (panel, g) = (i / (k / GROUP), i % (k / GROUP));
                            let mut group = ByteGroup::ZERO;
                            for lane in 0..LANES.min(n - panel * LANES) {
                                group.set(
                                    lane,
                                    w[(panel * LANES + lane) * k + g * GROUP..][..GROUP].try_into().unwrap(),
                                );
                            }
                            group
                        })
                        .collect();
                    // SAFETY: the CPU has the unit; the sizes are those of the operands.
                    unsafe {
                        let all = 0..n.div_ceil(LANES);
                        product(unit, m, n, k, &a, groups.as_ptr(), all, None, Target::Overwrite, y.as_mut_ptr());
                    }
                    let same = y.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{n}x{k} m={m} {}", unit.name());
                }
            }
        }
    }

    #[test]
    fn eight_bits_are_close_and_values_of_four_bit_blocks_are_kept() {
        let (n, k, m) = (40, 512, 9);
        let (w, x) = (noise(n * k, 1), noise(m * k, 2));
        let mut y = vec![0f32; m * n];
        matmul(&Team::new(1), &mut MatmulScratch::default(), &x, &packed(&w, n, k), None, Target::Overwrite, &mut y);
        let exact =
            |i: usize| -> f64 { (0..k).map(|j| f64::from(x[i / n * k + j]) * f64::from(w[i % n * k + j])).sum() };
        let error = (0..m * n).map(|i| (f64::from(y[i]) - exact(i)).powi(2)).sum::<f64>().sqrt();
        let size = (0..m * n).map(|i| exact(i).powi(2)).sum::<f64>().sqrt();
        assert!(error < 0.01 * size, "{error} of {size}");

        // Q4_1: d * q + m with q from 0 to 15, both ends in use.
        let blocks: Vec<f32> = (0..n * k)
            .map(|i| {
                let (block, q) = (i / GROUP, [0, 15, 3, 8, 11, 6, 1][i % GROUP % 7]);
                (0.001 + block as f32 * 1e-5) * q as f32 - 0.007 * (1 + block % 5) as f32
            })
            .collect();
        let matrix = packed(&blocks, n, k);
        let mut row = vec![0f32; k];
        for r in 0..n {
            matrix.row(r, 1.0, &mut row);
            for (got, want) in row.iter().zip(&blocks[r * k..]) {
                assert!((got - want).abs() < 2e-7 * 0.1, "{got} {want}");
            }
        }
    }

    #[test]
    fn a_value_that_is_not_finite_spoils_its_own_row_and_no_other() {
        let (n, k, m) = (20, 64, 8);
        let (w, clean) = (noise(n * k, 1), noise(m * k, 2));
        let matrix = packed(&w, n, k);
        let run = |x: &[f32], isa| {
            let mut y = vec![0f32; m * n];
            let team = Team::with_isa(1, isa);
            matmul(&team, &mut MatmulScratch::default(), x, &matrix, None, Target::Overwrite, &mut y);
            y
        };
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for isa in Isa::all() {
                let mut x = clean.clone();
                x[3 * k + 40] = bad;
                let (spoilt, before) = (run(&x, isa), run(&clean, isa));
                for i in 0..m * n {
                    if i / n == 3 {
                        assert!(spoilt[i].is_nan(), "{bad} became {}", spoilt[i]);
                    } else {
                        assert_eq!(spoilt[i].to_bits(), before[i].to_bits());
                    }
                }
            }
        }
    }
}
