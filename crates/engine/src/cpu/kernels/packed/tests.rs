//! Products with packed weights against products with dequantised ones.

use std::borrow::Cow;

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};

use super::*;
use crate::cpu::kernels::lanes::{Isa, LANES};
use crate::cpu::kernels::matmul::{MatmulScratch, PackedMatrix, matmul};
use crate::cpu::kernels::target::Target;
use crate::cpu::kernels::testing::noise;
use earnest_models::checkpoint::{BlockType, GroupedRow, Half, Levels, Tensor, Values};

/// Every type, and the bytes of its 16-bit floats.
const TYPES: [(BlockType, &[usize]); 22] = [
    (BlockType::Q4_0, &[0]),
    (BlockType::Q4_1, &[0, 2]),
    (BlockType::Q5_0, &[0]),
    (BlockType::Q5_1, &[0, 2]),
    (BlockType::Q8_0, &[0]),
    (BlockType::Q2K, &[80, 82]),
    (BlockType::Q3K, &[108]),
    (BlockType::Q4K, &[0, 2]),
    (BlockType::Q5K, &[0, 2]),
    (BlockType::Q6K, &[208]),
    (BlockType::Mxfp4, &[]),
    (BlockType::Iq4Nl, &[0]),
    (BlockType::Levels(Levels::Iq4), &[0]),
    (BlockType::Levels(Levels::Iq3Xxs), &[0]),
    (BlockType::Levels(Levels::Iq3S), &[0]),
    (BlockType::Levels(Levels::Iq2), &[0]),
    (BlockType::Group4(Half::F16), &[0]),
    (BlockType::Group4(Half::Bf16), &[0]),
    (BlockType::Group8(Half::F16, true), &[0]),
    (BlockType::Group8(Half::F16, false), &[0]),
    (BlockType::Group8(Half::Bf16, true), &[0]),
    (BlockType::E4m3, &[2]),
];

/// Those whose activations can be rounded.
fn integers() -> impl Iterator<Item = (BlockType, &'static [usize])> {
    TYPES.into_iter().filter(|(kind, _)| kind.has_integers())
}

/// Blocks of random bytes whose scales are finite, of either sign.
fn random_blocks(kind: BlockType, halves: &[usize], weights: usize, seed: u64) -> Vec<u8> {
    let (per_block, size) = kind.size();
    let mut bytes: Vec<u8> =
        noise(weights / per_block * size, seed).into_iter().map(|v| (v * 1e5).rem_euclid(256.0) as u8).collect();
    for block in bytes.chunks_exact_mut(size) {
        // Without one bit of its exponent a half is neither infinite nor large; the same holds for upper halves of floats.
        halves.iter().for_each(|at| block[at + 1] &= 0xAF);
        tame(kind, block);
    }
    bytes
}

/// Makes the numbers of a block without halves finite.
fn tame(kind: BlockType, block: &mut [u8]) {
    match kind {
        BlockType::Mxfp4 => block[0] = 100 + block[0] % 50,
        BlockType::E4m3 => block[4..].iter_mut().filter(|code| **code & 0x7F == 0x7F).for_each(|code| *code &= 0xFE),
        _ => {}
    }
}

/// The values as candle has them, and by their definition those of types that it lacks.
fn dequantised(kind: BlockType, blocks: &[u8], weights: usize) -> Vec<f32> {
    let candle = match kind {
        BlockType::Q4_0 => GgmlDType::Q4_0,
        BlockType::Q4_1 => GgmlDType::Q4_1,
        BlockType::Q5_0 => GgmlDType::Q5_0,
        BlockType::Q5_1 => GgmlDType::Q5_1,
        BlockType::Q8_0 => GgmlDType::Q8_0,
        BlockType::Q2K => GgmlDType::Q2K,
        BlockType::Q3K => GgmlDType::Q3K,
        BlockType::Q4K => GgmlDType::Q4K,
        BlockType::Q5K => GgmlDType::Q5K,
        BlockType::Q6K => GgmlDType::Q6K,
        _ => return blocks.chunks_exact(kind.size().1).flat_map(|block| values(kind, block)).collect(),
    };
    let storage = QStorage::from_data(Cow::Borrowed(blocks), &Device::Cpu, candle).unwrap();
    QTensor::new(storage, weights).unwrap().dequantize(&Device::Cpu).unwrap().to_vec1().unwrap()
}

