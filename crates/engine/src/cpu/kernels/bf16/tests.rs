//! Products in bf16 against their definition.

use super::*;
use crate::cpu::kernels::lanes::Isa;
use crate::cpu::kernels::matmul::{MatmulScratch, PackedMatrix, matmul};
use crate::cpu::kernels::testing::noise;
use earnest_models::checkpoint::{Tensor, Values};

/// Sizes of weights and numbers of rows that fill tiles, blocks and panels, and that do not.
const SIZES: [(usize, usize); 6] = [(1, 1), (15, 7), (32, 32), (33, 64), (100, 96), (70, 130)];
const ROWS: [usize; 9] = [1, 2, 5, 6, 7, 16, 17, 32, 45];

fn packed(w: &[f32], n: usize, k: usize, unit: TileUnit) -> PackedMatrix {
    PackedMatrix::stack_bf16(vec![Tensor { shape: vec![n, k], values: Values::F32(w.to_vec()) }], unit)
}

fn product(team: &Team, x: &[f32], w: &PackedMatrix) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len() / w.k() * w.n()];
    matmul(team, &mut MatmulScratch::default(), x, w, None, Target::Overwrite, &mut y);
    y
}

/// The value in bf16, by the definition of rounding; subnormal ones are zero.
fn in_bf16(x: f32) -> f32 {
    let near = half::bf16::from_f32(x).to_f32();
    if near.abs() < f32::MIN_POSITIVE { 0f32.copysign(near) } else { near }
}

/// `x * w + c` of bf16 values and a sum, a result that is tiny after rounding flushed to zero.
pub(super) fn fma_flushed(x: f32, w: f32, c: f32) -> f32 {
    let near = x.mul_add(w, c);
    let tiny = match near.abs() {
        size if size != f32::MIN_POSITIVE => size < f32::MIN_POSITIVE,
        // The exact value is `sum + error`. With 24 bits and no least exponent it rounds to less than the smallest normal number
        // if it is below the middle between that and its predecessor; the middle itself rounds up, to the even one.
        _ => {
            let (product, c) = (f64::from(x) * f64::from(w), f64::from(c));
            let sum = product + c;
            let part = sum - product;
            let error = ((product - (sum - part)) + (c - part)) * sum.signum();
            let over = sum.abs() - (2f64.powi(-126) - 2f64.powi(-151));
            over < 0.0 || over == 0.0 && error < 0.0
        }
    };
    if tiny { 0f32.copysign(near) } else { near }
}

/// `a + b`, a subnormal sum flushed to zero.
pub(super) fn add_flushed(a: f32, b: f32) -> f32 {
    let sum = a + b;
    if sum.abs() < f32::MIN_POSITIVE { 0f32.copysign(sum) } else { sum }
}

/// The definition, one output at a time.
fn reference(x: &[f32], w: &[f32], n: usize, k: usize) -> Vec<f32> {
    let output = |x: &[f32], w: &[f32]| {
        let mut total = 0f32;
        for (x, w) in x.chunks(BLOCK).zip(w.chunks(BLOCK)) {
            let mut chains = [0f32; 2];
            for i in 0..BLOCK {
                let at = |v: &[f32]| v.get(i).map_or(0.0, |&v| in_bf16(v));
                chains[i % 2] = fma_flushed(at(x), at(w), chains[i % 2]);
            }
            total = add_flushed(total, add_flushed(chains[0], chains[1]));
        }
        total
    };
    x.chunks_exact(k).flat_map(|x| w.chunks_exact(k).map(move |w| output(x, w))).take(x.len() / k * n).collect()
}

fn assert_same(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        assert!(same, "{what}: output {i} is {a:e} ({:08x}), not {b:e} ({:08x})", a.to_bits(), b.to_bits());
    }
}

