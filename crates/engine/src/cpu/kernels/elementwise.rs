//! Activations and other elementwise work.

use super::lanes::{Isa, LANES, Lanes, for_each_isa};
use super::math;
use super::shared::SharedMut;
use crate::cpu::team::Team;
use earnest_models::checkpoint::Activation;

/// Elements that one piece of parallel work takes.
const PIECE: usize = 16 * 1024;

/// `out[m, width] = act(x[m, ..width]) * x[m, width..]`: the two halves of a stacked gate and up projection.
pub(crate) fn gate(team: &Team, activation: Activation, x: &[f32], width: usize, out: &mut [f32]) {
    let m = out.len() / width;
    assert!(out.len() == m * width && x.len() == 2 * out.len(), "operands of a gate do not fit");
    let rows = PIECE.div_ceil(width);
    let out = SharedMut::new(out);
    team.run(m.div_ceil(rows), &|piece| {
        for r in piece * rows..((piece + 1) * rows).min(m) {
            let (left, right) = x[r * 2 * width..(r + 1) * 2 * width].split_at(width);
            // SAFETY: rows are disjoint, widths equal.
            let target = unsafe { out.slice(r * width, width) };
            if let Activation::ClampedSwiglu { alpha, limit } = activation {
                // SAFETY: the team's instruction set was detected; the lengths are equal.
                unsafe { clamped_swiglu(team.isa(), left, right, alpha, limit, target) };
                continue;
            }
            apply(team, activation, left, Some(right), target);
        }
    });
}

/// `x = act(x)` (through `out`, of the same length).
pub(crate) fn activate(team: &Team, activation: Activation, x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "operands of an activation do not fit");
    let all = SharedMut::new(out);
    team.run(x.len().div_ceil(PIECE), &|piece| {
        let range = piece * PIECE..((piece + 1) * PIECE).min(x.len());
        // SAFETY: pieces are disjoint.
        let target = unsafe { all.slice(range.start, range.len()) };
        apply(team, activation, &x[range], None, target);
    });
}

fn apply(team: &Team, activation: Activation, x: &[f32], by: Option<&[f32]>, out: &mut [f32]) {
    let by = by.unwrap_or_default();
    // SAFETY: the team's instruction set was detected; `by` is empty or as long as x, and out as long as x.
    unsafe {
        match activation {
            Activation::Silu => silu_times(team.isa(), x, by, out),
            Activation::GeluTanh => gelu_times(team.isa(), x, by, out),
            Activation::ClampedSwiglu { .. } => unreachable!("a configuration has it with a gate only"),
            Activation::GeluErf => {
                for (i, (o, &v)) in out.iter_mut().zip(x).enumerate() {
                    let y = 0.5 * v * (1.0 + libm::erff(v * std::f32::consts::FRAC_1_SQRT_2));
                    *o = by.get(i).map_or(y, |b| y * b);
                }
            }
        }
    }
}

/// `x = x * scale`, then `cap * tanh(x / cap)`; unchanged with a scale of 1 and without a cap.
pub(crate) fn scale_and_cap(team: &Team, x: &mut [f32], scale: f32, cap: Option<f32>) {
    if scale != 1.0 {
        scale_by(team, x, scale);
    }
    let Some(cap) = cap else { return };
    let length = x.len();
    let all = SharedMut::new(x);
    team.run(length.div_ceil(PIECE), &|piece| {
        let start = piece * PIECE;
        // SAFETY: pieces are disjoint; the team's instruction set was detected.
        unsafe { cap_on(team.isa(), all.slice(start, PIECE.min(length - start)), cap) }
    });
}

/// `x = x * scale`.
pub(crate) fn scale_by(team: &Team, x: &mut [f32], scale: f32) {
    let length = x.len();
    let all = SharedMut::new(x);
    team.run(length.div_ceil(PIECE), &|piece| {
        let start = piece * PIECE;
        // SAFETY: pieces are disjoint.
        let part = unsafe { all.slice(start, PIECE.min(length - start)) };
        part.iter_mut().for_each(|v| *v *= scale);
    });
}

/// `x = x + y * scale`.
pub(crate) fn add_scaled(team: &Team, x: &mut [f32], y: &[f32], scale: f32) {
    assert_eq!(x.len(), y.len(), "operands of a sum do not fit");
    let all = SharedMut::new(x);
    team.run(y.len().div_ceil(PIECE), &|piece| {
        let range = piece * PIECE..((piece + 1) * PIECE).min(y.len());
        // SAFETY: pieces are disjoint.
        let part = unsafe { all.slice(range.start, range.len()) };
        for (x, &y) in part.iter_mut().zip(&y[range]) {
            *x += y * scale;
        }
    });
}