/// The values of a block by its definition.
fn values(kind: BlockType, block: &[u8]) -> Vec<f32> {
    let half = |half: Half| match half {
        Half::F16 => half::f16::from_le_bytes([block[0], block[1]]).to_f32(),
        Half::Bf16 => half::bf16::from_le_bytes([block[0], block[1]]).to_f32(),
    };
    // Low nibbles are the first half of a group.
    let nibbles = |bytes: &[u8]| -> Vec<u8> {
        let groups = bytes.chunks_exact(16);
        groups.flat_map(|group| group.iter().map(|byte| byte & 15).chain(group.iter().map(|byte| byte >> 4))).collect()
    };
    match kind {
        BlockType::Mxfp4 => {
            const E2M1: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
            let scale = (f64::from(block[0]) - 127.0).exp2();
            let value = |code: u8| E2M1[usize::from(code & 7)] * if code < 8 { scale } else { -scale };
            nibbles(&block[1..]).into_iter().map(|code| value(code) as f32).collect()
        }
        BlockType::Iq4Nl => {
            let (codes, zero) = (Levels::Iq4.codes(), Levels::Iq4.zero());
            let level = |i: u8| f32::from(codes[usize::from(i)]) - f32::from(zero);
            nibbles(&block[2..]).into_iter().map(|i| half(Half::F16) * level(i)).collect()
        }
        BlockType::Levels(levels) => {
            let (codes, zero) = (levels.codes(), levels.zero());
            let level = |i: u8| f32::from(codes[usize::from(i)]) - f32::from(zero);
            let scale = |at: usize| {
                half(Half::F16) * f32::from(block[2 + at / 16] as i8) * 0.5f32.powi(levels.halvings().into())
            };
            nibbles(&block[18..]).into_iter().enumerate().map(|(at, i)| scale(at) * level(i)).collect()
        }
        BlockType::Group4(float) => {
            nibbles(&block[3..]).into_iter().map(|code| (f32::from(code) - f32::from(block[2])) * half(float)).collect()
        }
        BlockType::Group8(float, less_one) => {
            let zero = f32::from(block[2]) + f32::from(u8::from(less_one));
            block[3..].iter().map(|code| (f32::from(*code) - zero) * half(float)).collect()
        }
        BlockType::E4m3 => {
            let scale = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
            let value = |code: u8| {
                let (exponent, mantissa) = (i32::from(code >> 3 & 15), f32::from(code & 7));
                let size = match exponent {
                    0 => mantissa * 2f32.powi(-9),
                    exponent => (8.0 + mantissa) * 2f32.powi(exponent - 10),
                };
                if code < 128 { size } else { -size }
            };
            block[4..].iter().map(|code| value(*code) * scale).collect()
        }
        other => unreachable!("{other:?}"),
    }
}

/// A matrix in blocks of neighbours.
fn pack(kind: BlockType, n: usize, k: usize, blocks: &[u8]) -> Result<Part, usize> {
    Part::pack(kind, n, k, blocks, vec![])
}

fn dense(n: usize, k: usize, values: Vec<f32>) -> Tensor {
    Tensor { shape: vec![n, k], values: Values::F32(values) }
}

fn product(team: &Team, x: &[f32], w: &PackedMatrix, bias: Option<&[f32]>, into: Target) -> Vec<f32> {
    let mut y = noise(x.len() / w.k() * w.n(), 99);
    matmul(team, &mut MatmulScratch::default(), x, w, bias, into, &mut y);
    y
}

fn assert_bits(a: &[f32], b: &[f32], what: &str) {
    let differing = a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    assert!(a.len() == b.len() && differing == 0, "{what}: {differing} of {} differ", a.len());
}