/// Operands of one kind: ordinary, with sums at the border of subnormal numbers, so large that sums overflow, and with infinities.
fn operands(kind: &str, m: usize, n: usize, k: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut x, mut w) = (noise(m * k, 1 + (m * n * k) as u64), noise(n * k, 2));
    match kind {
        "ordinary" => {}
        "tiny" => {
            // Rows and columns of all sizes, so that products go from 2^-130 up and down; some values are subnormal themselves.
            x.iter_mut().enumerate().for_each(|(i, v)| *v *= 2f32.powi(-55 - (i / k % 9) as i32 * 2));
            w.iter_mut().enumerate().for_each(|(i, v)| *v *= 2f32.powi(-55 - (i / k % 7) as i32 * 2));
            x.iter_mut().step_by(37).for_each(|v| *v *= 2f32.powi(-70));
            w.iter_mut().step_by(41).for_each(|v| *v = 0.0);
            // The border itself: 2^-126 less something that rounds away, in f32 and in numbers without a least exponent.
            for (i, less) in [(0, -1.5 * 2f32.powi(-75)), (1, -2f32.powi(-76)), (2, -2f32.powi(-75))] {
                if i < m && k > 2 {
                    x[i * k..(i + 1) * k].fill(0.0);
                    (x[i * k], x[i * k + 2]) = (2f32.powi(-63), less);
                }
            }
            if k > 2 {
                w[..k].fill(0.0);
                (w[0], w[2]) = (2f32.powi(-63), 2f32.powi(-76));
            }
        }
        "huge" => {
            x.iter_mut().enumerate().for_each(|(i, v)| *v *= 2f32.powi(40 + (i / k % 12) as i32 * 8));
            w.iter_mut().enumerate().for_each(|(i, v)| *v *= 2f32.powi(60 - (i % 3) as i32 * 40));
        }
        "infinite" => {
            x.iter_mut().step_by(29).for_each(|v| *v = f32::INFINITY.copysign(*v));
            x.iter_mut().skip(3).step_by(31).for_each(|v| *v = 3.4e38f32.copysign(*v));
            w.iter_mut().step_by(23).for_each(|v| *v = 0.0);
            w.iter_mut().skip(5).step_by(19).for_each(|v| *v = f32::MIN_POSITIVE * 0.7);
        }
        other => unreachable!("{other}"),
    }
    (x, w)
}

const KINDS: [&str; 4] = ["ordinary", "tiny", "huge", "infinite"];

