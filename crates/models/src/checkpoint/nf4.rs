//! NF4 with double quantisation, as in QLoRA (Dettmers et al. 2023, sections 3 and B) and bitsandbytes
//! (`bnb_4bit_use_double_quant`).
//!
//! A tensor is cut into blocks of 64 weights in row-major order. Each is divided by its largest magnitude and rounded to the
//! nearest of 16 quantiles of a normal distribution. The magnitudes are quantised in turn: their mean is subtracted, and
//! blocks of 256 of them are divided by their largest magnitude and rounded to the nearest of 256 values whose density falls
//! with their size.
use std::sync::LazyLock;

/// Weights per scale.
const BLOCK: usize = 64;
/// Scales per second-level scale.
const SCALES: usize = 256;

/// The 16 quantiles.
const LEVELS: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

/// The 256 values of a quantised scale: in each decade from 1e-6 to 1, twice as many as in the one before, at the middles of equal steps
/// from 0.1 to 1 of the decade; both signs, zero, and one.
static DYNAMIC: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let mut values = vec![0.0, 1.0];
    for decade in 0..7 {
        let steps = 1usize << decade;
        let boundary = |i: usize| (0.1 + 0.9 * i as f64 / steps as f64) as f32;
        let size = 10f64.powi(decade - 6) as f32;
        for i in 0..steps {
            let middle = size * ((boundary(i) + boundary(i + 1)) / 2.0);
            values.extend([middle, -middle]);
        }
    }
    values.sort_by(f32::total_cmp);
    values
});

/// Quantises and dequantises values.
pub(super) fn round_trip(values: &[f32]) -> Vec<f32> {
    let scales: Vec<f32> = values.chunks(BLOCK).map(largest).collect();
    let scales = scales_round_trip(&scales);
    let blocks = values.chunks(BLOCK).zip(values.chunks(BLOCK).map(largest)).zip(scales);
    blocks
        .flat_map(|((block, exact), quantised)| {
            // Quantised with the exact scale, dequantised with the quantised one.
            let inverse = if exact > 0.0 { 1.0 / exact } else { 0.0 };
            block.iter().map(move |value| nearest(&LEVELS, value * inverse) * quantised)
        })
        .collect()
}

fn scales_round_trip(scales: &[f32]) -> Vec<f32> {
    let mean = (scales.iter().map(|&scale| f64::from(scale)).sum::<f64>() / scales.len().max(1) as f64) as f32;
    let off: Vec<f32> = scales.iter().map(|scale| scale - mean).collect();
    off.chunks(SCALES)
        .flat_map(|block| {
            let most = largest(block);
            let inverse = if most > 0.0 { 1.0 / most } else { 0.0 };
            block.iter().map(move |value| nearest(&DYNAMIC, value * inverse) * most + mean)
        })
        .collect()
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |most: f32, value| most.max(value.abs()))
}

/// Returns the nearest of ascending values; a tie goes to the smaller one.
fn nearest(values: &[f32], target: f32) -> f32 {
    let above = values.partition_point(|value| *value < target);
    let (Some(high), low) = (values.get(above).copied(), above.checked_sub(1).and_then(|i| values.get(i).copied()))
    else {
        return values.last().copied().unwrap_or(0.0);
    };
    match low {
        Some(low) if target <= (low + high) / 2.0 => low,
        _ => high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dynamic_values_are_those_of_bitsandbytes() {
        // `bitsandbytes.functional.create_dynamic_map(signed=True)`.
        assert_eq!(DYNAMIC.len(), 256);
        assert_eq!(DYNAMIC.iter().filter(|value| **value == 0.0).count(), 1);
        assert_eq!(DYNAMIC.last(), Some(&1.0));
        assert!((DYNAMIC[0] + 0.992_968_75).abs() < 1e-7, "{}", DYNAMIC[0]);
        assert!((DYNAMIC[254] - 0.992_968_75).abs() < 1e-7);
        let smallest = DYNAMIC.iter().copied().filter(|value| *value > 0.0).fold(1.0, f32::min);
        assert!((smallest - 5.5e-7).abs() < 1e-12);
    }

    #[test]
    fn levels_come_back_exactly_where_scales_are_equal() {
        // One scale for all: its difference from the mean is zero, so nothing is lost in the second quantisation.
        let values: Vec<f32> = (0..4 * BLOCK).map(|i| 0.25 * LEVELS[i % 16]).collect();
        assert_eq!(round_trip(&values), values);
    }

    #[test]
    fn the_nearest_value_is_taken() {
        assert_eq!(nearest(&[0.0, 1.0, 3.0], 0.4), 0.0);
        assert_eq!(nearest(&[0.0, 1.0, 3.0], 0.5), 0.0);
        assert_eq!(nearest(&[0.0, 1.0, 3.0], 0.6), 1.0);
        assert_eq!(nearest(&[0.0, 1.0, 3.0], -5.0), 0.0);
        assert_eq!(nearest(&[0.0, 1.0, 3.0], 9.0), 3.0);
    }

    #[test]
    fn bitsandbytes_gives_the_same_values() {
        #[derive(serde::Deserialize)]
        struct Golden {
            count: u64,
            every: usize,
            values: Vec<f32>,
            squares: f64,
        }
        let golden: Golden =
            serde_json::from_str(include_str!("../../../../tests/golden/nf4/bitsandbytes.json")).unwrap();
        let input: Vec<f32> = (0..golden.count)
            .map(|i| {
                let uniform = (i * 2_654_435_761 % (1 << 32)) as f64 / (1u64 << 32) as f64 - 0.5;
                (uniform * 0.05 * (1.0 + ((i / 64) % 37) as f64 / 10.0)) as f32
            })
            .collect();
        let found = round_trip(&input);
        let picked: Vec<f32> = found.iter().copied().step_by(golden.every).collect();
        assert_eq!(picked.len(), golden.values.len());
        for (i, (mine, theirs)) in picked.iter().zip(&golden.values).enumerate() {
            assert!((mine - theirs).abs() <= 2e-6 * theirs.abs().max(1e-3), "{i}: {mine} is not {theirs}");
        }
        let squares: f64 = found.iter().map(|value| f64::from(*value).powi(2)).sum();
        assert!((squares / golden.squares - 1.0).abs() < 1e-6, "{squares}");
    }

    #[test]
    fn odd_inputs_are_taken() {
        assert_eq!(round_trip(&[]), Vec::<f32>::new());
        assert_eq!(round_trip(&[0.0; 100]), vec![0.0; 100]);
        assert_eq!(round_trip(&[-0.5]), vec![-0.5]);
        // A block of zeros beside one of ones.
        let mixed: Vec<f32> = [[0.0; BLOCK], [1.0; BLOCK]].concat();
        assert!(round_trip(&mixed).iter().all(|value| value.is_finite()));
    }

    #[test]
    fn normal_weights_lose_what_four_bits_lose() {
        // Sums of twelve uniform numbers are close to normal.
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        let values: Vec<f32> = (0..1 << 15).map(|_| 0.02 * ((0..12).map(|_| uniform()).sum::<f32>() - 6.0)).collect();
        let found = round_trip(&values);
        let square = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let lost: Vec<f32> = values.iter().zip(&found).map(|(a, b)| a - b).collect();
        let relative = (square(&lost) / square(&values)).sqrt();
        // The error of NF4 on normal weights is 9 % of their spread; the second quantisation adds little to it.
        assert!((0.08..0.10).contains(&relative), "{relative}");
    }
}