#[test]
fn packed_weights_give_the_bits_of_dequantised_ones() {
    for (kind, halves) in TYPES {
        for (n, k) in [(33usize, 256usize), (100, 768), (16, 32), (50, 96)] {
            if !k.is_multiple_of(kind.size().0) {
                continue;
            }
            let blocks = random_blocks(kind, halves, n * k, 7);
            let wide = dequantised(kind, &blocks, n * k);
            assert!(wide.iter().all(|w| w.is_finite()));
            let dense = PackedMatrix::stack(vec![dense(n, k, wide.clone())]);
            let packed = PackedMatrix::stack_packed(vec![pack(kind, n, k, &blocks).unwrap()], false);
            let bias = noise(n, 5);
            for m in [1, 2, 3, 7, 12, 13, 30, 61] {
                let x = noise(m * k, 2 + m as u64);
                for isa in Isa::all() {
                    for threads in [1, 2] {
                        let team = Team::with_isa(threads, isa);
                        let (bias, into) =
                            if m % 2 == 0 { (None, Target::Overwrite) } else { (Some(&bias[..]), Target::Add) };
                        let what = format!("{kind:?} {n}x{k} m={m} {} {threads} threads", isa.name());
                        assert_bits(
                            &product(&team, &x, &packed, bias, into),
                            &product(&team, &x, &dense, bias, into),
                            &what,
                        );
                    }
                }
            }
            let (mut row, mut expected) = (vec![0f32; k], vec![0f32; k]);
            for i in [0, n / 2, n - 1] {
                packed.row(i, 3.0, &mut row);
                dense.row(i, 3.0, &mut expected);
                // A zero's sign may differ.
                assert_eq!(row, expected, "{kind:?} row {i}");
            }
        }
    }
}

/// A group for each input, in any order.
fn groups_of_inputs(inputs: usize, groups: usize, seed: u64) -> Vec<u32> {
    noise(inputs, seed).into_iter().map(|v| (v * 1e5).rem_euclid(groups as f32) as u32 % groups as u32).collect()
}

/// Random grouped rows, and their weights by the definition.
fn grouped_rows(row: GroupedRow, of: &[u32], n: usize, seed: u64) -> (Vec<u8>, Vec<f32>) {
    let mut random = noise(n * (row.inputs + 2 * row.groups), seed).into_iter();
    let mut below = |end: f32| (random.next().unwrap() * 1e5).rem_euclid(end).floor();
    let (mut rows, mut weights) = (vec![], vec![]);
    for _ in 0..n {
        let greatest = if row.wide { 256.0 } else { 16.0 };
        let codes: Vec<u8> = (0..row.inputs).map(|_| below(greatest) as u8).collect();
        // All 24 bits of a scale; zero points below and beyond the codes.
        let scales: Vec<f32> = (0..row.groups).map(|_| (below(2e4) - 1e4) / 3e6).collect();
        let zeros: Vec<f32> = (0..row.groups).map(|_| below(600.0) - 200.0).collect();
        for codes in codes.chunks_exact(32) {
            match row.wide {
                true => rows.extend(codes),
                false => rows.extend((0..16).map(|i| codes[i] | codes[16 + i] << 4)),
            }
        }
        rows.extend(scales.iter().chain(&zeros).flat_map(|v| v.to_le_bytes()));
        let of_input = codes.iter().zip(of.iter().map(|group| *group as usize));
        weights.extend(of_input.map(|(code, group)| (f32::from(*code) - zeros[group]) * scales[group]));
    }
    (rows, weights)
}

#[test]
fn grouped_rows_give_the_bits_of_dequantised_ones() {
    for (wide, n, k, groups) in [
        (false, 33, 256, 2),
        (true, 33, 256, 5),
        (false, 100, 768, 6),
        (false, 16, 32, 1),
        (true, 50, 96, 3),
        (false, 130, 160, 40),
    ] {
        let (row, of) = (GroupedRow { inputs: k, groups, wide }, groups_of_inputs(k, groups, 3));
        let (blocks, weights) = grouped_rows(row, &of, n, 11);
        let part = Part::pack(BlockType::GroupedRow(row), n, k, &blocks, of).unwrap();
        // Beside a part of blocks, whose panels are counted first.
        let q4_1 = random_blocks(BlockType::Q4_1, &[0, 2], 20 * k, 4);
        let tensors = vec![dense(20, k, dequantised(BlockType::Q4_1, &q4_1, 20 * k)), dense(n, k, weights)];
        let dense = PackedMatrix::stack(tensors);
        let packed = PackedMatrix::stack_packed(vec![pack(BlockType::Q4_1, 20, k, &q4_1).unwrap(), part], false);
        for m in [1, 2, 7, 13, 61] {
            let x = noise(m * k, 2 + m as u64);
            for isa in Isa::all() {
                for threads in [1, 2] {
                    let team = Team::with_isa(threads, isa);
                    let what = format!("{row:?} {n}x{k} m={m} {} {threads} threads", isa.name());
                    let of = |w: &PackedMatrix| product(&team, &x, w, None, Target::Overwrite);
                    assert_bits(&of(&packed), &of(&dense), &what);
                }
            }
        }
        let (mut row, mut expected) = (vec![0f32; k], vec![0f32; k]);
        for i in [19, 20, 20 + n / 2, 20 + n - 1] {
            packed.row(i, 3.0, &mut row);
            dense.row(i, 3.0, &mut expected);
            assert_eq!(row, expected, "row {i}");
        }
    }
}