fn check_unit(unit: TileUnit, isas: &[Isa], threads: &[usize], name: &str) {
    for kind in KINDS {
        for (n, k) in SIZES {
            for m in ROWS {
                let (x, w) = operands(kind, m, n, k);
                let (expected, matrix) = (reference(&x, &w, n, k), packed(&w, n, k, unit));
                for &isa in isas {
                    for &threads in threads {
                        let team = Team::with_isa(threads, isa);
                        let what = format!("{name} {} {kind} {m}x{n}x{k}, {threads} threads", isa.name());
                        assert_same(&product(&team, &x, &matrix), &expected, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn vectors_have_the_bits_of_the_definition_on_every_instruction_set_thread_count_and_batch() {
    check_unit(TileUnit::VECTORS, &Isa::all(), &[1, 3], "vectors");
}

#[test]
fn flushing_is_tested_where_it_matters() {
    let (m, n, k) = (45, 70, 130);
    let (x, w) = operands("tiny", m, n, k);
    let expected = reference(&x, &w, n, k);
    let gradual = |x: &[f32], w: &[f32]| {
        let mut total = 0f32;
        for (x, w) in x.chunks(BLOCK).zip(w.chunks(BLOCK)) {
            let mut chains = [0f32; 2];
            x.iter()
                .zip(w)
                .enumerate()
                .for_each(|(i, (x, w))| chains[i % 2] = in_bf16(*x).mul_add(in_bf16(*w), chains[i % 2]));
            total += chains[0] + chains[1];
        }
        total
    };
    let others: Vec<f32> = x.chunks(k).flat_map(|x| w.chunks(k).map(move |w| gradual(x, w))).collect();
    let differ = expected.iter().zip(&others).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    let normal = expected.iter().filter(|v| v.abs() >= f32::MIN_POSITIVE).count();
    assert!(differ > m * n / 20 && normal > m * n / 20, "{differ} of {} differ, {normal} are not zero", m * n);
    // 2^-126 less 3/4, 1/4 and 1/2 of its predecessor's distance.
    assert_eq!([0, 1, 2].map(|row: usize| expected[row * n]), [0.0, f32::MIN_POSITIVE, f32::MIN_POSITIVE]);
}

/// The definition's steps, computed by the processor with its own flushing.
#[cfg(target_arch = "x86_64")]
#[test]
fn flushing_is_that_of_the_processor() {
    use std::arch::asm;
    if Isa::detect() == Isa::Portable {
        eprintln!("not run: this CPU has no fused multiply-add");
        return;
    }
    let hardware = |x: f32, w: f32, c: f32| {
        let (mut sum, mut added) = (c, c);
        let (mut before, flushing) = (0u32, 0x9FC0u32);
        // SAFETY: the control register is as before at the end of the block; the CPU has the instructions.
        unsafe {
            asm!(
                "stmxcsr [{before}]",
                "ldmxcsr [{flushing}]",
                "vfmadd231ss {sum}, {x}, {w}",
                "vaddss {added}, {added}, {x}",
                "ldmxcsr [{before}]",
                before = in(reg) &raw mut before,
                flushing = in(reg) &raw const flushing,
                sum = inout(xmm_reg) sum,
                added = inout(xmm_reg) added,
                x = in(xmm_reg) x,
                w = in(xmm_reg) w,
                options(nostack),
            );
        }
        (sum, added)
    };
    let power = |i: usize| 2f32.powi(-40 - (i % 60) as i32);
    let (a, b, c) = (noise(400_000, 1), noise(400_000, 2), noise(400_000, 3));
    let mut tiny = 0;
    let mut check = |x: f32, w: f32, c: f32| {
        let ours = (fma_flushed(x, w, c), add_flushed(c, x));
        let theirs = hardware(x, w, c);
        assert_eq!(ours.0.to_bits(), theirs.0.to_bits(), "{x:e} * {w:e} + {c:e}");
        assert_eq!(ours.1.to_bits(), theirs.1.to_bits(), "{c:e} + {x:e}");
        tiny += usize::from(ours.0 == 0.0);
    };
    let near = [2f32.powi(-126), -(2f32.powi(-126)), 2f32.powi(-125), 2f32.powi(-124)];
    for i in 0..400_000 {
        let (x, w) = (in_bf16(a[i] * power(i)), in_bf16(b[i] * power(i / 60)));
        check(
            x,
            w,
            if i % 5 == 0 { near[i / 5 % 4] } else { add_flushed(c[i] * 2f32.powi(-90 - (i % 36) as i32), 0.0) },
        );
        // Close to cancellation, which leaves less than the smallest normal number, or a little that rounds to it.
        let small = in_bf16(b[i] * 2f32.powi(-75));
        check(in_bf16(a[i] * 2f32.powi(-75)), small, near[i % 4]);
    }
    assert!(tiny > 1000, "{tiny}");
}

#[test]
fn a_row_alone_has_the_bits_that_it_has_in_a_batch() {
    let (m, n, k) = (40, 100, 96);
    for kind in ["ordinary", "tiny"] {
        let (x, w) = operands(kind, m, n, k);
        let matrix = packed(&w, n, k, TileUnit::best());
        let together = product(&Team::new(2), &x, &matrix);
        for r in 0..m {
            let alone = product(&Team::new(1), &x[r * k..(r + 1) * k], &matrix);
            assert_same(&alone, &together[r * n..(r + 1) * n], &format!("row {r}, {kind}"));
        }
    }
}

#[test]
fn bias_and_addition_are_applied_once_in_f32() {
    let (m, n, k) = (19, 37, 40);
    let (x, w) = operands("ordinary", m, n, k);
    let (bias, before) = (noise(n, 5), noise(m * n, 6));
    let plain = reference(&x, &w, n, k);
    let mut y = before.clone();
    let matrix = packed(&w, n, k, TileUnit::best());
    matmul(&Team::new(2), &mut MatmulScratch::default(), &x, &matrix, Some(&bias), Target::Add, &mut y);
    let expected: Vec<f32> = (0..m * n).map(|i| (plain[i] + bias[i % n]) + before[i]).collect();
    assert_same(&y, &expected, "bias");
}

#[test]
fn weights_take_two_bytes_and_are_those_rounded_from_any_type() {
    let (n, k) = (100, 130);
    let w = noise(n * k, 1);
    let halves: Vec<u16> = w.iter().map(|&v| half::f16::from_f32(v).to_bits()).collect();
    let brains: Vec<u16> = w.iter().map(|&v| half::bf16::from_f32(v).to_bits()).collect();
    let from_half = |i: usize| in_bf16(half::f16::from_bits(halves[i]).to_f32());
    let expected: [Vec<f32>; 3] = [
        w.iter().map(|&v| in_bf16(v)).collect(),
        w.iter().map(|&v| in_bf16(v)).collect(),
        (0..n * k).map(from_half).collect(),
    ];
    let values = [Values::F32(w), Values::Bf16(brains), Values::F16(halves)];
    for (values, expected) in values.into_iter().zip(expected) {
        // Two parts, the second one beginning within a panel.
        let cut = 37 * k;
        let part = |n: usize, range: std::ops::Range<usize>| {
            let values = match &values {
                Values::F32(v) => Values::F32(v[range].to_vec()),
                Values::Bf16(v) => Values::Bf16(v[range].to_vec()),
                Values::F16(v) => Values::F16(v[range].to_vec()),
            };
            Tensor { shape: vec![n, k], values }
        };
        let parts = vec![part(37, 0..cut), part(n - 37, cut..n * k)];
        let matrix = PackedMatrix::stack_bf16(parts, TileUnit::VECTORS);
        assert_eq!(matrix.size_bytes(), 128 * 160 * 2 + 4);
        let mut row = vec![0f32; k];
        for r in 0..n {
            matrix.row(r, 1.0, &mut row);
            assert_eq!(row, expected[r * k..(r + 1) * k]);
        }
    }
}

#[test]
fn rounding_is_to_nearest_even_and_keeps_what_is_no_number() {
    for (value, bits) in [
        (1.0 + 2f32.powi(-8), 0x3F80),
        (1.0 + 3.0 * 2f32.powi(-8), 0x3F82),
        (1.0 + 2f32.powi(-8) + 2f32.powi(-20), 0x3F81),
        (-3.4e38, 0xFF80),
        (f32::INFINITY, 0x7F80),
        (-f32::MIN_POSITIVE / 2.0, 0x8000),
        (f32::MIN_POSITIVE, 0x0080),
        (f32::from_bits(0x007F_FFFF), 0x0080),
        (f32::from_bits(0x7F80_0001), 0x7FC0),
        (f32::from_bits(0xFFFF_FFFF), 0xFFFF),
    ] {
        assert_eq!(round(value), bits, "{value:e}");
    }
    for v in noise(10_000, 7) {
        assert_eq!(f32::from_bits(u32::from(round(v)) << 16).to_bits(), in_bf16(v).to_bits());
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx {
    use super::super::emulator::Emulated;
    use super::super::probe::{self, TrialError};
    use super::*;

    #[test]
    fn tiles_have_the_bits_of_the_definition() {
        match TileUnit::amx() {
            Ok(unit) => check_unit(unit, &[Isa::detect()], &[1, 3], "AMX"),
            Err(reason) => {
                eprintln!("not run: the products of AMX itself, because this machine is without it: {reason}")
            }
        }
    }

    #[test]
    fn emulated_tiles_have_the_bits_of_the_definition_and_are_released() {
        if TileUnit::amx().is_ok() {
            eprintln!("not run: the emulation of AMX, because this machine has it");
            return;
        }
        let emulated = Emulated::install();
        // One thread: this one, whose instructions are counted.
        check_unit(TileUnit::emulated(&emulated), &[Isa::detect()], &[1], "emulated AMX");
        assert!(emulated.executed() > 10_000 && emulated.released());
        // SAFETY: the instructions are emulated.
        assert!(unsafe { probe::trial().unwrap().passes() });
        let mut wrong = probe::trial().unwrap();
        wrong.panel[50].0[3] ^= 0x40;
        // SAFETY: as above.
        assert!(!unsafe { wrong.passes() });
    }

    #[test]
    fn a_trial_ends_without_harm() {
        let trial = probe::trial().unwrap();
        let ended = probe::try_in_child(&trial);
        match TileUnit::amx() {
            Ok(_) => ended.unwrap(),
            // The permission may be what is missing, or the instructions.
            Err(_) => assert!(matches!(ended, Err(TrialError::Illegal | TrialError::Signal(_))), "a CPU without AMX"),
        }
    }
}
