//! Int8 products against their definition.

use super::*;
use crate::cpu::kernels::lanes::Isa;
use crate::cpu::kernels::matmul::{MatmulScratch, PackedMatrix, matmul};
use crate::cpu::kernels::target::Target;
use crate::cpu::kernels::testing::noise;
use earnest_models::checkpoint::{Tensor, Values};

fn packed(w: &[f32], n: usize, k: usize) -> PackedMatrix {
    PackedMatrix::stack_int8(vec![Tensor { shape: vec![n, k], values: Values::F32(w.to_vec()) }])
}

/// The definition, one output at a time, in plain arithmetic.
fn reference(x: &[f32], w: &[f32]) -> f32 {
    let mut acc = 0f32;
    for (x, w) in x.chunks_exact(GROUP).zip(w.chunks_exact(GROUP)) {
        let mut group = Int8Group::ZERO;
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
    for (n, k) in [(1, 32), (15, 64), (33, 96), (100, 576), (40, 1120)] {
        // Rows of widely different sizes, some exact zeros.
        let w: Vec<f32> =
            noise(n * k, 1).into_iter().enumerate().map(|(i, v)| v * 10f32.powi((i / k % 7) as i32 - 3)).collect();
        let matrix = packed(&w, n, k);
        for m in [1, 2, 5, 6, 7, 13, 40, 301] {
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
            for unit in Int8Isa::all() {
                let team = Team::new(1);
                let mut a = vec![0; words(m, k)];
                quantise(&team, unit, &x, k, &mut a);
                let mut y = vec![f32::NAN; m * n];
                let groups: Vec<Int8Group> = (0..n.div_ceil(LANES) * (k / GROUP))
                    .map(|i| {
                        let (panel, g) = (i / (k / GROUP), i % (k / GROUP));
                        let mut group = Int8Group::ZERO;
                        for lane in 0..LANES.min(n - panel * LANES) {
                            group.set(lane, w[(panel * LANES + lane) * k + g * GROUP..][..GROUP].try_into().unwrap());
                        }
                        group
                    })
                    .collect();
                // SAFETY: the CPU has the unit; the sizes are those of the operands.
                unsafe {
                    let all = 0..n.div_ceil(LANES);
                    let out = Output { n, bias: None, into: Target::Overwrite, y: y.as_mut_ptr(), stride: n };
                    product(unit, (m, k), &a, groups.as_ptr(), all, out);
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
    let exact = |i: usize| -> f64 { (0..k).map(|j| f64::from(x[i / n * k + j]) * f64::from(w[i % n * k + j])).sum() };
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

#[inline(always)]
unsafe fn set_body<U: Int8Unit>(group: &mut Int8Group, lane: usize, weights: &[f32; GROUP]) {
    // SAFETY: the group is borrowed, lanes are below LANES, and the unit was detected.
    unsafe { Int8Group::set_lane_on::<U>(group, lane, weights) };
}

for_each_unit! { fn set_on(group: &mut Int8Group, lane: usize, weights: &[f32; GROUP]) => set_body }

#[test]
fn every_unit_rounds_a_column_to_the_same_codes() {
    let mut columns: Vec<[f32; GROUP]> =
        (0..50).map(|seed| noise(GROUP, seed).try_into().expect("a group of them")).collect();
    columns.extend([[0.0; GROUP], [-3.5; GROUP], [1e-40; GROUP]]);
    columns.push(std::array::from_fn(|i| if i == 7 { f32::MAX } else { -f32::MAX }));
    columns.push(std::array::from_fn(|i| i as f32 * 1e-30 - 1e-29));
    columns.push(std::array::from_fn(|i| if i % 5 == 0 { f32::NAN } else { i as f32 }));
    for column in columns {
        let mut expected = Int8Group::ZERO;
        expected.set(5, &column);
        for unit in Int8Isa::all() {
            let mut group = Int8Group::ZERO;
            // SAFETY: the CPU has the unit.
            unsafe { set_on(unit, &mut group, 5, &column) };
            assert_eq!((group.step[5], group.least[5]), (expected.step[5], expected.least[5]), "{column:?}");
            // Numbers only: the code of what is not one means nothing.
            for (i, _) in column.iter().enumerate().filter(|(_, weight)| !weight.is_nan()) {
                let code = |group: &Int8Group| group.codes[i / QUAD][5 * QUAD + i % QUAD];
                assert_eq!(code(&group), code(&expected), "{i} of {column:?}");
            }
        }
    }
}