#[test]
fn scales_of_grouped_rows_that_are_not_finite_are_counted() {
    let (row, of) = (GroupedRow { inputs: 64, groups: 3, wide: true }, groups_of_inputs(64, 3, 3));
    let kind = BlockType::GroupedRow(row);
    let (blocks, _) = grouped_rows(row, &of, 17, 5);
    // The scale of the second group, and its zero point: no number, and one whose product with a code is none.
    for (at, number) in [(64 + 4, f32::NAN), (64 + 4, 3e37), (64 + 16, f32::INFINITY)] {
        let mut blocks = blocks.clone();
        for row in [3, 16] {
            blocks[row * kind.size().1 + at..][..4].copy_from_slice(&number.to_le_bytes());
        }
        assert_eq!(Part::pack(kind, 17, 64, &blocks, of.clone()).err(), Some(2 * 64), "{number} at {at}");
    }
}

#[test]
fn parts_of_different_types_and_odd_heights_follow_each_other() {
    let (k, m) = (512, 301);
    let heights = [20, 37, 16, 1];
    let types = [TYPES[7], TYPES[9], TYPES[0], TYPES[12]];
    let (mut parts, mut rounding, mut tensors) = (vec![], vec![], vec![]);
    for (n, (kind, halves)) in heights.into_iter().zip(types) {
        let blocks = random_blocks(kind, halves, n * k, n as u64);
        tensors.push(dense(n, k, dequantised(kind, &blocks, n * k)));
        parts.push(pack(kind, n, k, &blocks).unwrap());
        rounding.push(pack(kind, n, k, &blocks).unwrap());
    }
    let (packed, dense) = (PackedMatrix::stack_packed(parts, false), PackedMatrix::stack(tensors));
    let (x, bias) = (noise(m * k, 1), noise(heights.iter().sum(), 2));
    let team = Team::new(2);
    for m in [1, 5, m] {
        let x = &x[..m * k];
        assert_bits(
            &product(&team, x, &packed, Some(&bias), Target::Add),
            &product(&team, x, &dense, Some(&bias), Target::Add),
            "stacked",
        );
    }
    let rounding = PackedMatrix::stack_packed(rounding, true);
    let all = product(&team, &x, &rounding, Some(&bias), Target::Overwrite);
    for (row, together) in all.chunks_exact(bias.len()).enumerate().step_by(60) {
        let alone = product(&team, &x[row * k..(row + 1) * k], &rounding, Some(&bias), Target::Overwrite);
        assert_bits(&alone, together, "a row alone");
    }
    let (mut row, mut expected) = (vec![0f32; k], vec![0f32; k]);
    for i in [19, 20, 56, 57, 73] {
        packed.row(i, 1.0, &mut row);
        dense.row(i, 1.0, &mut expected);
        assert_eq!(row, expected, "row {i}");
    }
}

#[test]
fn the_memory_is_what_is_estimated() {
    for (kind, halves) in TYPES {
        let (n, k) = (64, 2048);
        let part = pack(kind, n, k, &random_blocks(kind, halves, n * k, 3)).unwrap();
        assert_eq!(part.size_bytes() as u64, kind.matrix_bytes(n, k), "{kind:?}");
    }
    let of = groups_of_inputs(96, 7, 1);
    let row = GroupedRow { inputs: 96, groups: 7, wide: false };
    let (blocks, _) = grouped_rows(row, &of, 32, 2);
    let kind = BlockType::GroupedRow(row);
    assert_eq!(Part::pack(kind, 32, 96, &blocks, of).unwrap().size_bytes() as u64, kind.matrix_bytes(32, 96));
}