/// Sets what is at most the row's mean plus `deviations` standard deviations to zero, and takes that from what is above: in the first
/// half of each row of `x[m, 2 width]`.
pub(crate) fn cut_gates(team: &Team, x: &mut [f32], width: usize, deviations: f32) {
    let m = x.len() / (2 * width);
    assert!(x.len() == 2 * m * width, "rows of another width");
    let all = SharedMut::new(x);
    team.run(m, &|r| {
        // SAFETY: rows are disjoint.
        let row = unsafe { all.slice(r * 2 * width, width) };
        let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / width as f64;
        let variance = row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / width as f64;
        let cutoff = (mean + variance.sqrt() * f64::from(deviations)) as f32;
        // What is not a number stays, so that it is noticed.
        row.iter_mut().for_each(|v| *v = if *v <= cutoff { 0.0 } else { *v - cutoff });
    });
}

/// `1 / (1 + e^-x)`
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// `out = e^((x - shift) / divisor)`; `out` is as long as `x`.
pub(crate) fn exponentials(isa: Isa, x: &[f32], shift: f32, divisor: f32, out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "operands of an exponential do not fit");
    // SAFETY: callers pass a detected instruction set; the lengths agree.
    unsafe { exponentials_on(isa, x, shift, divisor, out) }
}

/// A function of sixteen elements. A trait and no closure: closures do not inherit the instruction set of the function
/// around them.
trait Elementwise {
    unsafe fn apply<L: Lanes>(x: L) -> L;
}

struct Silu;
struct GeluTanh;

impl Elementwise for Silu {
    #[inline(always)]
    unsafe fn apply<L: Lanes>(x: L) -> L {
        // SAFETY: the caller has the instructions.
        unsafe { math::silu(x) }
    }
}

impl Elementwise for GeluTanh {
    #[inline(always)]
    unsafe fn apply<L: Lanes>(x: L) -> L {
        // SAFETY: the caller has the instructions.
        unsafe { math::gelu_tanh(x) }
    }
}

/// `out = f(x) * by`, or `f(x)` if `by` is empty; the last elements are padded with zeros.
#[inline(always)]
unsafe fn each<L: Lanes, F: Elementwise>(x: &[f32], by: &[f32], out: &mut [f32]) {
    let n = x.len();
    let whole = n / LANES * LANES;
    // SAFETY: `i + LANES` is at most `whole`, which none of the slices is shorter than; the caller has the instructions.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            let mut v = F::apply(L::load(x.as_ptr().add(i)));
            if !by.is_empty() {
                v = v.mul(L::load(by.as_ptr().add(i)));
            }
            v.store(out.as_mut_ptr().add(i));
        }
        if whole < n {
            let (mut a, mut b, mut y) = ([0f32; LANES], [1f32; LANES], [0f32; LANES]);
            a[..n - whole].copy_from_slice(&x[whole..]);
            if !by.is_empty() {
                b[..n - whole].copy_from_slice(&by[whole..]);
            }
            F::apply(L::load(a.as_ptr())).mul(L::load(b.as_ptr())).store(y.as_mut_ptr());
            out[whole..].copy_from_slice(&y[..n - whole]);
        }
    }
}

/// `out = (clamp(up) + 1) * g * sigmoid(alpha g)` with `g = min(gate, limit)`.
#[inline(always)]
unsafe fn clamped_swiglu_body<L: Lanes>(gate: &[f32], up: &[f32], alpha: f32, limit: f32, out: &mut [f32]) {
    // SAFETY: the buffers have a vector's elements; the caller has the instructions.
    unsafe {
        for ((gate, up), out) in gate.chunks(LANES).zip(up.chunks(LANES)).zip(out.chunks_mut(LANES)) {
            let (mut g, mut u, mut scaled, mut y) = ([0f32; LANES], [0f32; LANES], [0f32; LANES], [0f32; LANES]);
            for i in 0..gate.len() {
                // Comparisons that keep what is not a number.
                g[i] = if gate[i] > limit { limit } else { gate[i] };
                u[i] = up[i].clamp(-limit, limit) + 1.0;
                scaled[i] = g[i] * alpha;
            }
            // `alpha g sigmoid(alpha g) / alpha`
            math::silu(L::load(scaled.as_ptr())).mul(L::load(u.as_ptr())).div(L::splat(alpha)).store(y.as_mut_ptr());
            out.copy_from_slice(&y[..gate.len()]);
        }
    }
}

#[inline(always)]
unsafe fn cap_body<L: Lanes>(x: &mut [f32], cap: f32) {
    // SAFETY: `i + LANES` is at most the length; the caller has the instructions.
    unsafe {
        let whole = x.len() / LANES * LANES;
        for i in (0..whole).step_by(LANES) {
            let p = x.as_mut_ptr().add(i);
            math::softcap(L::load(p), L::splat(cap)).store(p);
        }
        let mut rest = [0f32; LANES];
        let n = x.len() - whole;
        rest[..n].copy_from_slice(&x[whole..]);
        math::softcap(L::load(rest.as_ptr()), L::splat(cap)).store(rest.as_mut_ptr());
        x[whole..].copy_from_slice(&rest[..n]);
    }
}

