//! Norms, row by row.

use super::lanes::{LANES, Lanes, for_each_isa};
use super::shared::SharedMut;
use crate::cpu::team::Team;

/// Rows that one piece of a parallel norm takes.
const ROWS_PER_PIECE: usize = 16;

/// `y = x / sqrt(mean(x^2) + eps) * w` for each row of `x` (`[m, w.len()]`).
pub(crate) fn rms_norm(team: &Team, x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) {
    each_row(team, x, w.len(), y, &|x, y| {
        // SAFETY: the team's instruction set was detected; rows have the width of w.
        unsafe { rms(team.isa(), x, w, eps, y) }
    });
}

/// One row of [`rms_norm`], in place.
pub(crate) fn rms_norm_row(team: &Team, x: &mut [f32], w: &[f32], eps: f32) {
    assert_eq!(x.len(), w.len(), "a norm's row and scale differ in width");
    // SAFETY: as above; reading and writing the same row is fine because each element is read before it is written.
    unsafe { rms_in_place(team.isa(), x, w, eps) }
}

/// One row of an RMS norm without a scale, in place.
pub(crate) fn rms_norm_row_plain(team: &Team, x: &mut [f32], eps: f32) {
    // SAFETY: as above.
    unsafe { rms_plain(team.isa(), x, eps) }
}

/// `y = (x - mean) / sqrt(var + eps) * w + b` for each row of `x`; `b` may be empty.
pub(crate) fn layer_norm(team: &Team, x: &[f32], w: &[f32], b: &[f32], eps: f32, y: &mut [f32]) {
    assert!(b.is_empty() || w.len() == b.len(), "a norm's scale and offset differ in width");
    each_row(team, x, w.len(), y, &|x, y| {
        // SAFETY: as above.
        unsafe { layer(team.isa(), x, w, b, eps, y) }
    });
}

fn each_row(team: &Team, x: &[f32], width: usize, y: &mut [f32], row: &(dyn Fn(&[f32], &mut [f32]) + Sync)) {
    let m = x.len() / width;
    assert!(x.len() == m * width && y.len() == x.len(), "operands of a norm do not fit");
    let y = SharedMut::new(y);
    team.run(m.div_ceil(ROWS_PER_PIECE), &|piece| {
        for r in piece * ROWS_PER_PIECE..((piece + 1) * ROWS_PER_PIECE).min(m) {
            // SAFETY: rows are disjoint.
            row(&x[r * width..(r + 1) * width], unsafe { y.slice(r * width, width) });
        }
    });
}

/// Sum over a row of `(x - centre)^POWER`, for a power of 1 or 2. The tail is added element by element.
#[inline(always)]
unsafe fn sum_of_powers<L: Lanes, const POWER: u32>(x: &[f32], centre: f32) -> f32 {
    let whole = x.len() / LANES * LANES;
    // SAFETY: `i + LANES` is at most the length; the caller has the instructions.
    let mut total = unsafe {
        let (mut acc, shift) = (L::zero(), L::splat(centre));
        for i in (0..whole).step_by(LANES) {
            let d = L::load(x.as_ptr().add(i)).sub(shift);
            acc = acc.add(if POWER == 2 { d.mul(d) } else { d });
        }
        acc.sum()
    };
    for &v in &x[whole..] {
        let d = v - centre;
        total += if POWER == 2 { d * d } else { d };
    }
    total
}

#[inline(always)]
unsafe fn rms_body<L: Lanes>(x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) {
    // SAFETY: the caller has the instructions.
    unsafe {
        let mean = sum_of_powers::<L, 2>(x, 0.0) / x.len() as f32;
        let factor = 1.0 / (mean + eps).sqrt();
        for ((o, &v), &s) in y.iter_mut().zip(x).zip(w) {
            *o = v * factor * s;
        }
    }
}

#[inline(always)]
unsafe fn rms_in_place_body<L: Lanes>(x: &mut [f32], w: &[f32], eps: f32) {
    // SAFETY: the caller has the instructions.
    unsafe {
        let mean = sum_of_powers::<L, 2>(x, 0.0) / x.len() as f32;
        let factor = 1.0 / (mean + eps).sqrt();
        for (v, &s) in x.iter_mut().zip(w) {
            *v = *v * factor * s;
        }
    }
}

#[inline(always)]
unsafe fn rms_plain_body<L: Lanes>(x: &mut [f32], eps: f32) {
    // SAFETY: the caller has the instructions.
    unsafe {
        let mean = sum_of_powers::<L, 2>(x, 0.0) / x.len() as f32;
        let factor = 1.0 / (mean + eps).sqrt();
        x.iter_mut().for_each(|v| *v *= factor);
    }
}

#[inline(always)]
unsafe fn layer_body<L: Lanes>(x: &[f32], w: &[f32], b: &[f32], eps: f32, y: &mut [f32]) {
    // SAFETY: the caller has the instructions.
    unsafe {
        let mean = sum_of_powers::<L, 1>(x, 0.0) / x.len() as f32;
        let variance = sum_of_powers::<L, 2>(x, mean) / x.len() as f32;
        let factor = 1.0 / (variance + eps).sqrt();
        if b.is_empty() {
            for ((o, &v), &s) in y.iter_mut().zip(x).zip(w) {
                *o = (v - mean) * factor * s;
            }
            return;
        }
        for (((o, &v), &s), &t) in y.iter_mut().zip(x).zip(w).zip(b) {
            *o = (v - mean) * factor * s + t;
        }
    }
}

for_each_isa! { fn rms(x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) => rms_body }
for_each_isa! { fn rms_in_place(x: &mut [f32], w: &[f32], eps: f32) => rms_in_place_body }
for_each_isa! { fn rms_plain(x: &mut [f32], eps: f32) => rms_plain_body }
for_each_isa! { fn layer(x: &[f32], w: &[f32], b: &[f32], eps: f32, y: &mut [f32]) => layer_body }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::kernels::lanes::Isa;
    use crate::cpu::kernels::testing::noise;

    #[test]
    fn norms_match_double_precision_and_do_not_depend_on_the_instruction_set() {
        for width in [1, 15, 16, 40, 576] {
            let (x, w, b) = (noise(7 * width, 1), noise(width, 2), noise(width, 3));
            let mut bits: Option<Vec<u32>> = None;
            for isa in Isa::all() {
                let team = Team::with_isa(2, isa);
                let (mut y, mut z) = (vec![0f32; x.len()], vec![0f32; x.len()]);
                rms_norm(&team, &x, &w, 1e-6, &mut y);
                layer_norm(&team, &x, &w, &b, 1e-5, &mut z);
                for r in 0..7 {
                    let row: Vec<f64> = x[r * width..(r + 1) * width].iter().map(|&v| f64::from(v)).collect();
                    let n = width as f64;
                    let square = row.iter().map(|v| v * v).sum::<f64>() / n;
                    let mean = row.iter().sum::<f64>() / n;
                    let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
                    for i in 0..width {
                        let at = r * width + i;
                        let expected = row[i] / (square + 1e-6).sqrt() * f64::from(w[i]);
                        assert!((f64::from(y[at]) - expected).abs() < 2e-6, "{width} {at}");
                        let expected = (row[i] - mean) / (variance + 1e-5).sqrt() * f64::from(w[i]) + f64::from(b[i]);
                        assert!((f64::from(z[at]) - expected).abs() < 2e-5, "{width} {at}");
                    }
                }
                let all: Vec<u32> = y.iter().chain(&z).map(|v| v.to_bits()).collect();
                assert!(bits.get_or_insert_with(|| all.clone()) == &all, "{}", isa.name());
            }
        }
    }
}