#[test]
fn scales_that_are_not_finite_are_counted() {
    for (kind, halves) in TYPES {
        let (n, k) = (17, 512);
        let (weights, size) = kind.size();
        for &at in halves {
            let mut blocks = random_blocks(kind, halves, n * k, 3);
            let last = blocks.len() - size;
            // Floats with an exponent of eight bits have its lowest one in the byte before.
            let infinite = match kind {
                BlockType::Group4(Half::Bf16) | BlockType::Group8(Half::Bf16, _) | BlockType::E4m3 => [0x80, 0xFF],
                _ => [0, 0xFC],
            };
            blocks[size + at..size + at + 2].copy_from_slice(&infinite);
            blocks[last + at..last + at + 2].copy_from_slice(&[0xFF, 0x7F]);
            assert_eq!(pack(kind, n, k, &blocks).err(), Some(2 * weights), "{kind:?}");
        }
    }
    // Scales that are numbers, whose products with the greatest codes are none.
    let huge = half::bf16::from_f32(3e38).to_le_bytes();
    for (kind, at) in
        [(BlockType::Group4(Half::Bf16), 0), (BlockType::Group8(Half::Bf16, true), 0), (BlockType::E4m3, 2)]
    {
        let (weights, size) = kind.size();
        let mut blocks = random_blocks(kind, &[at], 17 * 64, 3);
        assert!(pack(kind, 17, 64, &blocks).is_ok());
        blocks[size + at..size + at + 2].copy_from_slice(&huge);
        assert_eq!(pack(kind, 17, 64, &blocks).err(), Some(weights), "{kind:?}");
    }
    // A code that is no number, an exponent that is none, and one whose least weight is none.
    for (kind, at, byte) in [(BlockType::E4m3, 9, 0xFF), (BlockType::Mxfp4, 0, 0xFF), (BlockType::Mxfp4, 0, 252)] {
        let (weights, size) = kind.size();
        let mut blocks = random_blocks(kind, &[], 17 * 64, 3);
        assert!(kind == BlockType::E4m3 || pack(kind, 17, 64, &blocks).is_ok());
        blocks.chunks_exact_mut(size).for_each(|block| {
            if kind == BlockType::E4m3 {
                block[3] = 0x30
            }
        });
        blocks[3 * size + at] = byte;
        assert_eq!(pack(kind, 17, 64, &blocks).err(), Some(weights), "{kind:?} {byte}");
    }
}

#[test]
fn exponents_of_mxfp4_reach_below_the_normal_numbers() {
    for power in [0, 1, 2, 3, 127, 249, 250] {
        let mut blocks = random_blocks(BlockType::Mxfp4, &[], 16 * 32, 5);
        blocks.chunks_exact_mut(17).for_each(|block| block[0] = power);
        let expected = dequantised(BlockType::Mxfp4, &blocks, 16 * 32);
        let part = pack(BlockType::Mxfp4, 16, 32, &blocks).unwrap();
        let mut row = vec![0f32; 32];
        for i in 0..16 {
            exact::row(&part, i, 1.0, &mut row);
            assert_eq!(row, expected[i * 32..][..32], "2^({power} - 127)");
        }
    }
}

/// The definition of a product with rounded activations, one output at a time.
fn rounded(x: &[f32], codes: &[u8], affine: &[(f32, f32)]) -> f32 {
    let mut acc = 0f32;
    let per = codes.len() / affine.len();
    for (g, x) in x.chunks_exact(32).enumerate() {
        let top = x.iter().fold(0f32, |t, x| t.max(x.abs()));
        let (scale, inverse) = if top > int8::SMALLEST { (top / 127.0, 127.0 / top) } else { (0.0, 0.0) };
        let rounded: Vec<i32> = x.iter().map(|x| (x * inverse).round_ties_even() as i32).collect();
        for (h, rounded) in rounded.chunks_exact(per).enumerate() {
            let at = g * 32 + h * per;
            let (step, least) = affine[at / per];
            let dot: i32 = rounded.iter().zip(&codes[at..]).map(|(x, c)| x * i32::from(*c)).sum();
            acc = (dot as f32).mul_add(step * scale, acc);
            acc = least.mul_add(scale * rounded.iter().sum::<i32>() as f32, acc);
        }
    }
    acc
}

/// Codes, steps and least values of a row, from the values of weights that differ in one code.
fn taken_apart(part: &Part, row: usize) -> (Vec<u8>, Vec<(f32, f32)>) {
    use super::codes::{Width, with_codes};
    use crate::cpu::kernels::lanes::{Lanes, Portable};
    let (panel, lane) = (part.panel(row / LANES), row % LANES);
    let (mut codes, mut affine) = (vec![], vec![]);
    for group in 0..part.k() / 32 {
        // SAFETY: the group is one of the panel's.
        let both = unsafe { panel.affine::<Portable>(group) };
        for (step, least) in both.into_iter().take(if part.has_halves() { 2 } else { 1 }) {
            let (mut steps, mut leasts) = ([0f32; LANES], [0f32; LANES]);
            // SAFETY: there is room for sixteen floats.
            unsafe {
                step.store(steps.as_mut_ptr());
                least.store(leasts.as_mut_ptr());
            }
            affine.push((steps[lane], leasts[lane]));
        }
        for q in 0..8 {
            // SAFETY: as above.
            let quad: [u32; LANES] = with_codes!(part.codes(), B => unsafe {
                B::quad::<Portable>(panel.codes.add(group * B::LINES * LANES), q)
            });
            codes.extend(quad[lane].to_le_bytes());
        }
    }
    (codes, affine)
}

