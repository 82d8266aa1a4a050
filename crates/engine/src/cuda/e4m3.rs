//! E4M3, the 8-bit float of OCP's specification: bias 7, largest value 448, no infinities, NaN where all other bits are ones.
//!
//! A row of weights has its codes, then a scale in f32 for each [`GROUP`] of them, padded to 16 bytes (kernels/blocks.cuh).

/// Weights that share a scale.
pub(crate) const GROUP: usize = 128;

/// Largest value.
const LARGEST: f32 = 448.0;

/// Bytes of a row of `k` weights.
pub(crate) fn row_bytes(k: usize) -> usize {
    k + (4 * k.div_ceil(GROUP)).next_multiple_of(16)
}

/// Returns the nearest code, ties to even; beyond 448 that of 448, and 0x7f for what is not a number.
pub(crate) fn encode(x: f32) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let magnitude = x.abs().min(LARGEST);
    // Adding a power of two rounds to its last bit: a 512th below 2^-6, from there on an eighth of the power of two at or below the value.
    let power = (magnitude.to_bits() >> 23).max(127 - 6);
    let steps_end = f32::from_bits((power + 20) << 23);
    let rounded = (magnitude + steps_end) - steps_end;
    let bits = rounded.to_bits();
    let code = match bits >> 23 {
        exponent if exponent >= 127 - 6 => ((exponent - (127 - 7)) << 3) | ((bits >> 20) & 7),
        _ => (rounded * 512.0) as u32,
    };
    sign | code as u8
}

/// Returns a code's value.
pub(crate) fn decode(code: u8) -> f32 {
    let (exponent, fraction) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction / 512.0,
        _ => (8.0 + fraction) / 8.0 * 2f32.powi(exponent - 7),
    };
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}

/// Rounds rows of `k` weights. `scales`, one for each group of each row, are those with which the weights were stored; without them the largest
/// weight of a group becomes 448.
pub(crate) fn pack(weights: &[f32], k: usize, scales: Option<&[f32]>) -> Vec<u8> {
    let (groups, row) = (k.div_ceil(GROUP), row_bytes(k));
    let mut all = vec![0; weights.len() / k * row];
    for (i, (from, to)) in weights.chunks_exact(k).zip(all.chunks_exact_mut(row)).enumerate() {
        for (group, from) in from.chunks(GROUP).enumerate() {
            let scale = match scales {
                Some(scales) => scales[i * groups + group],
                None => from.iter().fold(0f32, |top, w| top.max(w.abs())) / LARGEST,
            };
            for (to, w) in to[group * GROUP..].iter_mut().zip(from) {
                // A group of zeros has the scale 0.
                *to = if scale == 0.0 { 0 } else { encode(w / scale) };
            }
            to[k + 4 * group..][..4].copy_from_slice(&scale.to_ne_bytes());
        }
    }
    all
}

/// Returns the weights that rows mean.
pub(crate) fn unpack(rows: &[u8], k: usize) -> Vec<f32> {
    let of_row = |row: &[u8]| -> Vec<f32> {
        let scale = |i: usize| {
            let at = k + i / GROUP * 4;
            f32::from_ne_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])
        };
        (0..k).map(|i| decode(row[i]) * scale(i)).collect()
    };
    rows.chunks_exact(row_bytes(k)).flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positive codes' values, from the smallest exponent on, each built from its bits as the specification writes them.
    fn table() -> Vec<f64> {
        let normal = (1..16).flat_map(|e| (0..8).map(move |m| 2f64.powi(e - 7) * (1.0 + f64::from(m) / 8.0)));
        (0..8).map(|m| 2f64.powi(-6) * f64::from(m) / 8.0).chain(normal).take(127).collect()
    }

    /// The nearest code by looking at all of them.
    fn nearest(x: f64) -> u8 {
        let distance = |code: &u8| (table()[usize::from(*code)] - x.abs()).abs();
        let best = (0u8..127).min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
        best.unwrap() | if x.is_sign_negative() { 0x80 } else { 0 }
    }

    #[test]
    fn codes_are_the_published_table_and_rounding_is_to_the_nearest_even() {
        let table = table();
        for code in 0u8..127 {
            let value = table[usize::from(code)];
            assert_eq!((f64::from(decode(code)), f64::from(decode(code | 0x80))), (value, -value), "{code:#x}");
            assert_eq!((encode(value as f32), encode(-value as f32)), (code, code | 0x80), "{code:#x}");
        }
        assert!(decode(0x7f).is_nan() && decode(0xff).is_nan() && encode(f32::NAN) == 0x7f);
        for pair in table.windows(2) {
            let middle = ((pair[0] + pair[1]) / 2.0) as f32;
            for x in [middle, middle.next_down(), middle.next_up(), -middle] {
                assert_eq!(encode(x), nearest(f64::from(x)), "{x}");
            }
        }
        for (x, code) in [(449.0, 0x7e), (1e30, 0x7e), (f32::INFINITY, 0x7e), (f32::NEG_INFINITY, 0xfe), (1e-30, 0)] {
            assert_eq!(encode(x), code, "{x}");
        }
    }

    #[test]
    fn stored_codes_and_scales_stay_what_they_are() {
        let k = 144;
        let scales = [0.017f32, 3.3e-5, 1.9, 0.0];
        let codes: Vec<u8> = (0..2 * k).map(|i| (i * 7 % 127) as u8 | if i % 3 == 0 { 0x80 } else { 0 }).collect();
        let weights: Vec<f32> = (0..2 * k).map(|i| decode(codes[i]) * scales[i / k * 2 + i % k / GROUP]).collect();
        let rows = pack(&weights, k, Some(&scales));
        for (i, row) in rows.chunks_exact(row_bytes(k)).enumerate() {
            let groups = if i == 0 { k } else { GROUP };
            assert_eq!(row[..groups], codes[i * k..i * k + groups]);
        }
        assert_eq!(unpack(&rows, k), weights);
        // Of its own, the largest of a group is exact and the others are within half a step.
        let own = unpack(&pack(&weights, k, None), k);
        assert!(weights.iter().zip(&own).all(|(a, b)| (a - b).abs() <= a.abs() / 16.0 + 1e-6), "{own:?}");
    }
}