#[inline(always)]
unsafe fn exponentials_body<L: Lanes>(x: &[f32], shift: f32, divisor: f32, out: &mut [f32]) {
    // SAFETY: `i + LANES` is at most `whole`, which neither slice is shorter than; the caller has the instructions.
    unsafe {
        let (shift, divisor) = (L::splat(shift), L::splat(divisor));
        let whole = x.len() / LANES * LANES;
        for i in (0..whole).step_by(LANES) {
            math::exp(L::load(x.as_ptr().add(i)).sub(shift).div(divisor)).store(out.as_mut_ptr().add(i));
        }
        let (mut rest, n) = ([0f32; LANES], x.len() - whole);
        rest[..n].copy_from_slice(&x[whole..]);
        math::exp(L::load(rest.as_ptr()).sub(shift).div(divisor)).store(rest.as_mut_ptr());
        out[whole..].copy_from_slice(&rest[..n]);
    }
}

for_each_isa! { fn exponentials_on(x: &[f32], shift: f32, divisor: f32, out: &mut [f32]) => exponentials_body }
for_each_isa! { fn silu_times(x: &[f32], by: &[f32], out: &mut [f32]) => each, Silu }
for_each_isa! { fn gelu_times(x: &[f32], by: &[f32], out: &mut [f32]) => each, GeluTanh }
for_each_isa! {
    fn clamped_swiglu(gate: &[f32], up: &[f32], alpha: f32, limit: f32, out: &mut [f32]) => clamped_swiglu_body
}
for_each_isa! { fn cap_on(x: &mut [f32], cap: f32) => cap_body }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::kernels::testing::noise;

    #[test]
    fn gates_and_activations_agree_with_their_definition_at_any_width() {
        let team = Team::new(2);
        for width in [1, 15, 16, 33, 20_000] {
            let x: Vec<f32> = noise(2 * 2 * width, 5).iter().map(|v| v * 6.0).collect();
            for activation in [Activation::Silu, Activation::GeluTanh, Activation::GeluErf] {
                let f = |v: f64| match activation {
                    Activation::Silu => v / (1.0 + (-v).exp()),
                    Activation::GeluTanh => {
                        0.5 * v * (1.0 + (0.797_884_560_802_865_4 * (v + 0.044_715 * v * v * v)).tanh())
                    }
                    Activation::ClampedSwiglu { .. } => unreachable!("only with a gate"),
                    Activation::GeluErf => 0.5 * v * (1.0 + libm::erf(v * std::f64::consts::FRAC_1_SQRT_2)),
                };
                let mut gated = vec![0f32; 2 * width];
                gate(&team, activation, &x, width, &mut gated);
                let mut plain = vec![0f32; x.len()];
                activate(&team, activation, &x, &mut plain);
                for (i, (&v, &y)) in x.iter().zip(&plain).enumerate() {
                    assert!((f64::from(y) - f(v.into())).abs() < 2e-6, "{activation:?} {i}");
                }
                for r in 0..2 {
                    for i in 0..width {
                        let (g, u) = (x[r * 2 * width + i], x[r * 2 * width + width + i]);
                        assert_eq!(gated[r * width + i], plain[r * 2 * width + i] * u, "{activation:?} {g}");
                    }
                }
            }
        }
        let mut capped = vec![100.0, -3.0, 0.5];
        scale_and_cap(&team, &mut capped, 1.0, Some(30.0));
        assert!((capped[0] - 30.0 * (100f32 / 30.0).tanh()).abs() < 1e-4 && (capped[2] - 0.499_95).abs() < 1e-4);
    }

    #[test]
    fn clamped_gates_and_cut_gates_are_as_defined() {
        let team = Team::new(2);
        for width in [1, 16, 21] {
            let x: Vec<f32> = noise(3 * 2 * width, 8).iter().map(|v| v * 6.0).collect();
            let (mut gated, mut cut) = (vec![0f32; 3 * width], x.clone());
            gate(&team, Activation::ClampedSwiglu { alpha: 1.702, limit: 1.5 }, &x, width, &mut gated);
            cut_gates(&team, &mut cut, width, 0.5);
            for r in 0..3 {
                let row: Vec<f64> = x[r * 2 * width..][..width].iter().map(|&v| f64::from(v)).collect();
                let mean = row.iter().sum::<f64>() / width as f64;
                let deviation = (row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / width as f64).sqrt();
                for i in 0..width {
                    let (g, up) = (row[i].min(1.5), f64::from(x[r * 2 * width + width + i]).clamp(-1.5, 1.5));
                    let expected = (up + 1.0) * g / (1.0 + (-1.702 * g).exp());
                    assert!((f64::from(gated[r * width + i]) - expected).abs() < 4e-6, "{width} {i}");
                    let expected = (row[i] - mean - 0.5 * deviation).max(0.0);
                    assert!((f64::from(cut[r * 2 * width + i]) - expected).abs() < 4e-6, "{width} {i}");
                    assert_eq!(cut[r * 2 * width + width + i], x[r * 2 * width + width + i]);
                }
            }
        }
    }
}