#[test]
fn rounded_activations_have_the_bits_of_the_definition_on_every_unit_thread_count_and_batch() {
    // Also the greatest codes with the greatest activations of one sign, whose sums come nearest to what 16 bits hold.
    for ((kind, halves), greatest) in integers().flat_map(|kind| [(kind, false), (kind, true)]) {
        let (n, k) = (37, 768);
        let mut blocks = random_blocks(kind, halves, n * k, 11);
        if greatest {
            for block in blocks.chunks_exact_mut(kind.size().1) {
                block.fill(0xFF);
                halves.iter().for_each(|at| block[at + 1] &= 0xAF);
                tame(kind, block);
            }
        }
        let part = pack(kind, n, k, &blocks).unwrap();
        let apart: Vec<_> = (0..n).map(|row| taken_apart(&part, row)).collect();
        let wide = dequantised(kind, &blocks, n * k);
        for (row, (codes, affine)) in apart.iter().enumerate() {
            let per = codes.len() / affine.len();
            for (i, code) in codes.iter().enumerate() {
                let (step, least) = affine[i / per];
                assert_eq!(f32::from(*code).mul_add(step, least), wide[row * k + i], "{kind:?} {row} {i}");
            }
        }
        let packed = PackedMatrix::stack_packed(vec![part], true);
        for m in [1, 2, 6, 7, 13, 40] {
            let mut x = noise(m * k, 2 + m as u64);
            if greatest {
                x.chunks_exact_mut(k).enumerate().for_each(|(r, row)| row.fill(if r % 2 == 0 { 1.0 } else { -1.0 }));
            }
            x[..32].fill(0.0);
            let expected: Vec<f32> =
                (0..m * n).map(|i| rounded(&x[i / n * k..][..k], &apart[i % n].0, &apart[i % n].1)).collect();
            for isa in Isa::all() {
                for threads in [1, 2] {
                    let y = product(&Team::with_isa(threads, isa), &x, &packed, None, Target::Overwrite);
                    assert_bits(&y, &expected, &format!("{kind:?} m={m} {} {threads} threads", isa.name()));
                }
            }
            for unit in Int8Isa::all() {
                let team = Team::new(1);
                let mut words = vec![0; int8::words(m, k)];
                int8::quantise(&team, unit, &x, k, &mut words);
                let mut halves = vec![];
                half_sums(&team, &words, m, k, &mut halves);
                let part = pack(kind, n, k, &blocks).unwrap();
                let rows = Rows { m, floats: &[], words: &words, halves: &halves };
                let mut y = vec![f32::NAN; m * n];
                let out = Output { n, bias: None, into: Target::Overwrite, y: y.as_mut_ptr(), stride: n };
                let packed = Packed::new(vec![part], true);
                // SAFETY: the unit is one of this CPU's; everything has the sizes above.
                unsafe { packed.product(Isa::Portable, unit, &rows, 0..packed.panels(), out) };
                assert_bits(&y, &expected, &format!("{kind:?} m={m} {}", unit.name()));
            }
        }
    }
}

#[test]
fn rounded_activations_stay_close() {
    for (kind, halves) in integers() {
        let (n, k) = (64, 1024);
        let blocks = random_blocks(kind, halves, n * k, 11);
        let dense = PackedMatrix::stack(vec![dense(n, k, dequantised(kind, &blocks, n * k))]);
        let packed = PackedMatrix::stack_packed(vec![pack(kind, n, k, &blocks).unwrap()], true);
        let (team, x) = (Team::new(1), noise(3 * k, 1));
        let exact = product(&team, &x, &dense, None, Target::Overwrite);
        let near = product(&team, &x, &packed, None, Target::Overwrite);
        let size = |v: &mut dyn Iterator<Item = f32>| v.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let error = size(&mut exact.iter().zip(&near).map(|(a, b)| a - b)) / size(&mut exact.iter().copied());
        assert!(error > 0.0 && error < 0.02, "{kind:?}: {error}");
    }
}
